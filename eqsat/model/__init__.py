"""Models: graphs of nodes over named values, read from ONNX files and written back to them."""
