"""Tests of choosing: the prices of terms, and the fusions of a runtime among them."""
