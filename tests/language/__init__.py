"""Tests of the rule language, with wrong rule files in `bad/`."""
