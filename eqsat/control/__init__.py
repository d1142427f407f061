"""Simplification of control flow, sequences and optionals into plain nodes."""
