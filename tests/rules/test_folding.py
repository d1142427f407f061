"""A Conv absorbs affine nodes around it, in every order and spelling, and through neutral nodes.

The models are chains: affine steps, a Conv or ConvTranspose, affine steps, perhaps a Relu and the
nodes after it, with neutral nodes in between. The test tries a fixed sample of all such chains, in
which every two choices meet somewhere: two steps in a row, a step and a spelling, a kind of Conv
and a neutral node, and so on.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pytest

import eqsat
from tests.support.models import operators, parse

CHAINS = 4  # chains in one model
CHANNELS = 4
STEPS = ("BatchNormalization", "Mul", "Add", "Sub", "Div", "Sub from", None)
FACTORS = ("Mul", "Div", None)  # steps that may cross padding
SPELLINGS = ("channels", "all axes", "scalar", "one element")
NEUTRAL = ("Identity", "Reshape", "Cast", "Squeeze(Unsqueeze)", "Unsqueeze(Squeeze)", "Transpose(Transpose)", None)
TAILS = ((), ("Relu",), ("Relu", "Add"), ("Relu", "Mul", "Add"), ("Relu", "BatchNormalization"))


@dataclass(frozen=True)
class Kind:
    """A Conv: its attributes, its number of spatial axes, its groups, and its optional parts."""

    axes: int = 2
    groups: int = 1
    bias: bool = False
    pads: bool = False
    strides: bool = False
    transposed: bool = False


KINDS = (
    Kind(),
    Kind(bias=True, pads=True),
    Kind(axes=1, bias=True),
    Kind(axes=3, groups=2),
    Kind(groups=2, bias=True, strides=True),
    Kind(groups=CHANNELS, pads=True, strides=True),
    Kind(transposed=True, bias=True),
    Kind(transposed=True, axes=1, groups=2, strides=True),
)


@dataclass(frozen=True)
class Chain:
    """One choice of each kind."""

    kind: Kind
    before: tuple[str | None, ...]
    after: tuple[str | None, ...]
    neutral: tuple[str | None, ...]  # after each step and after the Conv
    spelling: tuple[str, ...]  # the spelling of each step's constant
    left: tuple[bool, ...]  # whether the constant is the first operand
    tail: tuple[str, ...]

    @cached_property
    def pairs(self) -> set[Any]:
        """Returns the choices that must meet.

        These are neighbors, choices with one between them, each with the kind, and a step with its
        constant.
        """
        steps, between = self.before + self.after, iter(self.neutral)
        row: list[Any] = []
        for place, step in enumerate(steps):
            row += [(f"step {place}", step), (f"neutral {place}", next(between))]
            row += [("kind", self.kind), ("neutral", next(between))] if place == 0 else []
        row.append(("tail", self.tail))
        near = {pair for start in range(len(row)) for pair in itertools.combinations(row[start : start + 3], 2)}
        return near | {(self.kind, item) for item in row} | set(zip(steps, self.spelling, self.left, strict=True))

    @property
    def remains(self) -> Counter[str]:
        return Counter(["ConvTranspose" if self.kind.transposed else "Conv", *self.tail])


def draw(generator: random.Random) -> Chain:
    choose = generator.choice
    kind = choose(KINDS)
    admitted = FACTORS if kind.pads or kind.transposed else STEPS
    return Chain(
        kind,
        (choose(admitted),),
        tuple(choose(STEPS) for _ in range(3)),
        tuple(choose(NEUTRAL) for _ in range(5)),
        tuple(choose(SPELLINGS) for _ in range(4)),
        tuple(choose((False, True)) for _ in range(4)),
        choose(TAILS),
    )


def sample() -> list[Chain]:
    """Returns chains in which every possible pair of choices occurs.

    Of many candidates, each next chain is the one that adds most pairs.
    """
    generator = random.Random(0)
    candidates = [draw(generator) for _ in range(3000)]
    open_pairs = set[Any]().union(*(chain.pairs for chain in candidates))
    chosen: list[Chain] = []
    while open_pairs:
        lacking = next(chain for chain in candidates if chain.pairs & open_pairs)
        best = max([lacking, *generator.sample(candidates, 300)], key=lambda chain: len(chain.pairs & open_pairs))
        chosen.append(best)
        open_pairs -= best.pairs
    return chosen


@dataclass
class Text:
    """The text of a model that grows chain by chain."""

    generator: random.Random = field(default_factory=lambda: random.Random(1))
    inputs: list[str] = field(default_factory=list[str])
    outputs: list[str] = field(default_factory=list[str])
    constants: list[str] = field(default_factory=list[str])
    nodes: list[str] = field(default_factory=list[str])
    names: Iterator[int] = field(default_factory=itertools.count)

    def constant(self, *sizes: int, positive: bool = False) -> str:
        name, count = f"c{next(self.names)}", 1
        for size in sizes:
            count *= size
        sign = 1 if positive else -1  # both signs occur, so that no factor crosses Relu
        values = [self.generator.choice((0.5, 0.75, 1.25, 1.5)) * sign**position for position in range(count)]
        shape = f"[{', '.join(map(str, sizes))}]" if sizes else ""
        self.constants.append(f"float{shape} {name} = {{{', '.join(map(str, values))}}}")
        return name

    def integers(self, *items: int) -> str:
        name = f"c{next(self.names)}"
        self.constants.append(f"int64[{len(items)}] {name} = {{{', '.join(map(str, items))}}}")
        return name

    def node(self, call: str) -> str:
        name = f"v{next(self.names)}"
        self.nodes.append(f"{name} = {call}")
        return name

    def step(self, x: str, step: str | None, axes: int, spelling: str = "channels", left: bool = False) -> str:
        if step is None:
            return x
        if step in ("Neg", "Relu"):
            return self.node(f"{step}({x})")
        if step == "BatchNormalization":
            scale, shift, mean = (self.constant(CHANNELS) for _ in range(3))
            return self.node(f"{step}<epsilon = 0.25>({x}, {scale}, {shift}, {mean}, {self.constant(CHANNELS, positive=True)})")
        ones = (1,) * axes
        shapes = {"channels": (CHANNELS, *ones), "all axes": (1, CHANNELS, *ones), "scalar": (), "one element": (1, 1)}
        c = self.constant(*shapes[spelling])
        if step == "Sub from":
            return self.node(f"Sub({c}, {x})")
        return self.node(f"{step}({c}, {x})" if left and step in ("Mul", "Add") else f"{step}({x}, {c})")

    def neutral(self, x: str, node: str | None, axes: int) -> str:
        rank = axes + 2
        match node:
            case None:
                return x
            case "Cast":
                return self.node(f"Cast<to = 1>({x})")
            case "Reshape":
                return self.node(f"Reshape({x}, {self.integers(*[0] * rank)})")
            case "Squeeze(Unsqueeze)":
                i = self.integers(self.generator.randrange(rank + 1))
                return self.node(f"Squeeze({self.node(f'Unsqueeze({x}, {i})')}, {i})")
            case "Unsqueeze(Squeeze)":
                i = self.integers(0)
                return self.node(f"Unsqueeze({self.node(f'Squeeze({x}, {i})')}, {i})")
            case "Transpose(Transpose)":
                perm = self.generator.sample(range(rank), rank)
                back = sorted(range(rank), key=perm.__getitem__)
                return self.node(f"Transpose<perm = {back}>({self.node(f'Transpose<perm = {perm}>({x})')})")
            case _:
                return self.node(f"{node}({x})")

    def convolution(self, x: str, kind: Kind) -> str:
        weights = self.constant(CHANNELS, CHANNELS // kind.groups, *(2,) * kind.axes)
        operands = ", ".join([x, weights] + [self.constant(CHANNELS)] * kind.bias)
        attributes = [f"group = {kind.groups}"]
        attributes += [f"pads = {[1] * 2 * kind.axes}"] * kind.pads + [f"strides = {[2] * kind.axes}"] * kind.strides
        return self.node(f"{'ConvTranspose' if kind.transposed else 'Conv'}<{', '.join(attributes)}>({operands})")

    def chain(self, chain: Chain) -> None:
        axes = chain.kind.axes
        spelled = list(zip(chain.spelling, chain.left, strict=True))
        between = iter(chain.neutral)
        x = f"x{len(self.inputs)}"
        self.inputs.append(f"float[1, {CHANNELS}, {', '.join(['5'] * axes)}] {x}")
        for step, way in zip(chain.before, spelled[:1], strict=True):
            x = self.neutral(self.step(x, step, axes, *way), next(between), axes)
        x = self.neutral(self.convolution(x, chain.kind), next(between), axes)
        for step, way in zip(chain.after, spelled[1:], strict=True):
            x = self.neutral(self.step(x, step, axes, *way), next(between), axes)
        for step in chain.tail:
            x = self.step(x, step, axes)
        self.outputs.append(f"float[{', '.join('ABCDE'[: axes + 2])}] {x}")

    def __str__(self) -> str:
        lines = "\n    ".join(self.nodes)
        return f"g ({', '.join(self.inputs)}) => ({', '.join(self.outputs)}) <{', '.join(self.constants)}> {{\n    {lines} }}"


def text_of(chains: list[Chain]) -> str:
    text = Text()
    for chain in chains:
        text.chain(chain)
    return str(text)


SAMPLE = sample()
MODELS = [SAMPLE[start : start + CHAINS] for start in range(0, len(SAMPLE), CHAINS)]


@pytest.mark.parametrize("chains", [pytest.param(chains, id=str(place), marks=[pytest.mark.slow] if place % 14 else []) for place, chains in enumerate(MODELS)])
def test_a_conv_absorbs_what_is_affine_around_it(chains: list[Chain]) -> None:
    text = text_of(chains)
    result = eqsat.optimize(parse(text), max_growth=1 << 20, target="launches")
    assert result.report["verify"]["status"] == "equal"
    assert operators(result.model) == sum((chain.remains for chain in chains), Counter()), text


def test_every_two_choices_meet() -> None:
    met = set[Any]().union(*(chain.pairs for chain in SAMPLE))
    kinds = {(kind, (f"neutral {place}", node)) for kind in KINDS for place in range(4) for node in NEUTRAL}
    steps = {((f"step {place}", first), (f"step {place + 1}", second)) for place in (1, 2) for first in STEPS for second in STEPS}
    assert kinds | steps <= met


@pytest.mark.parametrize("step", ["Add", "Sub", "BatchNormalization"])
def test_a_term_before_padding_stays(step: str) -> None:
    text = Text()
    text.inputs.append(f"float[1, {CHANNELS}, 5, 5] x")
    text.outputs.append(f"float[A, B, C, D] {text.convolution(text.step('x', step, 2), Kind(pads=True))}")
    result = eqsat.optimize(parse(str(text)), max_growth=1 << 20, target="launches")
    assert result.report["verify"]["status"] == "equal"
    assert operators(result.model) == Counter({"Conv": 1, "BatchNormalization" if step == "BatchNormalization" else "Add" if step == "Add" else "Sub": 1})
