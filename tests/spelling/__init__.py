"""Tests of the normal form and of old opsets."""
