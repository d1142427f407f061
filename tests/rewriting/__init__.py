"""Tests of rewriting: what a whole graph becomes."""
