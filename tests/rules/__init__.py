"""Tests of the built-in rules: examples of all, the checker on all, and mutants."""
