"""Tests of the runtimes and their worker."""
