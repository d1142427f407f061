"""The effect of rounding on the outputs of a model.

It disturbs every float that enters or leaves a node by a unit in its last place. The input is a
model, inputs, and the engine that runs it. The output is several sets of outputs of the disturbed
model. So a cancellation shows, wherever in the model it is: values that move much may be rounded
much. Bodies are disturbed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import ValueInfoProto, helper, numpy_helper

from eqsat.runtime.onnx_passes import inlined
from eqsat.runtime.session import Session
from eqsat.verification import tolerance
from eqsat.verification.last_places import ulp
from eqsat.verification.leaves import is_float, plain, same

from .chance import Array
from .scope import element_code

DRAWS = 12
_KINDS = ("float16", "float32", "float64")

Opener = Callable[[bytes], Session]


def everything(proto: onnx.ModelProto, inputs: Mapping[str, Any], opener: Opener) -> dict[str, Any]:
    """Returns all values of the main graph's nodes, with functions inlined."""
    shown = onnx.ModelProto()
    shown.CopyFrom(inlined(proto) if proto.functions else proto)
    known = {value.name for value in shown.graph.output}
    # No runtime returns an optional.
    results = (name for node in shown.graph.node if node.op_type != "Optional" for name in node.output if name)
    shown.graph.output.extend(ValueInfoProto(name=name) for name in results if name not in known)
    names = list(dict.fromkeys(value.name for value in shown.graph.output))
    return dict(zip(names, opener(shown.SerializeToString()).run(inputs, names), strict=True))


def disturbed(proto: onnx.ModelProto, inputs: Mapping[str, Any], opener: Opener, names: list[str], draws: int = DRAWS) -> Iterator[list[Any]]:
    """Yields the outputs `names` under disturbances; none if the model cannot be disturbed so."""
    for constants in (True, False):
        found = 0
        for outputs in _disturbed(proto, inputs, opener, names, constants, draws):
            found += 1
            yield outputs
        if found == draws:
            return  # otherwise some constant decides a size


def _disturbed(proto: onnx.ModelProto, inputs: Mapping[str, Any], opener: Opener, names: list[str], constants: bool, draws: int) -> Iterator[list[Any]]:
    try:
        noisy, shapes = _noisy(proto, inputs, opener, constants)
        session = opener(noisy.SerializeToString())
    except Exception:  # the runtime may refuse unknown nodes inside a model
        return
    generator = np.random.default_rng(0)
    for _ in range(draws):
        noise = {name: _factors(array, generator) for name, array in shapes.items()}
        try:
            yield session.run({**inputs, **noise}, names)
        except Exception:  # sizes and indices may depend on disturbed values
            continue


def _factors(array: Array, generator: np.random.Generator) -> Array:
    off = np.finfo(array.dtype).eps * generator.choice([-1.0, 1.0], array.shape)
    return np.asarray(1 + off).astype(array.dtype)


def _noisy(proto: onnx.ModelProto, inputs: Mapping[str, Any], opener: Opener, with_constants: bool) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Returns the model with a factor at each float.

    It also returns, by the name of each factor, an array of its shape.
    """
    values = everything(proto, inputs, opener)
    result = onnx.ModelProto()
    result.CopyFrom(inlined(proto) if proto.functions else proto)
    graph = result.graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer} if with_constants else {}
    shapes: dict[str, Array] = {}
    nodes: list[onnx.NodeProto] = []
    renamed: dict[str, str] = {}
    for name, array in (constants | dict(inputs)).items():
        if _takes_noise(array):
            renamed[name] = f"{name}//off"
            nodes.append(_factor(name, renamed[name], array, shapes))
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        nodes.append(node)
        for place, name in enumerate(node.output):
            if name and node.op_type != "Identity" and _takes_noise(values.get(name)):
                node.output[place] = f"{name}//exact"
                nodes.append(_factor(node.output[place], name, values[name], shapes))
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)
    # These inputs have no shapes: the runtime and ONNX disagree on some, and ONNX would then refuse
    # the model.
    graph.input.extend(helper.make_tensor_value_info(name, element_code(array.dtype), None) for name, array in shapes.items())
    del graph.value_info[:]
    return result, shapes


def _takes_noise(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.name in _KINDS and array.size > 0


def _factor(source: str, target: str, array: Array, shapes: dict[str, Array]) -> onnx.NodeProto:
    shapes[f"{target}//factor"] = array
    return helper.make_node("Mul", [source, f"{target}//factor"], [target])


class Apart:
    """One array of both models, and how far either moves."""

    def __init__(self, left: Array, right: Array) -> None:
        self.unequal = ~same(plain(left), plain(right))
        self._sides = left, right
        self._plain = plain(left), plain(right)
        self._float = is_float(left)
        self._spread = np.zeros(self.unequal.shape)
        self._near = np.zeros(self.unequal.shape, bool)

    def moved(self, side: int, array: Array) -> None:
        """Takes note of the disturbed array of a side (0: left)."""
        clean, now = self._plain[side], plain(array)
        if now.shape != clean.shape:
            return
        if not self._float:
            self._near |= now != clean
            return
        with np.errstate(all="ignore"):
            change = np.abs(now.astype(np.float64) - clean.astype(np.float64))
        finite = np.isfinite(now) & np.isfinite(clean)
        self._near |= ~finite & ~same(now, clean)
        self._spread = np.maximum(self._spread, np.where(finite, change, 0))

    def unexplained(self) -> str:
        """Returns how many elements differ by more than the disturbances explain; empty if none."""
        if not self._float:
            count = int((self.unequal & ~self._near).sum())
            return f"{count} elements" if count else ""
        a, b = (side.astype(np.float64) for side in self._plain)
        finite = np.isfinite(a) & np.isfinite(b)
        with np.errstate(all="ignore"):
            error = np.where(finite, np.abs(a - b), 0.0)
        size = np.where(finite, np.maximum(np.abs(a), np.abs(b)), 0.0)
        allowed = tolerance.MULTIPLE * self._spread + tolerance.ULPS * ulp(size, self._sides[0].dtype)
        wrong = self.unequal & np.where(finite, error > allowed, ~self._near)
        if not wrong.any():
            return ""
        worst = np.unravel_index(np.argmax(np.where(wrong & finite, error / allowed, 0)), error.shape)
        return f"{int(wrong.sum())} elements, one by {error[worst]:.3g} over a tolerance of {allowed[worst]:.3g}, {a[worst]!r} and {b[worst]!r}"
