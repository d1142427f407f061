"""Latency: measures how fast ONNX Runtime runs a model and its optimized forms."""
