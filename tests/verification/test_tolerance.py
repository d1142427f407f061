"""Differences: quick answers agree with the account of all elements."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from eqsat.verification.tolerance import SPREAD, Difference, median

SIZES = (1, 2, 3, 8, 101)


def drawn(seed: int) -> Difference:
    """Returns a difference whose errors are close to what its changes allow, now above, now below."""
    generator = np.random.default_rng(seed)
    size = SIZES[seed % len(SIZES)]
    a = generator.uniform(1, 2, size).astype(np.float32)
    change = generator.choice([0, 1e-3, 2e-3, 4e-3], size)
    error = SPREAD * float(np.median(change)) * generator.choice([0.5, 0.999, 1.0, 1.001, 2.0])
    difference = Difference(a, (a + error * generator.integers(0, 2, size)).astype(np.float32))
    difference.moved((a + change).astype(np.float32), 1)
    return difference


def test_a_quick_answer_is_that_of_the_account() -> None:
    answers = {True: 0, False: 0}
    for seed in range(400):
        difference = drawn(seed)
        if difference.any:
            explained = difference.explained()
            assert explained == (difference.judge().unexplained == 0), seed
            answers[explained] += 1
    assert min(answers.values()) > 50


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rounding_alone_is_judged_as_with_changes_of_nothing(dtype: type[np.floating]) -> None:
    """Without nudges the account takes no list of the elements that differ."""
    answers = {True: 0, False: 0}
    for seed in range(300):
        generator = np.random.default_rng(seed)
        size = (1, 5, 40_000)[seed % 3]
        a = generator.standard_normal(size).astype(dtype)
        a[generator.random(size) < 0.1] = generator.choice([0, -0.0, np.inf, np.nan, 1e-45, 1])
        b = a.copy()
        for _ in range(generator.integers(1, 7)):
            some = generator.random(size) < 0.7
            b[some] = np.nextafter(b[some], dtype(generator.choice([-4, 4])))
        if seed % 5 == 0:
            b[generator.integers(size)] = generator.choice([np.nan, np.inf, -np.inf, 0])
        quick, full = Difference(a, b), Difference(a, b)
        if quick.any:
            full.moved(a, 1)
            assert quick.explained() == full.explained() and repr(quick.judge()) == repr(full.judge()), seed
            answers[quick.explained()] += 1
    assert min(answers.values()) > 20, answers


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("before", "after"), [(1.0, 2.0), (1.0, np.nan), (np.nan, 1.0), (np.inf, 1.0), (np.inf, -np.inf), (np.nan, np.inf)])
def test_a_result_that_moves_is_noticed(before: float, after: float, dtype: type[np.floating]) -> None:
    a, c = np.array([before, 3.0], dtype), np.array([after, 3.0], dtype)
    assert Difference(a, a).moved(c, 1)
    assert not Difference(a, a).moved(a.copy(), 1)
    assert Difference(a[:1].reshape(()), a[:1].reshape(())).moved(c[:1].reshape(()), 8)


def test_large_changes_do_not_make_one_element_another() -> None:
    a = np.array([1e308, 1e308, 1.0])
    difference = Difference(a, a)
    assert difference.moved(np.array([-1e308, 1e308, 1.0]), 8)
    assert not difference.moved(a, 8)


@pytest.mark.parametrize("size", SIZES)
def test_the_median_is_that_of_numpy(size: int) -> None:
    numbers = np.random.default_rng(size).standard_normal(size)
    assert median(numbers) == float(np.median(numbers)) and median(np.round(numbers)) == float(np.median(np.round(numbers)))


def test_a_difference_is_judged_without_masked_arrays() -> None:
    """Loading them takes longer than to judge a small model."""
    judged = "Difference(np.float32([1, 2, 3]), np.float32([1, 2, 4])).judge()"
    program = f"import sys, numpy as np\nfrom eqsat.verification.tolerance import Difference\n{judged}\nassert 'numpy.ma' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_some_peers_of_a_large_array_stand_for_all() -> None:
    """Every second column moves. A step of 4 would see one kind of column alone."""
    original = np.ones((300, 1024), np.float32)
    nudged, other = original.copy(), original.copy()
    nudged[:, 1::2] += np.float32(1e-4)
    other[7, 8] += np.float32(9e-5)
    difference = Difference(original, other)
    assert not difference.explained()
    difference.moved(nudged, 1.0)
    assert difference.explained()
    other[7, 8] += np.float32(9e-5)
    difference = Difference(original, other)
    difference.moved(nudged, 1.0)
    assert not difference.explained()


def test_a_finding_tells_the_error_of_the_element_that_is_not_explained() -> None:
    one = np.float32(1)
    finding = Difference(np.array([one, 1e-40], np.float32), np.array([np.nextafter(one, 2 * one), 1e-30], np.float32)).judge()
    assert finding.unexplained == 1
    assert finding.max_error == np.spacing(one)
    assert finding.error == pytest.approx(1e-30) and finding.relative == pytest.approx(1e-30)
    assert finding.tolerance < 1e-40


def test_large_doubles_do_not_make_an_error_a_faint_one() -> None:
    finding = Difference(np.array([1e200, 1e200]), np.array([1e200, 1.01e200])).judge()
    assert finding.unexplained == 1 and finding.relative == pytest.approx(0.01 / 2**0.5)
