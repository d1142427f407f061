"""Tests of control flow that becomes plain nodes."""
