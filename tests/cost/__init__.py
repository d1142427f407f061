"""Tests of costs: the prices of nodes, and the files of targets."""
