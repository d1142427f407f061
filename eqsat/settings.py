"""Settings: everything that a caller can ask of a run, each with its default and its meaning.

`eqsat.optimize`, the command line and the table of options in docs/options.md all come from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from eqsat.errors import InputError
from eqsat.frozen import frozen
from eqsat.parameters import value_types

if TYPE_CHECKING:
    import numpy as np

    from eqsat.extract import Method

EFFORTS = ("low", "normal", "high")
OBJECTIVES = ("time", "launches", "bytes", "size", "memory")
Objective = Literal["time", "launches", "bytes", "size", "memory"]
ENGINES = ("saturation", "greedy")
METHODS = ("exact", "greedy", "tree")
"""The methods of `eqsat.extract`, by name. The package is imported only when it runs."""

DEFAULTS = ("weights", "all", "none")
"""The inputs with a default value that become constants."""

IN_FILES = "file"
"""The order of rules in which they stand in their files."""
RANDOM = "random:"
"""The beginning of a random order; its seed follows."""

_GROWTH = 2048
"""The bytes that constants of shapes may add to the file of a small model."""

_GROWTH_SHARE = 0.05
"""The part of the original's bytes that folded constants may add. What a constant is computed from
often stays, since something else reads it, such as the weights that every layer applies to the same
positions.
"""

_LARGEST_DIMENSION = (1 << 63) - 1
_MOST_DIGITS = 18  # of a seed


@frozen
class Option:
    """The form of a setting on the command line."""

    help: str
    form: str = ""
    """The form of its value on the command line: S, N, SIZE, FILE, ... A flag has none."""
    flag: str = ""
    """The name of the option. By default it is that of the setting."""
    repeats: bool = False
    choices: tuple[str, ...] = ()


def _option(help: str, form: str = "", flag: str = "", repeats: bool = False, choices: tuple[str, ...] = ()) -> dict[str, Option]:
    return {"option": Option(help, form, flag, repeats, choices)}


_KINDS: Mapping[str, Callable[[str, object], object]] = {
    "": value_types.flag,
    "S": value_types.seconds,
    "N": value_types.whole_number,
    "SIZE": value_types.size_in_bytes,
    "NAME=SIZE": value_types.sizes,
    "FILE.npz": value_types.arrays,
    "FILE.rules": value_types.paths,
    "NAME": value_types.texts,
    "DOMAIN": value_types.texts,
    "OPSET": value_types.text_or_number,
    "FILE": value_types.path,
    "file|random:SEED": value_types.text,
    "LIBRARY": value_types.existing_file,
    "FILE.toml": value_types.path,
    "NAME|FILE.toml": value_types.path,
}
"""By the form of an option's value, the kind of value that Python gives. Any other form is a text."""


def silent(stage: str) -> None:
    """Shows no progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that a caller can ask of a run."""

    verify: bool = field(default=True, metadata=_option("do not compare the result with the original", flag="--no-verify"))
    inputs: Mapping[str, np.ndarray[Any, Any]] | None = field(default=None, metadata=_option("compare on these inputs instead of random ones", "FILE.npz"))
    exact: bool = field(default=False, metadata=_option("keep every bit of every result"))
    strict: bool = field(default=False, metadata=_option("use no rule that holds for finite numbers only, through which NaN or infinity may spread"))
    target: str | Path = field(
        default="onnxruntime-cpu",
        metadata=_option("the runtime to make the result for: onnxruntime-cpu (default), onnxruntime-cuda, generic-gpu, launches, or a file", "NAME|FILE.toml"),
    )
    objective: Objective = field(
        default="time",
        metadata=_option("what to make small: predicted time, kernel launches, bytes moved, bytes of the file, or memory at its peak", choices=OBJECTIVES),
    )
    effort: str = field(
        default="normal",
        metadata=_option("how far rules that may grow the graph are followed: not at all, for some seconds, or long", choices=EFFORTS),
    )
    engine: str = field(
        default="saturation",
        metadata=_option("how rules are applied: all at once in an e-graph, or one after the other, each in place of what it matches", choices=ENGINES),
    )
    order: str = field(
        default=IN_FILES, metadata=_option("the order of the rules for --engine greedy: as in their files (default), or a random one", "file|random:SEED")
    )
    time_limit: float | None = field(default=None, metadata=_option("stop searching after S seconds; the result is valid, and the report names the limit", "S"))
    node_limit: int = field(default=2_000_000, metadata=_option("stop when the e-graph has N nodes", "N"))
    memory_limit: int | str = field(
        default=1 << 30, metadata=_option("memory for evaluating constants, for prices and for verification (1G by default)", "SIZE")
    )
    max_growth: int | str | None = field(
        default=None, metadata=_option("how much larger than the original the file may become (by default 2k, and 5 percent of the original)", "SIZE")
    )
    opset: str | int = field(
        default="keep", metadata=_option("the opset of the result: keep (default), latest (the newest that suits the target), or a number", "OPSET")
    )
    inline: bool = field(
        default=False,
        metadata=_option("inline all of the model's own functions; otherwise those for which it pays, and the others are optimized where they are"),
    )
    strip_metadata: bool = field(
        default=False, metadata=_option("drop documentation, metadata_props and the producer's name; names, types and the interface stay")
    )
    dims: Mapping[str, int] = field(
        default_factory=dict[str, int], metadata=_option("give a named dimension its size for good", "NAME=SIZE", "--dim", repeats=True)
    )
    constant_defaults: str = field(
        default="weights",
        metadata=_option(
            "make constants of inputs with a default value: weights, where a model lists them all, as old exporters do (default), all, or none",
            choices=DEFAULTS,
        ),
    )
    assume_dims: Mapping[str, int] = field(
        default_factory=dict[str, int],
        metadata=_option("assume a size when prices are compared; the model stays dynamic", "NAME=SIZE", "--assume-dim", repeats=True),
    )
    no_empty_inputs: bool = field(
        default=False, metadata=_option("promise that no size of an input is ever 0, which rules for Attention and some others need where sizes are not fixed")
    )
    rules: Sequence[str | Path] | str | Path = field(default=(), metadata=_option("use the rules of this file as well", "FILE.rules", repeats=True))
    only: Sequence[str] | str = field(default=(), metadata=_option("use only this rule or group of rules", "NAME", repeats=True))
    skip: Sequence[str] | str = field(default=(), metadata=_option("do not use this rule or group of rules", "NAME", repeats=True))
    allow_domain: Sequence[str] | str = field(
        default=(),
        metadata=_option("let the result have operators of this domain, which the target's runtime has beside the standard's", "DOMAIN", repeats=True),
    )
    needed: bool = field(default=False, metadata=_option("find out which rules the result needs, by running again without each"))
    reasons: bool = field(
        default=False, metadata=_option("find out why rules that fired are not used, and what the best graph with each costs (-v and a page do so)")
    )
    phases: str | Path | None = field(
        default=None, metadata=_option("which groups of rules run in which order, and how far, instead of rules/phases.toml", "FILE.toml")
    )
    extractor: Method = field(
        default="exact",
        metadata=_option("how to choose from the e-graph: prove the best choice, search for a good one, or take the least trees", choices=METHODS),
    )
    extract_time: float | None = field(
        default=None, metadata=_option("stop improving the choice after S seconds; the result is valid, and the report names the limit", "S")
    )
    dump_egraph: str | Path | None = field(
        default=None,
        metadata=_option("write the main graph's e-graph in the egraph-serialize format, compressed if FILE ends in .gz", "FILE"),
    )
    custom_op_library: str | Path | None = field(
        default=None, metadata=_option("a library of custom operators for ONNX Runtime, used in verification", "LIBRARY")
    )
    tune: bool = field(default=False, metadata=_option("make several good models, time them on ONNX Runtime in turn, and keep the fastest"))
    tune_seconds: float = field(default=30.0, metadata=_option("time models for about S seconds under --tune (30 by default)", "S"))
    progress: Callable[[str], None] = silent
    """Called with the name of each stage as it begins."""

    def growth(self, size: int) -> float:
        """Returns the bytes by which the file of an original of `size` bytes may grow."""
        return _GROWTH + _GROWTH_SHARE * size if self.max_growth is None else value_types.size_in_bytes("max_growth", self.max_growth)

    @property
    def custom_operators(self) -> str | None:
        """The path of the library of custom operators, as the runtimes take it."""
        return None if self.custom_op_library is None else str(self.custom_op_library)

    @property
    def memory_bytes(self) -> int:
        """The memory limit as a number."""
        return value_types.size_in_bytes("memory_limit", self.memory_limit)

    @property
    def rule_sources(self) -> tuple[str | Path, ...]:
        """The files, or texts, of the caller's own rules."""
        return value_types.paths("rules", self.rules)

    @property
    def domains(self) -> frozenset[str]:
        """The domains whose operators the result may have although the original lacks them."""
        return frozenset(self.allow_domain)

    @property
    def seed(self) -> int | None:
        """The seed of a random order of the rules; None if they run as in their files."""
        digits = self.order.removeprefix(RANDOM)
        return int(digits) if digits != self.order and digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS else None

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if value is not None or setting.default is not None:
                object.__setattr__(self, setting.name, _checked(setting, value))
        if self.order != IN_FILES and self.engine != "greedy":
            raise InputError("an order of the rules is for the engine greedy; saturation has none")
        if self.order != IN_FILES and self.seed is None:
            raise InputError(f"order is '{self.order}'; write {IN_FILES}, or {RANDOM}SEED with a whole number of at most {_MOST_DIGITS} digits")
        if self.tune and self.objective != "time":
            raise InputError(f"tune keeps the model that runs fastest; the objective has to be time, not {self.objective}")
        for name, size in (*self.dims.items(), *self.assume_dims.items()):
            if size > _LARGEST_DIMENSION:
                raise InputError(f"the dimension '{name}' can not have the size {size}; a size is a number from 0 to {_LARGEST_DIMENSION}")


def _checked(setting: Field[Any], value: object) -> object:
    """Returns the value of a setting in its one form. Raises `InputError` for a wrong type."""
    option = option_of(setting)
    if option is None:
        return value_types.function(setting.name, value)
    if option.choices:
        return value_types.one_of(setting.name, value, option.choices)
    return _KINDS.get(option.form, value_types.text)(setting.name, value)


def option_of(setting: Field[Any]) -> Option | None:
    """Returns the option of a setting, or None if only Python has the setting."""
    return setting.metadata.get("option")


def flag_of(setting: Field[Any]) -> str:
    """Returns the name of a setting's option on the command line."""
    option = option_of(setting)
    assert option is not None
    return option.flag or "--" + setting.name.replace("_", "-")


def keyword_of(setting: Field[Any]) -> str:
    """Returns the keyword for an option. A flag that turns a setting off becomes `name=False`."""
    return f"{setting.name}=False" if setting.default is True else setting.name


def described_settings() -> str:
    """Returns the list of settings for the docstring of `optimize`."""
    lines: list[str] = []
    for setting in fields(Settings):
        option = option_of(setting)
        if option is not None:
            lines.append(f"        {keyword_of(setting)}: {option.help}")
    return "\n".join(lines)
