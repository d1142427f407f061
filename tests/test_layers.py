"""The layers of the package: every import goes down, none up or sideways.

A new module is placed in `LAYERS`; where it stands says what it may use.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Bottom to top. Modules on one line do not know one another.
LAYERS = [
    ["errors"],
    ["phases"],
    ["operators", "traits"],
    ["dims"],
    ["facts"],
    ["arithmetic", "nodes"],
    ["gathers", "layouts", "products", "windows"],
    ["shapes"],
    ["integers"],
    ["inference"],
    ["legality"],
    ["tensors"],
    ["model"],
    ["names"],
    ["read", "write"],
    ["terms"],
    ["attributes", "forms"],
    ["conversions", "spatial", "padding", "positions"],
    ["versions"],
    ["spelling"],
    ["normal"],
    ["parameters", "derive"],
    ["language"],
    ["encode"],
    ["extract"],
    ["program", "record"],
    ["candidates", "emit", "engine", "finiteness", "limits"],
    ["admission"],
    ["egraph", "schedule"],
    ["saturate"],
    ["recipes"],
    ["choose"],
    ["worker", "runtime"],
    ["native"],
    ["visible"],
    ["boxes"],
    ["control", "convert"],
    ["validity"],
    ["fold", "decode"],
    ["constants"],
    ["dump"],
    ["rewrite"],
    ["steering"],
    ["ranges", "compare"],
    ["subject"],
    ["regions", "samples", "nudges"],
    ["request", "interface"],
    ["runs"],
    ["judge"],
    ["examiner"],
    ["verifier", "locate"],
    ["settings"],
    ["attempts", "report", "blame"],
    ["mend"],
    ["pipeline"],
    ["assignments", "landmarks"],
    ["reasons"],
    ["why"],
    ["checker"],
    ["__init__"],
    ["progress"],
    ["cli_extract", "cli_rules"],
    ["cli"],
    ["__main__"],
]
LEVEL = {module: level for level, modules in enumerate(LAYERS) for module in modules}


def modules(folder: str, package: str) -> dict[str, Path]:
    """Every module below a folder by its full name; links are not followed."""
    paths = [path for path in sorted((ROOT / folder).rglob("*.py")) if ROOT / "eqsat" / "extract" not in path.parents]
    return {".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts]).removesuffix(".__init__"): path for path in paths}


MODULES = modules("eqsat", "eqsat")


def layer(name: str) -> str:
    """The entry of LAYERS for a full name inside `eqsat`; what is no module is a name of the package itself."""
    top = [*name.split("."), "__init__"][1]
    return top if top in LEVEL or f"eqsat.{top}" in MODULES else "__init__"


def imports(name: str, path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that the module imports, also inside functions; `from a import b` may name the module a.b."""
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


def test_every_module_is_in_a_layer() -> None:
    unplaced = sorted({layer(name) for name in MODULES} - LEVEL.keys())
    assert not unplaced, f"no layer says what these modules of eqsat may import; place them in LAYERS of tests/test_layers.py: {', '.join(unplaced)}"


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_down(name: str) -> None:
    own = layer(name)
    wrong: list[str] = []
    for line, imported in imports(name, MODULES[name]):
        if imported.split(".")[0] in {"extract", "rules"}:
            wrong.append(f"{MODULES[name]}:{line}: write eqsat.{imported}, the name that is installed")
        if imported.split(".")[0] != "eqsat":
            continue
        used = layer(imported)
        if used != own and LEVEL.get(used, -1) >= LEVEL.get(own, len(LAYERS)):
            wrong.append(f"{MODULES[name]}:{line}: {own} imports {used}, which is not below it in LAYERS of tests/test_layers.py")
    assert not wrong, "\n".join(wrong)


def test_extract_knows_nothing_of_eqsat() -> None:
    wrong = [
        f"{path}:{line}: imports {imported}"
        for name, path in modules("extract", "eqsat.extract").items()
        for line, imported in imports(name, path)
        if imported.split(".")[0] in {"eqsat", "extract"} and not imported.startswith("eqsat.extract.")
    ]
    assert not wrong, "\n".join(wrong)
