"""The runtime's refusals as a person reads them, from the runtime itself."""

from pathlib import Path

import onnx
import pytest

from eqsat.cli.main import main
from eqsat.runtime.refusals import refusal
from eqsat.runtime.session import open_runtime
from tests.support.models import parse

CUSTOM = '<ir_version: 8, opset_import: ["" : 17, "my.ops" : 1]> g (float[2] x) => (float[2] y) { a = Identity (x)  y = my.ops.Twist (a) }'
ADVICE = "ONNX Runtime has no operator my.ops.Twist; --custom-op-library names a library that has it"


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(Exception, match="is not a registered function/op") as caught:
        open_runtime(parse(CUSTOM).SerializeToString())
    assert refusal(str(caught.value)) == ADVICE


def test_other_messages_stay() -> None:
    assert refusal(" a\n b ") == "a b"


def test_the_commands_say_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`optimize` tells it once on each stream."""
    onnx.save(parse(CUSTOM), path := tmp_path / "m.onnx")
    assert main(["optimize", str(path), "-o", str(tmp_path / "small.onnx"), "--require-verified"]) == 3
    assert not (tmp_path / "small.onnx").exists()
    out, _ = capsys.readouterr()
    assert out.count(ADVICE) == 1 and f"\nverify  unverified: the original model does not run: {ADVICE}\n" in out
    assert main(["cost", str(path), "--measure"]) == 2
    assert capsys.readouterr().err == f"eqsat: error: the model can not be measured: {ADVICE}\n"
