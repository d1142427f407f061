"""Comparing: models beside one another: those that optimizers make, each in a process of its own, or two given ones."""
