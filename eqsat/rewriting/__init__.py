"""Rewriting: takes one graph through the e-graph and back, and a whole model through several turns."""
