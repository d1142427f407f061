"""Verification: whether two models compute the same, and where they do not."""
