"""Stable names: an owner has one name in all graphs, which nothing else has."""

from eqsat.model.names import FreshNames


def test_an_owner_keeps_its_name() -> None:
    fresh = FreshNames(["value"])
    assert fresh.make("value") == "value_1"
    names = fresh.stable()
    first = names.make_for(7, "value")
    assert first not in ("value", "value_1")
    names.begin()
    assert names.make("value") not in ("value", "value_1", first)
    assert names.make_for(7, "value") == first
    assert names.make_for(8, "value") != first


def test_other_names_are_the_same_in_each_graph() -> None:
    names = FreshNames(["value"]).stable()
    made = [names.make("value"), names.make("value")]
    names.begin()
    assert [names.make("value"), names.make("value")] == made
