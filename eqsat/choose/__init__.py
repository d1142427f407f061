"""Choosing: extraction finds the cheapest graph of a saturated e-graph, and its constants are
computed.
"""
