"""Tests of rewriting: the optimized form of a whole graph."""
