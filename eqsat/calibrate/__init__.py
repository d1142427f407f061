"""Calibration: measures this machine on models of one node, and writes the figures as a target's
file.
"""
