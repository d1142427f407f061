"""The rule language: rules as text are parsed, checked against ONNX's schemas, and compiled."""
