"""One draw of a left side, node by node, from leaf shapes and data types to a fully known graph.

The input is a flat left side, suggested shapes of its leaves, types, and the bindings of the rule's
names. The output is a `Drawing` with the nodes as they will be written, if its `run` finds a legal
draw. Then ONNX's inference accepts every node with concrete shapes, no tensor is large, and no
condition is known to be broken.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random

import numpy as np

from eqsat.checker.drawing.bindings import Bindings, numbers_in
from eqsat.checker.drawing.bounded import owner
from eqsat.checker.drawing.demands import beyond_runtimes, broken_law
from eqsat.checker.drawing.domains import DECISIVE, Domain, direct
from eqsat.checker.drawing.dtypes import DECIDING, Key
from eqsat.checker.drawing.elements import draw_elements, draw_twice, draw_uniform, number
from eqsat.checker.drawing.left_side import HALVES_EQUAL, PAIRS_EQUAL, UNIFORM, VALUES, Leaf, Left, Step
from eqsat.checker.drawing.placed import Placed, inferred, node_of
from eqsat.checker.drawing.wanted_ranks import wanted_ranks
from eqsat.checker.samplers import sample
from eqsat.checker.samplers.drawn_node import OBEDIENCE, Asked, DrawnNode, Setting, Slot, Unfit
from eqsat.checker.samplers.equivalent_forms import Spelling, respell
from eqsat.checker.samplers.leaf_shapes import ELEMENT_LIMIT, Sizes, draw_size, of_rank
from eqsat.facts.fact import INTEGERS, Array, Fact, dtype_name, from_array
from eqsat.facts.legality import illegal
from eqsat.facts.node import Node
from eqsat.language.matching import Refusal
from eqsat.language.syntax import NOWHERE, Place
from eqsat.language.values import Value

_TRIES = 5  # draws of one node before the whole graph is drawn again


@dataclass
class Drawing:
    """A draw in progress.

    A `plain` draw is that of a test line, whose shapes and values stay. In a `symbolic` draw some
    sizes will have names.
    """

    left: Left
    random: Random
    generator: np.random.Generator
    dtypes: Mapping[Key, int]
    shapes: Mapping[str, Sizes]
    constants: frozenset[str]  # leaves that are initializers
    given: Mapping[str, Setting]
    bindings: Bindings
    plain: bool = False
    symbolic: bool = False
    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    # The elements of initializers, once they are final.
    arrays: dict[str, Array] = field(default_factory=dict[str, Array])
    nodes: list[Placed] = field(default_factory=list[Placed])
    refusal: Refusal | None = None  # for a test line, why the last node that was drawn is illegal

    def __post_init__(self) -> None:
        self._used = frozenset(name for step in self.left.steps for name in step.inputs)
        decisive = {step.inputs[place] for step in self.left.steps for place in DECISIVE.get(step.operator.name, ()) if place < len(step.inputs)}
        self.constants |= {leaf.name for leaf in self.left.leaves if leaf.name in decisive or leaf.read}
        self._owners: dict[str, list[str]] = {}  # by tensor of the graph, its names in the rule
        for name, value in self.left.names.items():
            self._owners.setdefault(value, []).append(name)
        self.leaves: dict[str, Leaf] = {leaf.name: leaf for leaf in self.left.leaves}
        self._ranks = wanted_ranks(self.left.steps)

    def run(self) -> bool:
        """Draws every node; False if one of them has no legal draw."""
        return all(self._drawn(place, step) for place, step in enumerate(self.left.steps))

    def _drawn(self, place: int, step: Step) -> bool:
        slots = self._slots(step)
        if slots is None:
            return self._refuse(step.place, f"an attribute or parameter of {step.operator.name} has no value here")
        new = frozenset(position for position, name in enumerate(step.inputs) if name is not None and name not in self.facts)
        numbers = frozenset(position for position in new if self.leaves[step.inputs[position] or ""].number is not None)
        # A tensor at two inputs has one shape, so no sampler may set it at one of them.
        fresh = frozenset(position for position in new if not self.plain and step.inputs.count(step.inputs[position]) == 1)
        dtype, lists, asked = self.dtypes[step.outputs[0]], self._lists(), self._asked(step.outputs[0])
        demands = {name: None if self.plain else self.bindings.asked(owner(self.leaves[name].given)) for name in step.inputs if name and name not in self.facts}
        demanded = frozenset(position for position in fresh if any(isinstance(size, int) for size in demands[step.inputs[position] or ""] or ()))
        failed: set[Hashable] = set()
        for _ in range(_TRIES):
            inputs = [None if name is None else self.facts.get(name) or self._suggested(name, demands[name]) for name in step.inputs]
            drawn = DrawnNode(
                self.random, step.operator, inputs, fresh, numbers, slots, len(step.outputs), dtype, lists, asked, demanded, self.plain, self.symbolic
            )
            if self._place(place, drawn, step, new, failed):
                return True
        return False

    def _asked(self, value: str) -> Asked | None:
        """Returns the shape that conditions ask of a result, as far as it is known, or one of a rank that
        the nodes behind it want.
        """
        shapes = (self.bindings.asked(name) for name in self._owners.get(value, ()))
        asked = next((shape for shape in shapes if shape is not None), None)
        if asked is None and value in self._ranks:
            return (None,) * self.random.randint(*self._ranks[value])
        return asked

    def _place(self, place: int, drawn: DrawnNode, step: Step, new: frozenset[int], failed: set[Hashable]) -> bool:
        """Draws one node.

        `failed` holds the choices for it that are known to break something. A choice that does is
        added.
        """
        bindings = self.bindings.copy()
        try:
            self._decide_dtype(place, step, drawn)
            sample(drawn)
        except Unfit:
            return self._refuse(step.place, f"{step.operator.name} has no attributes that fit the shapes {self._shown(drawn)}")
        settings = self._bound(step, drawn, bindings)
        if settings is None:
            return self._refuse(step.place, f"the values that are given are not what the pattern of {step.operator.name} says")
        self._obey(step, drawn, bindings)
        if any(prod(drawn.shape(position)) > ELEMENT_LIMIT for position in new):
            return self._refuse(step.place, f"an input of {step.operator.name} has more than {ELEMENT_LIMIT} elements")
        choice = (tuple(settings.items()), tuple(drawn.inputs[position] for position in new))
        if choice in failed:
            return False
        written = frozenset(position for position in new if self._is_written(step, position))
        arrays: dict[str, Array] | None = None
        # Conditions on inputs come first: they need no inference, which is expensive.
        known = {name: fact for position, (name, fact) in enumerate(zip(step.inputs, drawn.inputs, strict=True)) if name and fact and position not in written}
        if bindings.settle(self._named(known)):
            arrays = self._new_arrays(step, drawn, written, settings, bindings)
            if arrays is None:
                self._refuse(step.place, f"no element of an input of {step.operator.name} is what the rule says, in its data type")
            elif self._commit(step, drawn, settings, arrays, bindings):
                return True
        else:
            self._refuse_condition(bindings)
        if not arrays:  # other elements may succeed
            failed.add(choice)
        return False

    def _obey(self, step: Step, drawn: DrawnNode, bindings: Bindings) -> None:
        """Mostly gives new inputs the sizes that conditions ask, which random ones seldom are."""
        if not drawn.fresh:
            return
        names = {position: step.inputs[position] or "" for position in sorted(drawn.fresh)}
        given = {position: owner(self.leaves[name].given) for position, name in names.items()}
        if all(one.sizes.isdisjoint(given.values()) for one in bindings.pending):
            return
        target = drawn.chosen.get("shape") if step.operator.name == "Reshape" else None
        made = tuple([int(size) for size in target]) if isinstance(target, tuple) else None
        early = bindings.copy() if made is not None or len(names) > 1 else bindings
        if made is not None:
            # The known shape of the result binds names in what is asked of the input.
            early.settle(self._named({step.outputs[0]: Fact(self.dtypes[step.outputs[0]], made)}))
        last = max(names)
        for position, name in names.items():
            shape = drawn.shape(position)
            wanted = early.asked(given[position])
            if wanted is not None and made is not None:
                wanted = _completed(self.random, wanted, prod(made))
            if wanted is None or (len(wanted) != len(shape) and target is None) or not all(isinstance(size, int) for size in wanted):
                asked = early.sizes_asked(given[position], len(shape))
                wanted = tuple(asked.get(axis, size) for axis, size in enumerate(shape))
            if wanted != shape and drawn.chance(OBEDIENCE):
                drawn.fit(position, [size for size in wanted if isinstance(size, int)])
            fact = drawn.inputs[position]
            if position < last and fact is not None and not self._is_written(step, position):
                early.settle(self._named({name: fact}))

    def _is_written(self, step: Step, position: int) -> bool:
        """Whether inference or the rule's numbers need the elements of a new input now."""
        name = step.inputs[position]
        assert name is not None
        leaf = self.leaves[name]
        if leaf.number is not None:
            return True
        return name in self.constants and bool(leaf.read or self.dtypes[name] in INTEGERS or position in DECISIVE.get(step.operator.name, ()))

    def _lists(self) -> list[Sizes]:
        shapes = [fact.shape for fact in self.facts.values() if fact.shape]
        bound = [value for value in self.bindings.values.values() if isinstance(value, tuple)]
        return [tuple([item for item in items if isinstance(item, int)]) for items in (*shapes, *bound)]

    def _suggested(self, name: str, asked: Asked | None) -> Fact:
        """The type of a new leaf, mostly with the rank and the sizes that conditions ask."""
        shape = self.shapes.get(name)
        if shape is None:
            others = list(self.shapes.values())
            shape = self.random.choice(others) if others and self.random.random() < 0.7 else (draw_size(self.random),)
        if asked is not None and not _answers(shape, asked) and self.random.random() < OBEDIENCE:
            if len(shape) != len(asked):
                drawn = [draw_size(self.random) for _ in asked]
                # Sizes with one name are equal, those without names have nothing in common.
                shape = tuple([drawn[place] if size is None else drawn[asked.index(size)] for place, size in enumerate(asked)])
            shape = tuple([size if isinstance(size, int) else other for size, other in zip(asked, shape, strict=True)])
        ranks = self._ranks.get(name)
        if ranks is not None and not ranks[0] <= len(shape) <= ranks[1] and self.random.random() < OBEDIENCE:
            shape = of_rank(self.random, shape, *ranks)
        return Fact(self.dtypes[name], shape, name in self.constants)

    def _slots(self, step: Step) -> dict[str, Slot] | None:
        slots: dict[str, Slot] = {}
        for key, pattern in step.slots.items():
            slot = self.bindings.slot(pattern, self.given)
            if slot is None:
                return None
            slots[key] = slot
        if step.carried is not None:
            bound = self.bindings.carried.get(step.carried)
            assert step.operator.schema is not None
            for key in step.operator.schema.attributes:
                if key in slots or key in step.absent:
                    continue
                if bound is None:
                    if not self.plain or step.operator.schema.attributes[key].required:
                        slots[key] = Slot(carried=True)
                elif key in bound:
                    slots[key] = Slot(bound[key])
        return slots

    def _decide_dtype(self, place: int, step: Step, drawn: DrawnNode) -> None:
        for (name, key), variable in DECIDING.items():
            if name == step.operator.name and key in drawn.slots:
                drawn.chosen[key] = self.dtypes[place, variable]

    def _bound(self, step: Step, drawn: DrawnNode, bindings: Bindings) -> dict[str, Setting] | None:
        """The settings of the node, with the names of its patterns bound; None if they do not
        match.
        """
        for key, pattern in step.slots.items():
            value = drawn.chosen.get(key, drawn.default(key))
            if value is not None and not bindings.bind(pattern, value):
                return None
        if step.carried not in (None, "_"):
            bindings.carried.setdefault(step.carried, {key: value for key, value in drawn.chosen.items() if key not in step.slots})
        return dict(drawn.chosen)

    def _commit(self, step: Step, drawn: DrawnNode, settings: dict[str, Setting], arrays: Mapping[str, Array], bindings: Bindings) -> bool:
        elements = {name: from_array(array) for name, array in arrays.items()}
        drawn.inputs = [fact if name is None else elements.get(name, fact) for name, fact in zip(step.inputs, drawn.inputs, strict=True)]
        node = node_of(step, drawn.inputs, settings)
        if not bindings.settle(self._named(elements)):
            return self._refuse_condition(bindings)
        if (law := broken_law(node)) is not None:
            return self._refuse(step.place, f"ONNX's law for {step.operator.name}: {law}; here its inputs are {self._shown(drawn)}")
        if not self.plain and beyond_runtimes(node):
            return False
        found = inferred(node)
        if not all(_is_settled(fact, name in self._used) for name, fact in zip(step.outputs, found, strict=True)):
            return self._refuse_node(step, node, found)
        results = dict(zip(step.outputs, found, strict=True))
        if not bindings.settle(self._named(results)):
            return self._refuse_condition(bindings)
        self.bindings = bindings
        self.facts.update({name: fact for name, fact in zip(step.inputs, drawn.inputs, strict=True) if name is not None and fact is not None})
        self.facts.update(results)
        self.arrays.update(arrays)
        self.nodes.append(self._spelled(step, drawn, settings, node, found))
        return True

    def _refuse(self, place: Place, reason: str) -> bool:
        """Notes why a test line is not legal; random draws need no reason. Always False."""
        if self.plain:
            self.refusal = Refusal(place, reason)
        return False

    def _refuse_condition(self, bindings: Bindings) -> bool:
        return self._refuse(bindings.broken or NOWHERE, "this condition does not hold")

    def _refuse_node(self, step: Step, node: Node, found: Sequence[Fact]) -> bool:
        reason = illegal(*node) if self.plain else None
        if reason is not None:
            return self._refuse(step.place, f"ONNX rejects {step.operator.name} here: {reason}")
        large = any(prod(size for size in fact.shape or () if isinstance(size, int)) > ELEMENT_LIMIT for fact in found)
        what = f"has more than {ELEMENT_LIMIT} elements" if large else "has a size that depends on what is computed, and the left side goes on from there"
        return self._refuse(step.place, f"a result of {step.operator.name} {what}")

    def _shown(self, drawn: DrawnNode) -> str:
        return ", ".join("absent" if fact is None else f"{dtype_name(fact.dtype)}{list(fact.shape or ())}" for fact in drawn.inputs)

    def _named(self, facts: Mapping[str, Fact]) -> dict[str, Fact]:
        """The facts by the names that the rule gives their tensors."""
        return {name: fact for value, fact in facts.items() for name in self._owners.get(value, ())}

    def _new_arrays(
        self, step: Step, drawn: DrawnNode, written: frozenset[int], settings: Mapping[str, Setting], bindings: Bindings
    ) -> dict[str, Array] | None:
        """Elements of the new initializers that need them now; None if a type can not hold a
        number.
        """
        arrays: dict[str, Array] = {}
        wanted: Mapping[int, Domain] | None = None
        for position in written:
            name = step.inputs[position]
            assert name is not None
            dtype, shape, leaf = self.dtypes[name], drawn.shape(position), self.leaves[name]
            if leaf.number is not None:
                array = number(dtype, shape, self.bindings.number(leaf.number))
                if array is None:
                    return None
                arrays[name] = array
                continue
            if wanted is None:
                wanted = direct(node_of(step, drawn.inputs, settings))
            read = f"{leaf.read}({leaf.given})"
            if leaf.read == UNIFORM:
                rivals = [(symbol, rival) for symbol, value in bindings.rivals(read, (leaf.given,)) for rival in numbers_in([value])]
                arrays[name] = draw_uniform(self.generator, dtype, shape, wanted.get(position), rivals)
                continue
            if leaf.read in (HALVES_EQUAL, PAIRS_EQUAL) and shape and shape[-1] % 2 == 0 and self.random.random() < OBEDIENCE:
                arrays[name] = draw_twice(self.generator, dtype, shape, wanted.get(position), neighbours=leaf.read == PAIRS_EQUAL)
                continue
            arrays[name] = draw_elements(self.generator, dtype, shape, wanted.get(position))
            if leaf.read != VALUES or self.random.random() >= OBEDIENCE:
                continue
            # A list may follow from elements of the tensor itself, as all that count on from the first one.
            lists = _lists_in(bindings.rivals(read, (leaf.given,))) or _lists_in(bindings.rivals_of(read, leaf.given, from_array(arrays[name])))
            if lists and len(lists[0]) == arrays[name].size and all(isinstance(item, int | float) for item in lists[0]):
                array = np.array(lists[0]).astype(arrays[name].dtype).reshape(shape)
                if array.dtype == np.bool_ or wanted.get(position, Domain()).holds(array):
                    arrays[name] = array
        return arrays

    def _spelled(self, step: Step, drawn: DrawnNode, settings: dict[str, Setting], node: Node, found: tuple[Fact, ...]) -> Placed:
        plain = Placed(step, settings, node)
        # If sizes have names, rules see a Slice as written, and another spelling would give the
        # rule's names other values.
        if self.plain or (self.symbolic and step.operator.name == "Slice") or self.random.random() < 0.5:
            return plain
        weights = drawn.shape(1)[2:] if "Conv" in step.operator.name and step.operator.name != "QLinearConv" and drawn.present(1) else None
        y = found[0].shape or ()
        spelling = Spelling(
            step.operator, dict(settings), drawn.shape(0) if drawn.present(0) else (), tuple(size for size in y if isinstance(size, int)), weights
        )
        respell(self.random, spelling)
        if spelling.settings == settings:
            return plain
        again = node_of(step, drawn.inputs, spelling.settings)
        same = inferred(again)
        # A spelling for which inference finds other types would be another node.
        return Placed(step, spelling.settings, again) if [_type(fact) for fact in same] == [_type(fact) for fact in found] else plain


def _lists_in(rivals: Iterable[tuple[str, Value | None]]) -> list[tuple[Value | None, ...]]:
    """The lists that an expression has to equal."""
    return [rival for symbol, rival in rivals if symbol == "==" and isinstance(rival, tuple)]


def _answers(shape: Sizes, asked: Asked) -> bool:
    """Whether a shape is what conditions ask, as far as they know a size. To one that asks for a rank
    alone, the shapes of a test line answer better than random ones.
    """
    if not any(isinstance(size, int) for size in asked):
        return True
    return len(shape) == len(asked) and all(not isinstance(size, int) or size == other for size, other in zip(asked, shape, strict=True))


def _type(fact: Fact) -> tuple[int, object]:
    return fact.dtype, fact.shape


def _is_settled(fact: Fact, used: bool) -> bool:
    """Whether a result has few elements and, if another node uses it, sizes that do not depend on
    data.
    """
    if not fact.dtype or fact.shape is None:
        return False
    sizes = [size for size in fact.shape if isinstance(size, int)]
    return (not used or len(sizes) == len(fact.shape)) and prod(sizes) <= ELEMENT_LIMIT


def _completed(random: Random, shape: Asked, elements: int) -> Asked:
    """The shape with random numbers in place of the sizes that are not asked, if so many elements fit."""
    missing = [place for place, size in enumerate(shape) if size is None]
    asked = prod(size for size in shape if isinstance(size, int))
    if not missing or not 0 < elements <= ELEMENT_LIMIT or not asked or elements % asked:
        return shape
    found, rest = list(shape), elements // asked
    for place in missing[1:]:
        size = random.choice([size for size in range(1, rest + 1) if rest % size == 0])
        found[place], rest = size, rest // size
    found[missing[0]] = rest
    return tuple(found)
