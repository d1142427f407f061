"""The report has the fields of docs/report.md, under the same names, and no others."""

import json
import re
from pathlib import Path

from tests.support.models import parse

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
TABLES = [re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) for table in TEXT.split("\n\n") if table.startswith("| key")]


def test_keys_are_those_of_the_documentation() -> None:
    import eqsat

    model = parse("g (float[N] x) => (float[N] y) { a = Relu (x)  b = Relu (x)  y = Add (a, b) }")
    report = json.loads(json.dumps(eqsat.optimize(model, target="launches").report))
    assert set(report) == set(TABLES[0])
    assert set(report["verify"]) == set(TABLES[1])
    assert set(report["saturation"]) == set(TABLES[2])
    assert report["nodes"] == {"before": 3, "after": 2, "bound": 2.0}
    assert report["became"]["b"] == "a"
    assert report["limits"] == {"hit": None}
    stages = {"read", "encode", "saturate", "extract", "fold", "decode", "optimize", "verify", "total"}
    assert set(report["seconds"]) == stages
    for stage in stages:
        assert f"`{stage}`" in TEXT


def test_the_bound_is_no_more_than_what_was_found() -> None:
    """Nodes in bodies and functions count once, not again as graphs of their own."""
    import eqsat

    bodies = parse("""g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { h = Relu (x)  a = Neg (h) }, else_branch = f () => (float[2] b) { k = Abs (x)  b = Neg (k) }>
    }""")
    functions = parse("""<ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[2] x) => (float[2] y) { y = local.f (x) }
        <domain: "local", opset_import: ["": 17]> f (a) => (r) { b = Relu (a)  c = Relu (a)  r = Add (b, c) }""")
    assert eqsat.optimize(bodies, target="launches").report["nodes"] == {"before": 4, "after": 4, "bound": 4.0}
    cost = eqsat.optimize(functions, target="launches").report["nodes"]
    assert cost["bound"] <= cost["after"] == 2


def test_the_terminal_names_the_rules_that_fired() -> None:
    from eqsat.cli.summary import summary

    def line(rules: list[dict[str, object]]) -> list[str]:
        report = eqsat.optimize(model).report | {"rules": rules}
        return [text.removeprefix("rules   ") for text in summary(report) if text.startswith("rules ")]

    import eqsat

    model = parse("g (float[N] x) => (float[N] y) { y = Relu (x) }")
    used = [{"name": f"r{number}", "matches": number, "needed": None} for number in range(1, 9)]
    assert line([]) == [] and line([{"name": "a", "matches": 3, "needed": False}, {"name": "b", "matches": 0, "needed": None, "dropped": True}]) == []
    assert line([{"name": "b", "matches": 1, "needed": True}, {"name": "a", "matches": 1, "needed": None}]) == ["a, b"]
    assert line(used) == ["r8, r7, r6, r5, r4, r3, r2, r1"]
    assert line([*used, {"name": "a", "matches": 1, "needed": True}]) == ["r8, r7, r6, r5, r4, r3, r2, a and 1 more"]
