"""Tests of choosing: the prices of terms, and the runtime's fusions among them."""
