"""Large weights are apart while a model is optimized, and inside of it again afterwards."""

from __future__ import annotations

import gc
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import eqsat
from eqsat.errors import InputError
from eqsat.model import weight_file
from eqsat.model.file_bytes import model_bytes, written_bytes
from eqsat.model.lean_file import load_lean, pieces, read_lean
from eqsat.model.sources import load
from eqsat.model.tensors import External, is_apart, read_tensor
from eqsat.model.weight_file import WORTH, WeightFile, apart, joined
from eqsat.tuning.race import FEWEST
from tests.support.models import weighted

RANDOM = np.random.default_rng(0)
SIDE = 1100
TEXT = f"""g (float[N, {SIDE}] x) => (float[N, {SIDE}] y) {{
    a = MatMul (x, w)  b = Mul (a, s)  r = Relu (b)  c = MatMul (r, v)  d = Relu (c)  e = Relu (d)  y = Identity (e)
}}"""


def model() -> onnx.ModelProto:
    """Returns a model with two weights of together more than `WORTH` bytes, and smaller ones."""
    w, v = (RANDOM.standard_normal((SIDE, SIDE)).astype(np.float32) for _ in range(2))
    found = weighted(TEXT, w=w, s=RANDOM.standard_normal(SIDE).astype(np.float32), v=v)
    assert w.nbytes + v.nbytes > WORTH
    return found


def odd() -> onnx.ModelProto:
    """Returns a model with tensors of all kinds that stay inside, and notes everywhere."""
    found = model()
    graph = found.graph
    graph.initializer.insert(1, helper.make_tensor("typed", TensorProto.FLOAT, [200, 200], np.ones(40_000, np.float32)))
    graph.initializer.insert(2, numpy_helper.from_array(np.arange(40_000), "numbers"))
    graph.initializer.append(numpy_helper.from_array(np.ones((0, 3), np.float32), "none"))
    graph.initializer.append(TensorProto(name="texts", data_type=TensorProto.STRING, dims=[2], string_data=[b"a", b"b"]))
    graph.initializer[0].doc_string = "the first"
    graph.initializer[0].metadata_props.add(key="k", value="v")
    graph.quantization_annotation.add(tensor_name="w")
    graph.doc_string, found.doc_string, found.producer_name = "a graph", "a model", "somebody"
    found.metadata_props.add(key="k", value="v")
    found.functions.append(helper.make_function("own", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 17)]))
    return found


def whole(lean: onnx.ModelProto, folder: Path) -> bytes:
    """Returns the bytes of all pieces of a lean model."""
    data = bytearray()
    for piece in pieces(lean, folder):
        data += piece if isinstance(piece, bytes) else piece.path.read_bytes()[piece.offset : piece.offset + piece.length]
    return bytes(data)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    onnx.save(odd(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


# --- there and back ---


def test_a_file_is_read_without_its_weights_and_written_as_it_was(file: Path) -> None:
    given = onnx.load(file)
    found = read_lean(file)
    assert found is not None
    lean, weights = found
    assert [tensor.name for tensor in lean.graph.initializer if is_apart(tensor)] == ["w", "v"]
    assert lean.ByteSize() < 700_000
    assert joined(lean, weights.folder) == given
    assert whole(lean, weights.folder) == given.SerializeToString(deterministic=True)


def test_a_message_is_the_same_without_its_weights(file: Path) -> None:
    one, other = read_lean(file), apart(onnx.load(file))
    assert one is not None and other is not None and one[0] == other[0]


def test_sizes_count_as_in_the_written_file(file: Path) -> None:
    given, found = onnx.load(file), read_lean(file)
    assert found is not None
    assert model_bytes(found[0]) == model_bytes(given) and written_bytes(found[0].graph) == written_bytes(given.graph)


def test_weights_begin_at_pages_and_are_read_without_a_copy(file: Path) -> None:
    given, found = onnx.load(file), read_lean(file)
    assert found is not None
    lean, weights = found
    for before, after in zip(given.graph.initializer, lean.graph.initializer, strict=True):
        tensor = read_tensor(after, weights.folder)
        if is_apart(after):
            assert tensor.external is not None and tensor.external.offset % 4096 == 0 and not tensor.array().flags.owndata
        assert np.array_equal(tensor.array(), numpy_helper.to_array(before)) and tensor.beginning(12) == next(tensor.chunks())[:12]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_new_weights_of_each_type_are_stored(dtype: str) -> None:
    kind = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, {"float32": "FLOAT", "float64": "DOUBLE"}.get(dtype, dtype.upper())))
    array = RANDOM.standard_normal((3, 40_000)).astype(kind)
    weights = WeightFile()
    for each in (array, array.T, array[:, ::-1]):
        stored = weights.stored(each, "w")
        assert stored is not None and is_apart(stored)
        assert np.array_equal(read_tensor(stored, weights.folder).array(), each)
    assert weights.stored(array[:, :2], "small") is None and weights.stored(np.arange(40_000), "integers") is None


# --- unusual files ---


def test_a_small_or_external_model_is_read_as_ever(tmp_path: Path) -> None:
    small, external = tmp_path / "small.onnx", tmp_path / "external.onnx"
    onnx.save(weighted("g (float[N, 2] x) => (float[N, 2] y) { y = Add (x, w) }", w=np.ones(2, np.float32)), small)
    onnx.save(model(), external, save_as_external_data=True, location="w.data")
    for path in (small, external):
        assert read_lean(path) is None
        lean, folder, weights = load_lean(path)
        assert (lean, folder, weights) == (*load(path), None)


def test_a_constant_in_another_file_keeps_the_model_as_it_is(file: Path) -> None:
    given = onnx.load(file)
    value = TensorProto(data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    value.external_data.add(key="location", value="elsewhere")
    given.graph.node.insert(0, helper.make_node("Constant", [], ["k"], value=value))
    file.write_bytes(given.SerializeToString())
    assert read_lean(file) is None and apart(given) is None


@pytest.mark.parametrize("field", ["raw_data", "dims", "segment", "twice"])
def test_an_unusual_tensor_stays_inside(file: Path, field: str) -> None:
    given = onnx.load(file)
    tensor = next(tensor for tensor in given.graph.initializer if tensor.name == "v")
    for number in range(2):  # enough is left for the others to be apart
        given.graph.initializer.append(numpy_helper.from_array(RANDOM.standard_normal((SIDE, SIDE)), f"more{number}"))
    if field == "raw_data":
        tensor.raw_data = tensor.raw_data[:-4]
    elif field == "dims":
        tensor.dims[:] = [-SIDE, -SIDE]
    elif field == "segment":
        tensor.segment.begin = 1
    data = given.SerializeToString()
    if field == "twice":  # the last one counts
        old = tensor.SerializeToString()
        new = old + b"\x4a\x04abcd"
        given.graph.initializer.remove(tensor)
        head = b"\x2a" + varint(len(new)) + new
        data = onnx.ModelProto(graph=given.graph, ir_version=given.ir_version, opset_import=given.opset_import).SerializeToString()
        graph = given.graph.SerializeToString() + head
        data = b"\x08\x08\x3a" + varint(len(graph)) + graph
    file.write_bytes(data)
    found = read_lean(file)
    assert found is not None
    assert "v" not in [tensor.name for tensor in found[0].graph.initializer if is_apart(tensor)]
    assert joined(found[0], found[1].folder) == onnx.load(file, load_external_data=False)


def varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([number])


@pytest.mark.parametrize("place", ["model", "graph", "tensor"])
def test_fields_that_onnx_does_not_know_stay(file: Path, place: str) -> None:
    given = onnx.load(file)
    message = {"model": given, "graph": given.graph, "tensor": given.graph.initializer[0]}[place]
    message.MergeFromString(b"\xf2\x3e\x01x")  # field 1006
    file.write_bytes(given.SerializeToString())
    assert read_lean(file) is None and apart(given) is None
    assert load_lean(file)[0].SerializeToString() == given.SerializeToString()


def test_a_graph_in_two_parts_is_read_as_ever(file: Path) -> None:
    data = file.read_bytes()
    part = onnx.GraphProto(doc_string="more").SerializeToString()
    file.write_bytes(data + b"\x3a" + varint(len(part)) + part)
    assert read_lean(file) is None
    assert load_lean(file)[0].graph.doc_string == "more"


@pytest.mark.parametrize("place", ["graph", "tensor"])
def test_a_file_of_very_many_fields_is_parsed_instead(file: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_lean(file) is not None
    monkeypatch.setattr("eqsat.model.lean_file._fields.__defaults__" if place == "graph" else "eqsat.model.lean_file._FEW", (4,) if place == "graph" else 2)
    assert read_lean(file) is None
    assert load_lean(file)[2] is not None


def test_a_path_with_a_strange_name_is_refused_as_ever() -> None:
    with pytest.raises(InputError, match="can not read it"):
        load_lean("a\0b.onnx")


BYTES = odd().SerializeToString()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_file_is_read_as_ever_or_refused_as_ever(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("damaged") / "m.onnx"
    damaged = bytearray(BYTES[: data.draw(st.integers(0, len(BYTES)))] if data.draw(st.booleans()) else BYTES)
    for _ in range(data.draw(st.integers(0, 3))):
        near = data.draw(st.sampled_from([0, len(damaged) - 600, 40_000 * 4 + SIDE * SIDE * 4]))
        place = max(0, min(near + data.draw(st.integers(0, 600)), len(damaged) - 1))
        if damaged:
            damaged[place] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged)
    try:
        expected: Any = load(path)[0]
    except InputError as error:
        expected = str(error)
    try:
        lean, _, weights = load_lean(path)
        found: Any = lean if weights is None else joined(lean, weights.folder)
    except InputError as error:
        found = str(error)
    assert found == expected
    path.unlink()


# --- whole runs ---


def optimized(path: Path, **options: Any) -> eqsat.Result:
    return eqsat.optimize(path, **options)


def test_a_result_has_its_weights_inside(file: Path, tmp_path: Path) -> None:
    given = onnx.load(file)
    result = optimized(file)
    assert result.original.weights is not None and result.report["verify"]["status"] == "equal"
    result.save(tmp_path / "streamed.onnx")  # without the weights in memory
    assert not any(is_apart(tensor) for tensor in result.model.graph.initializer)
    result.save(tmp_path / "whole.onnx")
    assert (tmp_path / "streamed.onnx").read_bytes() == (tmp_path / "whole.onnx").read_bytes() == result.model.SerializeToString(deterministic=True)
    assert result.original.proto == given
    assert result.report["bytes"] == {"before": given.ByteSize(), "after": result.model.ByteSize(), "stripped": 0}


def test_the_result_is_the_same_as_with_weights_inside(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lean = optimized(file)
    monkeypatch.setattr(weight_file.WeightFile, "__init__", no_room)
    plain = optimized(file)
    assert lean.original.weights is not None and plain.original.weights is None
    assert lean.model == plain.model and lean.original.proto == plain.original.proto
    kept = lean.report.keys() - {"seconds", "rules", "saturation", "verify"}  # these have times
    assert {key: lean.report[key] for key in kept} == {key: plain.report[key] for key in kept}


def no_room(_: WeightFile) -> None:
    raise OSError(28, "No space left on device")


def test_weights_that_find_no_room_stay_inside(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    expected = optimized(file).model
    refer = WeightFile.refer
    monkeypatch.setattr(WeightFile, "refer", lambda self, tensor, data: refer(self, tensor, data) if isinstance(data, External) else full())
    assert optimized(file).model == expected


def test_a_message_and_a_file_lead_to_the_same_result(file: Path) -> None:
    given = onnx.load(file)
    before = given.SerializeToString(deterministic=True)
    result = eqsat.optimize(given)
    assert result.original.weights is not None and result.model == optimized(file).model
    assert given.SerializeToString(deterministic=True) == before


WRONG = """
real rule wrong:
    Mul(MatMul(x, w), s) => MatMul(x, Mul(w, Add(s, T(0.01))))
    where const w, const s, w: T, rank(w) == 2, rank(s) == 1
    test x: T[2, 3], w: T[3, 2], s: T[2]
"""


def test_a_wrong_weight_that_is_apart_is_found(file: Path) -> None:
    given = {"rules": [WRONG], "only": ["rules"], "target": "launches"}
    unverified, result = optimized(file, verify=False, **given), optimized(file, **given)
    assert len(unverified.model.graph.node) < len(result.model.graph.node)
    assert [rule["name"] for rule in result.report["rules"] if rule.get("dropped")] == ["wrong"]


def test_a_result_goes_to_another_process(file: Path, tmp_path: Path) -> None:
    result = optimized(file, verify=False, opset=20, inline=True)
    other = pickle.loads(pickle.dumps(result))
    assert other.original.weights is None and other.model == result.model and other.report == result.report
    assert other.original.proto == result.original.proto and other.original.model.proto.opset_import[0].version == 20
    other.save(tmp_path / "other.onnx")
    assert (tmp_path / "other.onnx").read_bytes() == result.model.SerializeToString(deterministic=True)


def test_the_file_of_a_run_goes_away_with_its_result(file: Path) -> None:
    result = optimized(file, verify=False)
    assert result.original.weights is not None
    folder = result.original.weights.folder
    assert folder.is_dir()
    del result
    gc.collect()
    assert not folder.exists()


def test_a_model_is_replaced_and_an_unchanged_one_stays(file: Path) -> None:
    first = optimized(file)
    first.save(file)
    assert file.read_bytes() == first.model.SerializeToString(deterministic=True)
    before = os.stat(file).st_mtime_ns
    again = optimized(file)
    assert again.original.weights is not None
    again.save(file)
    assert os.stat(file).st_mtime_ns == before


def test_a_page_and_a_race_take_a_model_whose_weights_are_apart(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eqsat.cli.report_files import write_reports

    monkeypatch.setattr("eqsat.tuning.race._MOST", FEWEST)
    result = optimized(file, tune=True, verify=False)
    write_reports([file.with_suffix(".html")], result, eqsat.Settings())
    assert "MatMul" in file.with_suffix(".html").read_text(encoding="utf-8")
