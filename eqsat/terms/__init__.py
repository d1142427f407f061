"""Terms: the e-graph's representation of nodes, attributes and constants."""
