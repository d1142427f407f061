"""Rewriting: one graph through the e-graph and back, and a whole model in turns."""
