"""The e-graph: egglog holds an encoded graph, rules saturate it, and plain tables come back."""
