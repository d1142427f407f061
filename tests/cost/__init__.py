"""Tests of facts: sizes, types and small integers, against what runtimes compute."""
