"""Shared parts of tests: makers of models, of graphs and of expressions, and comparisons."""
