"""Tests of rules in the e-graph, of their phases and of rules that grow the graph."""
