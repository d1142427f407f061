"""Calibration: times cases, fits rates to them, and writes a target's file.

`calibrate` takes under a minute on an idle machine. The file starts from the shipped
`onnxruntime-cpu`, whose figures it replaces with measured ones, rounded to three digits.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eqsat.calibrate.block_size import channels_of_a_block
from eqsat.calibrate.cases import BANDWIDTH, all_cases, launches, other_dtypes, subnormal
from eqsat.calibrate.fitting import DEPTH, FILLED, PACKED, fit, usual_throughput
from eqsat.calibrate.timing import Timed, runtime_version, time_cases
from eqsat.cost.price import price, work
from eqsat.cost.subnormals import VECTOR, delay
from eqsat.cost.target import Declared, Rates, Target, load_target
from eqsat.cost.workload import Work
from eqsat.facts.fact import dtype_name

BASE = "onnxruntime-cpu"

# Elementwise operators that some cases run with broadcasting.
_BROADCAST = frozenset({"Add", "Mul"})

# Rates that add nothing.
_NEUTRAL = {"throughput": math.inf, "per_element": 0.0, "per_row": 0.0, "per_weight": 0.0}

# Classes whose operators differ too much for one figure. Each operator that was timed has its own.
_OWN_FIGURES = frozenset(
    """elementwise norm softmax softmax_outer softmax_swapped reduction reduction_apart reduction_outer reduction_middle reduction_single pool
    pool_blocked copy gather scatter quantize scan sort fourier fill random sample transpose quantized_matmul attention recurrent""".split()
)


# Two times of the same work differ by less than this share of one, also while something else runs.
# A processor that is slow with subnormal numbers takes tens of times as long.
_NOISE = 0.5


@dataclass(frozen=True)
class Calibration:
    """The tables of a target's file, and the cases that they come from."""

    tables: dict[str, Any]
    timed: list[Timed]


def calibrate(progress: Callable[[str], None]) -> Calibration:
    """Measures this machine and the installed runtime."""
    chains = launches()
    dtypes = list(other_dtypes())
    tiny, usual = subnormal()
    cases = all_cases()
    timed = time_cases([*chains.values(), *BANDWIDTH, tiny, usual, *(case for _, _, *pair in dtypes for case in pair), *cases], progress)
    by_case = {id(each.case): each for each in timed}

    def taken(wanted: Iterable[object]) -> list[Timed]:
        return [by_case[id(case)] for case in wanted if id(case) in by_case]

    launch = {kind: by_case[id(case)].seconds for kind, case in chains.items() if id(case) in by_case}
    relative: dict[str, dict[str, float]] = defaultdict(dict)
    for kind, name, own, like in dtypes:
        if id(own) in by_case:
            relative[kind][name] = _rounded(by_case[id(own)].seconds / by_case[id(like)].seconds)
    shipped = load_target(BASE)
    measured = [(each, work(each.node, shipped)) for each in taken(cases)]
    tables: dict[str, Any] = {
        "about": "measured by eqsat calibrate, one thread",
        "base": BASE,
        "runtime": runtime_version(),
        "launch": _rounded(launch["elementwise"]),
        "subnormal": _slower(*taken((tiny, usual))),
        "bandwidth": _levels(taken(BANDWIDTH), launch["elementwise"]),
        "relative": relative.pop("elementwise"),
        **_blocked(shipped),
        **_fitted(measured, launch, shipped),
    }
    for kind, factors in relative.items():
        tables["classes"][kind]["relative"] = factors
    return Calibration(tables, timed)


def _slower(tiny: Timed, usual: Timed) -> float:
    """Returns how much longer an operation on a subnormal number takes, from two products.

    It is 0 where the processor takes them at full speed: any other cost tells the optimizer to keep
    them out of a Softmax.
    """
    longer = tiny.seconds - usual.seconds
    return _rounded(longer / delay(tiny.node, 1.0, 1.0)) if longer > _NOISE * usual.seconds else 0.0


def _levels(timed: Sequence[Timed], launch: float) -> list[dict[str, float]]:
    levels: list[dict[str, float]] = []
    before = 0.0
    for each in timed:
        size = 8.0 * (each.node.outputs[0].elements if each.node.outputs[0] is not None else 0)
        # More bytes never take less time, whatever the noise of a measurement shows.
        seconds = max(each.seconds - launch, before * 1.01, 1e-9)
        levels.append({"bytes": size, "rate": _rounded(size / seconds)})
        before = size / levels[-1]["rate"]
    return levels


def _blocked(shipped: Target) -> dict[str, Any]:
    """Returns the table of the layout in blocks, if the runtime has one on this machine."""
    block = channels_of_a_block()
    if block is None or shipped.blocked is None:
        return {}
    dtypes = sorted(dtype_name(dtype) for dtype in shipped.blocked.dtypes)
    return {"blocked": {"block": block, "multiple": shipped.blocked.multiple, "dtypes": dtypes}}


def _fitted(measured: Sequence[tuple[Timed, Work]], launch: Mapping[str, float], shipped: Target) -> dict[str, Any]:
    by_kind: dict[str, list[tuple[Timed, Work]]] = defaultdict(list)
    kinds: dict[str, set[str]] = defaultdict(set)
    for timed, done in measured:
        by_kind[done.kind].append((timed, done))
        kinds[timed.case.key].add(done.kind)
    classes: dict[str, dict[str, Any]] = {}
    operators: dict[str, dict[str, Any]] = defaultdict(dict)
    for kind in sorted({*by_kind, *launch}):
        cases = by_kind.get(kind, [])
        start = launch.get(kind, launch["elementwise"])
        rates = fit(kind, cases, start) if cases else {}
        if kind == "elementwise":
            # A run costs the same whatever the operator does in it.
            broadcast = [each for each in cases if each[0].case.key in _BROADCAST]
            rates = {"throughput": usual_throughput(cases), "per_row": fit(kind, broadcast, start)["per_row"]}
        before = shipped.classes.get(kind, Rates())
        if cases:
            # A rate of the base that the fit left out would still count, so it becomes neutral.
            rates |= {name: neutral for name, neutral in _NEUTRAL.items() if name not in rates and getattr(before, name) != neutral}
        if kind in launch:
            rates["launch"] = launch[kind]
        classes[kind] = {name: _rounded(rate) for name, rate in rates.items()} | ({"columns": VECTOR} if kind in FILLED else {})
        classes[kind] |= {"depth": DEPTH} if kind in PACKED else {}
        if kind not in _OWN_FIGURES:
            continue
        for key in sorted({timed.case.key for timed, _ in cases}):
            own = [each for each in cases if each[0].case.key == key]
            later = shipped.operators.get(key, Declared()).later
            earlier = [each for each in own if later is None or each[0].case.opset < later.version]
            figures = _own_figures(kind, earlier, start, rates) if earlier else {}
            if len(kinds[key]) == 1:
                operators[key] = figures
            else:
                operators[key].setdefault("classes", {})[kind] = figures
            after = [] if later is None else [each for each in own if each[0].case.opset >= later.version]
            if later is not None and after:
                operators[key]["later"] = {"version": later.version, **_own_figures(kind, after, start, rates)}
    return {"classes": classes, "operators": dict(sorted(operators.items()))}


def _own_figures(kind: str, cases: Sequence[tuple[Timed, Work]], start: float, rates: Mapping[str, float]) -> dict[str, float]:
    """Returns the rates of one operator of a class, which has these rates."""
    own = fit(kind, cases, start)
    if kind == "elementwise":
        own.setdefault("per_row", rates["per_row"])
    own |= {name: neutral for name, neutral in _NEUTRAL.items() if name not in own and name in rates}
    return {name: _rounded(rate) for name, rate in own.items()}


def _rounded(number: float) -> float:
    return float(f"{number:.3g}")


def deviations(timed: Sequence[Timed], target: Target) -> dict[str, float]:
    """Returns the factor between predicted and measured seconds for the median case, and the factor
    that nine tenths of all cases stay within.
    """
    factors = sorted(max(ratio, 1 / ratio) for ratio in (price(each.node, target).seconds / each.seconds for each in timed))
    return {"median": statistics.median(factors), "nine_tenths": factors[len(factors) * 9 // 10]}
