"""Tests of whole runs: limits, defects found once, ONNX's node tests, random models, and large
ones.
"""
