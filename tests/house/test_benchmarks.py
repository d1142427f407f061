"""The benchmarks are right: inputs as described, counted launches, kept results, sums of tables."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest

from benchmarks import cuda
from benchmarks.inputs import Description, Input, Meaning, description_path, read_description
from benchmarks.latency.__main__ import main
from benchmarks.latency.optimizers import chosen_optimizers
from benchmarks.latency.picture import PAGES, picture, ratios
from benchmarks.latency.prediction import Pairs, compared
from benchmarks.latency.table import Row, line, remarks, summary
from benchmarks.latency.variants import kept_variant
from benchmarks.zoo.__main__ import FORM_NAMES
from benchmarks.zoo.names import exports
from eqsat.calibrate.cases import launches
from eqsat.comparing.child import Limits
from eqsat.comparing.means import geometric_mean, kernels, latency
from eqsat.comparing.optimizers import Optimizer
from eqsat.comparing.stopwatch import Measured, Measurement
from eqsat.comparing.variant import DIFFERENT, EQUAL, FAILED, STOPPED, Variant

TEXT = Description(
    {
        "input_ids": Input("int64", ("batch", "sequence"), Meaning.INDICES, 7),
        "attention_mask": Input("int64", ("batch", "sequence"), Meaning.MASK),
        "pixels": Input("float32", ("batch", 3), Meaning.FEATURES),
    },
    {"batch": 40, "sequence": 9},
    {"torch": "2.13.0"},
)
MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[N, 3] x) => (float[N, 3] y) { a = Relu(x)  b = Tanh(a)  y = Mul(b, a) }"""
FLOATS = Description({"x": Input("float32", ("N", 3), Meaning.FEATURES)}, {"N": 4})


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


def test_a_description_survives_its_file() -> None:
    assert Description.from_json(TEXT.to_json()) == TEXT
    assert description_path(Path("zoo/bert.ts.dynamic.onnx")) == Path("zoo/bert.ts.dynamic.json")


def test_drawn_inputs_are_valid_and_the_same_each_time() -> None:
    drawn = TEXT.draw()
    assert {name: (array.dtype.name, array.shape) for name, array in drawn.items()} == {
        "input_ids": ("int64", (40, 9)),
        "attention_mask": ("int64", (40, 9)),
        "pixels": ("float32", (40, 3)),
    }
    assert set(drawn["input_ids"].flat) == set(range(7))
    ones = drawn["attention_mask"].sum(axis=1)
    assert (drawn["attention_mask"] == (np.arange(9) < ones[:, None])).all()
    assert set(ones) == {5, 6, 7, 8, 9}, "a mask leaves at least half of a row, and some rows whole"
    assert all((array == TEXT.draw()[name]).all() for name, array in drawn.items())
    assert (drawn["pixels"] != TEXT.draw(seed=1)["pixels"]).all()


def test_wrong_descriptions_are_refused() -> None:
    with pytest.raises(ValueError, match="indices have a bound"):
        Input("int64", (1,), Meaning.INDICES)
    with pytest.raises(ValueError, match="indices have a bound"):
        Input("float32", (1,), Meaning.FEATURES, 3)
    with pytest.raises(ValueError, match="below the bound 0"):
        Input("int64", (1,), Meaning.INDICES, 0)
    with pytest.raises(ValueError, match="symbolic sizes batch, sequence"):
        Description(TEXT.inputs)


def test_a_description_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    model, path = tmp_path / "bert.onnx", tmp_path / "bert.json"
    with pytest.raises(ValueError, match=r"no description of its inputs; it belongs into .*bert\.json"):
        read_description(model)
    for wrong in ("{", "{}", "[]", '{"inputs": {"x": {"dtype": "int64", "shape": [1], "meaning": "tokens", "bound": null}}, "sizes": {}, "made_by": {}}'):
        path.write_text(wrong)
        with pytest.raises(ValueError, match=r"bert\.json is no description of inputs: "):
            read_description(model)
    path.write_text(TEXT.to_json())
    assert read_description(model) == TEXT


def test_names_select_exports_and_static_ones_come_first() -> None:
    names = [export.name for export in exports(["vit", "bert"])]
    assert names == ["bert.dyn", "bert.ts", "vit.dyn", "vit.ts", "bert.dyn.dynamic", "bert.ts.dynamic", "vit.dyn.dynamic", "vit.ts.dynamic"]
    assert [export.name for export in exports(["vit", "bert"], ["bert.ts", "vit.dyn.dynamic"])] == ["bert.ts", "bert.ts.dynamic", "vit.dyn.dynamic"]
    assert not [export for export in exports(["bert", "bertha"], ["bert"]) if export.architecture == "bertha"]
    with pytest.raises(ValueError, match=r"called ber, gpt2; there are bert"):
        exports(["bert"], ["ber", "bert", "gpt2"])


def optimizer(code: str, version: str) -> Optimizer:
    """Returns an optimizer that runs `code` with the paths `source` and `target`."""
    start = "import sys, onnx; source, target = sys.argv[1:];"
    return Optimizer("peer", version, lambda source, target: [sys.executable, "-c", start + code, str(source), str(target)])


LIMITS = Limits(60)


def test_a_result_is_made_once_and_compared(model: Path, tmp_path: Path) -> None:
    same = kept_variant(model, FLOATS, optimizer("onnx.save(onnx.load(source), target)", "same"), tmp_path, LIMITS)
    assert (same.nodes, same.right, same.reason) == (3, True, "") and Path(same.path) == next((tmp_path / "peer-same").glob("*.onnx"))
    assert kept_variant(model, FLOATS, optimizer("raise SystemExit('not called')", "same"), tmp_path, LIMITS) == same

    wrong = "m = onnx.load(source); m.graph.node[0].op_type = 'Neg'; onnx.save(m, target)"
    assert kept_variant(model, FLOATS, optimizer(wrong, "wrong"), tmp_path, LIMITS).status == DIFFERENT

    crashed = kept_variant(model, FLOATS, optimizer("raise SystemExit('it can not')", "crash"), tmp_path, LIMITS)
    assert (crashed.path, crashed.status, crashed.reason) == ("", FAILED, "it can not")
    assert kept_variant(model, FLOATS, optimizer("onnx.save(onnx.load(source), target)", "crash"), tmp_path, LIMITS) == crashed
    assert kept_variant(model, FLOATS, optimizer("pass", "nothing"), tmp_path, LIMITS).reason == "it wrote no file"

    late = kept_variant(model, FLOATS, optimizer("import time; time.sleep(600)", "late"), tmp_path, Limits(0.5))
    assert late.status == STOPPED and late.reason.startswith("longer than")
    assert kept_variant(model, FLOATS, optimizer("onnx.save(onnx.load(source), target)", "late"), tmp_path, LIMITS).right, "another time may be enough"
    assert not list(tmp_path.glob("*/.*")), "nothing half-made stays"


def test_results_of_an_older_cache_are_read(model: Path, tmp_path: Path) -> None:
    peer = optimizer("onnx.save(onnx.load(source), target)", "1.0")
    kept_variant(model, FLOATS, peer, tmp_path, LIMITS)
    (record,) = (tmp_path / "peer-1.0").glob("*.json")
    older = {"name": "peer", "nodes": 3, "cpu_seconds": 1.5, "failure": "", "different": "", "stages": {}}
    for texts, status, reason in (
        ({}, "equal", ""),
        ({"different": "different: y: off by 2"}, "different", "y: off by 2"),
        ({"failure": "ended by SIGSEGV"}, "failed", "ended by SIGSEGV"),
    ):
        record.write_text(json.dumps(older | texts))
        found = kept_variant(model, FLOATS, peer, tmp_path, LIMITS)
        assert (found.status, found.reason, found.nodes, found.cpu_seconds) == (status, reason, 3, 1.5)


def test_the_version_of_eqsat_tells_its_options_apart() -> None:
    (plain,), (low,) = (chosen_optimizers("eqsat", options) for options in ((), ("--effort", "low")))
    assert plain.version != low.version and chosen_optimizers("eqsat", ())[0].version == plain.version
    with pytest.raises(ValueError, match="no optimizer is called 'onnxsimm'"):
        chosen_optimizers("onnxsimm", ())


def test_the_command_prints_a_table_and_writes_all_figures(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    description_path(model).write_text(FLOATS.to_json())
    given = [str(model), "--cache", str(tmp_path / "cache"), "--against", "original,eqsat", "--control", "--rounds", "1", "--json", str(tmp_path / "all.json")]
    monkeypatch.setattr(sys, "argv", ["latency", *given])
    assert main() == 0
    table = capsys.readouterr().out.splitlines()
    assert table[2].startswith("| tiny | 3 / **3** / 3 |") and any(text.startswith("| control / original | 1 | 1.000 |") for text in table)
    (figures,) = json.loads((tmp_path / "all.json").read_text())["models"]
    assert set(figures["measurement"]["measured"]) == set(figures["predicted"]) == {"original", "eqsat", "control"}


def wrong(really: bool) -> tuple[str, str]:
    """Returns the status of a result, and its reason."""
    return (DIFFERENT, "it is wrong") if really else (EQUAL, "")


def row(name: str, times: dict[str, float], launches: dict[str, int], different: str = "") -> Row:
    variants = {variant: Variant(variant, f"{variant}.onnx", 10, 1.5, *wrong(variant == different)) for variant in times}
    measured = {variant: Measured(taken, taken / 2, launches[variant], taken / times["original"]) for variant, taken in times.items()}
    return Row(name, variants, Measurement(measured, rounds=8))


FIRST = row("first", {"original": 8, "onnxsim": 4, "eqsat": 2, "control": 1}, {"original": 10, "onnxsim": 5, "eqsat": 10, "control": 1})
SECOND = row("second", {"original": 1, "onnxsim": 0.1, "eqsat": 2}, {"original": 10, "onnxsim": 1, "eqsat": 10}, different="onnxsim")


def test_ratios_leave_out_what_computes_something_else() -> None:
    assert (FIRST.best(latency), FIRST.ratio("eqsat", latency), FIRST.ratio("eqsat", latency, "original"), FIRST.ratio("eqsat", kernels)) == (0.5, 0.5, 0.25, 2)
    assert (SECOND.best(latency), SECOND.ratio("eqsat", latency), SECOND.ratio("onnxsim", latency, "original")) == (1, 2, None)
    assert geometric_mean([0.5, 2, 8]) == pytest.approx(2) and geometric_mean([]) is None


def test_the_faster_of_two_is_predicted_or_not() -> None:
    assert compared([1, 2], [3, 4]) == Pairs(1, 1)
    assert compared([1, 2], [4, 3]) == compared([1, 2], [3, 3]) == Pairs(1, 0)
    assert compared([1, 1.04], [3, 4]) == Pairs(), "noise decides what is close"
    # Of original 8, onnxsim 4 and eqsat 2, eqsat is predicted slower than onnxsim. The control is no variant.
    assert replace(FIRST, predicted={"original": 9, "onnxsim": 5, "eqsat": 6, "control": 9}).pairs() == Pairs(3, 2)
    assert replace(SECOND, predicted={"original": 9, "onnxsim": 5, "eqsat": 10}).pairs() == Pairs(1, 1), "onnxsim computes something else"
    last = list(summary([replace(FIRST, predicted={"original": 9, "onnxsim": 5, "eqsat": 6})]))[-1]
    assert last == "Of 3 pairs that differ by more than 5%, eqsat predicts the faster one of 2 (66.7%)."


def test_the_table_shows_marks_and_means() -> None:
    assert line(SECOND) == (
        "| second | 10 / 10≠ / **10** | 10 / 1≠ / **10** | 1.00 / 0.10≠ / **2.00** | 0.50 / 0.05≠ / **1.00** "
        "| launches 1.000, time 2.000 | 1.5 / 1.5 / **1.5** |"
    )
    assert list(summary([FIRST, SECOND]))[1:] == [
        "| onnxsim / original | 1 | 0.500 | 0.500 | 0.500 | 0 | 0 |",
        "| eqsat / original | 2 | 1.000 | 0.707 | 0.707 | 1 | 1 |",
        "| eqsat / best | 2 | 1.414 | 1.000 | 1.000 | 1 | 1 |",
        "| control / original | 1 | 0.100 | 0.125 | 0.125 | 0 | 0 |",
    ]
    lost = Row(
        "third",
        {"original": Variant("original", "third.onnx"), "onnxsim": Variant("onnxsim", status=FAILED, reason="it can not")},
        Measurement(),
        "ended by SIGSEGV",
    )
    assert list(remarks([SECOND, lost])) == [
        "- second, onnxsim: different: it is wrong",
        "- third: not measured: ended by SIGSEGV",
        "- third, onnxsim: failed: it can not",
    ]
    assert line(lost).startswith("| third | 0 / - | - / - |")
    assert list(summary([lost]))[1:] == ["| onnxsim / original | 0 | - | - | - | 0 | 0 |"]


# --- the picture ---


def figures(**models: dict[str, tuple[float, str]]) -> dict[str, Any]:
    """Returns figures as `--json` writes them: by model and variant, the time relative to the original's and the verdict."""
    rows = [
        {
            "model": name,
            "variants": {variant: {"status": status} for variant, (_, status) in row.items()},
            "measurement": {"measured": {variant: {"relative": time / row["original"][0]} for variant, (time, _) in row.items()}},
        }
        for name, row in models.items()
    ]
    return {"models": rows}


def test_the_picture_shows_right_results_relative_to_the_original() -> None:
    found = ratios(
        figures(
            slow={"original": (2.0, EQUAL), "onnxsim": (1.0, DIFFERENT), "eqsat": (1.9, EQUAL)},
            fast={"original": (4.0, EQUAL), "onnxsim": (3.0, EQUAL), "control": (4.0, EQUAL), "eqsat": (1.0, EQUAL)},
        )
    )
    assert found == {"fast": {"onnxsim": 0.75, "eqsat": 0.25}, "slow": {"eqsat": 0.95}}
    assert list(found) == ["fast", "slow"], "the largest gain comes first"


def test_the_picture_is_well_formed_and_has_each_figure_once() -> None:
    rows = {"a<b.dyn": {"onnxsim": 0.75, "eqsat": 0.25}, "c": {"eqsat": 1.0625}}
    for colors in PAGES.values():
        root = ElementTree.fromstring(picture(rows, colors))
        texts = [element.text for element in root.iter() if element.text and element.text.strip()]
        assert [text for text in texts if ": 0" in text or ": 1" in text] == ["eqsat: 0.250", "onnxsim: 0.750", "eqsat: 1.062"]
        assert "a<b, dynamo" in texts and "c" in texts
        width = float(root.attrib["viewBox"].split()[2])
        assert all(0 < float(disc.attrib["cx"]) < width for disc in root.iter("{http://www.w3.org/2000/svg}circle"))


def test_the_command_line_names_all_forms_of_quantization() -> None:
    pytest.importorskip("sympy", reason="ONNX Runtime's quantizer imports it")
    from benchmarks.zoo.quantize import FORMS

    assert tuple(FORMS) == FORM_NAMES


def test_the_cases_for_a_gpu_are_models_of_so_many_equal_nodes() -> None:
    for case in launches().values():
        model = case.repeated(3, 21).SerializeToString()
        results = cuda.runtime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, case.feeds())
        assert len(results) == 3 and all(np.array_equal(result, results[0]) for result in results)
        assert [node.op_type for node in onnx.load_from_string(model).graph.node] == [case.name] * 3


@pytest.mark.skipif(cuda.CUDA in cuda.runtime.get_available_providers(), reason="this ONNX Runtime runs on a GPU")
def test_without_a_gpu_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["cuda", "cases"])
    assert cuda.main() == 2
    error = capsys.readouterr().err
    assert "install onnxruntime-gpu" in error and error.count("\n") == 1
