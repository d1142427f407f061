"""Comparisons: every optimizer is a row, whatever it does."""
