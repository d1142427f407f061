"""Explanations: the few rules that a result needs, and the chain of rewrites that makes it."""
