"""The sorts of the rule language: what a name can stand for."""

from __future__ import annotations

from enum import StrEnum


class Sort(StrEnum):
    """What a name or an expression is. The values are the words that messages use."""

    TENSOR = "tensor"
    TENSORS = "list of tensors"  # what `..xs` binds among the inputs of an operator
    INTEGER = "integer"
    FLOAT = "float"
    STRING = "string"
    BOOLEAN = "condition"
    LIST = "list"  # of integers, as parameters and most attributes are; of floats or strings where an attribute is
    DTYPE = "data type"
    ATTRIBUTES = "attributes"  # what `..p` binds between angle brackets
