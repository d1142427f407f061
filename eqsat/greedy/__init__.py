"""The greedy engine: applies rules destructively, in an order, to a fixed point, as lists of passes do."""
