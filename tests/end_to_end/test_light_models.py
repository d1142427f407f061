"""The nine `light_*` models of the onnx package.

ConstantOfShape makes their weights, so folding these would turn kilobytes into hundreds of
megabytes.
"""

import re
from pathlib import Path

import onnx
import onnx.backend.test
import pytest

import eqsat
from eqsat.settings import Settings

LIGHT = sorted((Path(onnx.backend.test.__file__).parent / "data" / "light").glob("light_*.onnx"))
QUICK = "light_squeezenet"
README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def said() -> tuple[str, dict[str, int]]:
    """Returns the model of the README's first command, and its nodes before and after."""
    (name,) = re.findall(r"eqsat optimize \S*/(light_\w+)\.onnx", README)
    ((before, after),) = re.findall(r"says that ([\d,]+) nodes became ([\d,]+)", README)
    return name, {"before": int(before.replace(",", "")), "after": int(after.replace(",", ""))}


def test_nine_models_ship() -> None:
    assert len(LIGHT) == 9
    assert {QUICK, said()[0]} <= {path.stem for path in LIGHT}


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem, marks=[] if path.stem == QUICK else [pytest.mark.slow]) for path in LIGHT])
def test_light_model(path: Path, tmp_path: Path) -> None:
    result = eqsat.optimize(path)
    output = tmp_path / "out.onnx"
    result.save(output)
    assert result.report["verify"]["status"] == "equal", result.report["verify"]
    assert output.stat().st_size <= path.stat().st_size + Settings().growth(path.stat().st_size)
    assert list(tmp_path.iterdir()) == [output], "no external data appear"
    assert eqsat.count_nodes(result.model) <= eqsat.count_nodes(onnx.load(path))
    onnx.checker.check_model(onnx.load(output))
    name, nodes = said()
    if path.stem == name:
        found = result.report["nodes"]
        # The processor's kernels decide which of several results is the fastest.
        assert found["before"] == nodes["before"] and abs(found["after"] - nodes["after"]) <= 0.05 * nodes["after"], "the README says otherwise"
