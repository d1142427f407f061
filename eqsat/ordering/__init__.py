"""Ordering: in which order steps run so that the least memory is alive at once. Plain data, no models."""
