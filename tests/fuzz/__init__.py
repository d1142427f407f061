"""The differential fuzzer: it optimizes random models and compares them with the originals.

Both run on the runtime and on the reference.
"""
