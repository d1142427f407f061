"""Lifetimes: the bytes that are alive while steps run in an order.

`Steps` says what each step allocates and reads. A buffer lives from the step that makes it, or from
the start if no step does. It ends when its last reader is done, or lives to the end if it is kept.
`profile` and `peak` return the bytes that an order needs. All sizes are whole bytes, so results are
exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from eqsat.frozen import frozen


@frozen
class Buffer:
    """Memory of one size, which one value or several views of it share."""

    size: int
    kept: bool = False  # alive to the end


@frozen
class Step:
    """The work of one step. It runs after the steps `before` it."""

    before: tuple[int, ...] = ()
    makes: tuple[int, ...] = ()  # buffers that begin with it
    reads: tuple[int, ...] = ()  # buffers that have to be alive
    overwrites: tuple[int, ...] = ()  # buffers of `reads` whose memory the result may take if nothing else needs them
    extra: int = 0  # bytes that are alive during this step only


@frozen
class Steps:
    """Steps and buffers, both known by their numbers. `base` bytes are alive all the time."""

    steps: tuple[Step, ...]
    buffers: tuple[Buffer, ...]
    base: int = 0

    def readers(self) -> list[list[int]]:
        """Returns the steps that read each buffer."""
        found: list[list[int]] = [[] for _ in self.buffers]
        for number, step in enumerate(self.steps):
            for buffer in dict.fromkeys(step.reads):
                found[buffer].append(number)
        return found

    def given(self) -> list[int]:
        """Returns the buffers that no step makes."""
        made = {buffer for step in self.steps for buffer in step.makes}
        return [number for number in range(len(self.buffers)) if number not in made]


def profile(problem: Steps, order: Sequence[int]) -> list[int]:
    """Returns the bytes that are alive during each step, in the order of `order`."""
    left = [len(readers) for readers in problem.readers()]
    alive = problem.base + sum(problem.buffers[number].size for number in problem.given())
    alive -= sum(problem.buffers[number].size for number in problem.given() if not left[number] and not problem.buffers[number].kept)
    found: list[int] = []
    for number in order:
        step = problem.steps[number]
        alive += sum(problem.buffers[buffer].size for buffer in step.makes)
        reads = dict.fromkeys(step.reads)
        for buffer in reads:
            left[buffer] -= 1
        ended = {buffer for buffer in (*reads, *step.makes) if not left[buffer] and not problem.buffers[buffer].kept}
        saved = next((problem.buffers[buffer].size for buffer in step.overwrites if buffer in ended), 0)
        found.append(alive + step.extra - saved)
        alive -= sum(problem.buffers[buffer].size for buffer in ended)
    return found


def peak(problem: Steps, order: Sequence[int]) -> int:
    """Returns the most bytes that are alive at once."""
    return max(profile(problem, order), default=problem.base + sum(problem.buffers[number].size for number in problem.given() if problem.buffers[number].kept))


def is_order(problem: Steps, order: Sequence[int]) -> bool:
    """Tells whether every step occurs once, after the steps before it."""
    place = {number: position for position, number in enumerate(order)}
    if len(place) != len(order) or set(place) != set(range(len(problem.steps))):
        return False
    return all(place[earlier] < place[number] for number, step in enumerate(problem.steps) for earlier in step.before)


def section(problem: Steps, order: Sequence[int], start: int, stop: int) -> Steps:
    """Returns the steps at the places from `start` to before `stop` of an order, as a problem of
    its own.

    Its steps are numbered by their places. Whatever their order, everything outside needs as much
    as before.
    """
    inside = {number: position for position, number in enumerate(order[start:stop])}
    done = set(order[:start])
    readers = problem.readers()
    maker = {buffer: number for number, step in enumerate(problem.steps) for buffer in step.makes}
    numbers: dict[int, int] = {}
    buffers: list[Buffer] = []
    base = problem.base
    for number, buffer in enumerate(problem.buffers):
        made = maker.get(number)
        later = buffer.kept or any(reader not in inside and reader not in done for reader in readers[number])
        if made is not None and made in inside:
            numbers[number] = len(buffers)
            buffers.append(Buffer(buffer.size, later))
        elif made is None or made in done:
            if later:
                base += buffer.size
            elif any(reader in inside for reader in readers[number]):
                numbers[number] = len(buffers)
                buffers.append(Buffer(buffer.size))
    steps = [problem.steps[number] for number in order[start:stop]]

    def known(names: Sequence[int]) -> tuple[int, ...]:
        return tuple(numbers[name] for name in names if name in numbers)

    return Steps(
        tuple(
            Step(
                tuple(inside[earlier] for earlier in step.before if earlier in inside), known(step.makes), known(step.reads), known(step.overwrites), step.extra
            )
            for step in steps
        ),
        tuple(buffers),
        base,
    )
