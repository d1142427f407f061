"""The corpus of 817 models that other optimizers are tested with.

Each model is optimized without an exception, stays valid if it was, has no more nodes, and computes
the same where it runs. The corpus is beside the checkout; without it these tests are skipped.
"""

import json
from pathlib import Path

import onnx
import pytest

from tests.support.dearer import dearer
from tests.support.parameters import spread

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
CHUNKS = 64

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")

# Their external data are missing, or are an address in memory.
UNREADABLE = {"ort_testdata/conv_qdq_external_ini.onnx", "ort_testdata/model_with_orig_ext_data.onnx", "ort_testdata/test_evil_weights.onnx"}
# A MatMul of one input, and a Dropout with an attribute that no version of it has. onnx's checker
# and ONNX Runtime refuse both.
MALFORMED = {
    "trt_tools/bad_graph.onnx",
    "h_onnxscript/test_dropout_zero_or_inference_no_op_with_initializer_2_dropout_inference_with_positive_ratio__0237.onnx",
}
# Its opset, 314159, is one that onnx does not know.
OF_THE_FUTURE = {"ort_testdata/add_opset_314159.onnx"}
REFUSED = UNREADABLE | MALFORMED | OF_THE_FUTURE


def models() -> dict[str, bool]:
    """Returns every model, and whether ONNX Runtime executes it."""
    peers = json.loads((CORPUS / "peers.json").read_text(encoding="utf-8"))
    return {name: peers[name]["runnable"] for name in sorted(peers)}


def is_valid(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError:
        return False
    return True


def fault(name: str, runnable: bool) -> str | None:
    import eqsat

    original = onnx.load(CORPUS / name, load_external_data=False)
    try:
        result = eqsat.optimize(CORPUS / name)
    except eqsat.InputError as error:
        return None if name in REFUSED else f"InputError: {error}"
    if name in REFUSED:
        return "read, although it has no meaning"
    if wrong := dearer(result.report):
        return wrong
    if is_valid(original) and not is_valid(result.model):
        return "valid before, not valid after"
    status = result.report["verify"]["status"]
    if status == "different" or (runnable and status != "equal"):
        return f"verify: {result.report['verify']}"
    return None


@pytest.mark.parametrize("chunk", spread(range(CHUNKS), every=CHUNKS))
def test_corpus(chunk: int) -> None:
    faults: list[str] = []
    for name, runnable in list(models().items())[chunk::CHUNKS]:
        try:
            found = fault(name, runnable)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            faults.append(f"{name}: {found}")
    assert not faults, f"{len(faults)} faults\n" + "\n".join(faults)


def test_corpus_is_whole() -> None:
    assert len(models()) == 817
    assert sum(models().values()) == 699
