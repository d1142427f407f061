"""A target: the figures of one runtime on one machine, read from a TOML file.

`load_target` takes the name of a shipped target or the path of a user's file. The file may start
from another target (`base`). It returns a `Target`, or raises `InputError` with one line: the file,
the key, what is wrong there and what is allowed. `docs/targets.md` explains every key.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from eqsat.cost.fusion import Fusion, Quantized
from eqsat.cost.kinds import COUNTERS, MOVES
from eqsat.cost.target_file import DTYPES, RATES, check_tables
from eqsat.errors import InputError
from eqsat.frozen import frozen
from eqsat.shipped import TARGETS
from eqsat.traits import NEWEST


@frozen
class Rates:
    """The rates that turn the work of a class, or of one operator, into seconds. The computing
    terms add up. A node takes its launch, and the longer of moving bytes and computing.
    """

    launches: int = 1
    launch: float | None = None  # seconds; None: the target's launch
    throughput: float = math.inf  # operations a second, in float32
    per_element: float = 0.0
    per_row: float = 0.0
    per_weight: float = 0.0
    per_cold_weight: float = 0.0  # more than that, where the caches do not hold the weights
    columns: int = 1  # columns of a product are rounded up to a multiple of this
    depth: int = 0  # products of a result that a kernel adds up in one pass over the results; 0: all
    bandwidth: float = 1.0  # as a share of the target's
    relative: Mapping[int, float] = field(default_factory=dict[int, float])  # by data type, the time relative to float32's


@frozen
class Expanded:
    """The versions of an operator that the runtime runs as the nodes of its definition, or on another
    device.
    """

    version: int  # the first such version
    launches: int  # launches more than those of the kernel
    relative: float  # the time relative to the kernel's, where computing decides
    moved: tuple[float, ...] = (1.0,)  # for each node that moves much, its bytes relative to the kernel's


@frozen
class Later:
    """The rates of the later versions of an operator, for which the runtime has another kernel."""

    version: int  # the first such version
    rates: Mapping[str, Any] = field(default_factory=dict[str, Any])  # in place of those before


@frozen
class Declared:
    """The figures that a target gives for one operator."""

    kind: str | None = None  # None: the operator's own class of work
    # Rates in place of the class's
    rates: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # Rates in place of the class's, for its work of one class
    classes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    operations: float | None = None  # operations for each element of the first output
    missing: frozenset[int] = frozenset()  # data types without a kernel; `all_missing` has all types
    all_missing: bool = False
    missing_from: int | None = None  # the first version without a kernel
    expanded: Expanded | None = None
    later: Later | None = None

    def replaced(self, kind: str, opset: int) -> Mapping[str, Any]:
        """Returns the rates in place of the class's, for work of that class in an opset."""
        found = {**self.rates, **self.classes.get(kind, {})}
        return found if self.later is None or opset < self.later.version else {**found, **self.later.rates}


@frozen
class Blocked:
    """The Convs that the runtime converts to a layout in blocks of channels."""

    block: int
    multiple: int
    dtypes: frozenset[int]


@frozen(slots=False)
class Target:
    """The figures of one runtime on one machine."""

    name: str
    about: str
    runtime: str
    launch: float
    # Seconds that a kernel takes longer to start after another one than after itself
    change: float
    # Sizes in bytes and the seconds that they take; empty: moving takes no time
    bandwidth: tuple[tuple[float, float], ...]
    classes: Mapping[str, Rates]
    operators: Mapping[str, Declared]
    relative: Mapping[int, float]
    blocked: Blocked | None = None
    fusions: tuple[Fusion, ...] = ()
    quantized: tuple[Quantized, ...] = ()
    # Operators that the runtime assembles from the nodes of their definition
    assembles: frozenset[str] = frozenset()
    # Groups of rules that never pay on it
    leaves_out: frozenset[str] = frozenset()
    # Groups of rules that pay on no other target; they are in files of their own
    takes_in: frozenset[str] = frozenset()
    # Domains of operators that its runtime has beside the standard's, and that a run may use if asked
    domains: frozenset[str] = frozenset()
    # The opset of `--opset latest`: later ones have operators without kernels in place of others. A
    # model with an operator that loses its kernel before gets an earlier one
    latest: int | None = None
    # Seconds that one operation of the processor takes longer on a subnormal number
    subnormal: float = 0.0
    # Groups of rules that hide a Softmax in a kernel, where nothing keeps out subnormal numbers
    hides_softmax: frozenset[str] = frozenset()
    # Whether the optimizations that change layouts for the kernels of CPUs count
    layouts: bool = True
    # Whether launches take most of a model's time, so that the search goes on for longer to save some
    launch_bound: bool = False
    # Bytes of weights that stay in the caches from one run of a model to the next
    cache: float = math.inf
    weights: float = 0.0  # bytes that the model has
    _found: dict[tuple[str, str, int], Rates] = field(init=False, default_factory=dict[tuple[str, str, int], Rates], compare=False, repr=False)

    @property
    def asks(self) -> bool:
        """Tells whether ONNX Runtime can return the graph that it makes of a model."""
        return self.runtime.startswith("onnxruntime")

    @property
    def start(self) -> float:
        """Returns the seconds that starting a kernel takes in a model."""
        return self.launch + self.change

    @property
    def counts(self) -> bool:
        """Tells whether a launch is all that a node costs, so that times count launches."""
        return not (self.bandwidth or self.operators) and all(replace(rates, launches=1) == Rates() for rates in self.classes.values())

    def holding(self, weights: float) -> Target:
        """Returns the target for a model with so many bytes of weights. Where the caches do not hold them,
        each run reads them from memory.
        """
        return replace(self, weights=weights)

    @property
    def cold(self) -> bool:
        """Tells whether the caches do not hold the weights of the model."""
        return self.weights > self.cache

    def rates(self, kind: str, key: str, opset: int = NEWEST) -> Rates:
        """Returns the rates of an operator's work of a class, in an opset of the operator's domain."""
        found = self._found.get((kind, key, opset))
        if found is None:
            declared = self.operators.get(key)
            found = self.classes.get(kind, Rates())
            if declared is not None:
                found = replace(found, **declared.replaced(kind, opset))
            if not self.cold:
                found = replace(found, per_cold_weight=0.0)
            relative = found.relative if kind in MOVES else {**self.relative, **found.relative}
            found = replace(found, launch=((self.launch if found.launch is None else found.launch) + self.change) * found.launches, relative=relative)
            self._found[kind, key, opset] = found
        return found

    def transfer(self, size: float) -> float:
        """Returns the seconds to move `size` bytes, by a line between the sizes of the file."""
        below = (0.0, 0.0)
        for level in self.bandwidth:
            if size <= level[0]:
                return below[1] + (size - below[0]) * (level[1] - below[1]) / (level[0] - below[0])
            below = level
        return size * below[1] / below[0] if below[0] else 0.0

    def knows(self, key: str) -> bool:
        """Tells whether an operator is described, here or in the table of operators."""
        return key in self.operators or key in COUNTERS

    def runs(self, key: str, dtype: int) -> bool:
        """Tells whether the runtime has a kernel, as far as the target says."""
        declared = self.operators.get(key)
        return declared is None or not (declared.all_missing or dtype in declared.missing)

    def expanded(self, key: str, version: int) -> Expanded | None:
        """Returns what running a version of an operator as several nodes costs; None if it is one
        kernel.
        """
        declared = self.operators.get(key)
        found = None if declared is None else declared.expanded
        return found if found is not None and version >= found.version else None

    def latest_for(self, keys: Iterable[str], opset: int) -> int | None:
        """Returns the opset of `--opset latest` for a model of these operators at an opset; None if the
        target names none. No operator loses its kernel by a newer version of it.
        """
        if self.latest is None:
            return None
        described = [self.operators[key] for key in keys if key in self.operators]
        without = [declared.expanded.version for declared in described if declared.expanded is not None]
        without += [declared.missing_from for declared in described if declared.missing_from is not None]
        return min([self.latest, *(version - 1 for version in without if version > opset)])


def shipped_targets() -> tuple[str, ...]:
    """Returns the names of the targets that the package ships."""
    return tuple(sorted(path.stem for path in TARGETS.glob("*.toml")))


def load_target(name_or_path: str | Path) -> Target:
    """Returns the target of a name or file. Raises `InputError` if there is none or something in it
    is wrong.
    """
    name = str(name_or_path)
    return _read(Path(name)) if _is_file(name) else _shipped(name)


@cache
def _shipped(name: str) -> Target:
    """Returns a target that the package ships. Its file does not change while a process runs."""
    return _read(_find(name))


def _read(path: Path) -> Target:
    return _build(path.stem, _merged(path, ()), path)


def _is_file(name: str) -> bool:
    return name.endswith(".toml") or "/" in name


def _find(name: str) -> Path:
    if _is_file(name):
        return Path(name)
    if name not in shipped_targets():
        raise InputError(f"{name}: no such target; shipped are {', '.join(shipped_targets())}; a file's name ends in .toml")
    return TARGETS / f"{name}.toml"


def _merged(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    """Returns the tables of a file merged over those of its base, after a check."""
    if path.resolve() in above:
        raise InputError(f"{path}: base: the files start from one another in a circle")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: can not read it: {error.strerror}") from None
    # Also raised for integers and nesting too large for Python
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no TOML: {error}") from None
    check_tables(table, path)
    base = table.pop("base", None)
    if base is None:
        return table
    below = path.parent / base if base.endswith(".toml") else _find(base)
    merged = _merged(below, (*above, path.resolve()))
    for key, value in table.items():
        if key in ("classes", "operators"):
            tables = dict(merged.get(key, {}))
            for name, own in value.items():
                tables[name] = {**tables.get(name, {}), **own}
            merged[key] = tables
        elif key == "relative":
            merged[key] = {**merged.get(key, {}), **value}
        elif key in ("fusions", "quantized"):
            merged[key] = [*merged.get(key, []), *value]
        else:
            merged[key] = value
    return merged


def _build(name: str, table: Mapping[str, Any], path: Path) -> Target:
    if "launch" not in table:
        raise InputError(f"{path}: launch: is missing; say the seconds of a launch, or a base")
    levels = tuple((float(level["bytes"]), level["bytes"] / level["rate"]) for level in table.get("bandwidth", ()))
    blocked = table.get("blocked")
    fusions = (Fusion(frozenset(row["first"]), frozenset(row["second"]), row["becomes"], tuple(row.get("where", ()))) for row in table.get("fusions", ()))
    return Target(
        name,
        table.get("about", ""),
        table.get("runtime", ""),
        float(table["launch"]),
        float(table.get("change", 0.0)),
        levels,
        {kind: Rates(**_rates(own)) for kind, own in table.get("classes", {}).items()},
        {key: _declared(own) for key, own in table.get("operators", {}).items()},
        _by_dtype(table.get("relative", {})),
        None if blocked is None else Blocked(blocked["block"], blocked["multiple"], frozenset(DTYPES[dtype] for dtype in blocked["dtypes"])),
        tuple(fusions),
        tuple(map(_quantized, table.get("quantized", ()))),
        frozenset(table.get("assembles", ())),
        frozenset(table.get("leaves_out", ())),
        frozenset(table.get("takes_in", ())),
        frozenset(table.get("domains", ())),
        table.get("latest"),
        float(table.get("subnormal", 0.0)),
        frozenset(table.get("hides_softmax", ())),
        table.get("layouts", True),
        table.get("launch_bound", False),
        float(table.get("cache", math.inf)),
    )


def _quantized(row: Mapping[str, Any]) -> Quantized:
    dtypes, weights = (frozenset(DTYPES[name] for name in row.get(key, ())) for key in ("dtypes", "weights"))
    return Quantized(frozenset(row["operators"]), row["becomes"], dtypes, weights, row.get("floats", ""))


def _by_dtype(table: Mapping[str, float]) -> dict[int, float]:
    return {DTYPES[name]: float(value) for name, value in table.items()}


def _rates(table: Mapping[str, Any]) -> dict[str, Any]:
    rates = {key: value for key, value in table.items() if key in RATES}
    if "relative" in rates:
        rates["relative"] = _by_dtype(rates["relative"])
    return rates


def _declared(table: Mapping[str, Any]) -> Declared:
    missing = table.get("missing", False)
    names = cast(list[str], missing) if isinstance(missing, list) else []
    classes = {kind: _rates(own) for kind, own in table.get("classes", {}).items()}
    expanded: dict[str, Any] = dict(table.get("expanded", {}))
    if "moved" in expanded:
        expanded["moved"] = tuple(expanded["moved"])
    return Declared(
        table.get("class"),
        _rates(table),
        classes,
        table.get("operations"),
        frozenset(DTYPES[name] for name in names),
        missing is True,
        table.get("missing_from"),
        Expanded(**expanded) if expanded else None,
        Later(later["version"], _rates(later)) if (later := table.get("later")) else None,
    )
