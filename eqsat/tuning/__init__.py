"""Tuning: times several good graphs of a model side by side and keeps the fastest."""
