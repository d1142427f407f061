"""The correspondence of two graphs, on small lists of nodes and on the result of a run."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from eqsat.model.read import read
from eqsat.page.correspondence import Correspondence, correspondence, equal_constants, shared_values
from eqsat.page.flat import Step, flat
from eqsat.pipeline import Result
from tests.page.pages import LAYERS, layered, run_of
from tests.support.models import parse


def steps(*lines: str) -> list[Step]:
    """Returns nodes written as `c d = Add a b`."""
    found: list[Step] = []
    for line in lines:
        outputs, _, call = line.partition(" = ")
        operator, *inputs = call.split()
        found.append(Step(operator, "", tuple(inputs), tuple(outputs.split()), meaning=(operator,)))
    return found


def named(*pairs: str) -> dict[str, str]:
    """Returns shared values: `a` keeps its name, `a:b` became b."""
    return {pair.partition(":")[0]: pair.partition(":")[2] or pair for pair in pairs}


def changes(found: Correspondence) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    return [(region.old, region.new, region.stands) for region in found.regions]


def test_equal_graphs_stay() -> None:
    graph = steps("a = Relu x", "b = Add a x")
    found = correspondence(graph, graph, named("x"), {})
    assert found.kept == {0: 0, 1: 1} and found.regions == []


def test_a_renamed_node_stays() -> None:
    found = correspondence(steps("a = Relu x", "b = Exp a"), steps("v = Relu x", "b = Exp v"), named("x", "b"), {})
    assert found.kept == {0: 0, 1: 1} and found.same["a"] == "v"


def test_nodes_between_shared_values_are_a_region() -> None:
    before = steps("a = Exp x", "b = Log a", "c = Relu b", "y = Tanh c")
    after = steps("c = Fused x", "y = Tanh c")
    found = correspondence(before, after, named("x", "c", "y"), {})
    assert found.kept == {3: 1}
    assert changes(found) == [((0, 1, 2), (0,), ())]
    assert found.regions[0].shared == (("c", "c"),)


def test_a_shared_value_parts_two_regions() -> None:
    before = steps("a = Exp x", "b = Log a", "c = Sin b", "y = Cos c")
    after = steps("b = One x", "y = Two b")
    assert changes(correspondence(before, after, named("x", "b", "y"), {})) == [((0, 1), (0,), ()), ((2, 3), (1,), ())]


def test_outputs_of_one_node_join_what_made_them() -> None:
    before = steps("q = MatMul x wq", "k = MatMul x wk")
    after = steps("m = MatMul x w", "q k = Split m")
    assert changes(correspondence(before, after, named("x", "q", "k"), {})) == [((0, 1), (0, 1), ())]


def test_a_node_that_stayed_stands_for_its_duplicate() -> None:
    before = steps("a = Relu x", "b = Relu x", "y = Add a b")
    found = correspondence(before, steps("a = Relu x", "y = Add a a"), named("x", "a", "b:a", "y"), {})
    assert found.kept == {0: 0, 2: 1}
    assert changes(found) == [((1,), (), (0,))]


def test_of_two_equal_nodes_the_one_of_the_same_name_is_the_counterpart() -> None:
    graph = steps("a = Draw", "b = Draw")
    assert correspondence(graph, list(reversed(graph)), named("a", "b"), {}).kept == {0: 1, 1: 0}


def test_a_dropped_node_and_a_new_one_are_apart() -> None:
    found = correspondence(steps("a = Relu x", "d = Dead x"), steps("a = Relu x", "n = New x"), named("x", "a"), {})
    assert changes(found) == [((1,), (), ()), ((), (1,), ())]


def test_another_attribute_is_a_change() -> None:
    before = [Step("Cast", "", ("x",), ("y",), meaning=("Cast", 1))]
    after = [Step("Cast", "", ("x",), ("y",), meaning=("Cast", 2))]
    assert changes(correspondence(before, after, named("x", "y"), {})) == [((0,), (0,), ())]


@given(st.data())
def test_each_node_stayed_or_is_in_one_region(data: st.DataObject) -> None:
    def graph(prefix: str) -> list[Step]:
        made = ["x"]
        found: list[Step] = []
        for number in range(data.draw(st.integers(0, 8))):
            name = data.draw(st.sampled_from([f"v{number}", f"{prefix}{number}"]))
            inputs = data.draw(st.lists(st.sampled_from(made), min_size=1, max_size=2))
            operator = data.draw(st.sampled_from(["F", "G"]))
            found.append(Step(operator, "", tuple(inputs), (name,), meaning=(operator,)))
            made.append(name)
        return found

    before, after = graph("a"), graph("b")
    there = {key for step in after for key in step.outputs}
    found = correspondence(before, after, named("x", *(key for step in before for key in step.outputs if key in there)), {})
    old = Counter([*found.kept, *(node for region in found.regions for node in region.old)])
    new = Counter([*found.kept.values(), *(node for region in found.regions for node in region.new)])
    assert old == Counter(range(len(before))) and new == Counter(range(len(after)))
    for node, twin in found.kept.items():
        assert before[node].meaning == after[twin].meaning
        assert tuple(map(found.same.get, before[node].inputs)) == after[twin].inputs
    assert all(region.old or region.new for region in found.regions)


def corresponding(before: str, after: str) -> Correspondence:
    one, other = flat(read(parse(before))), flat(read(parse(after)))
    names = {key: key for key in one.values()}  # values of bodies, whose keys are paths, are unknown
    return correspondence(one.steps, other.steps, shared_values(one, other, names), equal_constants(other))


def test_constants_are_compared_by_content() -> None:
    before = "g (float[2] x) => (float[2] y) <float c = {2.0}> { y = Mul (x, c) }"
    assert corresponding(before, "g (float[2] x) => (float[2] y) <float d = {5.0}, float e = {2.0}> { y = Mul (x, e) }").kept == {0: 0}
    assert corresponding(before, "g (float[2] x) => (float[2] y) <float d = {2.0}, float e = {2.0}> { y = Mul (x, e) }").kept == {0: 0}
    assert corresponding(before, "g (float[2] x) => (float[2] y) <float e = {3.0}> { y = Mul (x, e) }").kept == {}


def test_an_attribute_that_is_the_default_is_no_change() -> None:
    before = "g (float[2, 3] x) => (float[3, 2] y) { y = Transpose <perm = [1, 0]> (x) }"
    one, other = "g (float[2] x) => (float[2] y) { y = Softmax (x) }", "g (float[2] x) => (float[2] y) { y = Softmax <axis = -1> (x) }"
    assert corresponding(one, other).kept == {0: 0}
    assert corresponding(before, before.replace("[1, 0]", "[0, 1]")).kept == {}


BODIES = """g (bool c, float[2] x) => (float[2] y) {
    y = If (c) <
        then_branch = a () => (float[2] t) { v = Exp (x) t = Neg (v) },
        else_branch = b () => (float[2] e) { v = OTHER (x) e = Neg (v) }
    >
}"""


def test_a_body_is_found_under_the_new_name_of_its_node() -> None:
    before = BODIES.replace("OTHER", "Log").replace("y = If", "r = If").replace("\n}", "\ny = Abs (r) }")
    one, other = (flat(read(parse(text))) for text in (before, before.replace("r = If", "s = If").replace("Abs (r)", "Abs (s)")))
    shared = shared_values(one, other, {"r": "s", "v": "v"})
    assert [shared[step.outputs[0]] for step in one.steps] == [step.outputs[0] for step in other.steps]


def test_a_node_knows_what_it_is_inside() -> None:
    inner = BODIES.replace("OTHER", "Log").partition("{")[2].rpartition("}")[0].replace("y = If", "f = If")
    branches = f"then_branch = p () => (float[2] f) {{ {inner} }}, else_branch = q () => (float[2] h) {{ h = Abs (x) }}"
    text = f"g (bool c, float[2] x) => (float[2] y) {{ y = If (c) <{branches}> }}"
    found = {step.operator: step.within for step in flat(read(parse(text))).steps}
    within = ("If y", "then_branch")
    assert found["Exp"] == (*within, "If f", "then_branch") and found["Log"] == (*within, "If f", "else_branch")
    assert found["Abs"] == ("If y", "else_branch") and found["If"] == ()


def test_bodies_correspond_body_by_body() -> None:
    found = corresponding(BODIES.replace("OTHER", "Exp"), BODIES.replace("OTHER", "Exp"))
    assert found.kept == {node: node for node in range(5)}
    found = corresponding(BODIES.replace("OTHER", "Log"), BODIES.replace("OTHER", "Sqrt"))
    assert found.kept == {0: 0, 1: 1, 4: 4} and changes(found) == [((2, 3), (2, 3), ())]


def compared(result: Result) -> tuple[list[str], list[str], list[str]]:
    """Returns the operators of the nodes of a run that stayed, that went, and that are new."""
    before, after = flat(result.original.model), flat(read(result.model))
    found = correspondence(before.steps, after.steps, shared_values(before, after, result.report["became"]), equal_constants(after))
    kept = [before.steps[node].operator for node in found.kept]
    went = [before.steps[node].operator for region in found.regions for node in region.old]
    new = [after.steps[node].operator for region in found.regions for node in region.new]
    return sorted(kept), sorted(went), sorted(new)


def test_an_output_that_equals_another_value_stays() -> None:
    result = run_of(parse("g (float[2] x) => (float[2] y, float[2] z) { y = Identity (x) a = Relu (x) b = Relu (a) z = Neg (b) }"))
    assert compared(result) == (["Identity", "Neg", "Relu"], ["Relu"], [])


def test_an_output_of_a_body_that_equals_another_value_stays() -> None:
    result = run_of(
        parse("""g (int64 n, bool c, float[2] x) => (float[2] y) {
            y = Loop (n, c, x) <body = b (int64 i, bool k, float[2] s) => (bool k2, float[2] s2) {
                k2 = Identity (k) a = Relu (s) q = Relu (a) s2 = Add (q, x)
            }>
        }""")
    )
    assert compared(result) == (["Add", "Identity", "Loop", "Relu"], ["Relu"], [])


def test_regions_of_a_run() -> None:
    kept = sorted(["MatMul", "Relu", "Add"] * LAYERS)
    assert compared(run_of(layered())) == (kept, ["Relu"] * LAYERS + ["Transpose"] * 2 * LAYERS, [])
