"""Amounts as people read them: three digits and the prefix of the unit."""

from __future__ import annotations


def scaled(amount: float) -> str:
    """An amount with three digits and the prefix of its unit."""
    if not amount:
        return "0 "
    for prefix, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0), ("m", 1e-3)):
        if amount >= factor:
            return f"{amount / factor:.3g} {prefix}"
    return f"{amount / 1e-6:.3g} u"
