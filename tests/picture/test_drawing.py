"""Pictures of graphs: boxes where they belong, names that cannot break out, and a limit."""

import re
from xml.etree import ElementTree

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eqsat
from eqsat.picture.drawing import MOST_BOXES, drawing, identities
from eqsat.picture.layered import layered
from tests.support.models import parse

SVG = "{http://www.w3.org/2000/svg}"
DIAMOND = parse("g (float[N, 4] x) => (float[N, 4] y) { a = Relu (x)  b = Neg (a)  c = Abs (a)  y = Add (b, c) }")


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def chain(length: int) -> onnx.ModelProto:
    body = "".join(f"v{number + 1} = Relu (v{number}) " for number in range(length))
    return parse(f"g (float[4] v0) => (float[4] v{length}) {{ {body} }}")


def test_each_node_input_and_output_is_a_box() -> None:
    svg = drawing(DIAMOND, identities(DIAMOND), "before")
    assert sorted(texts(svg)) == ["Abs", "Add", "Neg", "Relu", "x", "y"]
    tree = ElementTree.fromstring(svg)
    assert len(list(tree.iter(f"{SVG}rect"))) == 6 and len(list(tree.iter(f"{SVG}path"))) == 6
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "") and "<script" not in svg


def test_a_changed_node_has_another_color() -> None:
    other = parse("g (float[N, 4] x) => (float[N, 4] y) { a = Relu (x)  b = Neg (a)  c = Exp (a)  y = Add (b, c) }")
    tree = ElementTree.fromstring(drawing(DIAMOND, identities(other), "before"))
    colors = {box[2].text: box[1].get("fill") for box in tree.iter(f"{SVG}g")}
    assert [label for label, color in colors.items() if color == "#ffe9c7"] == ["Abs"]


def test_a_large_graph_is_its_number_of_nodes() -> None:
    assert len(texts(drawing(chain(MOST_BOXES - 2), (), "after"))) == MOST_BOXES
    assert texts(drawing(chain(MOST_BOXES - 1), (), "after")) == [f"after: {MOST_BOXES - 1} nodes are too many to draw here"]


@settings(max_examples=60)
@given(st.text(min_size=1, max_size=40), st.text(max_size=200))
def test_names_are_escaped(name: str, other: str) -> None:
    """A name may be any text that protobuf can hold; the drawing is well-formed XML all the same."""
    name, other = (text.encode("utf-8", "ignore").decode() for text in (name, other))
    model = parse("g (float[4] x) => (float[4] y) { y = Relu (x) }")
    model.graph.node[0].op_type = f"</text><script>{name}"
    model.graph.node[0].name = f'"{other}'
    model.graph.input[0].name = model.graph.node[0].input[0] = f"<!--{name}"
    svg = drawing(model, (), f"'{other}")
    tree = ElementTree.fromstring(svg)
    assert {element.tag for element in tree.iter()} == {SVG + tag for tag in ("svg", "g", "rect", "text", "title", "path")}
    assert len(svg) < 6000


def test_a_body_is_joined_to_the_values_that_it_reads() -> None:
    model = parse("""g (float[2] x, bool c) => (float[2] y) {
        a = Relu (x)
        y = If (c) <then_branch = t () => (float[2] p) { p = Neg (a) }, else_branch = e () => (float[2] q) { q = Identity (a) }>
    }""")
    svg = drawing(model, (), "before")
    assert "If (2 inside)" in texts(svg)
    assert len(list(ElementTree.fromstring(svg).iter(f"{SVG}path"))) == 4  # x-Relu, Relu-If, c-If, If-y


def test_nodes_in_any_order_have_their_arrows() -> None:
    model = parse("g (float[2] x) => (float[2] y) { a = Relu (x)  y = Neg (a) }")
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    assert len(list(ElementTree.fromstring(drawing(model, (), "before")).iter(f"{SVG}path"))) == 3


@settings(max_examples=60)
@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))))
def test_boxes_are_below_what_they_read_and_never_overlap(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, pairs = graph
    arrows = [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]
    widths = [20.0 + 7 * (number % 5) for number in range(count)]
    found = layered(widths, arrows)
    assert found.places.keys() == set(range(count))
    assert all(found.places[source][1] < found.places[target][1] for source, target in arrows)
    for one in range(count):
        (x, y), width = found.places[one], widths[one]
        assert -0.01 <= x - width / 2 and x + width / 2 <= found.width + 0.01 and 0 < y < found.height
        for other in range(one):
            (u, v), second = found.places[other], widths[other]
            assert v != y or abs(x - u) >= (width + second) / 2


# --- the view of a result ---


def test_a_result_shows_its_table_and_both_pictures() -> None:
    model = parse("g (float[N, 4] x) => (float[N, 4] y) { a = Relu (x)  b = Relu (a)  y = Identity (b) }")
    result = eqsat.optimize(model, effort="low")
    assert repr(result) == "<eqsat.Result: 3 -> 1 nodes, verified equal>"
    html = result._repr_html_()
    tree = ElementTree.fromstring(html.replace("&rarr;", "->"))
    rows = {row[0].text or row[0][0].text: (row[1].text, row[2].text) for row in tree.iter("tr") if row[0].tag == "td"}
    assert rows["Relu"] == ("2", "1") and rows["Identity"] == ("1", "0") and rows["all nodes"] == ("3", "1")
    assert rows["kernel launches"] == tuple(str(result.report["cost"][side]["launches"]) for side in ("before", "after"))
    assert rows["bytes of the file"][0] == str(result.report["bytes"]["before"])
    assert len(list(tree.iter(f"{SVG}svg"))) == 2
    assert not re.search(r"<script|<link|<img|url\(", html)


@pytest.mark.parametrize("given_, said", [({"verify": False}, "not verified, as asked"), ({"target": "launches"}, "verified equal")])
def test_a_short_text_says_whether_it_was_verified(given_: dict[str, object], said: str) -> None:
    result = eqsat.optimize(DIAMOND, effort="low", **given_)  # pyright: ignore[reportArgumentType]
    assert repr(result).endswith(f"{said}>") and said in result._repr_html_()
