"""Inputs: describes a model's inputs in a file beside the model, and draws arrays from the
description.

`MODEL.onnx` has its description in `MODEL.json`. A description gives each input's name, type, sizes
and the meaning of its elements. A size is a number or the name of a symbolic one. The draw depends
only on the description and the seed, and every model accepts it: an integer input is in its
vocabulary, and a mask hides no whole row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np


class Meaning(StrEnum):
    """The meaning of an input's elements, which decides how they are drawn."""

    FEATURES = "features"  # normally distributed numbers
    INDICES = "indices"  # integers from 0 up to a bound
    MASK = "mask"  # in each row, ones for at least half of it, then zeros


@dataclass(frozen=True)
class Input:
    """One input. `shape` has numbers and the names of symbolic sizes. `bound` is above all indices."""

    dtype: str
    shape: tuple[int | str, ...]
    meaning: Meaning
    bound: int | None = None

    def __post_init__(self) -> None:
        if (self.meaning is Meaning.INDICES) != (self.bound is not None):
            raise ValueError("indices have a bound, and nothing else has one")
        if self.bound is not None and self.bound < 1:
            raise ValueError(f"no index is below the bound {self.bound}")

    def draw(self, sizes: Mapping[str, int], generator: np.random.Generator) -> np.ndarray:
        """Returns an array for this input, with its symbolic sizes from `sizes`."""
        shape = tuple(sizes[size] if isinstance(size, str) else size for size in self.shape)
        match self.meaning:
            case Meaning.FEATURES:
                drawn = generator.standard_normal(shape)
            case Meaning.INDICES:
                drawn = generator.integers(0, self.bound or 0, shape)
            case Meaning.MASK:
                lengths = generator.integers((shape[-1] + 1) // 2, shape[-1] + 1, (*shape[:-1], 1))
                drawn = np.arange(shape[-1]) < lengths
        return drawn.astype(self.dtype)


@dataclass(frozen=True)
class Description:
    """A model's inputs in order, a value for each symbolic size, and how the model was made."""

    inputs: Mapping[str, Input]
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    made_by: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        unknown = sorted({size for value in self.inputs.values() for size in value.shape if isinstance(size, str)} - self.sizes.keys())
        if unknown:
            raise ValueError(f"no value for the symbolic sizes {', '.join(unknown)}")

    def draw(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Returns arrays for all inputs, by name."""
        generator = np.random.default_rng(seed)
        return {name: value.draw(self.sizes, generator) for name, value in self.inputs.items()}

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Description:
        """Returns the description that `to_json` wrote. Wrong data raise a ValueError, KeyError or
        TypeError with the reason.
        """
        data: dict[str, Any] = json.loads(text)
        inputs = {name: _input(value) for name, value in data["inputs"].items()}
        return cls(inputs, {name: int(size) for name, size in data["sizes"].items()}, dict(data["made_by"]))


def _input(data: Mapping[str, Any]) -> Input:
    shape: Sequence[int | str] = data["shape"]
    return Input(data["dtype"], tuple(shape), Meaning(data["meaning"]), data["bound"])


def description_path(model: Path) -> Path:
    """Returns the path of a model's description."""
    return model.with_suffix(".json")


def read_description(model: Path) -> Description:
    """Returns the description beside a model. A wrong one raises a ValueError that names the file
    and the reason.
    """
    path = description_path(model)
    if not path.is_file():
        raise ValueError(f"{model} has no description of its inputs; it belongs into {path}")
    try:
        return Description.from_json(path.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no description of inputs: {type(error).__name__}: {error}") from None
