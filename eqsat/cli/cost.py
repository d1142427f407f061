"""The command line of costs: `eqsat cost MODEL`."""

from __future__ import annotations

import argparse
import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eqsat.cli.options import add_settings, count, given_settings
from eqsat.cli.progress import shown_progress
from eqsat.cli.single_thread import stay_single_threaded
from eqsat.cli.streams import source_of
from eqsat.cli.summary import assumed
from eqsat.errors import InputError
from eqsat.parameters.amounts import scaled

if TYPE_CHECKING:
    import onnx

    from eqsat.rewriting.valuation import Row, Valuation

_RUNS = 50


def add_cost(commands: Any) -> None:
    """Adds `cost` to the commands of a parser."""
    cost = commands.add_parser("cost", help="show the cost of a model on a target, by operator and by node")
    cost.add_argument("model", metavar="MODEL", help="an ONNX file; - reads it from standard input")
    add_settings(cost, ("target", "assume_dims", "custom_op_library"))
    cost.add_argument("--top", type=count, default=10, metavar="N", help="how many of the most expensive nodes are shown (default: 10)")
    cost.add_argument("--measure", action="store_true", help="run the model as well, and put the time of each node beside its prediction")
    cost.add_argument("--json", action="store_true", help="print one JSON object, with all nodes")
    cost.set_defaults(command=_cost)


def _cost(options: argparse.Namespace) -> int:
    stay_single_threaded()

    from eqsat.cost.target import load_target
    from eqsat.model.file_bytes import written_bytes
    from eqsat.model.prepare import check_dimensions
    from eqsat.model.read import read
    from eqsat.rewriting.valuation import Valuation
    from eqsat.runtime.worker import shared
    from eqsat.settings import Settings
    from eqsat.verification.relations import with_fixed_sizes

    settings = Settings(**given_settings(options))
    target = load_target(settings.target)
    if options.measure and not target.layouts:
        raise InputError(f"--measure times the model on this machine's processor, and target {target.name} is for another device")
    valuation = Valuation(target, "time", settings.assume_dims, settings.custom_operators, shared())
    model = read(source_of(options.model))
    check_dimensions(model.proto, settings.assume_dims)
    valuation.target = target.holding(written_bytes(model.proto.graph))
    valuation.sizes = with_fixed_sizes(settings.assume_dims, model.proto)
    with shown_progress(options.json) as progress:
        progress("price")
        rows = _measured(valuation, model.proto, model.folder) if options.measure else valuation.rows(model.proto, model.folder)
    record = {
        "model": options.model,
        "target": valuation.target.name,
        "asked": valuation.asks,
        "sizes": valuation.assumed_by_name(model.proto),
        **_record(rows),
    }
    print(json.dumps(record) if options.json else "\n".join(_lines(record, options.top)))
    return 0


def _measured(valuation: Valuation, model: onnx.ModelProto, folder: Path | None) -> list[Row]:
    """The prices and the times of a model on random inputs."""
    from eqsat.cost.shaped import assumed_size
    from eqsat.runtime.own_graph import NoGraph
    from eqsat.runtime.refusals import refusal
    from eqsat.verification.planning import make_plan
    from eqsat.verification.sample_plan import NORMAL, Draw
    from eqsat.verification.samples import draw

    try:
        plan = make_plan(model)
        sizes = plan.with_computed({name: assumed_size(name, valuation.sizes) for name in plan.symbols})
        if sizes is None:
            raise ValueError(f"no sizes fit the names {', '.join(plan.computed)}")
        return valuation.measured(model, folder, draw(plan, Draw(sizes, NORMAL, 0)), _RUNS)
    except (NoGraph, NotImplementedError, ValueError) as error:
        raise InputError(f"the model can not be measured: {refusal(str(error))}") from None


def _record(rows: Sequence[Row]) -> dict[str, Any]:
    """The prices as plain data: the sums, those of each operator, and each node."""
    nodes: list[dict[str, Any]] = [
        {
            "name": row.name,
            "operator": row.operator,
            "launches": row.price.launches,
            "bytes": row.price.bytes,
            "operations": row.price.operations,
            "seconds": row.price.seconds,
            "bound": row.price.bound,
            "known": row.known,
            "measured": row.measured,
        }
        for row in rows
    ]
    operators: dict[str, list[dict[str, Any]]] = {}
    for node in nodes:
        operators.setdefault(node["operator"], []).append(node)
    sums: list[dict[str, Any]] = [{"operator": name, **_sums(group)} for name, group in operators.items()]
    return {
        "total": _sums(nodes),
        "operators": sorted(sums, key=lambda group: (-group["seconds"], group["operator"])),
        "nodes": nodes,
        "unknown": sorted({row.operator for row in rows if not row.known}),
        "rank_correlation": _rank_correlation(nodes),
    }


def _sums(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums over nodes. The measured times have a sum only if each node has one."""
    sums: dict[str, Any] = {"nodes": len(nodes)}
    for key in ("launches", "bytes", "operations", "seconds"):
        sums[key] = sum(node[key] for node in nodes)
    sums["measured"] = sum(node["measured"] for node in nodes) if all(node["measured"] is not None for node in nodes) else None
    return sums


def _rank_correlation(nodes: Sequence[Mapping[str, Any]]) -> float | None:
    """Spearman's coefficient of the predicted and the measured times of nodes."""
    from statistics import StatisticsError, correlation

    if any(node["measured"] is None for node in nodes):
        return None
    try:
        return correlation(*(_ranks([node[key] for node in nodes]) for key in ("seconds", "measured")))
    except StatisticsError:
        return None  # fewer than two nodes, or all alike


def _ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value; equal values share the mean of their ranks."""
    ordered = sorted(values)
    ranks = {value: (bisect_left(ordered, value) + bisect_right(ordered, value) - 1) / 2 for value in ordered}
    return [ranks[value] for value in values]


def _lines(record: Mapping[str, Any], top: int) -> list[str]:
    """The record as lines for a terminal."""
    total = record["total"]
    measured = total["measured"] is not None
    head = f"{'launches':>8} {'moved':>10} {'operations':>10} {'predicted':>10}" + (f" {'measured':>10}" if measured else "")
    lines = [f"{'operator':<44} {head}"]
    lines += [f"{group['operator']:<44} {_figures(group, measured)}" for group in (*record["operators"], {"operator": "all", **total})]
    lines += ["", f"{'node':<44} {head}  bound by"]
    expensive = sorted(record["nodes"], key=lambda node: (-node["seconds"], node["name"]))[:top]
    lines += [f"{node['operator'] + ' ' + node['name']:<44.44} {_figures(node, measured)}  {node['bound']}" for node in expensive]
    graph = "the graph that ONNX Runtime makes of the model" if record["asked"] else "the graph as it stands"
    lines += ["", f"target  {record['target']}{assumed(record['sizes'])}, {graph}"]
    if record["rank_correlation"] is not None:
        lines.append(f"ranks   predicted times rank the nodes as measured ones do to {record['rank_correlation']:.2f} (Spearman)")
    if record["unknown"]:
        lines.append(f"unknown {', '.join(record['unknown'])}: the target prices them as slow; a file of yours can declare them")
    return lines


def _figures(group: Mapping[str, Any], measured: bool) -> str:
    time = f" {scaled(group['measured']) + 's':>10}" if measured else ""
    return f"{group['launches']:>8} {scaled(group['bytes']) + 'B':>10} {scaled(group['operations']):>10} {scaled(group['seconds']) + 's':>10}{time}"
