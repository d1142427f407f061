"""Resolved rules: what resolving makes of a parsed rule, and what compiled rules are stored with."""

from __future__ import annotations

from collections.abc import Mapping

from eqsat.frozen import frozen
from eqsat.language import syntax
from eqsat.language.sorts import Sort


@frozen
class Resolved:
    """A rule whose names have meanings, or a member of a family.

    `roots` are the names that both sides define, in the left side's order; "" is a lone expression.
    """

    rule: syntax.Rule
    sorts: Mapping[str, Sort]
    roots: tuple[str, ...]
