"""Choosing: extracts the cheapest graph from a saturated e-graph and evaluates its constants."""
