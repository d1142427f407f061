"""The zoo: small models of common architectures with random weights, exported by both exporters of
PyTorch.
"""
