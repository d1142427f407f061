"""Comparing: measures models side by side: the results of several optimizers, or two given models."""
