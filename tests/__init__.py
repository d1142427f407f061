"""Tests: folders that are named after the rooms of eqsat hold the tests of each."""
