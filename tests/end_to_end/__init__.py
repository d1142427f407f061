"""Tests of whole runs: limits, past defects, ONNX's node tests, random models, and large ones."""
