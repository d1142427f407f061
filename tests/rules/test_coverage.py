"""The tests that docs/coverage.md names exist, and it names each example of its module.

So the document describes tested rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from eqsat.language.library import load, rule_files

TESTS = Path(__file__).resolve().parents[1]
DOCUMENT = TESTS.parent / "docs" / "coverage.md"
SEPARATOR = re.compile(r"\|(---\|)+")
NAMED = re.compile(r"`([^`]+)`")


def tables(text: str) -> list[list[dict[str, str]]]:
    """Returns the tables of a document: rows as dictionaries by column heading."""
    found: list[list[dict[str, str]]] = []
    lines = text.splitlines()
    for place, line in enumerate(lines):
        if not SEPARATOR.fullmatch(line):
            continue
        heads, rows = cells(lines[place - 1]), list[dict[str, str]]()
        for row in lines[place + 1 :]:
            if not row.startswith("|"):
                break
            rows.append(dict(zip(heads, cells(row), strict=True)))
        found.append(rows)
    return found


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


TABLES = tables(DOCUMENT.read_text(encoding="utf-8"))
ROWS = [row for rows in TABLES for row in rows]
TESTED = [row for row in ROWS if "test" in row]
REFERENCES = sorted({reference for row in TESTED for reference in NAMED.findall(row["test"])})


def full_name(module: str) -> str:
    """Returns the name by which a test module is imported.

    No two folders of tests have a module of the same name.
    """
    (path,) = TESTS.rglob(f"{module}.py")
    return ".".join(["tests", *path.relative_to(TESTS).with_suffix("").parts])


def named(module: str) -> set[str]:
    """Returns the names that a module gives to its tests.

    They come from its examples, its functions, and the cases in its tables.
    """
    if module == "wrong":
        return {resolved.rule.name for resolved in load(rule_files([TESTS / "checker" / "wrong"])).rules}
    if not module.startswith("test_"):
        return set(import_module(f"tests.rules.examples_{module}").EXAMPLES)
    attributes: Mapping[str, Any] = vars(import_module(full_name(module)))
    cases = [value for name, value in attributes.items() if name.isupper() and isinstance(value, dict)]
    functions = (name for name, value in attributes.items() if name.startswith("test_") and callable(value))
    return set(chain(functions, *cases))


MODULES = sorted({reference.partition(": ")[0] for reference in REFERENCES})


@pytest.mark.parametrize("module", MODULES)
def test_what_is_named_exists(module: str) -> None:
    wanted = {key for start, _, key in (reference.partition(": ") for reference in REFERENCES) if start == module}
    assert wanted - named(module) == set()


def test_every_line_names_a_test_or_says_why_there_is_none() -> None:
    assert all(NAMED.search(row["test"]) or row.get("why") for row in TESTED)
    assert all(all(row.values()) for row in ROWS if "test" not in row)


def test_no_line_stands_twice() -> None:
    for rows in TABLES:
        lines = [(row.get("system"), row["rewrite"]) for row in rows]
        assert len(set(lines)) == len(lines)


def test_every_example_of_coverage_is_named() -> None:
    assert named("coverage") <= {reference.removeprefix("coverage: ") for reference in REFERENCES}


def test_tables_are_read() -> None:
    assert len(TABLES) > 5
    assert len(TESTED) > 100
    assert tables("| a | b |\n|---|---|\n| `x: 1` | |\ntext") == [[{"a": "`x: 1`", "b": ""}]]
