"""Tensors and nodes as a price sees them: types with a number for each size, and whether a tensor
is constant.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence

import onnx

from eqsat.dimension_names import is_own, sizes_of
from eqsat.facts.dims import Dim, evaluate, plain, symbols
from eqsat.facts.fact import Fact
from eqsat.frozen import frozen
from eqsat.operators import Attributes, full_name
from eqsat.traits import NEWEST

USUAL_SIZE = 64
"""The size of a dimension that has no number and to which the caller gives none."""

_BATCH = re.compile("(.*_)?batch(_.*)?|N|B|bs", re.IGNORECASE)
# Names that exporters make up: of tf2onnx, of Paddle's, of PyTorch's two.
_MADE_UP = re.compile(r"unk__\d+|(p2o\.)?DynamicDimension\.\d+|s\d+|.*_dynamic_axes_\d+")

_ABSURD = 1 << 60  # models may declare sizes that no machine has


@frozen
class Shaped:
    """The type of one tensor. A shape of None has an unknown rank and is priced like one usual
    size.
    """

    dtype: int
    shape: tuple[int, ...] | None
    constant: bool = False

    @property
    def elements(self) -> int:
        """Returns the number of elements of the tensor."""
        return USUAL_SIZE if self.shape is None else min(math.prod(self.shape), _ABSURD)


@frozen
class PricedNode:
    """A node as a price sees it. Trailing absent inputs may be left out; an absent input is None."""

    domain: str  # "" for ONNX's own operators
    name: str
    attributes: Attributes  # defaults may be left out
    inputs: Sequence[Shaped | None]
    outputs: Sequence[Shaped | None]
    trips: int = 1  # how often the body of the node runs, once where that is unknown
    opset: int = NEWEST  # of the domain, which decides the version of the operator
    free_numbers: bool = False  # whether constants of one element will have the rank that suits the kernel

    @property
    def key(self) -> str:
        """Returns the operator as targets and tables write it.

        The approximate Gelu is ONNX Runtime's FastGelu, which is faster than the exact one.
        """
        if self.name == "Gelu" and self.domain == "" and self.attributes.get("approximate") == b"tanh":
            return "com.microsoft.FastGelu"
        return full_name(self.domain, self.name)


def assumed_size(name: str, sizes: Mapping[str, int]) -> int:
    """Returns the size that prices assume for a named dimension. One that `sizes` lacks has the usual
    size, or 1 if its name is that of a batch: models are mostly deployed to answer one request.
    """
    size = sizes.get(name)
    return size if size is not None else 1 if _BATCH.fullmatch(name) else USUAL_SIZE


def batch_sizes(graph: onnx.GraphProto) -> dict[str, int]:
    """Returns 1 for each size of a graph's inputs that seems to be a batch: one of no name, or of a name that
    an exporter made up, which is the first of several axes wherever it occurs.
    """
    firsts: set[int | str] = set()
    others: set[int | str] = set()
    for info in graph.input:
        sizes = sizes_of(info.type.tensor_type, info.name)
        (firsts if len(sizes) > 1 else others).update(sizes[:1])
        others.update(sizes[1:])
    names = sorted(size for size in firsts - others if isinstance(size, str))
    return {name: 1 for name in names if is_own(name) or _MADE_UP.fullmatch(name)}


def shaped(fact: Fact, sizes: Mapping[str, int]) -> Shaped:
    """Returns the known type of a tensor, with `sizes` for the names of dimensions."""
    shape = None if fact.shape is None else tuple(_size(size, sizes) for size in fact.shape)
    return Shaped(fact.dtype, shape, fact.const)


def _size(size: Dim, sizes: Mapping[str, int]) -> int:
    if size is None:
        return USUAL_SIZE
    if isinstance(size, int):
        # A model may declare a negative size. It fails when the model runs, not here.
        return max(size, 0)
    return _known_size(size, tuple([assumed_size(plain(name), sizes) for name in symbols(size)]))


@functools.lru_cache(1 << 12)
def _known_size(size: Dim, sizes: tuple[int, ...]) -> int:
    """Returns a size where its names, sorted, have these sizes. Few sizes make up a model."""
    found = evaluate(size, dict(zip(symbols(size), sizes, strict=True)))
    return max(found or 0, 0)
