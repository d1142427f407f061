"""Tests of the rule checker, with wrong rules in `wrong/`."""
