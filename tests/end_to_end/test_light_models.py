"""The nine `light_*` models of the onnx package: weights are made by ConstantOfShape, so that folding them would grow kilobytes to hundreds of megabytes."""

from pathlib import Path

import onnx
import onnx.backend.test
import pytest

LIGHT = sorted((Path(onnx.backend.test.__file__).parent / "data" / "light").glob("light_*.onnx"))


def test_nine_models_ship() -> None:
    assert len(LIGHT) == 9


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_light_model(path: Path, tmp_path: Path) -> None:
    import eqsat

    result = eqsat.optimize(path)
    output = tmp_path / "out.onnx"
    result.save(output)
    assert result.report["verify"]["status"] == "equal", result.report["verify"]
    assert output.stat().st_size <= path.stat().st_size + 2048
    assert list(tmp_path.iterdir()) == [output], "no external data appear"
    assert eqsat.count_nodes(result.model) <= eqsat.count_nodes(onnx.load(path))
    onnx.checker.check_model(onnx.load(output))
