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
    assert report["limits"] == {"hit": None, "option": None, "waiting": {}}
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


def lines(rules: list[dict[str, object]], topic: str, **changes: object) -> list[str]:
    """Returns what a summary says about a topic, for a report with these rules."""
    import eqsat
    from eqsat.cli.summary import summary

    report = eqsat.optimize(parse("g (float[N] x) => (float[N] y) { y = Relu (x) }")).report | {"rules": rules} | changes
    return [text.removeprefix(f"{topic:<8}") for text in summary(report) if text.startswith(f"{topic} ")]


def fired(name: str, matches: int = 1, used: bool | None = True, unused: dict[str, object] | None = None, needed: bool | None = None) -> dict[str, object]:
    return {"name": name, "matches": matches, "needed": needed, "used": used, "unused": unused}


def test_the_terminal_names_the_rules_that_are_used() -> None:
    used = [fired(f"r{number}", number) for number in range(1, 9)]
    idle = [fired("a", 3, needed=False), {**fired("b", 0, False), "dropped": True}, fired("c", 2, False), fired("d", 2, None)]
    assert lines([], "rules") == [] and lines(idle, "rules") == []
    assert lines([fired("b", needed=True), fired("a")], "rules") == ["a, b"]
    assert lines(used, "rules") == ["r8, r7, r6, r5, r4, r3, r2, r1"]
    assert lines([*used, fired("a", needed=True)], "rules") == ["r8, r7, r6, r5, r4, r3, r2, a and 1 more"]


def test_the_terminal_tells_why_rules_are_not_used() -> None:
    def why(reason: str) -> dict[str, object]:
        return {"reason": reason, "text": f"the text of {reason}"}

    dropped = {**fired("b", 0, False), "dropped": True}
    assert lines([fired("a"), dropped], "unused") == []
    assert lines([fired("a"), fired("b", used=False), fired("c", used=None)], "unused") == ["2 fired: --reasons tells why"]
    lacking = [fired(name, used=False, unused=why(name)) for name in ("opset", "domain", "growth")]
    assert lines([*lacking, fired("c", used=False)], "unused") == [
        "opset: the text of opset; domain: the text of domain; growth: the text of growth; 1 more fired: --reasons tells why"
    ]
    known = [fired(str(place), used=False, unused=why(kind)) for place, kind in enumerate(("cost", "same cost", "cost", "nothing new"))]
    assert lines([*known, lacking[0]], "unused") == ["opset: the text of opset; 2 dearer; 1 of the same cost; 1 with nothing new"]


def test_the_terminal_says_what_a_limit_left() -> None:
    def limited(hit: str, option: str | None, **waiting: int) -> list[str]:
        return lines([], "limit", limits={"hit": hit, "option": option, "waiting": waiting})

    assert limited("matches", None) == ["matches: the result is valid; more might have been found"]
    assert limited("rounds", "--effort high", fold=29) == ["rounds: the result is valid; --effort high would go on; matches not applied: 29 of fold"]
    assert limited("growth", "--phases", a=1, b=5, c=2, d=1, e=1) == [
        "growth: the result is valid; --phases would go on; matches not applied: 5 of b, 2 of c, 1 of a, 2 of other rules"
    ]


def test_the_terminal_names_the_sizes_that_a_prediction_assumes() -> None:
    import eqsat
    from eqsat.cli.summary import summary

    model = parse("g (float[N, M] x, float[K] z) => (float[N, M] y, float[K] t) { y = Relu (x)  t = Relu (z) }")
    report = eqsat.optimize(model, assume_dims={"M": 7}, dims={"K": 3}).report
    assert report["cost"]["sizes"] == {"N": 1, "M": 7}
    assert [text for text in summary(report) if text.endswith("predicted for onnxruntime-cpu at N=1, M=7")]
    report["cost"]["sizes"] = dict.fromkeys("abcdef", 64)
    assert [text for text in summary(report) if text.endswith(" at a=64, b=64, c=64, d=64, 2 more")]
    report["cost"]["sizes"] = {}
    assert [text for text in summary(report) if text.endswith("predicted for onnxruntime-cpu")]


def test_the_terminal_tells_that_there_was_nothing_to_time() -> None:
    row = {"same": None, "measured": 2e-6}
    tune = {"kept": "choice", "threads": 1, "batches": 1, "candidates": [{"name": "choice", **row}, {"name": "original", **row, "same": "choice"}]}
    assert lines([], "tune", tune=tune) == ["kept 'choice'; all models are the original, so none is faster"]


def test_every_reason_has_words() -> None:
    from eqsat.cli.summary import KINDS, LIFTED
    from eqsat.rewriting import unused

    kinds = [value for name, value in vars(unused).items() if name.isupper() and isinstance(value, str) and name not in ("SECONDS", "LAUNCHES", "BYTES")]
    assert len(kinds) == 10 and {*KINDS, *LIFTED} == set(kinds)
    assert all(f"| `{kind}` |" in TEXT for kind in kinds)
    assert all(str(unused.Reason(kind, "Op", 20, "some", None)) for kind in kinds if kind != unused.COST)


def test_amounts_of_reasons() -> None:
    from eqsat.rewriting.unused import COST, GROWTH, OPSET, Reason

    assert str(Reason(COST, more=3.2e-6)) == "costs 3.2 us more"
    assert str(Reason(COST, more=2.0, unit="launches")) == "costs 2 launches more"
    assert str(Reason(COST, more=2048.0, unit="bytes")) == "costs 2.05 kB more"
    assert str(Reason(OPSET, "Gelu", 20, more=-1.0, unit="launches")) == "Gelu needs opset 20 (--opset 20), and would save 1 launch"
    assert str(Reason(OPSET, "Gelu", 20, more=1e-6)) == "Gelu needs opset 20 (--opset 20), and would cost 1 us more"
    assert str(Reason(OPSET, "Gelu", 20, more=0.0)) == "Gelu needs opset 20 (--opset 20), and would cost the same"
    assert str(Reason(GROWTH, more=-2e-3, excess=4096.0)) == "stores 4.1 kB more than --max-growth allows, and would save 2 ms"
