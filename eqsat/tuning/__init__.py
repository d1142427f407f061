"""Tuning: several good graphs of a model are timed side by side, and the fastest is kept."""
