"""Orders of steps: valid, never above the order at hand, and the best one where this is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eqsat.ordering.exact_order import exact_order
from eqsat.ordering.frontier import Frontiers
from eqsat.ordering.lifetimes import Buffer, Step, Steps, is_order, peak, profile, section
from eqsat.ordering.list_order import list_order
from eqsat.ordering.order import least_peak


@st.composite
def problems(draw: st.DrawFn, most: int) -> Steps:
    """Draws steps that read buffers of earlier steps and of the start.

    They read some buffers several times, and others never.
    """
    count = draw(st.integers(0, most))
    buffers = [Buffer(draw(st.integers(0, 9)), draw(st.booleans())) for _ in range(draw(st.integers(0, 2)))]
    maker: dict[int, int] = {}
    steps: list[Step] = []
    for number in range(count):
        reads = tuple(draw(st.lists(st.integers(0, len(buffers) - 1), max_size=3, unique=True))) if buffers else ()
        made = range(len(buffers), len(buffers) + draw(st.integers(0, 2)))
        for buffer in made:
            buffers.append(Buffer(draw(st.integers(0, 9)), draw(st.integers(0, 9)) == 0))
            maker[buffer] = number
        size = buffers[made[0]].size if made else -1
        overwrites = tuple(buffer for buffer in reads if buffers[buffer].size == size)[: draw(st.integers(0, 2))]
        before = tuple(dict.fromkeys(maker[buffer] for buffer in reads if buffer in maker))
        steps.append(Step(before, tuple(made), reads, overwrites, draw(st.sampled_from((0, 0, 0, 5)))))
    return Steps(tuple(steps), tuple(buffers), draw(st.integers(0, 3)))


def every_order(problem: Steps, chosen: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    if len(chosen) == len(problem.steps):
        yield chosen
    for number, step in enumerate(problem.steps):
        if number not in chosen and set(step.before) <= set(chosen):
            yield from every_order(problem, (*chosen, number))


def peak_by_sets(problem: Steps, order: Sequence[int]) -> int:
    """Returns the peak by its definition, from the sets of buffers that are still needed."""
    readers = problem.readers()
    made = {buffer: number for number, step in enumerate(problem.steps) for buffer in step.makes}

    def alive(done: set[int], buffer: int) -> bool:
        begun = buffer not in made or made[buffer] in done
        return begun and (problem.buffers[buffer].kept or not set(readers[buffer]) <= done)

    def total(done: set[int]) -> int:
        return problem.base + sum(buffer.size for number, buffer in enumerate(problem.buffers) if alive(done, number))

    done: set[int] = set()
    most = 0 if order else total(done)
    for number in order:
        step = problem.steps[number]
        now = {*done, number}
        ended = [buffer for buffer in step.overwrites if not alive(now, buffer)]
        saved = problem.buffers[ended[0]].size if ended else 0
        most = max(most, total(done) + sum(problem.buffers[buffer].size for buffer in step.makes) + step.extra - saved)
        done = now
    return most


@given(problems(7))
@settings(max_examples=300, deadline=None)
def test_the_peak_is_what_is_alive(problem: Steps) -> None:
    for order in list(every_order(problem))[:20]:
        assert peak(problem, order) == peak_by_sets(problem, order)


@given(problems(7))
@settings(max_examples=200, deadline=None)
def test_small_problems_are_solved(problem: Steps) -> None:
    order = least_peak(problem)
    assert is_order(problem, order)
    assert peak(problem, order) == min(peak(problem, other) for other in every_order(problem))


@given(problems(40))
@settings(max_examples=60, deadline=None)
def test_orders_are_valid_and_never_worse(problem: Steps) -> None:
    hand = list(range(len(problem.steps)))
    order = least_peak(problem)
    assert is_order(problem, order)
    assert peak(problem, order) < peak(problem, hand) or order == hand
    assert order == least_peak(problem)
    for forward in (True, False):
        assert is_order(problem, list_order(problem, forward))


@given(problems(12), st.integers(0, 11), st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_a_section_needs_what_its_steps_need_in_the_whole(problem: Steps, start: int, length: int) -> None:
    hand = list(range(len(problem.steps)))
    stop = min(start + length, len(hand))
    part = section(problem, hand, start, stop)
    assert profile(part, range(len(part.steps))) == profile(problem, hand)[start:stop]


def test_an_exact_search_without_time_says_so() -> None:
    chains = branches(6)
    hand = list(range(len(chains.steps)))
    order, proved = exact_order(chains, peak(chains, hand), 3)
    assert order is None and not proved
    assert exact_order(chains, 1, 3) == (None, True), "no order is below what one step needs"


def branches(count: int) -> Steps:
    """Returns chains from a large value to a small one.

    The order at hand has all large values first.
    """
    steps = [Step(makes=(number,)) for number in range(count)]
    steps += [Step((number,), (count + number,), (number,)) for number in range(count)]
    steps.append(Step(tuple(range(count, 2 * count)), (2 * count,), tuple(range(count, 2 * count))))
    buffers = [Buffer(100)] * count + [Buffer(1)] * count + [Buffer(1, kept=True)]
    return Steps(tuple(steps), tuple(buffers))


@given(problems(9))
@settings(max_examples=150, deadline=None)
def test_moves_forwards_and_backwards_agree(problem: Steps) -> None:
    order = next(every_order(problem))
    moves = Frontiers(problem)
    states = [(0, moves.start)]
    heights = profile(problem, order)
    for number, height in zip(order, heights, strict=True):
        during, alive = moves.add(*states[-1], number)
        assert during == height
        states.append((states[-1][0] | 1 << number, alive))
    assert states[-1] == (moves.everything, moves.end) and moves.least <= peak(problem, order)
    for number, height, (done, alive), before in zip(order[::-1], heights[::-1], states[:0:-1], states[-2::-1], strict=True):
        assert moves.take(done, alive, number) == (height, before[1])


def test_a_step_that_waits_is_not_cut_off() -> None:
    """The first step is needed last, so it belongs after the chain that follows it."""
    steps = (Step(makes=(0,)), Step(makes=(1,)), Step((1,), (2,), (1,)), Step((0, 2), (3,), (0, 2)))
    problem = Steps(steps, (Buffer(100), Buffer(100), Buffer(1), Buffer(1, kept=True)))
    assert peak(problem, range(4)) == 201
    assert least_peak(problem) == [1, 2, 0, 3] and peak(problem, [1, 2, 0, 3]) == 102


def test_every_part_above_the_best_is_ordered() -> None:
    """The second of two blocks of branches must be ordered although its peak is lower."""
    first, second = branches(4), branches(3)
    count, buffers = len(first.steps), len(first.buffers)
    moved = [
        Step(
            tuple(count + earlier for earlier in step.before) or (count - 1,),
            tuple(buffers + made for made in step.makes),
            tuple(buffers + read for read in step.reads),
        )
        for step in second.steps
    ]
    problem = Steps((*first.steps, *moved), (*first.buffers, *second.buffers))
    assert peak(problem, range(len(problem.steps))) == 401
    assert peak(problem, least_peak(problem)) == 104


@pytest.mark.parametrize("count", [3, 40])
def test_branches_run_one_after_the_other(count: int) -> None:
    problem = branches(count)
    hand = list(range(len(problem.steps)))
    assert peak(problem, hand) == 100 * count + 1
    assert peak(problem, least_peak(problem)) == 100 + count


@pytest.mark.slow
def test_thousands_of_branches_that_never_meet_are_ordered() -> None:
    count = 1500
    steps = [Step(makes=(number,)) for number in range(count)]
    steps += [Step((number,), (count + number,), (number,)) for number in range(count)]
    problem = Steps(tuple(steps), tuple([Buffer(9)] * count + [Buffer(1, kept=True)] * count))
    order = least_peak(problem)
    assert is_order(problem, order)
    assert peak(problem, order) <= peak(problem, range(2 * count))
