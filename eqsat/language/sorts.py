"""The sorts of the rule language: the kinds of value that a name can stand for."""

from __future__ import annotations

from enum import StrEnum


class Sort(StrEnum):
    """The sort of a name or an expression. The values are the words that messages use."""

    TENSOR = "tensor"
    TENSORS = "list of tensors"  # bound by `..xs` among the inputs of an operator
    INTEGER = "integer"
    FLOAT = "float"
    STRING = "string"
    BOOLEAN = "condition"
    # Of integers in parameters and most attributes; of floats or strings in other attributes.
    LIST = "list"
    DTYPE = "data type"
    ATTRIBUTES = "attributes"  # bound by `..p` between angle brackets
