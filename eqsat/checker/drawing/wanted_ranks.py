"""Ranks: how many axes the nodes of a left side want their inputs to have, and so all values in front
of them.

The input is the nodes in an executable order. The output is the least and the greatest rank of each
value with which a node that reads it, at once or behind others that keep the rank, can be legal. A
draw that gives a leaf another rank shows that only at that node, and has drawn the others in vain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from eqsat.checker.drawing.left_side import Step
from eqsat.checker.samplers.leaf_shapes import RANK_LIMIT
from eqsat.traits import ELEMENTWISE

Ranks: TypeAlias = tuple[int, int]

_IMAGE: Final[Ranks] = (3, 5)  # that samplers draw: batch, channels, one to three spatial axes
_HEADS: Final = frozenset({"kv_num_heads", "num_heads", "q_num_heads"})  # attributes for inputs whose heads are one behind another

# By operator, the ranks of its first inputs; None: those of any node are legal, or hardly any other.
_WANTED: Final[Mapping[str, tuple[Ranks | None, ...]]] = {
    **dict.fromkeys(("AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool"), (_IMAGE,)),
    **dict.fromkeys(("Conv", "ConvInteger", "ConvTranspose"), (_IMAGE, _IMAGE)),
    **dict.fromkeys(("DepthToSpace", "LRN", "SpaceToDepth"), ((4, 4),)),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization"), (_IMAGE,)),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), ((3, 3), (3, 3), (3, 3))),
    "Attention": ((4, 4), (4, 4), (4, 4)),
    "BatchNormalization": ((2, RANK_LIMIT),),
    "Gemm": ((2, 2), (2, 2)),
    "QLinearConv": (_IMAGE, None, None, _IMAGE),
    "RotaryEmbedding": ((4, 4),),
}

# Operators whose result has the rank of their first input, mostly.
_KEEPS: Final = ELEMENTWISE | frozenset(
    """
    BatchNormalization Clip Concat CumSum DequantizeLinear Identity LayerNormalization LogSoftmax Pad QuantizeLinear RMSNormalization Slice Softmax
    Split Tile Transpose Trilu
    """.split()
)


def wanted_ranks(steps: Iterable[Step]) -> dict[str, Ranks]:
    """The ranks of values that nodes want, by the name of the value."""
    found: dict[str, Ranks] = {}

    def want(name: str | None, ranks: Ranks | None) -> None:
        if name is not None and ranks is not None:
            least, most = found.get(name, ranks)
            both = max(least, ranks[0]), min(most, ranks[1])
            found[name] = both if both[0] <= both[1] else ranks

    for step in reversed(tuple(steps)):
        for name, ranks in zip(step.inputs, _of_inputs(step), strict=False):
            want(name, ranks)
        ranks = found.get(step.outputs[0])
        if ranks is not None and step.operator.name in _KEEPS:
            want(step.inputs[0], ranks)
            for name in step.inputs[1:] if step.operator.name in ELEMENTWISE else ():
                want(name, (0, ranks[1]))
    return found


def _of_inputs(step: Step) -> tuple[Ranks | None, ...]:
    wanted = _WANTED.get(step.operator.name, ())
    return ((3, 3),) * len(wanted) if not _HEADS.isdisjoint(step.slots) else wanted
