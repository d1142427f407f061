"""The tables of the documents that come from the code.

`python -m tests.house.generated` writes them anew.
"""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

from eqsat.families import FAMILIES
from eqsat.language.functions import FUNCTIONS, Function
from eqsat.language.library import built_in
from eqsat.settings import Settings, flag_of, keyword_of, option_of
from tests.house.test_layers import FLOORS

ROOT = Path(__file__).resolve().parents[2]
DOCS, LAWS = ROOT / "docs", ROOT / "rules" / "README.md"


def signature(function: Function) -> str:
    """Returns the form of a call: sorts stand for arguments, brackets for optional ones."""
    sorts = [str(sort) if sort is not None else "any" for sort in function.parameters]
    needed = len(sorts) - function.optional
    left_out = "".join(f"[, {sort}]" for sort in sorts[needed:])
    return f"{function.name}({', '.join(sorts[:needed])}{left_out}{', ...' if function.variadic else ''})"


def function_table() -> str:
    rows = [f"| `{signature(function)}` | {function.result or 'number or list'} | {function.documentation} |" for function in FUNCTIONS.values()]
    return "\n".join(["| function | result | meaning |", "|---|---|---|", *rows])


def family_table() -> str:
    rows = [f"| `{family.name}` | {family.about} | {' '.join(family.members)} |" for family in FAMILIES.values()]
    return "\n".join(["| family | a member F | members |", "|---|---|---|", *rows])


def group_table() -> str:
    rows = [f"| [{name}]({name}.rules) | {count} | {about.partition('. ')[0].rstrip('.')} |" for name, count, about in groups()]
    return "\n".join(["| group | rules | what it is about |", "|---|---|---|", *rows])


def groups() -> list[tuple[str, int, str]]:
    return [(group.name, len(group.file.rules), " ".join(group.file.preamble)) for group in built_in().groups]


def option_table() -> str:
    """Returns the options of `eqsat optimize` that are settings, with their names in Python."""
    rows: list[str] = []
    for setting in fields(Settings):
        option = option_of(setting)
        if option is not None:
            value = f" {option.form or '|'.join(option.choices)}".replace("|", "\\|").rstrip()
            rows.append(f"| `{flag_of(setting)}{value}` | `{keyword_of(setting)}` | {option.help}{' (repeatable)' if option.repeats else ''} |")
    return "\n".join(["| option | in Python | meaning |", "|---|---|---|", *rows])


def room_table() -> str:
    """Returns every room with its floor, counted from below, and its docstring's first sentence."""
    rows: list[str] = []
    for floor, rooms in reversed(list(enumerate(FLOORS, 1))):
        for room in rooms:
            name = room if room.startswith("__") else f"{room}/" if (ROOT / "eqsat" / room).is_dir() or room == "extract" else f"{room}.py"
            name = f"{name}.py" if room.startswith("__") else name
            place = ROOT / room / "__init__.py" if room == "extract" else ROOT / "eqsat" / (f"{name}__init__.py" if name.endswith("/") else name)
            about = (ast.get_docstring(ast.parse(place.read_text(encoding="utf-8"))) or "").split("\n\n")[0].replace("\n", " ")
            rows.append(f"| {floor} | `{name}` | {about} |")
    return "\n".join(["| floor | room | purpose |", "|---|---|---|", *rows])


MOVEMENTS = ("Transpose", "Reshape", "Expand", "Slice", "Gather", "Concat", "Split", "Pad")
SETS = ("unary", "binary", "comparison", "reduction")


def movement_table() -> str:
    """Returns how many operators of a family have a rule with a movement and nothing else."""
    met = {one.needs.operators for entry in built_in().entries for one in entry.directions}
    rows: list[str] = []
    for movement in MOVEMENTS:
        counts = [sum({movement, member} in met for member in FAMILIES[family].members) for family in SETS]
        rows.append(f"| {movement} | " + " | ".join(f"{count} of {len(FAMILIES[family].members)}" for count, family in zip(counts, SETS, strict=True)) + " |")
    return "\n".join([f"| | {' | '.join(SETS)} |", "|---|" + "---|" * len(SETS), *rows])


GENERATED = {
    "movements": (LAWS, movement_table),
    "rooms": (DOCS / "architecture.md", room_table),
    "options": (DOCS / "options.md", option_table),
    "functions": (DOCS / "rule-language.md", function_table),
    "families": (DOCS / "rule-language.md", family_table),
    "groups": (LAWS, group_table),
}


def with_table(document: str, name: str, table: str) -> str:
    """Returns the document with the table between its one pair of marks."""
    found, count = re.subn(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", lambda marks: f"{marks[1]}\n{table}\n\n{marks[2]}", document, flags=re.DOTALL)
    assert count == 1
    return found


def write() -> None:
    for name, (path, table) in GENERATED.items():
        path.write_text(with_table(path.read_text(encoding="utf-8"), name, table()), encoding="utf-8")


if __name__ == "__main__":
    write()
