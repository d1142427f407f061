"""Facts: the known type, sizes and small integer elements of a value, and their inference."""
