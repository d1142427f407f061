"""Facts: the known type, sizes, bounds and small integer elements of a value, and their inference."""
