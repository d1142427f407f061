"""Wrong types: each argument of each public function answers with its name, in one line."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path, PurePosixPath
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eqsat
from eqsat.errors import InputError
from eqsat.settings import Settings, option_of
from tests.support.models import parse

RELU = parse("g (float[N, 4] x) => (float[N, 4] y) { y = Relu (x) }")


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


STRANGE = st.one_of(
    st.binary(max_size=4),
    st.complex_numbers(),
    st.builds(object),
    st.builds(Unprintable),
    st.just(print),
    st.just(...),
    st.lists(st.one_of(st.binary(max_size=2), st.none(), st.floats()), min_size=1, max_size=3),
    st.dictionaries(st.integers(), st.binary(max_size=2), min_size=1, max_size=2),
    st.dictionaries(st.text(max_size=2), st.one_of(st.text(max_size=2), st.binary(max_size=2)), min_size=1, max_size=2),
    st.builds(np.zeros, st.integers(2, 4)),
)
"""Values that no setting takes, but `print` where a function belongs."""

SETTINGS = [setting.name for setting in fields(Settings)]


@pytest.mark.parametrize("name", SETTINGS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=STRANGE)
def test_a_setting_of_a_wrong_type_is_named(name: str, value: object) -> None:
    if name == "progress" and callable(value):
        return
    if name in ("rules", "only", "skip") and isinstance(value, np.ndarray):
        value = value.astype(float)  # its elements are no texts
    with pytest.raises(InputError) as caught:
        eqsat.optimize(RELU, **{name: cast(Any, value)})
    message = str(caught.value)
    assert name in message and "\n" not in message and len(message) < 300
    assert "it has to be" in message or "it can not be negative" in message


@pytest.mark.parametrize("name", [setting.name for setting in fields(Settings) if setting.default is not None])
def test_none_is_a_value_only_where_it_is_the_default(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is None"):
        given_: dict[str, Any] = {name: None}
        Settings(**given_)


CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    ("source", eqsat.optimize),
    ("original", lambda value: eqsat.verify(value, RELU)),
    ("optimized", lambda value: eqsat.verify(RELU, value)),
    ("inputs", lambda value: eqsat.verify(RELU, RELU, inputs=value)),
    ("seed", lambda value: eqsat.verify(RELU, RELU, seed=value)),
    ("memory_limit", lambda value: eqsat.verify(RELU, RELU, memory_limit=value)),
    ("custom_op_library", lambda value: eqsat.verify(RELU, RELU, custom_op_library=value)),
    ("time_limit", lambda value: eqsat.verify(RELU, RELU, time_limit=value)),
    ("model", eqsat.count_nodes),
]


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
@settings(max_examples=25)
@given(value=STRANGE)
def test_an_argument_of_a_wrong_type_is_named(name: str, call: Callable[[Any], Any], value: object) -> None:
    with pytest.raises(InputError) as caught:
        call(value)
    message = str(caught.value)
    assert name in message and "it has to be" in message and "\n" not in message


@settings(max_examples=25)
@given(value=STRANGE)
def test_a_result_is_saved_at_a_path(value: object) -> None:
    result = eqsat.optimize(RELU, verify=False, effort="low")
    with pytest.raises(InputError, match=r"path is .*; it has to be a path"):
        result.save(value)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"verify": 0}, "verify is 0 (int); it has to be True or False"),
        ({"exact": "no"}, "exact is 'no' (str); it has to be True or False"),
        ({"node_limit": True}, "node_limit is True (bool); it has to be a whole number (int)"),
        ({"node_limit": 1.5}, "node_limit is 1.5 (float); it has to be a whole number (int)"),
        ({"node_limit": -1}, "node_limit is -1; it can not be negative"),
        ({"time_limit": "5"}, "time_limit is '5' (str); it has to be a number of seconds (float or int)"),
        ({"time_limit": float("nan")}, "time_limit is nan; it has to be a finite number of seconds"),
        ({"time_limit": 10**400}, "time_limit is inf; it has to be a finite number of seconds"),
        ({"memory_limit": 1.5}, "memory_limit is 1.5 (float); it has to be a number of bytes (int), or a text such as '2G'"),
        ({"memory_limit": "lots"}, "memory_limit: 'lots' is not a number of bytes such as 4096, 64k, 512M, 2G or 1.5GiB"),
        ({"objective": "speed"}, "objective is 'speed'; there are time, launches, bytes, size, memory"),
        ({"objective": 3}, "objective is 3 (int); it has to be one of time, launches, bytes, size, memory (str)"),
        ({"dims": "N=1"}, "dims is 'N=1' (str); it has to be a mapping of names to sizes, such as {'N': 1}"),
        ({"dims": {"N": "1"}}, "dims['N'] is '1' (str); it has to be a whole number (int)"),
        ({"dims": {"N": -1}}, "dims['N'] is -1; it can not be negative"),
        ({"inputs": {"x": [1.0]}}, "inputs['x'] is [1.0] (list); it has to be a numpy array"),
        ({"only": [1]}, "only[0] is 1 (int); it has to be a text (str)"),
        ({"progress": True}, "progress is True (bool); it has to be a function"),
        ({"inputs": {}}, "the given inputs do not fit the model: missing: x"),
        ({"inputs": {"x": np.ones((2, 4))}}, "input 'x' must be float32, not float64"),
        ({"phases": "a\0b"}, "phases is 'a\\x00b' (str); no path has a NUL character"),
        ({"effrot": "low"}, "optimize takes no argument 'effrot'; did you mean effort?"),
        ({"only": "relu-rlu"}, "there is no rule and no group 'relu-rlu'"),
        ({"only": "clip"}, "there is no rule and no group 'clip'"),
    ],
)
def test_messages_say_what_is_wanted(given_: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        eqsat.optimize(RELU, **given_)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: eqsat.optimize(""), "source is an empty text"),
        (lambda: eqsat.optimize("a\0b"), "can not read it"),
        (lambda: eqsat.optimize("m" * 5000), "can not read it: File name too long"),
        (lambda: eqsat.optimize(RELU, "low"), "settings as keywords such as effort='low'; 'low' (str) has no keyword"),  # pyright: ignore[reportCallIssue]
        (lambda: eqsat.verify(RELU, ""), "optimized is an empty text"),
        (lambda: eqsat.optimize(RELU, effort="low").save("a\0b"), "no path has a NUL"),
        (lambda: eqsat.optimize(RELU, effort="low").save("nowhere/m.onnx"), "nowhere: no such folder"),
    ],
)
def test_calls_that_make_no_sense(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_bytes_are_no_model_and_the_message_says_how_to_read_them() -> None:
    with pytest.raises(InputError, match="load_model_from_string"):
        eqsat.optimize(RELU.SerializeToString())


def test_one_string_is_one_element_and_not_its_letters(tmp_path: Path) -> None:
    assert Settings(only="algebra", skip="x").only == ("algebra",)
    assert Settings(rules="mine.rules").rules == ("mine.rules",)
    assert Settings(rules=tmp_path / "mine.rules").rules == (tmp_path / "mine.rules",)
    assert Settings(rules=["a.rules", Path("b.rules")]).rules == ("a.rules", Path("b.rules"))
    path = tmp_path / "mine.rules"
    path.write_text("# Twice the same.\nexact rule twice:\n    Relu(Relu(x)) => Relu(x)\n    test x: T[2, 3]\n")
    model = parse("g (float[2, 3] x) => (float[2, 3] y) { a = Relu (x)  y = Relu (a) }")
    for form in (str(path), path, [path], (str(path),)):
        result = eqsat.optimize(model, rules=form, only="twice", effort="low")
        assert [rule["name"] for rule in result.report["rules"]] == ["twice"]


def test_numbers_of_numpy_and_other_paths_are_as_good() -> None:
    foreign: dict[str, Any] = {"verify": np.bool_(False), "node_limit": np.int64(5), "time_limit": np.float32(1.5), "memory_limit": np.int32(7)}
    given_ = Settings(**foreign, target=cast(Any, PurePosixPath("launches")))
    assert (given_.verify, given_.node_limit, given_.time_limit, given_.memory_bytes) == (False, 5, 1.5, 7)
    assert type(given_.node_limit) is int and given_.target == Path("launches")


def test_every_setting_has_a_kind() -> None:
    """A new form without an entry would be read as a text."""
    from eqsat.settings import _KINDS

    texts = {setting.name for setting in fields(Settings) if (option := option_of(setting)) is not None and not option.choices and option.form not in _KINDS}
    assert texts == set()
