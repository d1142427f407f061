"""Latency: how fast ONNX Runtime runs a model, and what optimizers make of it."""
