"""Names: `ARCHITECTURE.EXPORTER`, or `ARCHITECTURE.EXPORTER.dynamic` for symbolic sizes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

EXPORTERS = ("ts", "dyn")
DYNAMIC = "dynamic"


@dataclass(frozen=True, order=True)
class Export:
    """One model of the zoo."""

    dynamic: bool
    architecture: str
    exporter: str

    @property
    def name(self) -> str:
        return ".".join([self.architecture, self.exporter, *([DYNAMIC] if self.dynamic else [])])


def exports(architectures: Collection[str], only: Sequence[str] = ()) -> list[Export]:
    """Returns the exports of these architectures, static ones first: all, or those that `only`
    selects.

    A name selects an export if it equals the export's name or a beginning of it up to a dot. Raises
    ValueError for a name that selects nothing.
    """
    every = sorted(Export(dynamic, name, exporter) for name in architectures for exporter in EXPORTERS for dynamic in (False, True))
    if not only:
        return every
    unknown = [name for name in only if not any(_selects(name, export) for export in every)]
    if unknown:
        raise ValueError(
            f"no model of the zoo is called {', '.join(unknown)}; there are {', '.join(architectures)}, each followed by .ts or .dyn, and by .dynamic"
        )
    return [export for export in every if any(_selects(name, export) for name in only)]


def _selects(name: str, export: Export) -> bool:
    return f"{export.name}.".startswith(f"{name}.")
