"""Tests of the built-in rules: examples, the checker, and mutants."""
