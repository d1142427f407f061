"""GRU and LSTM, which runtimes have in single precision only, or not with all their attributes.

The input is a `Call`; the output is its results, in the type of its operands. The activations are
Sigmoid and Tanh, and all sequences are as long as the tensor; runtimes compute all else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eqsat.checker.kernels.call import Array, Call, Illegal, Kernel, Unsupported
from eqsat.checker.kernels.pointwise import elementwise, sigmoid
from eqsat.checker.kernels.products import matmul

# The states of one direction after a step: h, and for LSTM also c.
_States = tuple[Array, ...]


@dataclass(frozen=True)
class _Weights:
    """The weights of one direction, by gate."""

    inputs: list[Array]
    states: list[Array]
    input_biases: list[Array]
    state_biases: list[Array]
    peepholes: list[Array] | None

    def both(self, gate: int, x: Array, h: Array) -> Array:
        """The sum that enters a gate: of the input, of the state, and of both biases."""
        return np.asarray(self.of_input(gate, x) + self.of_state(gate, h))

    def of_input(self, gate: int, x: Array) -> Array:
        """The input's part of the sum, with its bias."""
        return np.asarray(matmul(x, self.inputs[gate].T) + self.input_biases[gate])

    def of_state(self, gate: int, h: Array) -> Array:
        """The state's part of the sum, with its bias."""
        return np.asarray(matmul(h, self.states[gate].T) + self.state_biases[gate])


def _bent(x: Array) -> Array:
    return elementwise(math.tanh, x)


def _opened(x: Array) -> Array:
    return elementwise(sigmoid, x)


def _gru(call: Call, weights: _Weights, x: Array, states: _States) -> _States:
    (h,) = states
    update, reset = (_opened(weights.both(gate, x, h)) for gate in (0, 1))
    inner = reset * weights.of_state(2, h) if call.integer("linear_before_reset") else weights.of_state(2, np.asarray(reset * h))
    made = _bent(np.asarray(weights.of_input(2, x) + inner))
    return (np.asarray((update.dtype.type(1) - update) * made + update * h),)


def _lstm(call: Call, weights: _Weights, x: Array, states: _States) -> _States:
    h, c = states

    def gate(number: int, hole: int, memory: Array) -> Array:
        seen = weights.both(number, x, h)
        return _opened(seen if weights.peepholes is None else np.asarray(seen + weights.peepholes[hole] * memory))

    kept = np.asarray(gate(2, 2, c) * c + gate(0, 0, c) * _bent(weights.both(3, x, h)))
    leave = gate(1, 1, kept)
    return np.asarray(leave * _bent(kept)), kept


def _recurrence(gates: int, states: int, step: Callable[[Call, _Weights, Array, _States], _States]) -> Kernel:
    def kernel(call: Call) -> list[Array]:
        if call.given(4) is not None or call.integer("input_forget") or any(call.attributes.get(name) for name in _PLAIN):
            raise Unsupported("lengths of sequences and other activations are left to the runtimes")
        turned = call.integer("layout") == 1
        x = call.input(0).swapaxes(0, 1) if turned else call.input(0)
        ways = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}[call.text("direction", "forward")]
        hidden = call.input(2).shape[-1]
        if call.input(1).shape != (len(ways), gates * hidden, x.shape[2]) or call.input(2).shape != (len(ways), gates * hidden, hidden):
            raise Illegal("weights of a recurrence that do not fit")
        found = [_run(call, _weights(call, way, gates, hidden), x[::sense], _initial(call, way, states, x, turned), step) for way, sense in enumerate(ways)]
        every = np.stack([np.stack([one[0] for one in run])[::sense] if run else x[:0, :, :0] for run, sense in zip(found, ways, strict=True)], axis=1)
        last = [np.stack([run[-1][state] for run in found]) for state in range(states)]
        if turned:
            every, last = every.transpose(2, 0, 1, 3), [one.swapaxes(0, 1) for one in last]
        return [every, *last][: len(call.results)]

    return kernel


_PLAIN = ("activations", "activation_alpha", "activation_beta", "clip")


def _run(call: Call, weights: _Weights, x: Array, states: _States, step: Callable[[Call, _Weights, Array, _States], _States]) -> list[_States]:
    """The states after each step."""
    if not len(x):
        raise Illegal("a recurrence of no steps")
    found: list[_States] = []
    for one in x:
        states = step(call, weights, one, states)
        found.append(states)
    return found


def _weights(call: Call, way: int, gates: int, hidden: int) -> _Weights:
    def parts(position: int, first: int, count: int) -> list[Array]:
        given = call.given(position)
        whole = np.zeros((first + count) * hidden, call.input(0).dtype) if given is None else given[way]
        return [whole[(first + part) * hidden : (first + part + 1) * hidden] for part in range(count)]

    peepholes = parts(7, 0, 3) if call.given(7) is not None else None
    return _Weights(parts(1, 0, gates), parts(2, 0, gates), parts(3, 0, gates), parts(3, gates, gates), peepholes)


def _initial(call: Call, way: int, states: int, x: Array, turned: bool) -> _States:
    shape = (x.shape[1], call.input(2).shape[-1])
    given = [call.given(5 + state) for state in range(states)]
    return tuple(np.zeros(shape, x.dtype) if one is None else one[:, way] if turned else one[way] for one in given)


KERNELS: dict[str, Kernel] = {"GRU": _recurrence(3, 1, _gru), "LSTM": _recurrence(4, 2, _lstm)}
