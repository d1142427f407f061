"""`eqsat optimize` as a program: several models, standard streams, exit codes and what is written."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import eqsat
from tests.cli.test_wrong_input import assert_refused, call, files
from tests.support.models import parse

TWICE = parse("g (float[N, 4] x) => (float[N, 4] y) { a = Relu (x)  b = Relu (a)  y = Identity (b) }")
SUM = parse("g (float[N, 4] x) => (float[N, 4] y) { a = Add (x, x)  b = Add (x, x)  y = Mul (a, b) }")
CUSTOM = parse(
    "g (float[2] x) => (float[2] y) <float[2] p> { p = my.Op (x)  a = Relu (p)  b = Relu (a)  y = Identity (b) }",
    '<ir_version: 8, opset_import: ["" : 17, "my" : 1]>',
)
"""No runtime has its operator, so its result cannot be verified."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the current folder, with some models in it."""
    monkeypatch.chdir(tmp_path)
    for name, model in (("a", TWICE), ("b", SUM), ("custom", CUSTOM)):
        onnx.save(model, f"{name}.onnx")
    Path("bad.onnx").write_text("no model")
    return tmp_path


def program(*arguments: str, data: bytes = b"", **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Runs `eqsat` in a process of its own, in the current folder."""
    return subprocess.run([sys.executable, "-m", "eqsat", *arguments], input=data, capture_output=True, check=False, timeout=120, **more)


# --- several models ---


def test_several_models_go_into_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["optimize", "a.onnx", "b.onnx", "-o", "out/"]) == 0
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["a.onnx", "b.onnx"]
    assert [eqsat.count_nodes(f"out/{name}.onnx") for name in "ab"] == [1, 2]
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(("model", "wrote"))] == [
        "model   a.onnx",
        "wrote   out/a.onnx",
        "model   b.onnx",
        "wrote   out/b.onnx",
    ]


def test_several_models_without_a_folder_have_results_beside_them(folder: Path) -> None:
    before = files(folder)
    assert call(["optimize", "a.onnx", "b.onnx", "--quiet"]) == 0
    assert files(folder).keys() - before.keys() == {"a.opt.onnx", "b.opt.onnx"}


def test_a_failure_of_one_does_not_stop_the_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["optimize", "bad.onnx", "a.onnx", "missing.onnx", "b.onnx", "-o", "out/", "--json", "--report", "all.json"]) == 2
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert record == json.loads(Path("all.json").read_text())
    assert [(one["input"], one["output"], one["exit_code"]) for one in record["models"]] == [
        ("bad.onnx", None, 2),
        ("a.onnx", "out/a.onnx", 0),
        ("missing.onnx", None, 2),
        ("b.onnx", "out/b.onnx", 0),
    ]
    assert [one["error"] is None for one in record["models"]] == [False, True, False, True]
    assert record["models"][1]["nodes"]["after"] == 1 and record["models"][1]["verify"]["status"] == "equal"
    assert err.splitlines()[0].startswith("eqsat: error: bad.onnx: ") and err.splitlines()[-1] == "eqsat: 2 of 4 models failed: bad.onnx, missing.onnx"
    assert sorted(os.listdir("out")) == ["a.onnx", "b.onnx"]


def test_a_defect_of_eqsat_in_one_does_not_stop_the_others(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from eqsat import pipeline

    usual = pipeline.run

    def run(source: Any, settings: Any) -> Any:
        if source == "a.onnx":
            raise AssertionError("a defect")
        return usual(source, settings)

    monkeypatch.setattr(pipeline, "run", run)
    assert call(["optimize", "a.onnx", "bad.onnx", "b.onnx", "-o", "out/", "--quiet"]) == 4
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith("eqsat: internal error: a.onnx: AssertionError: a defect") and len(err) == 3
    assert os.listdir("out") == ["b.onnx"]


def test_an_interrupt_ends_the_turn(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from eqsat import pipeline

    def run(source: Any, settings: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "run", run)
    assert call(["optimize", "a.onnx", "b.onnx", "-o", "out/", "--json"]) == 130
    record = json.loads(capsys.readouterr().out)
    assert [(one["input"], one["exit_code"]) for one in record["models"]] == [("a.onnx", 130), ("b.onnx", 130)]
    assert record["models"][1]["error"] == "not begun, because of an interrupt"


def test_one_worker_serves_all_models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eqsat.runtime import worker

    started: list[object] = []
    usual = subprocess.Popen

    def popen(*arguments: Any, **more: Any) -> Any:
        process = usual(*arguments, **more)
        started.append(process)
        return process

    worker.shared().stop()
    monkeypatch.setattr(worker.subprocess, "Popen", popen)
    assert call(["optimize", "a.onnx", "b.onnx", "a.onnx", "-o", "out/", "--quiet"]) == 2  # two results of one name
    assert call(["optimize", "a.onnx", "b.onnx", "custom.onnx", "-o", "out/", "--quiet"]) == 0
    assert len(started) == 1


def test_a_wrong_option_is_named_once_for_all_models(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in (["--only", "nope"], ["--target", "nope"], ["--rules", "nope.rules"], ["--custom-op-library", "nope.so"]):
        assert_refused(folder, capsys, "optimize", "a.onnx", "b.onnx", "-o", "out/", *option)


def test_one_model_goes_into_a_folder_too(folder: Path) -> None:
    assert call(["optimize", "a.onnx", "-o", "out/", "--quiet"]) == 0
    assert files(folder / "out").keys() == {"a.onnx"}


def test_results_replace_the_models_in_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["optimize", "a.onnx", "b.onnx", "--in-place", "--quiet"]) == 0
    assert [eqsat.count_nodes(f"{name}.onnx") for name in "ab"] == [1, 2]
    small = files(folder)
    times = {name: os.stat(name).st_mtime_ns for name in small}
    assert call(["optimize", "a.onnx", "b.onnx", "--in-place", "--quiet"]) == 0
    assert files(folder) == small and {name: os.stat(name).st_mtime_ns for name in small} == times, "an unchanged model is left alone"
    assert_refused(folder, capsys, "optimize", "a.onnx", "--in-place", "-o", "b.onnx")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.onnx", "b.onnx", "-o", "a.onnx"], "is a file"),
        (["a.onnx", "b.onnx", "-o", "-"], "-o DIR/"),
        (["a.onnx", "./a.onnx", "-o", "out/"], "the result of ./a.onnx would overwrite the result of a.onnx"),
        (["a.onnx", "./a.onnx"], "would overwrite"),
        (["-", "-", "-o", "out/"], "standard input can be only one"),
        (["a.onnx", "b.onnx", "-o", "no/where/"], "no: no such folder"),
        (["a.onnx", "b.onnx", "-o", "out/", "--dump-egraph", "e.json"], "--dump-egraph"),
        (["a.onnx", "-o", ""], "-o is empty"),
        (["-", "--in-place"], "--in-place"),
        (["a.onnx", "m.onnxtxt", "--in-place"], "m.onnxtxt: is a text, and results are binary"),
        (["a.onnx", "./a.onnx", "--in-place"], "the result of ./a.onnx would overwrite the result of a.onnx"),
        (["a.onnx", "--report", "a.onnx"], "the report would overwrite the model"),
        (["a.onnx", "-o", "x.onnx", "--report", "x.onnx"], "the report would overwrite the result"),
        (["a.onnx", "-o", "x.onnx", "--report", "no/r.json"], "no: no such folder"),
        (["a.onnx", "--require-verified", "--no-verify"], "exclude one another"),
        (["a.onnx", "--require-verified", "--dump-egraph", "e.json"], "--dump-egraph"),
        ([], "the following arguments are required: MODEL"),
    ],
)
def test_commands_that_make_no_sense(arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in assert_refused(folder, capsys, "optimize", *arguments)


def test_a_model_that_is_another_models_result_is_safe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.opt.onnx").write_bytes(Path("b.onnx").read_bytes())
    assert "would overwrite the model" in assert_refused(folder, capsys, "optimize", "a.onnx", "a.opt.onnx")


# --- standard input and output ---


def test_bytes_alone_are_on_standard_output(folder: Path) -> None:
    data = Path("a.onnx").read_bytes()
    for arguments in (["-"], ["a.onnx", "-o", "-"], ["-", "-o", "-", "--json"]):
        done = program("optimize", *arguments, data=data)
        assert done.returncode == 0
        small = onnx.load_model_from_string(done.stdout)
        assert [node.op_type for node in small.graph.node] == ["Relu"] and small.SerializeToString(deterministic=True) == done.stdout
        if "--json" in arguments:
            report = json.loads(done.stderr)
            assert (report["input"], report["output"], report["nodes"]["after"]) == ("-", "-", 1)
        else:
            assert b"nodes   3 -> 1" in done.stderr and b"wrote   -" in done.stderr
    assert program("optimize", "-", "-o", "-", "--quiet", data=data).stderr == b""


def test_standard_input_goes_to_a_file(folder: Path) -> None:
    assert program("optimize", "-", "-o", "small.onnx", data=Path("a.onnx").read_bytes()).returncode == 0
    assert program("optimize", "-", "-o", "out/", data=Path("a.onnx").read_bytes()).returncode == 0
    assert eqsat.count_nodes("small.onnx") == eqsat.count_nodes("out/model.onnx") == 1


@pytest.mark.parametrize("data", [b"", b"no model", TWICE.SerializeToString()[:-9]], ids=["empty", "text", "truncated"])
def test_standard_input_without_a_model(data: bytes, folder: Path) -> None:
    for arguments in (["optimize", "-"], ["verify", "-", "a.onnx"], ["verify", "a.onnx", "-"], ["cost", "-"]):
        done = program(*arguments, data=data)
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.startswith(b"eqsat: error: standard input: ") and done.stderr.count(b"\n") == 1


def test_other_commands_read_standard_input(folder: Path) -> None:
    data = Path("a.onnx").read_bytes()
    assert program("verify", "-", "a.onnx", data=data).returncode == 0
    assert program("verify", "b.onnx", "-", data=data).returncode == 1
    assert b"Relu" in program("cost", "-", data=data).stdout
    assert b"fires at" in program("rules", "why", "idempotent-idempotent[Relu]", "-", data=data).stdout
    assert b"only one of the models" in program("verify", "-", "-", data=data).stderr


def test_external_data_do_not_go_through_a_pipe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = parse("g (float[1, 512] x) => (float[1, 512] y) <float[1, 512] w> { y = Add (x, w) }")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 512), np.float32), "w"))
    onnx.save(model, "big.onnx", save_as_external_data=True, location="big.data", size_threshold=0)
    assert "another file" in assert_refused(folder, capsys, "optimize", "big.onnx", "-o", "-")
    done = program("optimize", "-", data=Path("big.onnx").read_bytes())
    assert done.returncode == 2 and b"external data" in done.stderr and done.stderr.count(b"\n") == 1


def test_a_closed_pipe_is_no_traceback(folder: Path) -> None:
    command = f"{sys.executable} -m eqsat rules list | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120, check=False)
    assert done.returncode in (0, 141) and done.stderr == b""


# --- exit codes ---


def test_a_result_that_is_not_verified_is_not_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(folder)
    assert call(["optimize", "custom.onnx", "-o", "c.onnx", "--require-verified"]) == 3
    assert "custom.onnx: nothing was written, because the result is unverified: the original model does not run" in capsys.readouterr().err
    assert call(["optimize", "custom.onnx", "-o", "c.onnx", "--require-verified", "--json"]) == 3
    report = json.loads(capsys.readouterr().out)
    assert (report["output"], report["verify"]["status"]) == (None, "unverified")
    assert files(folder) == before
    assert call(["optimize", "a.onnx", "custom.onnx", "-o", "out/", "--require-verified", "--quiet"]) == 3
    assert os.listdir("out") == ["a.onnx"]
    assert "eqsat: warning: custom.onnx: not verified: " in capsys.readouterr().err
    assert call(["optimize", "custom.onnx", "bad.onnx", "-o", "out/", "--require-verified", "--quiet"]) == 3
    assert call(["optimize", "custom.onnx", "-o", "c.onnx", "--quiet"]) == 0, "without the option it is written"
    assert call(["optimize", "a.onnx", "-o", "c.onnx", "--require-verified", "--quiet"]) == 0


def test_nothing_is_written_without_verification(folder: Path) -> None:
    before = files(folder)
    assert call(["optimize", "custom.onnx", "-o", "new/", "--require-verified", "--report", "r.json"]) == 3
    assert files(folder) == before and not (folder / "new").exists()
    done = program("optimize", "-", "--require-verified", data=Path("custom.onnx").read_bytes())
    assert (done.returncode, done.stdout) == (3, b"")


@pytest.mark.parametrize(
    ("a", "b", "code", "status"),
    [("a.onnx", "a.onnx", 0, "equal"), ("a.onnx", "b.onnx", 1, "different"), ("custom.onnx", "changed.onnx", 3, "unverified"), ("a.onnx", "bad.onnx", 2, "")],
)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_the_exit_codes_of_verify(a: str, b: str, code: int, status: str, as_json: bool, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = onnx.ModelProto.FromString(CUSTOM.SerializeToString())
    changed.graph.node[1].op_type = "Abs"
    onnx.save(changed, "changed.onnx")
    assert call(["verify", a, b, *(["--json"] if as_json else [])]) == code
    out = capsys.readouterr().out
    assert out == "" if code == 2 else (json.loads(out)["status"] == status if as_json else out.startswith(status))


def test_a_defect_of_eqsat_is_not_a_difference(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from eqsat.verification import verify

    def broken(*arguments: Any, **more: Any) -> Any:
        raise AssertionError("a defect")

    monkeypatch.setattr(verify, "verify_files", broken)
    assert call(["verify", "a.onnx", "a.onnx"]) == 4
    assert capsys.readouterr().err.startswith("eqsat: internal error: AssertionError: a defect")


@pytest.mark.parametrize("arguments", [[], ["rules"]], ids=["eqsat", "rules"])
def test_a_bare_command_is_its_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert call(arguments) == 0
    bare = capsys.readouterr()
    assert call([*arguments, "--help"]) == 0
    assert bare == capsys.readouterr() and bare.out.startswith("usage: eqsat")


# --- metadata ---


def annotated() -> onnx.ModelProto:
    """Returns a model with notes in all places that have room for some."""
    model = parse("g (float[N, 4] x) => (float[N, 4] y) <float[N, 4] a> { a = Add (x, w)  y = Relu (a) }")
    model.graph.initializer.append(onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [4], [1, 2, 3, 4]))
    body = parse("t () => (float[4] z) { z = Constant <value = float[4] {1, 2, 3, 4}> () }").graph
    node = onnx.helper.make_node("If", ["c"], ["unused"], name="n", then_branch=body, else_branch=body)
    model.graph.node.append(node)
    model.graph.input.append(onnx.helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []))
    model.graph.output.append(onnx.helper.make_tensor_value_info("unused", onnx.TensorProto.FLOAT, [4]))
    model.producer_name, model.producer_version, model.domain, model.model_version = "a producer", "1.2", "org.here", 7
    for place in (model, model.graph, model.graph.node[0], body, model.graph.input[0], model.graph.output[0], model.graph.initializer[0]):
        place.doc_string = "a note"
        place.metadata_props.add(key="a key", value="a note")
    inside = model.graph.node[2].attribute[0]
    inside.doc_string = inside.g.doc_string = inside.g.node[0].doc_string = "a note"
    return model


def test_metadata_are_dropped_and_the_interface_stays(folder: Path) -> None:
    model = annotated()
    onnx.save(model, "noted.onnx")
    assert call(["optimize", "noted.onnx", "-o", "kept.onnx", "--quiet"]) == 0
    assert b"a note" in Path("kept.onnx").read_bytes() and b"a producer" in Path("kept.onnx").read_bytes()
    result = eqsat.optimize("noted.onnx", strip_metadata=True)
    data = result.model.SerializeToString()
    assert b"a note" not in data and b"a key" not in data and b"a producer" not in data and b"1.2" not in data
    assert (result.model.domain, result.model.model_version, result.model.ir_version) == ("org.here", 7, 8)
    assert list(result.model.opset_import) == list(model.opset_import)
    for own, given in ((result.model.graph.input, model.graph.input), (result.model.graph.output, model.graph.output)):
        assert [(info.name, info.type) for info in own] == [(info.name, info.type) for info in given]
    sizes = result.report["bytes"]
    assert sizes["before"] == len(model.SerializeToString()) and sizes["after"] == len(data)
    assert sizes["stripped"] > 100 and result.report["verify"]["status"] == "equal"
    assert b"a note" in model.SerializeToString()


def test_metadata_go_even_where_nothing_gets_faster(folder: Path) -> None:
    model = parse("g (float[N, 4] x) => (float[N, 4] y) { y = Relu (x) }")
    model.graph.node[0].doc_string = "a note"
    onnx.save(model, "m.onnx")
    assert call(["optimize", "m.onnx", "--strip-metadata", "--in-place", "--quiet"]) == 0
    assert b"a note" not in Path("m.onnx").read_bytes()


# --- reasons ---


def test_a_page_and_v_find_reasons_and_json_does_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("dear.rules").write_text("real rule dear:\n    Abs(x) => Sqrt(Mul(x, x))\n    test x: T[2]\n")
    onnx.save(parse("g (float[8] x) => (float[8] y) { y = Abs (x) }"), "abs.onnx")
    command = ["optimize", "abs.onnx", "-o", "out.onnx", "--rules", "dear.rules", "--only", "dear", "--no-verify", "--report", "all.json"]
    for options, known in (([], False), (["--json"], False), (["--reasons"], True), (["-v"], True), (["--report", "all.html"], True)):
        assert call([*command, *options]) == 0
        (record,) = json.loads(Path("all.json").read_text())["rules"]
        assert (record["unused"] is not None) == known, options
    capsys.readouterr()
