"""Beyond rules: changes of a whole model that no rule can make, kept where its valuation is better.

The input is a model and a valuation. The output is the changed model, or the model itself. Most changes
concern a runtime that is slow, or refuses a model, for what no node shows: the order of the nodes, the
ranks of numbers, subnormal weights, sizes that nobody declares, and names.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import onnx

from eqsat.model.validity import light
from eqsat.rewriting.clashes import may_clash, with_other_names
from eqsat.rewriting.declared_sizes import with_declared_sizes
from eqsat.rewriting.faint_weights import without_faint_weights
from eqsat.rewriting.lost_outputs import with_outputs_kept
from eqsat.rewriting.raising import raised
from eqsat.rewriting.ranks import with_full_ranks
from eqsat.rewriting.valuation import Valuation
from eqsat.runtime.onnx_passes import NativeFailure, inferred


def arrange(model: onnx.ModelProto, folder: Path | None, valuation: Valuation) -> onnx.ModelProto:
    """Returns the model in an order of a lower peak if memory is the objective, or else the model
    itself.
    """
    if valuation.objective != "memory":
        return model

    from eqsat.rewriting.node_order import reordered

    return reordered(model, folder, valuation.sizes)


def widen_numbers(model: onnx.ModelProto, folder: Path | None, valuation: Valuation) -> onnx.ModelProto:
    """Returns the model with numbers of full rank where that is faster, or else the model itself."""
    if valuation.objective != "time" or not valuation.target.rates("elementwise", "Mul").per_row:
        return model

    def widened() -> onnx.ModelProto:
        found = with_full_ranks(model, lambda: model if model.graph.value_info else _typed(model))
        # The runtime knows no Gelu by numbers of four axes.
        return model if found is not model and valuation.is_worse(found, model, folder) else found

    return valuation.widened.of(model, widened)


def raise_scores(model: onnx.ModelProto, folder: Path | None, valuation: Valuation) -> onnx.ModelProto:
    """Returns the model without subnormal numbers where that is faster, or else the model itself."""
    faint = valuation.faint(model, folder) if valuation.objective == "time" else {}
    if not faint:
        return model
    found = raised(model, faint)
    return found if found is not model and valuation.is_better(found, model, folder) else model


def flush_weights(model: onnx.ModelProto, folder: Path | None, valuation: Valuation) -> onnx.ModelProto:
    """Returns the model without subnormal weights, or the model itself if these do not slow the target down."""
    return without_faint_weights(model, folder) if valuation.target.subnormal and valuation.objective == "time" else model


def declare_sizes(model: onnx.ModelProto, folder: Path | None, valuation: Valuation, most: float) -> onnx.ModelProto:
    """Returns the model with sizes declared, in at most `most` bytes, where the runtime then makes a
    better graph of it, or else the model itself. Models of which it is not asked, large ones too, stay.
    """
    if not valuation.asks or not valuation.figures(model, folder).asked:
        return model
    found = with_declared_sizes(model, lambda: _typed(model), most)
    return found if found is not model and valuation.is_better(found, model, folder) else model


def keep_loadable(model: onnx.ModelProto, original: onnx.ModelProto, folder: Path | None, valuation: Valuation) -> onnx.ModelProto:
    """Returns a model made of an original, with the outputs kept that ONNX Runtime would lose, or the
    same under other names if it refuses it for its names. Where the target does not ask it, names
    tell whether it may.
    """
    if model is original:
        return model
    model = with_outputs_kept(model)
    if valuation.asks:
        valuation.figures(original, folder)  # if the runtime refuses this one, it is asked no more
    if not valuation.asks:
        return with_other_names(model) if may_clash(model.graph) else model
    if valuation.loads(model, folder):
        return model
    found = with_other_names(model)
    return found if valuation.loads(found, folder) else model


def _typed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with the types that ONNX's inference finds, or the model itself if it refuses it."""
    with suppress(NativeFailure):
        return inferred(light(model))
    return model
