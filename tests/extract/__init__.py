"""Tests of the extractor."""
