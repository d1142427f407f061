"""The predicted time of each node of a flat graph, as far as the runtime gives it a kernel.

The runtime fuses nodes before it runs a model. A kernel is priced at the node whose value it
computes. Other nodes name the next kernel that their values reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx

from eqsat.page.flat import Step, bare
from eqsat.rewriting.valuation import Row, Valuation
from eqsat.runtime.own_graph import NoGraph


def kernels(valuation: Valuation, model: onnx.ModelProto, folder: Path | None) -> list[Row]:
    """Returns the price of each kernel that runs for a model; none if the runtime refuses it."""
    try:
        return valuation.rows(model, folder)
    except NoGraph:
        return []


def at_nodes(steps: Sequence[Step], rows: Sequence[Row]) -> tuple[dict[int, list[int]], dict[int, int]]:
    """Returns the kernels of each node that has some, and for other nodes the node whose kernel is
    the next one that their values reach. Kernels are numbers of `rows`.

    A kernel whose value no node computes belongs to the node that it leads to.
    """
    makers = {bare(key): number for number, step in reversed(list(enumerate(steps))) for key in step.outputs if key}
    own: dict[int, list[int]] = {}
    leads: dict[str, int] = {}
    for number, row in reversed(list(enumerate(rows))):
        names = [name for name in row.outputs if name]
        node = next((table[name] for table in (makers, leads) for name in names if name in table), None)
        if node is not None:
            own.setdefault(node, []).insert(0, number)
            leads.update(dict.fromkeys(row.inputs, node))
    reached: dict[str, int] = {}
    others: dict[int, int] = {}
    for number, step in reversed(list(enumerate(steps))):
        found = number if number in own else next((reached[key] for key in step.outputs if key in reached), None)
        if found is None:
            continue
        if number not in own:
            others[number] = found
        reached.update(dict.fromkeys((*step.inputs, *step.results), found))
    return own, others
