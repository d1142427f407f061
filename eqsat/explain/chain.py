"""The chain: the models between an original and its result, each one step from the one before.

The input is the turns of a run that kept its solved graphs. A step is a single rewrite where one
rule leads from a model to the next one that can be written, in one place or in the same place of
several regions that are alike. Otherwise it says that it is joint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx

from eqsat.choose.decode import Undecodable
from eqsat.egraph.finiteness import Finiteness
from eqsat.explain.law_names import FLOW, StoredValues, of_nodes, of_preparation
from eqsat.explain.merging import joined, merged, merges
from eqsat.explain.node_changes import changes
from eqsat.explain.replay import Replay
from eqsat.language.firing import Firing
from eqsat.language.library import Library
from eqsat.language.syntax import Label
from eqsat.model.likeness import Keys
from eqsat.model.names import NameClash
from eqsat.proofs.equations import Matcher, Tables
from eqsat.proofs.proofs import Proofs
from eqsat.rewriting.solved import Solved, Turn

REWRITE = "rewrite"
"""One rule, in one place, or in the same place of several regions that are alike."""
JOINT = "joint"
"""Several rules together: no valid model lies between them, or the chain between them is not known."""
LAWS = "laws"
"""No rule: the laws name what was done."""


@dataclass(frozen=True, slots=True)
class Change:
    """What lies between two models of a chain that follow one another."""

    kind: str
    """`REWRITE`, `JOINT` or `LAWS`."""
    rules: tuple[str, ...]
    """The rules in the order of their use. A rule is there as often as it was used."""
    laws: tuple[str, ...]
    """What was done without a rule, where there is no rule (eqsat/explain/law_names.py)."""
    complete: bool
    """Whether these rules are all that lies between the two models."""
    places: int
    """In how many regions that are alike, or at how many values, the step is made."""
    gone: tuple[str, ...]
    """The nodes that the model before has and the one after has not: operator and first output."""
    came: tuple[str, ...]


Link = tuple[Change, onnx.ModelProto]
"""A change, and the model after it."""


def links(turns: Sequence[Turn], library: Library, fired: Sequence[str], least: Label) -> Iterator[Link]:
    """Yields the steps of a chain, whose last model is that of the last turn. `fired` are the rules
    that fired, and `least` the weakest label that a rule may have.
    """
    keys = Keys()
    for turn in turns:
        yield from _Chain(turn, keys).links(library.select(fired, ()) if fired else Library(()), least)


class _Chain:
    """The chain of one turn."""

    def __init__(self, turn: Turn, keys: Keys) -> None:
        self._turn = turn
        self._keys = keys
        self._model = turn.before
        self._like = keys.of(turn.before)

    def links(self, library: Library, least: Label) -> Iterator[Link]:
        """Yields the steps. The last one leads to the model itself, which may differ in names and in
        the order of its nodes from the one that was written for the chain.
        """
        last: Link | None = None
        for link in self._rewritten(library, least):
            if last is not None:
                yield last
            last = link
        written = self._turn.after
        like = self._keys.of(written)
        if not like.same(self._like):
            yield from () if last is None else (last,)
            own = self._turn.source is None  # no rule ran, so a stage without rules made the difference
            laws = of_preparation(self._model, written) if own else ()
            yield Change(LAWS if own else JOINT, (), laws, own, 1, *changes(self._model, self._like, written, like)), written
        elif last is not None:
            yield last[0], written
        elif written != self._turn.before:
            yield Change(LAWS, (), of_preparation(self._model, written), True, 1, (), ()), written

    def _rewritten(self, library: Library, least: Label) -> Iterator[Link]:
        turn = self._turn
        if turn.source is not None:
            yield from self._step(turn.source.proto, (), (FLOW,))
        if turn.solved is not None:
            yield from self._solved(turn.solved, library, least)

    def _solved(self, solved: Solved, library: Library, least: Label) -> Iterator[Link]:
        proofs = _proofs(solved, library, least)
        groups = zip(solved.groups, solved.chosen.terms, strict=True)
        replays = [Replay(solved.encoding, solved.egraph, solved.chooser, proofs, group, goal) for group, goal in groups]
        begun = [replay.begin or {} for replay in replays]
        # A merge may need a value that nothing reads after an earlier one, so each begins anew.
        begin, names = self._model, dict[str, str]()
        for merge in merges(solved, proofs, begun):
            both = joined(names, merge.names)
            found = merged(begin, both)
            if found is not None:
                names = both
                yield from self._step(found, merge.rules, merge.laws, merge.unknown, len(merge.names))
        choices = _Choices(self._turn, solved, replays)
        # Bodies and functions were rewritten on the way, by rules that this chain does not name.
        inside = bool(solved.encoding.graph.nodes) and any(node.bodies or node.function for node in solved.encoding.nodes.values())
        values = StoredValues(solved.encoding, solved.egraph)
        laws = {law for choice in begun for law in values.laws(choice)}
        yield from self._step(choices.model(), (), tuple(sorted(laws)), inside)
        for replay, group in zip(replays, solved.groups, strict=True):
            for _ in replay.run():
                moves = replay.moves
                links = list(self._step(choices.model(), tuple(moves.rules), (), moves.unknown, group.copies))
                if links:
                    moves.rules.clear()
                    moves.unknown = False
                yield from links

    def _step(
        self, model: onnx.ModelProto | None, rules: tuple[str, ...], laws: tuple[str, ...] = (), unknown: bool = False, places: int = 1
    ) -> Iterator[Link]:
        """Yields the step to a model, unless there is none, or it is the last one up to names."""
        if model is None:
            return
        like = self._keys.of(model)
        if like.same(self._like):
            return
        kind = LAWS if not rules and not unknown else REWRITE if len(rules) == 1 and not unknown else JOINT
        gone, came = changes(self._model, self._like, model, like)
        named = (laws or of_nodes(self._like, like, gone, came)) if kind == LAWS else ()
        yield Change(kind, rules, named, not unknown, places, gone, came), model
        self._model, self._like = model, like


class _Choices:
    """The present choices of all groups of a solved graph, as a model."""

    def __init__(self, turn: Turn, solved: Solved, replays: Sequence[Replay]) -> None:
        self._turn = turn
        self._solved = solved
        self._derivations = replays
        self._names = solved.part.fresh.stable()

    def model(self) -> onnx.ModelProto | None:
        """Returns the model of the choices; None if it can not be written."""
        found = [replay.terms() for replay in self._derivations]
        terms = [group for group in found if group is not None]
        may_write = self._solved.chooser.may_write
        if len(terms) < len(found) or not all(may_write(term) for group in terms for term in group.values()):
            return None
        try:
            graph = self._solved.graph(terms, self._names)
        except (Undecodable, NameClash):
            return None
        assert self._turn.whole is not None
        return None if graph is None else self._turn.whole(graph)


def _proofs(solved: Solved, library: Library, least: Label) -> Proofs:
    """Returns the equations of a solved graph."""
    encoding, egraph = solved.encoding, solved.egraph
    tables = Tables(encoding.terms, egraph)
    special = Finiteness(encoding).special
    # A trial also looks at constants: facts are sharper now than when a rule fired.
    firings = (Firing(one.compiled, encoding.terms, encoding.derivation, least, special, trial=True) for one in library.directions)
    return Proofs(encoding, egraph, Matcher(tables, firings).at)
