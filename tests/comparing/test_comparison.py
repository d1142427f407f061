"""Each optimizer is one result, whatever it does, and only right results count for means."""

from __future__ import annotations

import importlib.metadata
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from eqsat.comparing.child import Limits
from eqsat.comparing.comparison import Comparison, Conditions, compare, compare_as_is
from eqsat.comparing.comparison_record import COLUMNS, csv_rows, recorded
from eqsat.comparing.making import as_it_is, make_variant
from eqsat.comparing.means import geometric_mean, means
from eqsat.comparing.optimizers import PACKAGES, Optimizer, chosen_optimizers, left_out, make_optimizer
from eqsat.comparing.prediction import predicted
from eqsat.comparing.stopwatch import Measured, Measurement
from eqsat.comparing.variant import DIFFERENT, EQUAL, FAILED, MISSING, STOPPED, Variant
from eqsat.errors import InputError
from eqsat.settings import silent
from tests.support.fake_peers import fake
from tests.support.models import parse

LIMITS = Limits(60, 1 << 33)
QUICK = Conditions(LIMITS, rounds=1, seconds=0)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.onnx"
    path.write_bytes(parse("g (float[N, 3] x) => (float[N, 3] y) { a = Relu (x)  b = Tanh (a)  c = Identity (b)  y = Mul (c, a) }").SerializeToString())
    return path


@pytest.mark.parametrize(
    ("kind", "status", "reason", "limits"),
    [
        ("copies", EQUAL, "", LIMITS),
        ("overwrites its input", EQUAL, "", LIMITS),
        ("lies", DIFFERENT, "y", LIMITS),
        ("crashes", FAILED, "crashed (SIGABRT)", LIMITS),
        ("hangs", STOPPED, "longer than 1 s", Limits(1)),
        ("refuses", FAILED, "because of this", LIMITS),
        ("writes garbage", FAILED, "no valid model: not an ONNX model", LIMITS),
        ("writes a cycle", FAILED, "no valid model: the graph: node Relu depends on itself", LIMITS),
        ("writes a pipe", FAILED, "it wrote no file", LIMITS),
        ("writes nothing", FAILED, "it wrote no file", LIMITS),
        ("prints without end", STOPPED, "endless output", LIMITS),
        ("takes all memory", FAILED, "MemoryError", Limits(60, 1 << 27)),
    ],
)
def test_whatever_an_optimizer_does_is_one_result(kind: str, status: str, reason: str, limits: Limits, model: Path, tmp_path: Path) -> None:
    target = tmp_path / "result.onnx"
    before = model.read_bytes()
    made = make_variant(fake(kind), model, target, replace(limits))
    assert made.status == status and reason in made.reason and "\n" not in made.reason, made
    assert made.right == (status == EQUAL) and target.is_file() == bool(made.path) == (status in (EQUAL, DIFFERENT))
    assert made.wall_seconds > 0 and model.read_bytes() == before
    if made.path:
        assert made.nodes == 4 and made.bytes == len(target.read_bytes()) and sum(made.operators.values()) == 4


def test_verification_that_does_not_end_is_no_verdict(model: Path, tmp_path: Path) -> None:
    made = make_variant(fake("copies"), model, tmp_path / "result.onnx", Limits(60), ["--inputs", str(tmp_path / "no.npz")])
    assert (made.status, made.path) == (FAILED, "") and "no.npz" in made.reason


def test_optimizers_are_compared_side_by_side(model: Path, tmp_path: Path) -> None:
    chosen = [fake("copies"), fake("lies"), fake("crashes"), make_optimizer("eqsat"), Optimizer("nobody", "", lambda source, target: [])]
    found = compare("tiny", model, chosen, tmp_path, replace(QUICK, assumed={"N": 5, "M": 6}), silent)
    assert {name: variant.status for name, variant in found.variants.items()} == {
        "original": "equal",
        "copies": "equal",
        "lies": "different",
        "crashes": "failed",
        "eqsat": "equal",
        "nobody": MISSING,
    }
    assert found.sizes == {"N": 5}
    assert {name: each.launches for name, each in found.measurement.measured.items()} == {"original": 3, "copies": 3, "lies": 3, "eqsat": 3}
    assert set(found.predicted) == {"original", "copies", "lies", "eqsat"}
    assert found.variants["eqsat"].nodes == 3 and found.variants["eqsat"].stages["total"] > 0
    record = recorded([found], QUICK, chosen)
    assert [recorded([found], replace(QUICK, no_empty_inputs=given), chosen)["no_empty_inputs"] for given in (False, True)] == [False, True]
    rows = {row["optimizer"]: row for row in record["models"][0]["results"]}
    assert rows["lies"]["median_ms"] > 0 and rows["crashes"]["median_ms"] is None and "pip install" in rows["nobody"]["reason"]
    assert [dict(zip(COLUMNS, cells, strict=True))["optimizer"] for cells in csv_rows(record)] == list(rows)
    timed = {each["optimizer"]: each["timed"] for each in record["means"]}
    assert timed == {"copies": 1, "lies": 0, "crashes": 0, "eqsat": 1, "nobody": 0}


@pytest.mark.slow
def test_given_inputs_decide(tmp_path: Path) -> None:
    first, second, inputs = tmp_path / "first.onnx", tmp_path / "second.onnx", tmp_path / "inputs.npz"
    first.write_bytes(parse("g (float[2] x) => (float[2] y) { y = Abs (x) }").SerializeToString())
    second.write_bytes(parse("g (float[2] x) => (float[2] y) { y = Relu (x) }").SerializeToString())
    assert compare_as_is(first, second, QUICK, silent).variants[str(second)].status == DIFFERENT
    given = {"x": np.array([1, 2], np.float32)}
    np.savez(inputs, **given)  # pyright: ignore[reportArgumentType]
    found = compare_as_is(first, second, replace(QUICK, inputs=given, inputs_path=inputs), silent)
    assert found.variants[str(second)].status == "equal" and found.ratio(str(second), lambda measured: measured.launches, str(first)) == 1
    with pytest.raises(InputError, match="missing: x"):
        compare_as_is(first, second, replace(QUICK, inputs={}, inputs_path=inputs), silent)


def test_an_original_that_does_not_run_is_compared_all_the_same(tmp_path: Path) -> None:
    strange = tmp_path / "strange.onnx"
    text = """<ir_version: 8, opset_import: ["": 17, "nowhere": 1]> g (float[2] x) => (float[2] y) { h = nowhere.Strange (x)  y = Identity (h) }"""
    strange.write_bytes(parse(text, "").SerializeToString())
    found = compare("strange", strange, [fake("copies")], tmp_path, QUICK, silent)
    assert found.failure.startswith("the original does not run: ") and not found.measurement.measured
    assert found.variants["copies"].nodes == 2


def test_a_model_that_can_not_be_priced_has_no_prediction(model: Path, tmp_path: Path) -> None:
    few, many = (predicted(model, {"N": size, "unknown": 1}, LIMITS) for size in (4, 4_000_000))
    assert few is not None and many is not None and 0 < few < many
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    assert predicted(tmp_path / "broken.onnx", {}, LIMITS) is None


def test_a_library_that_does_not_load_leaves_the_graph_as_it_stands(model: Path, tmp_path: Path) -> None:
    (tmp_path / "ops.so").write_text("no library")
    asked, written = (predicted(model, {"N": 4}, LIMITS, library=library) for library in (None, tmp_path / "ops.so"))
    assert asked is not None and written is not None and asked < written, "ONNX Runtime would drop the Identity"


def comparison(name: str, times: dict[str, float], wrong: str = "") -> Comparison:
    variants = {each: Variant(each, f"{each}.onnx", int(10 * time), 2.0, DIFFERENT if each == wrong else EQUAL) for each, time in times.items()}
    measured = {each: Measured(time, time, int(4 * time), time / times["original"]) for each, time in times.items()}
    return Comparison(name, variants, Measurement(measured), predicted=times)


def test_wrong_results_count_for_no_mean() -> None:
    rows = [comparison("a", {"original": 8, "one": 4, "other": 1}), comparison("b", {"original": 8, "one": 1, "other": 2}, wrong="one")]
    one, other = means(rows)
    assert (one.statuses, one.timed, one.latency, one.nodes, one.launches) == ({"equal": 1, "different": 1}, 1, 0.5, 0.5, 0.5)
    assert other.timed == 2 and other.latency == pytest.approx(32**-0.5) and other.seconds == pytest.approx(2.0)
    assert geometric_mean([]) is None


def test_optimizers_are_chosen_by_name() -> None:
    assert [each.name for each in chosen_optimizers("eqsat, ort-basic,eqsat", {}, ())] == ["eqsat", "ort-basic"]
    installed = {name for name, package in PACKAGES.items() if any(found.name == package for found in importlib.metadata.distributions())}
    by_default = chosen_optimizers(None, {"mine": "tool {input} {output}"}, ())
    assert {each.name for each in by_default} == {*installed, "eqsat", "mine"}
    assert set(left_out(by_default, None)) == PACKAGES.keys() - installed
    assert by_default[-1].command(Path("a b"), Path("c")) == ["tool", "a b", "c"]


def test_a_promise_goes_to_eqsat_and_to_verification() -> None:
    peer, own = chosen_optimizers("ort-basic,eqsat", {}, ("--exact",), no_empty_inputs=True)
    assert "--no-empty-inputs" in own.command(Path("a"), Path("b")) and "--no-empty-inputs" not in peer.command(Path("a"), Path("b"))
    assert replace(QUICK, no_empty_inputs=True).of_verification == ["--no-empty-inputs"] and QUICK.of_verification == []


@pytest.mark.parametrize(
    ("names", "own", "options", "message"),
    [
        ("onnxsimm", {}, (), "no optimizer is called 'onnxsimm'; there are onnxsim, "),
        ("onnxsim", {}, ("--exact",), "eqsat is not compared"),
        (None, {"mine": "tool {input}"}, (), "has to name both files"),
        (None, {"mine": "tool '{input}"}, (), "is no command"),
        (None, {"eqsat": "tool {input} {output}"}, (), "needs a name of its own"),
        (None, {"../x": "tool {input} {output}"}, (), "needs a name of its own"),
    ],
)
def test_wrong_names_and_commands_are_refused(names: str | None, own: dict[str, str], options: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        chosen_optimizers(names, own, options)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_real_peer_makes_an_equal_model(name: str, model: Path, tmp_path: Path) -> None:
    peer = make_optimizer(name)
    if not peer.version:
        pytest.skip(f"{name} is not installed")
    made = make_variant(peer, model, tmp_path / "result.onnx", LIMITS)
    assert made.right and made.nodes == 3, made


@pytest.mark.slow
def test_external_data_are_part_of_a_result(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.arange(4096, dtype=np.float32).reshape(64, 64), "w")
    made = parse("g (float[2, 64] x) => (float[2, 64] y) { a = MatMul (x, w)  b = Identity (a)  y = Relu (b) }")
    made.graph.initializer.append(weight)
    path = tmp_path / "large.onnx"
    onnx.save_model(made, path, save_as_external_data=True, location="large.data")
    before = path.read_bytes()
    found = compare("large", path, [make_optimizer("eqsat"), make_optimizer("ort-basic"), fake("copies")], tmp_path, QUICK, silent)
    for name in ("eqsat", "ort-basic"):
        assert found.variants[name].right and found.variants[name].bytes > 1 << 14 and found.measurement.measured[name].launches == 2
    assert found.variants["copies"].status == FAILED and "can not read external data" in found.variants["copies"].reason
    assert path.read_bytes() == before


def test_a_model_and_its_description(model: Path) -> None:
    original = as_it_is(model)
    assert (original.name, original.nodes, original.operators) == ("original", 4, {"Relu": 1, "Tanh": 1, "Identity": 1, "Mul": 1})
