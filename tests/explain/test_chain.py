"""Chains: every step is a valid model that computes the same, and the last one is the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

from eqsat.explain.explanation import Explanation, explain
from eqsat.settings import Settings
from tests.support.models import parse

ROOTS = """
real rule root:
    Sqrt(Mul(x, x)) => Abs(x)
    test x: T[2]

exact rule twice:
    Abs(Abs(x)) => Abs(x)
    test x: T[2]
"""
CHAIN = "g (float[8] x) => (float[8] y) { a = Mul (x, x)  b = Sqrt (a)  c = Mul (b, b)  d = Sqrt (c)  y = Exp (d) }"

MOVES = """
exact rule out:
    Add(Neg(x), Neg(y)) => Neg(Add(x, y))
    test x: T[2], y: T[2]

exact rule twice:
    Neg(Neg(x)) => x
    test x: T[2]
"""
AROUND = "g (float[8] x, float[8] z) => (float[8] y) { a = Neg (x)  b = Neg (z)  c = Add (a, b)  d = Neg (c)  y = Exp (d) }"


def explained(text: str | onnx.ModelProto, rules: str = "", keep: Any = None, **settings: Any) -> Explanation:
    model = parse(text) if isinstance(text, str) else text
    own = {"rules": [rules], "only": ["rules"]} if rules else {}
    return explain(model, Settings(**{"target": "launches", **own, **settings}), keep=keep)


def models(text: str | onnx.ModelProto, rules: str = "", **settings: Any) -> tuple[Explanation, list[onnx.ModelProto]]:
    found: list[onnx.ModelProto] = []

    def keep(index: int, model: onnx.ModelProto, folder: Path | None) -> None:
        assert index == len(found)
        found.append(model)

    return explained(text, rules, keep, **settings), found


def test_a_chain_names_the_rule_of_each_step() -> None:
    found = explained(CHAIN, ROOTS)
    print([(step.kind, step.rules, step.gone, step.came, step.before, step.after) for step in found.steps])
    found = explained(AROUND, MOVES)
    print([(step.kind, step.rules, step.gone, step.came, step.before, step.after) for step in found.steps])
    assert 0
