"""The page without a browser: its data, and a document from which no text of a model escapes."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from eqsat.cli.main import main
from eqsat.cost.price import Price
from eqsat.page.document import ASSETS, VENDORED, document, libraries
from eqsat.page.flat import Step
from eqsat.page.node_prices import at_nodes
from eqsat.pipeline import Result
from eqsat.rewriting.valuation import Row
from tests.page.pages import LAYERS, Parsed, data_of, layered, page_of, run_of
from tests.support.models import parse
from tests.support.transformer import transformer

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)><!--\u2028]]>&amp;'\"`${1}"


def hostile() -> onnx.ModelProto:
    """Returns a model whose every text tries to leave its place."""
    weight = numpy_helper.from_array(np.full((40,), 1234.5678, np.float32), "w" + HOSTILE)
    nodes = [
        helper.make_node("Relu", ["x" + HOSTILE], ["a" + HOSTILE], name="/" + HOSTILE.replace("/", "|") + "/b/Relu"),
        helper.make_node("Relu", ["a" + HOSTILE], ["b" + HOSTILE], name=HOSTILE),
        helper.make_node("Odd" + HOSTILE, ["b" + HOSTILE], ["c" + HOSTILE], name=HOSTILE, domain="d" + HOSTILE, text=HOSTILE),
        helper.make_node("Add", ["c" + HOSTILE, "w" + HOSTILE], ["y" + HOSTILE]),
    ]
    inputs, outputs = (helper.make_tensor_value_info(name + HOSTILE, onnx.TensorProto.FLOAT, ["N" + HOSTILE]) for name in "xy")
    graph = helper.make_graph(nodes, HOSTILE, [inputs], [outputs], [weight])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("d" + HOSTILE, 1)])


@pytest.fixture(scope="module")
def layers() -> dict[str, Any]:
    return data_of(run_of(layered()))


@pytest.fixture(scope="module")
def hostile_page() -> str:
    result = run_of(hostile())
    result.report["input"] = f"/somewhere/{HOSTILE.replace('/', '|')}"
    result.report["notes"].append(HOSTILE)
    return page_of(result)


def test_the_data_hold_both_graphs(layers: dict[str, Any]) -> None:
    text = layers["strings"].__getitem__
    before, after = layers["sides"]
    assert [len(side["nodes"]) for side in (before, after)] == [6 * LAYERS, 3 * LAYERS]
    first = before["nodes"][0]
    assert (text(first["o"]), text(first["n"])) == ("MatMul", "/model/layer.0/mm/MatMul")
    assert [text(before["values"][value][0]) for value in first["i"]] == ["x0", "w"]
    assert text(before["values"][first["i"][1]][1]) == "float32[4, 4]" and len(before["values"][first["i"][1]]) == 3
    transpose = before["nodes"][3]
    assert [[text(part) for part in pair] for pair in transpose["a"]] == [["perm", "[1, 0]"]]
    assert {text(title) for title, _ in layers["folds"][1:]} == {f"layer.{layer}" for layer in range(LAYERS)}
    assert [place["f"] for place in before["nodes"]] == [layer + 1 for layer in range(LAYERS) for _ in range(6)]


def test_the_data_link_what_changed(layers: dict[str, Any]) -> None:
    gone = {node for region in layers["regions"] for node in region["old"]}
    assert gone == {6 * layer + place for layer in range(LAYERS) for place in gone if place < 6} and len(gone) == 3 * LAYERS
    assert len(layers["kept"]) == 3 * LAYERS
    assert sorted(number for kind in layers["kinds"] for number in kind["regions"]) == list(range(len(layers["regions"])))
    assert json.loads(json.dumps(layers)) is not None


def test_times_of_the_kernels_are_those_of_the_report(layers: dict[str, Any]) -> None:
    for side, figures in zip(layers["sides"], (layers["report"]["cost"][when] for when in ("before", "after")), strict=True):
        assert sum(kernel[1] for kernel in side["kernels"]) == pytest.approx(figures["seconds"], rel=1e-3)
        placed = [kernel for node in side["nodes"] for kernel in node.get("k", [])]
        assert sorted(placed) == list(range(len(side["kernels"])))


def test_a_kernel_without_a_name_of_the_model_is_at_the_node_that_it_leads_to() -> None:
    def row(operator: str, inputs: str, output: str) -> Row:
        return Row(output, operator, Price(1e-6, 1, 1.0, 1.0, "launch", 0.0), True, tuple(inputs.split()), (output,))

    steps = [Step("Exp", "", ("x",), ("a",)), Step("MatMul", "", ("a", "w"), ("h",)), Step("Add", "", ("h", "b"), ("y",)), Step("Neg", "", ("x",), ("n",))]
    rows = [row("Exp", "x", "a"), row("Reshape", "a", "r1"), row("Gemm", "r1 w b", "r2"), row("Reshape", "r2", "y")]
    assert at_nodes(steps, rows) == ({0: [0], 2: [1, 2, 3]}, {1: 2})


def test_an_unchanged_model_has_no_regions() -> None:
    model = parse("g (float[999] x, float[999] w) => (float[999] y) { a = Relu (x) y = Add (a, w) }")
    del model.graph.input[1]
    model.graph.initializer.append(numpy_helper.from_array(np.arange(999, dtype=np.float32), "w"))
    found = run_of(model)
    data = data_of(Result(found.original.proto, {**found.report, "became": {}}, found.original))
    assert data["regions"] == [] and data["kept"] == [(0, 0), (1, 1)]


def test_the_document_is_well_formed(hostile_page: str) -> None:
    assert Parsed(hostile_page).faults == []


def test_no_text_of_a_model_leaves_its_place(hostile_page: str) -> None:
    found = Parsed(hostile_page)
    named = [attributes.get("id") for attributes, _ in found.scripts]
    expected = ["data", *(f"script-{name}" for name in ("dagre", "d3", "graphs", "layout", "tree", "drawing", "details", "tables", "growth", "main"))]
    assert named == expected
    assert not any(tag == "img" or any(name.startswith("on") for name in attributes) for tag, attributes in found.elements)
    assert "owned" in found.title and "owned" not in "".join(text for attributes, text in found.scripts if attributes["id"] != "data")
    data = found.data()
    assert HOSTILE in data["strings"] and HOSTILE in data["report"]["notes"]
    (raw,) = [text for attributes, text in found.scripts if attributes["id"] == "data"]
    assert not set("<>&\u2028\u2029") & set(raw)


def test_only_scripts_of_the_package_may_run(hostile_page: str) -> None:
    found = Parsed(hostile_page)
    (policy,) = [attributes["content"] for tag, attributes in found.elements if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    rules = {name: set(allowed) for name, *allowed in (part.split() for part in policy.split(";"))}
    assert rules["default-src"] == {"'none'"}

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert rules["script-src"] == {hashed(text) for attributes, text in found.scripts if attributes["id"] != "data"}
    assert rules["style-src"] == {hashed("".join(found.styles))}


def test_the_page_asks_nothing_of_a_network(hostile_page: str) -> None:
    for tag, attributes in Parsed(hostile_page).elements:
        assert tag not in ("link", "iframe", "img", "object", "base")
        assert "src" not in attributes and (attributes.get("href") or "#").startswith("#"), (tag, attributes)
    assert "sourceMappingURL=" not in hostile_page


def test_weights_are_not_in_the_page(hostile_page: str) -> None:
    assert "1234.5" not in hostile_page
    assert "float32[40]" in hostile_page


def test_long_texts_are_cut() -> None:
    model = parse("g (float[2] x) => (float[2] y) { a = Relu (x) y = Exp (a) }")
    model.graph.node[0].name = "n" * 100_000
    data = data_of(run_of(model))
    assert max(map(len, data["strings"])) == 300


def test_a_title_is_text() -> None:
    assert Parsed(document({"strings": []}, "<b>&</title>")).title == "<b>&</title> · eqsat"


@pytest.mark.slow
def test_two_thousand_nodes_stay_under_three_megabytes() -> None:
    result = run_of(transformer(29))
    assert len(result.original.model.graph.nodes) > 2000
    assert len(page_of(result).encode()) < 3_000_000


@pytest.mark.parametrize("library", libraries(), ids=lambda library: library["name"])
def test_vendored_files_are_as_stated(library: dict[str, str]) -> None:
    content = (VENDORED / library["file"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == library["sha256"]
    assert library["version"].encode() in content
    terms = (VENDORED / library["terms"]).read_text(encoding="utf-8")
    assert {"MIT": "Permission is hereby granted, free of charge", "ISC": "with or without fee is hereby granted"}[library["license"]] in terms


def test_every_vendored_file_is_stated() -> None:
    stated = {"vendored.toml", *(library[key] for library in libraries() for key in ("file", "terms"))}
    assert {path.name for path in VENDORED.iterdir()} == stated
    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in ASSETS.glob("*.js")) <= 400


def test_the_command_writes_each_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "m.onnx", str(tmp_path / "o.onnx")
    onnx.save(layered(), source)
    reports = [tmp_path / name for name in ("a.html", "b.json", "c.HTML")]
    assert main(["optimize", str(source), "-o", out, "--effort", "low", *(word for path in reports for word in ("--report", str(path)))]) == 0
    assert json.loads(reports[1].read_text())["output"] == out
    assert reports[0].read_text() == reports[2].read_text()
    assert Parsed(reports[0].read_text()).data()["report"]["output"] == out
    assert main(["optimize", str(source), "--report", str(reports[0]), "--report", str(reports[0])]) == 2
    assert "would overwrite" in capsys.readouterr().err
