"""Frozen and mutable classes behave as dataclasses do, and pyright refuses to change frozen ones."""

import pickle
import subprocess
import sys
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path

import pytest

from eqsat.frozen import frozen, mutable


@frozen
class Point:
    x: int
    y: tuple[int, ...] = ()
    place: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Model:
    x: int
    y: tuple[int, ...] = ()
    place: str = field(default="", compare=False, repr=False)


@frozen
class Single:
    x: int


@frozen
class Empty:
    """It has no fields."""


@frozen(slots=False)
class Cached:
    x: int

    @cached_property
    def twice(self) -> int:
        return 2 * self.x

    def __repr__(self) -> str:
        return "its own"


@mutable
class Basket:
    owner: str
    items: list[int] = field(default_factory=list[int])
    total: int = field(init=False)
    seen: dict[int, int] = field(init=False, default_factory=dict[int, int])

    def __post_init__(self) -> None:
        self.total = sum(self.items)


@frozen
class Above:
    x: int


@frozen
class Below(Above):
    y: int = 2


def test_it_compares_and_hashes_as_a_dataclass_does() -> None:
    assert Point(1, (2,), "here") == Point(1, (2,), "there") != Point(1)
    assert Point(1) != Model(1) and Single(1) != 1 and Empty() == Empty() != Single(1)
    assert hash(Point(1, (2,), "here")) == hash(Model(1, (2,))) and hash(Single(7)) == hash((7,)) and hash(Empty()) == hash(())
    assert [item.name for item in fields(Point)] == [item.name for item in fields(Model)]


def test_it_shows_its_fields_or_what_it_says_itself() -> None:
    assert repr(Point(1, (2,), "here")) == repr(Model(1, (2,))).replace("Model", "Point")
    assert repr(Cached(1)) == "its own" and repr(Empty()) == "Empty()"


def test_it_is_replaced_matched_cached_and_pickled() -> None:
    assert replace(Point(1), x=2) == Point(2) == pickle.loads(pickle.dumps(Point(2)))
    match Point(1, (3,)):
        case Point(x, y):
            assert (x, y) == (1, (3,))
    assert Cached(3).twice == 6 and not hasattr(Point(1), "__dict__")


def test_a_mutable_one_may_change_and_has_no_hash() -> None:
    basket, other = Basket("a"), Basket("a", [1, 2])
    assert basket.items == [] and other.total == 3 and basket != other
    basket.items += [1, 2]
    basket.total = 3
    assert basket == other and basket == pickle.loads(pickle.dumps(basket)) and basket.seen is not other.seen
    assert repr(other) == "Basket(owner='a', items=[1, 2], total=3, seen={})"
    with pytest.raises(TypeError, match="unhashable"):
        hash(basket)


def test_each_class_has_an_init_of_its_own() -> None:
    for _ in range(2):  # the first object of a class is made in another way than the next
        assert (Above(1).x, Below(1, 3).x, Below(x=1).y) == (1, 1, 2)
        with pytest.raises(TypeError):
            Below()  # pyright: ignore[reportCallIssue]


@pytest.mark.slow
def test_pyright_refuses_to_set_a_field(tmp_path: Path) -> None:
    (tmp_path / "set.py").write_text("from eqsat.frozen import frozen\n\n\n@frozen\nclass Point:\n    x: int\n\n\nPoint(1).x = 2\n")
    ran = subprocess.run([sys.executable, "-m", "pyright", str(tmp_path / "set.py")], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert ran.returncode == 1 and "read-only" in ran.stdout
