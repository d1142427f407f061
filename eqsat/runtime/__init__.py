"""Runtimes: a worker process for ONNX Runtime, onnx's reference and onnx's passes."""
