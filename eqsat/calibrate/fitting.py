"""Fitting: finds rates that explain timed cases.

The time of a case beyond its launch is a sum of counts times rates, none of which is negative.
Deviations count relative to the time, so that small cases weigh as much as large ones.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from eqsat.calibrate.timing import Timed
from eqsat.cost.subnormals import VECTOR
from eqsat.cost.workload import Work, passed

Array = np.ndarray[Any, np.dtype[Any]]

_OPERATIONS = ("operations",)
_PRODUCT = ("operations", "elements")
_ROWS = ("elements", "rows")
_WINDOWS = ("operations", "elements", "rows")

# For each class of work, the counts that explain its time.
_COUNTS: dict[str, tuple[str, ...]] = {
    "matmul": ("operations", "elements", "weights"),
    "gemm": ("operations", "elements", "weights"),
    "product": ("operations", "elements", "weights", "rows"),
    "product_vector": ("operations", "rows"),
    "elementwise": ("operations", "rows"),
    "einsum": _PRODUCT,
    "conv": _WINDOWS,
    "grouped": _WINDOWS,
    "depthwise": _WINDOWS,
    "conv_blocked": _WINDOWS,
    "grouped_blocked": _OPERATIONS,
    "depthwise_blocked": _WINDOWS,
    "transposed_conv": _PRODUCT,
    "quantized_matmul": _PRODUCT,
    "quantized_conv": _PRODUCT,
    "attention": ("operations", "elements", "rows"),
    "recurrent": ("operations", "rows"),
    "norm": _ROWS,
    "softmax": _ROWS,
    "softmax_outer": _ROWS,
    "softmax_swapped": ("elements",),
    "reduction": _ROWS,
    "reduction_outer": _ROWS,
    "reduction_middle": _ROWS,
    "reduction_single": ("elements",),
    "reduction_apart": ("elements",),
    "copy": ("elements", "rows"),
    "gather": ("elements", "rows"),
    "transpose_runs": _ROWS,
    "transpose_inward": _ROWS,
    "pool": ("operations", "elements", "rows"),
    "pool_line": _PRODUCT,
    "pool_steps": _PRODUCT,
    "pool_blocked": _PRODUCT,
    "resize_nearest": _ROWS,
    "resize_blocked": _PRODUCT,
    "sort": _OPERATIONS,
    "fourier": _OPERATIONS,
    "sample": _OPERATIONS,
}
FILLED = frozenset({"matmul", "gemm", "product", "conv_blocked", "quantized_matmul"})
"""Classes whose kernels pad columns."""
PACKED = frozenset({"matmul", "gemm"})
"""Classes whose kernels pack their second factor for `DEPTH` products of a result at a time."""
DEPTH = 256

_RATES = {"elements": "per_element", "rows": "per_row", "weights": "per_weight"}


def fit(kind: str, cases: Sequence[tuple[Timed, Work]], launch: float) -> dict[str, float]:
    """Returns the rates of a class of work, by key of a target's file."""
    # A count that is 0 in all cases does not reveal its rate.
    names = [name for name in _COUNTS.get(kind, ("elements",)) if any(_count(kind, work, name) for _, work in cases)]
    counts = np.array([[_count(kind, work, name) for name in names] for _, work in cases])
    seconds = np.array([max(timed.seconds - launch, timed.seconds * 0.1) for timed, _ in cases])
    found = _least(counts / seconds[:, None])
    rates: dict[str, float] = {}
    for name, rate in zip(names, found, strict=True):
        if name == "operations":
            rates["throughput"] = 1.0 / rate if rate > 0 else float("inf")
        else:
            rates[_RATES[name]] = rate
    return rates


def _count(kind: str, work: Work, name: str) -> float:
    if name == "operations" and kind in FILLED and work.columns:
        return work.operations * -(-work.columns // VECTOR) * VECTOR / work.columns
    if name == "elements" and kind in PACKED:
        return passed(work, DEPTH)
    return float(getattr(work, name))


_solve: Any = np.linalg.lstsq  # pyright does not fully know its declared type


def _least(shares: Array) -> list[float]:
    """Returns the rates x, none negative, for which shares * x is closest to 1 in each row. There
    are at most four unknowns.
    """
    unknowns = shares.shape[1]
    best, least = [0.0] * unknowns, float("inf")
    for size in range(1, unknowns + 1):
        for chosen in combinations(range(unknowns), size):
            part = shares[:, chosen]
            scale = np.maximum(np.abs(part).max(axis=0), 1e-300)
            found: Array = _solve(part / scale, np.ones(len(part)), rcond=None)[0] / scale
            if bool(np.any(found < 0)):
                continue
            rest = float(np.square(part @ found - 1).sum())
            if rest < least * (1 - 1e-9):
                least = rest
                best = [0.0] * unknowns
                for place, index in enumerate(chosen):
                    best[index] = float(found[place])
    return best


def usual_throughput(cases: Sequence[tuple[Timed, Work]]) -> float:
    """Returns the median of operations per second, for operators of a class that nobody timed."""
    return statistics.median(work.operations / timed.seconds for timed, work in cases)
