"""Tests of the house itself: its layers, documents and packages."""
