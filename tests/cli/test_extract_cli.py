"""`eqsat extract`, the egraph-serialize format in both directions, and extraction in a run."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eqsat
from eqsat.cli.main import main
from eqsat.extract import ExtractionError, Graph, Node, extract
from eqsat.extract.serialize import read, write
from tests.support.drawn_graphs import COSTS, layered, wild
from tests.support.models import parse
from tests.support.random_models import models

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "extraction.md").read_text(encoding="utf-8")

# Two ways to b and two to c; each is dear alone, and cheap if both use d.
SHARED: dict[str, Any] = {
    "nodes": {
        "a": {"op": "f", "cost": 1, "eclass": "A", "children": ["b1", "c2"]},
        "b1": {"op": "g", "cost": 3, "eclass": "B", "children": []},
        "b2": {"op": "g", "eclass": "B", "children": ["d"]},
        "c1": {"op": "h", "cost": 3.0, "eclass": "C"},
        "c2": {"op": "h", "cost": 1, "eclass": "C", "children": ["d"]},
        "d": {"op": "d", "cost": 2.5, "eclass": "D", "children": []},
        "never": {"op": "d", "cost": 0, "eclass": "D", "children": [], "subsumed": True},
    },
    "root_eclasses": ["A"],
    "class_data": {"A": {"type": "T"}},
}
BEST = {"D": "d", "C": "c2", "B": "b2", "A": "a"}


def file_of(tmp_path: Path, content: object, name: str = "graph.json") -> Path:
    data = content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert main(["extract", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Returns the one line that a refused run prints."""
    assert main(["extract", *map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and len(captured.err) < 500
    return captured.err.strip()


def node(**members: object) -> dict[str, object]:
    return {"op": "f", "eclass": "A", **members}


def graph(nodes: Mapping[str, object], *roots: object) -> dict[str, object]:
    return {"nodes": nodes, "root_eclasses": list(roots) or ["A"]}


# --- what is read ---


@pytest.mark.parametrize("name", ["graph.json", "graph.json.gz"])
def test_json_has_what_is_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    record = printed(capsys, file_of(tmp_path, SHARED, name))
    keys = re.findall(r"^\| `(\w+)` \|", DOCUMENT.split("| key of `--json` |")[1].split("\n\n")[0], re.MULTILINE)
    assert list(record) == keys
    assert record["seconds"] >= 0
    del record["seconds"]
    assert record == {"status": "optimal", "cost": 5.5, "bound": 5.5, "bound_for": "all choices", "nodes": 4, "choice": BEST}


def test_a_person_gets_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extract", str(file_of(tmp_path, SHARED))]) == 0
    assert capsys.readouterr().out.splitlines()[:4] == ["nodes   4 of 7", "cost    5.5", "bound   5.5, which the cost meets", "status  optimal"]
    assert main(["extract", str(file_of(tmp_path, SHARED)), "--extractor", "tree"]) == 0
    assert re.search(r"^cost    7\.0\nbound   \S+, \d+\.\d+% below the cost\nstatus  feasible$", capsys.readouterr().out, re.MULTILINE)


def test_options_reach_the_extractor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path, SHARED)
    assert printed(capsys, path, "--extractor", "tree")["cost"] == 7
    assert printed(capsys, path, "--extractor", "greedy")["cost"] == 5.5
    assert printed(capsys, path, "--time-limit", "0")["cost"] >= 5.5
    assert "could need" in refusal(capsys, path, "--memory-limit", "10k")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--extractor", "best"], "best"),
        (["--time-limit", "soon"], "soon"),
        (["--time-limit", "-1"], "-1"),
        (["--memory-limit", "4"], "the limit is 4 bytes"),
        (["--memory-limit", "0"], "the limit is 0 bytes"),
        (["--memory-limit", "nan"], "'nan' is not a number of bytes"),
        (["--memory-limit", "4GB"], "write 4G or 4GiB"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert said in refusal(capsys, file_of(tmp_path, SHARED), *arguments)


def test_a_subsumed_node_and_one_of_infinite_cost_are_never_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = {"s": node(cost=0, subsumed=True), "i": node(cost=math.inf), "x": node(cost=9, subsumed=False), "y": node(cost=9.5)}
    assert printed(capsys, file_of(tmp_path, graph(nodes)))["choice"] == {"A": "x"}


def test_a_missing_cost_is_one_and_fewer_nodes_win_among_equals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = {"two": node(cost=0.25, children=["leaf"]), "leaf": node(eclass="B", cost=0.75), "one": node(), "more": node(cost=1.25)}
    record = printed(capsys, file_of(tmp_path, graph(nodes)))
    assert (record["cost"], record["choice"]) == (1, {"A": "one"})


def test_many_members_of_gzip_and_other_encodings_are_read() -> None:
    data = json.dumps(SHARED).encode()
    for form in (gzip.compress(data[:50]) + gzip.compress(data[50:]), b"\xef\xbb\xbf" + data, data.decode().encode("utf-16")):
        assert extract(read(io.BytesIO(form))[0]).cost == 5.5


def test_reading_leaves_the_source_open() -> None:
    source = io.BytesIO(json.dumps(SHARED).encode())
    read(source)
    assert not source.closed


# --- what is refused ---

WRONG: dict[str, tuple[object, str]] = {
    "nothing": (b"", "not JSON"),
    "no JSON": ("nodes: 1", "not JSON"),
    "cut": (json.dumps(SHARED)[:-5], "not JSON"),
    "no text": (b'{"nodes": "\xff\xfe"}', "not JSON"),
    "deep": ("[" * 200_000, "nested too deeply"),
    "a list": ([], "the file is a list; it has to be an object"),
    "no nodes": ({"root_eclasses": []}, 'the file has no "nodes"'),
    "nodes a list": ({"nodes": [], "root_eclasses": []}, '"nodes" is a list'),
    "node a number": (graph({"n1": 3}), "node 'n1' is a number"),
    "no class": (graph({"n1": {"op": "f"}}), "node 'n1' has no \"eclass\""),
    "class a number": (graph({"n1": node(eclass=3)}), "\"eclass\" of node 'n1' is a number; it has to be a string"),
    "op a list": (graph({"n1": node(op=[])}), "\"op\" of node 'n1' is a list"),
    "children an object": (graph({"n1": node(children={})}), "\"children\" of node 'n1' is an object"),
    "child null": (graph({"n1": node(children=[None])}), "an entry of \"children\" of node 'n1' is null"),
    "child unknown": (graph({"n1": node(children=["n7"])}), "node 'n1' has the child 'n7', which is no node of the file"),
    "child a class": (graph({"n1": node(children=["A"])}), "node 'n1' has the child 'A', which is no node of the file"),
    "cost a string": (graph({"n1": node(cost="1")}), "\"cost\" of node 'n1' is a string; it has to be a number"),
    "cost a truth": (graph({"n1": node(cost=True)}), "\"cost\" of node 'n1' is true"),
    "cost null": (graph({"n1": node(cost=None)}), "\"cost\" of node 'n1' is null"),
    "cost no number": (graph({"n1": node(cost=math.nan)}), "\"cost\" of node 'n1' is nan"),
    "cost negative": (graph({"n1": node(cost=-0.5)}), "\"cost\" of node 'n1' is -0.5; it has to be a number that is not negative"),
    "cost endless": ('{"nodes": {"n1": {"eclass": "A", "cost": 1' + "0" * 5000 + '}}, "root_eclasses": ["A"]}', "class 'A' can not be chosen"),
    "costs huge together": (graph({"n1": node(cost=1e308, children=["n2"]), "n2": node(eclass="B", cost=1e308)}), "too large for a float"),
    "subsumed a number": (graph({"n1": node(subsumed=1)}), "\"subsumed\" of node 'n1' is a number"),
    "no root list": ({"nodes": {"n1": node()}}, 'the file has no "root_eclasses"'),
    "root list a string": ({"nodes": {"n1": node()}, "root_eclasses": "A"}, '"root_eclasses" is a string'),
    "no roots": ({"nodes": {"n1": node()}, "root_eclasses": []}, '"root_eclasses" names no class'),
    "root a number": (graph({"n1": node()}, 1), 'an entry of "root_eclasses" is a number'),
    "root unknown": (graph({"n1": node()}, "A", "Z"), "the root 'Z' is a class without nodes"),
    "all infinite": (graph({"n1": node(cost=math.inf)}), "class 'A' can not be chosen: each of its nodes is subsumed or costs infinity"),
    "infinite below": (
        graph({"n1": node(), "n2": node(eclass="B", children=["n3"]), "n3": node(eclass="C", subsumed=True)}, "A", "B"),
        "class 'C', which the root 'B' needs, can not be chosen: each of its nodes is subsumed",
    ),
    "itself": (graph({"n1": node(children=["n1"])}), "class 'A' can not be chosen: its nodes lead back to itself"),
    "cycle": (
        graph({"n1": node(children=["n2"]), "n2": node(eclass="B", children=["n3"]), "n3": node(eclass="C", children=["n2"])}),
        "class 'B', which the root 'A' needs, can not be chosen: its nodes lead back to itself, in a cycle",
    ),
    "node twice": ('{"nodes": {"n1": {"eclass": "A"}, "n1": {"eclass": "A"}}, "root_eclasses": ["A"]}', "the key 'n1' is given twice"),
    "member twice": ('{"nodes": {"n1": {"eclass": "A", "cost": 1, "cost": 2}}, "root_eclasses": ["A"]}', "the key 'cost' is given twice"),
    "a long name": (graph({"n" * 10_000: 1}), "nnn...' is a number"),
    "a name of two lines": (graph({"n\n1\x1b": 1}), "node 'n\\n1\\x1b' is a number"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("name", ["graph.json", "graph.json.gz"])
def test_what_is_wrong_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str, name: str) -> None:
    content, said = WRONG[case]
    path = file_of(tmp_path, content, name)
    line = refusal(capsys, path)
    assert line.startswith(f"eqsat: error: {path}: ") and said in line


def test_files_that_can_not_be_read_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "No such file" in refusal(capsys, tmp_path / "none.json")
    assert "can not read it" in refusal(capsys, tmp_path)
    packed = gzip.compress(json.dumps(SHARED).encode())
    for data, said in ((packed[:-9], "end too early"), (packed[:20] + b"\0\0\0\0" + packed[24:], "damaged"), (b"\x1f\x8b\x00", "damaged|end too early")):
        assert re.search(said, refusal(capsys, file_of(tmp_path, data)))


def test_a_bomb_is_refused_while_it_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bomb = file_of(tmp_path, gzip.compress(b" " * 100_000_000))
    line = refusal(capsys, bomb, "--memory-limit", "100M")
    assert re.search(r"more than [123](\.\d+)?M of text, which could need \d+M of memory and more; the limit is 100M", line)


def test_a_graph_that_needs_more_than_its_text_is_refused() -> None:
    nodes = ",".join(f'"{index}":{{"eclass":"{index}"}}' for index in range(1000))
    text = f'{{"nodes":{{{nodes}}},"root_eclasses":["0"]}}'.encode()
    graph, _ = read(io.BytesIO(text), 1_600_000)
    with pytest.raises(ExtractionError, match="1,000 nodes"):
        extract(graph, memory_limit=1_600_000)


def test_parsing_needs_no_more_memory_than_is_assumed() -> None:
    """Nested lists need the most memory.

    A process of its own shows the peak of this text alone.
    """
    code = """if True:
        import io
        from eqsat.extract import ExtractionError
        from eqsat.extract.serialize import PER_BYTE, read
        def status(key): return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(key))
        for item in (b"[" * 900 + b"]" * 900 + b",", b'{"":' * 900 + b"0" + b"}" * 900 + b",", b'{"a":0},', b"[0],", b"{},", b'"ab",'):
            text = b'{"nodes":[' + item * (3_000_000 // len(item)) + '"\\U0001F600"]}'.encode()
            source = io.BytesIO(text)
            open("/proc/self/clear_refs", "w").write("5")
            before = status("VmRSS")
            try: read(source)
            except ExtractionError: pass
            assert status("VmHWM") - before < PER_BYTE * len(text), item
    """
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the system does not tell the peak of memory")
    subprocess.run([sys.executable, "-c", code], check=True)


# --- what is written ---


def written(graph: Graph) -> bytes:
    target = io.BytesIO()
    write(graph, [f"op{index}" for index in range(len(graph.nodes))], target)
    return target.getvalue()


def strict(text: bytes) -> dict[str, Any]:
    """Returns JSON as other parsers read it, which know no Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


@given(st.randoms(use_true_random=False), st.sampled_from([layered, wild]), st.sampled_from(sorted(COSTS)))
def test_a_graph_keeps_its_best_cost_on_the_way(draw: Random, shape: Any, costs: str) -> None:
    graph: Graph = shape(draw, lambda: COSTS[costs](draw))
    text = written(graph)
    strict(text)
    try:
        cost = extract(graph).cost
    except ExtractionError:
        with pytest.raises(ExtractionError, match=r"root|class"):
            read(io.BytesIO(text))
        return
    assert extract(read(io.BytesIO(text))[0]).cost == cost


@given(st.randoms(use_true_random=False))
def test_ties_decide_among_equal_costs_in_the_one_number(draw: Random) -> None:
    drawn = layered(draw, lambda: float(draw.randint(0, 3)))
    nodes = [Node(node.eclass, node.cost, node.children, tie=float(draw.choice([0, 1, 3, 1 << 20, 1 << 36]))) for node in drawn.nodes]
    graph = Graph(drawn.classes, nodes, drawn.roots)
    text = written(graph)
    found, names = read(io.BytesIO(text))
    entries = strict(text)["nodes"]
    chosen = [nodes[int(entries[names.nodes[index]]["op"].removeprefix("op"))] for index in extract(found).nodes.values()]
    best = extract(graph)
    assert (sum(node.cost for node in chosen), sum(node.tie for node in chosen)) == (best.cost, best.tie)
    assert math.floor(extract(found).cost) == best.cost


def test_what_no_choice_can_have_is_left_out() -> None:
    nodes = [Node(0, 1, (1,)), Node(0, 5, ()), Node(1, math.inf, ()), Node(1, 1, (2,)), Node(2, 0, (), (3.0,)), Node(0, 1, (0,)), Node(3, 1, (), (2.0,))]
    document = strict(written(Graph(4, nodes, [0, 3, 0], (2.0,))))
    assert [entry["op"] for entry in document["nodes"].values()] == ["op1", "op5", "op6"]
    assert document["root_eclasses"] == ["0", "3"]
    assert extract(read(io.BytesIO(json.dumps(document).encode()))[0]).cost == 6


# --- what optimize does with it ---

MODEL = """g (float[N, 4] x, float[4, 4] w) => (float[N, 4] y, float[N, 4] z) {
    a = Relu (x)  b = Relu (x)  s = Add (a, b)  t = MatMul (s, w)  p, q = Split <axis = 1, num_outputs = 2> (t)
    y = Concat <axis = 1> (p, q)  shape = Constant <value = int64[2] {-1, 4}> ()  r = Reshape (a, shape)  z = Concat <axis = -1> (r)
}"""
HEADER = '<ir_version: 8, opset_import: ["" : 18]>'


def saved(tmp_path: Path, text: str = MODEL) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(parse(text, HEADER).SerializeToString())
    return path


@pytest.mark.parametrize("name", ["dump.json", "dump.json.gz"])
def test_a_dump_is_extracted_to_the_same_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    model, dump = saved(tmp_path), tmp_path / name
    assert main(["optimize", str(model), "--target", "launches", "--no-verify", "--json", "--dump-egraph", str(dump)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["extraction"] == {"method": "exact", "status": "optimal", "cost": report["nodes"]["after"], "bound": report["nodes"]["after"], "gap": 0.0}
    data = dump.read_bytes()
    if name.endswith(".gz"):
        assert data[:8] == b"\x1f\x8b\x08\0\0\0\0\0", "neither the file's name nor the time is part of it"
    record = printed(capsys, dump)
    assert math.floor(record["cost"]) == report["nodes"]["after"] < report["nodes"]["before"] and record["status"] == "optimal"
    operators = {entry["op"] for entry in strict(gzip.decompress(data) if name.endswith(".gz") else data)["nodes"].values()}
    assert {"Relu", "MatMul", "input(x)", "input(w)", "cons", "nil", "output(0)", "Concat(axis=1)"} <= operators
    eqsat.optimize(model, target="launches", verify=False, dump_egraph=str(dump))
    assert dump.read_bytes() == data, "the same run gives the same bytes"
    assert {path.name for path in tmp_path.iterdir()} == {"model.onnx", "model.opt.onnx", name}


@pytest.mark.slow
@settings(max_examples=15)
@given(model=models())
def test_random_models_are_extracted_from_their_dumps_as_well(tmp_path_factory: pytest.TempPathFactory, model: onnx.ModelProto) -> None:
    dump = tmp_path_factory.mktemp("dump") / "dump.json"
    report = eqsat.optimize(model, target="launches", verify=False, max_growth=1 << 30, dump_egraph=dump).report
    with dump.open("rb") as file:
        graph, _ = read(file)
    assert report["extraction"]["status"] == "optimal"
    assert math.floor(extract(graph).cost) == report["extraction"]["bound"]


def test_the_dump_of_a_model_with_bodies_is_the_main_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { h = Relu (x)  a = Neg (h) }, else_branch = f () => (float[2] b) { k = Abs (x)  b = Neg (k) }>
    }"""
    report = eqsat.optimize(saved(tmp_path, text), target="launches", verify=False, dump_egraph=tmp_path / "dump.json").report
    assert math.floor(printed(capsys, tmp_path / "dump.json")["cost"]) == report["nodes"]["after"] == 4
    function = parse("""<ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[2] x) => (float[2] y) { n = local.f (x)  m = local.f (n)  k = local.f (m)  y = local.f (k) }
        <domain: "local", opset_import: ["": 17]> f (a) => (r) { b = Exp (a)  c = Sin (b)  d = Cos (c)  e = Tanh (d)  r = Mul (e, a) }""")
    eqsat.optimize(function, verify=False, dump_egraph=tmp_path / "dump.json")
    assert '"local.f"' in (tmp_path / "dump.json").read_text()


def test_without_an_egraph_there_is_a_note_and_no_dump(tmp_path: Path) -> None:
    model = parse(MODEL, HEADER)
    model.training_info.add()
    report = eqsat.optimize(model, verify=False, dump_egraph=tmp_path / "dump.json").report
    assert "no e-graph was written: the main graph was not extracted" in report["notes"]
    assert report["extraction"] == {"method": "exact", "status": None, "cost": None, "bound": None, "gap": None}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["exact", "greedy", "tree"])
def test_each_extractor_leaves_a_model_that_is_no_larger(tmp_path: Path, method: Any) -> None:
    report = eqsat.optimize(saved(tmp_path), extractor=method, target="launches").report
    assert report["extraction"]["method"] == method and report["verify"]["status"] == "equal"
    assert report["nodes"]["bound"] <= report["nodes"]["after"] <= report["nodes"]["before"]


def test_a_dump_overwrites_nothing_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, result, report = saved(tmp_path), tmp_path / "model.opt.onnx", tmp_path / "report.json"
    before = model.read_bytes()
    cases = {model: "the model", result: "the result", report: "the report", tmp_path: "is a folder", tmp_path / "no" / "dump": "no such folder"}
    for path, said in cases.items():
        assert main(["optimize", str(model), "--report", str(report), "--dump-egraph", str(path)]) == 2
        assert said in capsys.readouterr().err
    assert model.read_bytes() == before and [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_wrong_options_of_optimize_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option, value in (("--extractor", "best"), ("--extract-time", "soon")):
        assert main(["optimize", str(saved(tmp_path)), option, value]) == 2
        assert value in capsys.readouterr().err


def test_a_limit_of_time_that_was_hit_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An extraction that never proves its best choice stands for one that needs more time."""
    from eqsat.choose import extractions

    limits: list[float | None] = []
    methods: set[str] = set()

    def unsure(*arguments: Any, time_limit: float | None, **named: Any) -> Any:
        limits.append(time_limit)
        methods.add(named["method"])
        choice = extract(*arguments, **named)
        choice.status = "feasible"
        return choice

    easy = saved(tmp_path, "g (float[N, 4] x) => (float[N, 4] y) { a = Relu(x) b = Relu(x) c = Identity(b) y = Add(a, c) }")
    proved = eqsat.optimize(easy, verify=False, extract_time=0.0).report
    model = saved(tmp_path)
    assert (proved["extraction"]["status"], proved["limits"]["hit"]) == ("optimal", None)
    monkeypatch.setattr(extractions, "extract", unsure)

    def hit(**options: Any) -> str | None:
        limits.clear()
        return eqsat.optimize(model, verify=False, **options).report["limits"]["hit"]

    assert hit() is None and set(limits) == {None}
    assert hit(extract_time=0.0) == "extract time" and limits[0] == 0.0
    assert hit(extract_time=1e6) is None and limits[0] == 1e6
    assert hit(extract_time=1e6, time_limit=1e3) is None and limits[0] is not None and limits[0] <= 1e3
    assert hit(extract_time=1e-9, time_limit=1e3) == "extract time"
    assert methods == {"exact"}
    assert hit(extractor="tree") is None and methods == {"exact", "tree"}


# --- what is documented, and what is not loaded ---


def test_examples_of_the_document_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (python,) = re.findall(r"^```python\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE)
    exec(python, {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)", python)
    (text,) = re.findall(r"^```json\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE)
    assert printed(capsys, file_of(tmp_path, text))["choice"] == {"input": "x", "sum": "add"}


def test_the_document_names_every_option_and_argument(capsys: pytest.CaptureFixture[str]) -> None:
    import inspect

    with pytest.raises(SystemExit):
        main(["extract", "--help"])
    options = set(re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    assert options == set(re.findall(r"^\| `(--[a-z-]+)", DOCUMENT.split("| option |")[1], re.MULTILINE)) and len(options) == 4
    arguments = re.findall(r"^\| `(\w+)` \|", DOCUMENT.split("| argument of")[1].split("\n\n")[0], re.MULTILINE)
    assert arguments == list(inspect.signature(extract).parameters)[1:]


def test_the_methods_are_those_of_the_library() -> None:
    from typing import get_args

    from eqsat.cli.extraction import METHODS
    from eqsat.extract import Method

    assert METHODS == get_args(Method)


def test_importing_loads_no_solver() -> None:
    code = "import sys, eqsat.cli.main, eqsat.pipeline, eqsat.extract.serialize; sys.exit('ortools' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    light = "import sys, eqsat.cli.main; sys.exit(any(name in sys.modules for name in ('numpy', 'onnx', 'egglog', 'eqsat.extract')))"
    subprocess.run([sys.executable, "-c", light], check=True)
