"""Tests of verification and of mending."""
