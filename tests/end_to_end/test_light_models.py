"""The nine `light_*` models of the onnx package.

ConstantOfShape makes their weights, so folding these would turn kilobytes into hundreds of
megabytes.
"""

from pathlib import Path

import onnx
import onnx.backend.test
import pytest

import eqsat
from eqsat.settings import Settings
from tests.support.dearer import dearer

LIGHT = sorted((Path(onnx.backend.test.__file__).parent / "data" / "light").glob("light_*.onnx"))
QUICK = "light_squeezenet"
LEFT = {"light_densenet121": 563}
"""The nodes of a result. The processor's kernels decide which of several is the fastest, so a few more or fewer may be left."""


def test_nine_models_ship() -> None:
    assert len(LIGHT) == 9
    assert QUICK in {path.stem for path in LIGHT}


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem, marks=[] if path.stem == QUICK else [pytest.mark.slow]) for path in LIGHT])
def test_light_model(path: Path, tmp_path: Path) -> None:
    result = eqsat.optimize(path)
    output = tmp_path / "out.onnx"
    result.save(output)
    assert result.report["verify"]["status"] == "equal", result.report["verify"]
    assert output.stat().st_size <= path.stat().st_size + Settings().growth(path.stat().st_size)
    assert list(tmp_path.iterdir()) == [output], "no external data appear"
    assert not dearer(result.report)
    onnx.checker.check_model(onnx.load(output))
    if path.stem in LEFT:
        assert eqsat.count_nodes(result.model) == pytest.approx(LEFT[path.stem], rel=0.05)
