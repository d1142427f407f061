"""Cost: the price of a node on a target, from its operator, its attributes and the types around it.

Nothing here runs a model. A target is data (`extract/targets/*.toml`). Counters in `kinds` know the
work of each operator.
"""
