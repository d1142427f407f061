"""Proofs: which rules lead from one term of an e-graph to another, and so which ones a choice uses."""
