"""Tests of reading and writing models."""
