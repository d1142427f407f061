"""Tests of why a rule fires."""
