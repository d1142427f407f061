"""Undefined runs: inputs that the runtime accepts, and for which ONNX gives a model no meaning.

A Reshape that takes 0 as a size (`allowzero`) must not leave another size open, because any would
do. ONNX Runtime runs it all the same, and picks one. What the optimizer knows of the size from
elsewhere may be another, so such a run tells nothing about the optimized model.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx

from eqsat.runtime.session import Session
from eqsat.verification.agreement import showing
from eqsat.verification.request import Request
from eqsat.verification.runs import Run


def is_undefined(request: Request, run: Run, opener: Callable[[bytes], Session]) -> bool:
    """Tells whether ONNX does not define the original of `request` on the inputs of a run.

    Only runs with a size of 0 may be undefined. `opener` opens the original with more outputs.
    """
    if run.draw is None or 0 not in run.draw.sizes.values():
        return False
    names = _shapes_with_zeros(request.original)
    if not names:
        return False
    try:
        shapes = opener(showing(request.original, names)).run(run.feeds, names)
    except Exception:  # a run that shows nothing excuses nothing
        return False
    return any(bool((shape == 0).any() and (shape == -1).any()) for shape in shapes)


def _shapes_with_zeros(original: bytes) -> list[str]:
    """Returns the computed shapes of the main graph's Reshapes in which 0 is a size, without those
    that are outputs already.
    """
    graph = onnx.load_model_from_string(original).graph
    computed = {name for node in graph.node for name in node.output}.difference(value.name for value in graph.output)
    zeros = (node for node in graph.node if node.op_type == "Reshape" and any(attribute.name == "allowzero" and attribute.i for attribute in node.attribute))
    return list(dict.fromkeys(node.input[1] for node in zeros if node.input[1] in computed))
