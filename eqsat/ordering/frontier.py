"""A frontier: the set of steps that are done, as bits, and what another step does to memory.

What is alive depends on the set of steps that are done, not on their order. So searches go over
these sets, in both directions: a step is added, or taken away from the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from eqsat.ordering.lifetimes import Steps


class Frontiers:
    """The moves between the sets of done steps of one problem."""

    def __init__(self, problem: Steps) -> None:
        count = len(problem.steps)
        sizes = [0 if buffer.kept else buffer.size for buffer in problem.buffers]
        readers = [sum(1 << number for number in numbers) for numbers in problem.readers()]
        self.everything = (1 << count) - 1
        self.before = [sum(1 << earlier for earlier in set(step.before)) for step in problem.steps]
        self.after = [0] * count
        self._before = [sorted(set(step.before)) for step in problem.steps]
        self._after: list[list[int]] = [[] for _ in range(count)]
        for number, step in enumerate(problem.steps):
            for earlier in set(step.before):
                self.after[earlier] |= 1 << number
                self._after[earlier].append(number)
        self.first = sum(1 << number for number in range(count) if not self.before[number])
        """The steps, as bits, that may run first, and those that may run last."""
        self.last = sum(1 << number for number in range(count) if not self.after[number])
        # Buffers that a step may end: size and readers. A kept one never ends, so it has no place here.
        self._ends = [[(sizes[buffer], readers[buffer]) for buffer in dict.fromkeys((*step.reads, *step.makes)) if sizes[buffer]] for step in problem.steps]
        self._begins = [[(sizes[buffer], readers[buffer]) for buffer in dict.fromkeys(step.reads) if sizes[buffer]] for step in problem.steps]
        self._overwrites = [[(sizes[buffer], readers[buffer]) for buffer in step.overwrites if sizes[buffer]] for step in problem.steps]
        self._made = [sum(problem.buffers[buffer].size for buffer in step.makes) for step in problem.steps]
        self._extra = [step.extra for step in problem.steps]
        given = problem.given()
        self.start = problem.base + sum(problem.buffers[number].size for number in given if problem.buffers[number].kept or readers[number])
        """What is alive before the first step."""
        self.end = problem.base + sum(buffer.size for buffer in problem.buffers if buffer.kept)
        """What is alive after the last one."""
        self.least = max([self.start, self.end, *(self._least(problem, number) for number in range(count))])
        """What every order needs."""

    def _least(self, problem: Steps, number: int) -> int:
        """What is alive during a step at best: what it reads and makes, and what is kept since before."""
        step = problem.steps[number]
        kept = sum(problem.buffers[given].size for given in problem.given() if problem.buffers[given].kept and given not in step.reads)
        read = sum(problem.buffers[buffer].size for buffer in dict.fromkeys(step.reads))
        saved = max((size for size, _ in self._overwrites[number]), default=0)
        return problem.base + kept + read + self._made[number] + self._extra[number] - saved

    def add(self, done: int, alive: int, number: int) -> tuple[int, int]:
        """What is alive during a step that runs now, and after it. `alive` is what is before it."""
        after = done | 1 << number
        during = alive + self._made[number]
        ended = sum([size for size, readers in self._ends[number] if not readers & ~after])
        left = during - ended
        for size, readers in self._overwrites[number]:
            if not readers & ~after:
                during -= size
                break
        return during + self._extra[number], left

    def take(self, done: int, alive: int, number: int) -> tuple[int, int]:
        """The same backwards: what is alive during the last of the done steps, and before it.
        `alive` is what is after it.
        """
        begun = sum([size for size, readers in self._begins[number] if not readers & ~done])
        # A buffer that the step makes and nobody reads is gone after it.
        vain = sum([size for size, readers in self._ends[number] if not readers])
        during = alive + begun + vain
        before = during - self._made[number]
        for size, readers in self._overwrites[number]:
            if not readers & ~done:
                during -= size
                break
        return during + self._extra[number], before

    def opened(self, number: int, done: int) -> int:
        """The steps, as bits, that may run by a step that is the last of those done."""
        return sum([1 << later for later in self._after[number] if not self.before[later] & ~done])

    def closed(self, number: int, done: int) -> int:
        """The steps, as bits, that may be taken away by one that was the last to be taken."""
        return sum([1 << earlier for earlier in self._before[number] if not self.after[earlier] & done])


def numbers(bits: int) -> Iterator[int]:
    """The places of the bits that are set, from the lowest."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def highest(bits: int) -> Iterator[int]:
    """The places of the bits that are set, from the highest."""
    while bits:
        place = bits.bit_length() - 1
        yield place
        bits ^= 1 << place
