"""A frontier: the set of done steps, as bits, and the effect of a step on memory.

The memory alive depends on the set of done steps, not on their order. So searches go over these
sets in both directions: they add a step, or take one away from the end.
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
        """The steps, as bits, that may run first. `last` has those that may run last."""
        self.last = sum(1 << number for number in range(count) if not self.after[number])
        # Buffers that a step may end, as size and readers. A kept buffer has no entry, because it
        # never ends.
        self._ends = [[(sizes[buffer], readers[buffer]) for buffer in dict.fromkeys((*step.reads, *step.makes)) if sizes[buffer]] for step in problem.steps]
        self._begins = [[(sizes[buffer], readers[buffer]) for buffer in dict.fromkeys(step.reads) if sizes[buffer]] for step in problem.steps]
        self._overwrites = [[(sizes[buffer], readers[buffer]) for buffer in step.overwrites if sizes[buffer]] for step in problem.steps]
        self._made = [sum(problem.buffers[buffer].size for buffer in step.makes) for step in problem.steps]
        self._extra = [step.extra for step in problem.steps]
        given = problem.given()
        self.start = problem.base + sum(problem.buffers[number].size for number in given if problem.buffers[number].kept or readers[number])
        """The bytes alive before the first step."""
        self.end = problem.base + sum(buffer.size for buffer in problem.buffers if buffer.kept)
        """The bytes alive after the last step."""
        self.least = max([self.start, self.end, *(self._least(problem, number) for number in range(count))])
        """The bytes that every order needs at least."""

    def _least(self, problem: Steps, number: int) -> int:
        """Returns the fewest bytes alive during a step: what it reads and makes, and what is kept
        from before.
        """
        step = problem.steps[number]
        kept = sum(problem.buffers[given].size for given in problem.given() if problem.buffers[given].kept and given not in step.reads)
        read = sum(problem.buffers[buffer].size for buffer in dict.fromkeys(step.reads))
        saved = max((size for size, _ in self._overwrites[number]), default=0)
        return problem.base + kept + read + self._made[number] + self._extra[number] - saved

    def add(self, done: int, alive: int, number: int) -> tuple[int, int]:
        """Returns the bytes alive during a step that runs now, and after it. `alive` are those
        before it.
        """
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
        """Returns the same backwards: the bytes alive during the last done step, and before it.
        `alive` are those after it.
        """
        begun = sum([size for size, readers in self._begins[number] if not readers & ~done])
        # A buffer that the step makes and nothing reads ends with the step.
        vain = sum([size for size, readers in self._ends[number] if not readers])
        during = alive + begun + vain
        before = during - self._made[number]
        for size, readers in self._overwrites[number]:
            if not readers & ~done:
                during -= size
                break
        return during + self._extra[number], before

    def opened(self, number: int, done: int) -> int:
        """Returns, as bits, the steps that become ready because a step has just run."""
        return sum([1 << later for later in self._after[number] if not self.before[later] & ~done])

    def closed(self, number: int, done: int) -> int:
        """Returns, as bits, the steps that may be taken away next because a step has just been
        taken away.
        """
        return sum([1 << earlier for earlier in self._before[number] if not self.after[earlier] & done])


def numbers(bits: int) -> Iterator[int]:
    """Yields the places of the set bits, from the lowest."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def highest(bits: int) -> Iterator[int]:
    """Yields the places of the set bits, from the highest."""
    while bits:
        place = bits.bit_length() - 1
        yield place
        bits ^= 1 << place
