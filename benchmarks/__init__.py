"""Benchmarks: a zoo of real exports that anyone can rebuild, and what optimizers make of it."""
