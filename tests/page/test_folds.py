"""Folds: scopes become folds, long lists are cut, and both graphs share one tree."""

from __future__ import annotations

from collections import Counter

import pytest

from eqsat.page.correspondence import Correspondence, correspondence
from eqsat.page.flat import Step
from eqsat.page.folds import WIDE, Folds, folds, scopes_of


def chain(names: list[str], operators: list[str] | None = None) -> list[Step]:
    """Returns a chain of nodes with these names."""
    kinds = operators or ["F"] * len(names)
    return [Step(kind, name, (f"v{number}",), (f"v{number + 1}",), meaning=(kind,)) for number, (name, kind) in enumerate(zip(names, kinds, strict=True))]


def alone(steps: list[Step]) -> Folds:
    return folds(steps, [], Correspondence({}, {}, []))


def path(tree: Folds, fold: int) -> list[str]:
    return [*path(tree, tree.parents[fold]), tree.titles[fold]] if fold else []


def test_scopes_are_folds() -> None:
    tree = alone(chain([f"/net/{part}/{inner}/Op_{number}" for part in "ab" for inner in ("q", "k") for number in range(3)]))
    assert [path(tree, fold) for fold in tree.before[::3]] == [["a", "q"], ["a", "k"], ["b", "q"], ["b", "k"]]


def test_a_small_scope_and_a_scope_of_one_scope_are_no_folds() -> None:
    tree = alone(chain(["/a/x/Op", "/a/x/Op_1", "/a/Op", "/b/c/Op", "/b/c/Op_1", "/b/c/Op_2", "/d/Op"]))
    assert [path(tree, fold) for fold in tree.before] == [["a"]] * 3 + [["b/c"]] * 3 + [[]]


@pytest.mark.parametrize("depth", [3, 5000])
def test_scopes_may_be_deep(depth: int) -> None:
    name = "/".join(["", *map(str, range(depth)), "Op"])
    assert len(scopes_of(Step("F", name, (), ("v",)))) == min(depth, 12)
    assert len(alone(chain([name] * 4)).before) == 4


def test_scopes_of_the_metadata_come_first() -> None:
    assert scopes_of(Step("F", "/x/Op", (), ("v",), scopes=("layers.0", "mlp"), within=("If a", "then_branch"))) == ("If a", "then_branch", "layers.0", "mlp")


def test_repeated_blocks_are_found() -> None:
    block = ["MatMul", "Add", "Relu", "MatMul", "Add", "Softmax", "Mul"]
    tree = alone(chain([""] * 140, block * 20))
    assert Counter(tree.before) == dict.fromkeys(range(1, 21), 7)
    assert all(title.startswith("block") for title in tree.titles[1:])
    assert [tree.before[number] for number in range(0, 140, 7)] == sorted(set(tree.before))


def test_a_list_without_blocks_is_cut_where_few_values_cross() -> None:
    kinds = [f"Op{number * number % 97}" for number in range(90)]
    steps = chain([""] * 90, kinds)
    # The value of node 0 is used up to node 29, that of node 30 up to node 89. After both, only one value crosses.
    steps[1:30] = [Step(step.operator, "", (*step.inputs, "v1"), step.outputs) for step in steps[1:30]]
    steps[31:] = [Step(step.operator, "", (*step.inputs, "v31"), step.outputs) for step in steps[31:]]
    tree = alone(steps)
    sizes = Counter(tree.before)
    assert max(sizes.values()) <= WIDE
    assert len(set(tree.before[:31])) == 1 and tree.before[30] != tree.before[31]


@pytest.mark.parametrize("count", [0, 1, WIDE, WIDE + 1, 5000])
def test_no_fold_is_wide(count: int) -> None:
    tree = alone(chain([""] * count, [f"Op{number * 7919 % 31}" for number in range(count)]))
    items = Counter(tree.before) + Counter(tree.parents[1:])
    assert max(items.values(), default=0) <= WIDE
    assert all(parent < fold for fold, parent in enumerate(tree.parents) if fold)


def test_a_node_of_the_other_graph_is_where_its_counterpart_is() -> None:
    before = chain([f"/{part}/Op_{number}" for part in "ab" for number in range(4)])
    after = chain([""] * 8)
    # Two new nodes at the end of the first fold, and two at the begin of the second.
    for place in (2, 4):
        after[place] = Step("New", "", (f"v{place}",), (f"n{place}",), meaning=("New",))
        after[place + 1] = Step("New", "", (f"n{place}",), (f"v{place + 2}",), meaning=("New",))
    same = {f"v{number}": f"v{number}" for number in range(9) if number not in (3, 5)}
    tree = folds(before, after, correspondence(before, after, same, {}))
    assert tree.after == tree.before
