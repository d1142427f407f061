"""The differential fuzzer: random models, optimized and compared with what they were, on the
runtime and on the reference.
"""
