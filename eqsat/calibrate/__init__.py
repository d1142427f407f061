"""Calibration: the figures of this machine, measured on models of one node, as a target's file."""
