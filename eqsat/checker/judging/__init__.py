"""Judging: both sides of an instance are computed and compared as the rule's label demands."""
