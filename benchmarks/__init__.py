"""Benchmarks: a zoo of real exports that anyone can rebuild, and the timing of their optimized
forms.
"""
