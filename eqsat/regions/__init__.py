"""Regions: a large graph is cut into regions, and regions that are alike are solved once."""
