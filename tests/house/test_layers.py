"""The floors of the house: every import goes down, and no room has a circle inside.

A room is a package of `eqsat`, or a module at its top. A new one is placed in `FLOORS`; its floor
decides which rooms it may use.
"""

import ast
import graphlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Bottom to top. Rooms on one floor do not import one another.
FLOORS = [
    ["dimension_names", "frozen"],
    ["contributed", "deadline", "errors", "examples", "garbage", "families", "ordering", "runtime", "extract", "shipped", "version"],
    ["operators", "parameters"],
    ["facts", "settings", "traits"],
    ["model"],
    ["control", "picture", "terms"],
    ["spelling"],
    ["cost", "language"],
    ["egraph"],
    ["calibrate", "checker", "choose"],
    ["greedy", "regions"],
    ["proofs"],
    ["rewriting"],
    ["verification", "why"],
    ["report", "tuning"],
    ["comparing", "pipeline"],
    ["explain", "orders", "page"],
    ["__init__", "cli", "onnx_ir_pass"],
    ["__main__"],
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# The rooms inside the checker, in the same way.
CHECKER = [["kernels", "samplers", "processes", "standing"], ["drawing"], ["judging"], ["check"]]
CHECKER_FLOOR = {room: floor for floor, rooms in enumerate(CHECKER) for room in rooms}


def modules(folder: str, package: str) -> dict[str, Path]:
    """Returns every module below a folder by its full name, without following links."""
    paths = [path for path in sorted((ROOT / folder).rglob("*.py")) if ROOT / "eqsat" / "extract" not in path.parents]
    return {".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts]).removesuffix(".__init__"): path for path in paths}


MODULES = {**modules("eqsat", "eqsat"), **modules("extract", "eqsat.extract")}


def room(name: str) -> str:
    """Returns the entry of FLOORS for a full name inside `eqsat`.

    A name that is no module belongs to the package itself.
    """
    top = [*name.split("."), "__init__"][1]
    return top if top in FLOOR or f"eqsat.{top}" in MODULES else "__init__"


def imports(name: str, path: Path) -> Iterator[tuple[int, str]]:
    """Yields the line and full name of each import of the module, also inside functions.

    `from a import b` may name the module a.b.
    """
    package = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            source = package[: len(package) - node.level + 1] if node.level else []
            source += node.module.split(".") if node.module else []
            for alias in node.names:
                yield node.lineno, ".".join([*source, alias.name])


def module(imported: str) -> str:
    """Returns our module that an imported name belongs to, or "" if there is none."""
    while imported and imported not in MODULES:
        imported = imported.rpartition(".")[0]
    return imported


def test_every_room_has_a_floor() -> None:
    unplaced = sorted({room(name) for name in MODULES} - FLOOR.keys())
    assert not unplaced, f"no floor says what these rooms of eqsat may import; place them in FLOORS of tests/house/test_layers.py: {', '.join(unplaced)}"
    gone = sorted(FLOOR.keys() - {room(name) for name in MODULES})
    assert not gone, f"FLOORS of tests/house/test_layers.py names rooms that do not exist: {', '.join(gone)}"


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_down(name: str) -> None:
    own = room(name)
    wrong: list[str] = []
    for line, imported in imports(name, MODULES[name]):
        place = f"{MODULES[name]}:{line}"
        if imported.split(".")[0] in {"extract", "rules"}:
            wrong.append(f"{place}: write eqsat.{imported}, the name that is installed")
        if imported.split(".")[0] != "eqsat":
            continue
        used = room(imported)
        if used != own and FLOOR.get(used, -1) >= FLOOR.get(own, len(FLOORS)):
            wrong.append(f"{place}: {own} imports {used}, which is not below it in FLOORS of tests/house/test_layers.py")
        if own == used == "checker":
            inner, used = (part.split(".")[2:3] for part in (name, module(imported)))
            if inner and used and inner != used and CHECKER_FLOOR[used[0]] >= CHECKER_FLOOR[inner[0]]:
                wrong.append(f"{place}: {inner[0]} imports {used[0]}, which is not below it in CHECKER of tests/house/test_layers.py")
    assert not wrong, "\n".join(wrong)


def test_no_circle_inside_a_room() -> None:
    uses: dict[str, set[str]] = defaultdict(set)
    for name, path in MODULES.items():
        uses[name] = {module(imported) for _, imported in imports(name, path)} - {"", name, "eqsat"}
    try:
        graphlib.TopologicalSorter(uses).prepare()
    except graphlib.CycleError as error:
        pytest.fail("these modules import one another: " + " -> ".join(reversed(error.args[1])))


def test_no_two_files_have_one_name() -> None:
    counts = Counter(path.stem for path in MODULES.values() if path.stem not in {"__init__", "__main__"})
    assert not [stem for stem, count in counts.items() if count > 1]


def test_extract_knows_nothing_of_eqsat() -> None:
    wrong = [
        f"{path}:{line}: imports {imported}"
        for name, path in modules("extract", "eqsat.extract").items()
        for line, imported in imports(name, path)
        if imported.split(".")[0] in {"eqsat", "extract"} and not imported.startswith("eqsat.extract.")
    ]
    assert not wrong, "\n".join(wrong)
