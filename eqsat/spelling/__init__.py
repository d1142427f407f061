"""Spelling: nodes of all opsets are read into one normal form, and written back."""
