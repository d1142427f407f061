"""Regions: cuts a large graph into regions, and solves regions that are alike once."""
