"""Kernels: our own evaluation of operators, and the runtimes that compute the rest."""
