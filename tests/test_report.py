"""The report has what docs/report.md says, under the same names, and nothing else."""

import json
import re
from pathlib import Path

from models import parse

TEXT = (Path(__file__).resolve().parents[1] / "docs" / "report.md").read_text(encoding="utf-8")
TABLES = [re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) for table in TEXT.split("\n\n") if table.startswith("| key")]


def test_keys_are_those_of_the_documentation() -> None:
    import eqsat

    model = parse("g (float[N] x) => (float[N] y) { a = Relu (x)  b = Relu (x)  y = Add (a, b) }")
    report = json.loads(json.dumps(eqsat.optimize(model).report))
    assert set(report) == set(TABLES[0])
    assert set(report["verify"]) == set(TABLES[1])
    assert set(report["saturation"]) == set(TABLES[2])
    assert report["nodes"] == {"before": 3, "after": 2}
    assert report["became"]["b"] == "a"
    assert report["limits"] == {"hit": None}
    stages = {"read", "encode", "saturate", "extract", "fold", "decode", "verify", "total"}
    assert set(report["seconds"]) == stages
    for stage in stages:
        assert f"`{stage}`" in TEXT
