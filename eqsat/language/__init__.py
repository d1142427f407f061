"""The rule language: text comes in, rules that are checked against ONNX's schemas and compiled for the e-graph go out."""
