"""The rule checker: both sides of a rule are computed on random instances and compared, for a
verdict on each rule.
"""
