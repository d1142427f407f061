"""Jobs: the settings that all attempts of a run share, and what follows from them for a model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import onnx

from eqsat.deadline import Deadline
from eqsat.egraph.phases import Plan
from eqsat.egraph.schedule import UNFINISHED
from eqsat.frozen import frozen
from eqsat.language.library import Library
from eqsat.language.syntax import Label
from eqsat.model.model import Model
from eqsat.model.weight_file import WeightFile
from eqsat.regions.cut import Sizes
from eqsat.rewriting.beyond_rules import arrange, raise_scores, widen_numbers
from eqsat.rewriting.finished import Finished
from eqsat.rewriting.valuation import Valuation
from eqsat.settings import Settings

_FAR = 16  # factor on region sizes where only launches or bytes count: merging distant nodes pays there


@frozen
class Job:
    """The settings that all attempts of a run share."""

    settings: Settings
    plan: Plan
    valuation: Valuation
    deadline: Deadline
    keep: bool = False
    """Whether attempts keep their solved graphs, to be explained."""
    flat: bool = False
    """Whether all functions are inlined, even where the file grows."""
    weights: WeightFile | None = None
    """The file of the model's large weights, if they are apart."""

    @property
    def regions(self) -> Sizes | None:
        """Returns the regions into which a larger model is cut, or None if models are not cut."""
        if self.plan.regions is None:
            return None
        least, most = self.plan.regions
        far = 1 if self.valuation.objective == "time" and not self.valuation.target.counts else _FAR
        return Sizes(far * least, far * most)

    @property
    def in_regions(self) -> Job:
        """Returns the settings of attempts on the regions of a model that is cut."""
        return replace(self, plan=self.plan.in_regions(self.valuation.target.launch_bound))

    def finished(self, model: onnx.ModelProto, folder: Path | None) -> Finished:
        """Returns a model with the changes that no rule makes."""
        arranged = arrange(model, folder, self.valuation)
        ranked = arranged if self.settings.only else widen_numbers(arranged, folder, self.valuation)
        free = not self.settings.exact and not self.settings.only
        return Finished(arranged, ranked, raise_scores(ranked, folder, self.valuation) if free else ranked)

    def allowed(self, library: Library, opset: int) -> Library:
        """Returns the rules without those that the target leaves out, and without those that make
        what the opset lacks. Rules that the settings name stay all the same.
        """
        # An operator of a runtime's own may stand for what the opset lacks.
        useless = frozenset[str]() if self.settings.allow_domain else self.plan.useless(opset)
        out = () if self.settings.only else self.valuation.target.leaves_out | useless
        return _without(library, frozenset(out))

    def suitable(self, library: Library, model: Model) -> Library:
        """Returns the rules without those that hide a Softmax, if it makes subnormal numbers, which
        nothing keeps out of a kernel.
        """
        hidden = self.valuation.target.hides_softmax
        faint = hidden and not self.settings.only and self.valuation.faint(model.proto, model.folder)
        return _without(library, hidden) if faint else library

    def cuts(self, model: onnx.ModelProto) -> bool:
        """Tells whether a model is so large that it is cut into regions."""
        return self.regions is not None and sum(node.op_type != "Constant" for node in model.graph.node) > self.regions.most

    def unfinished(self, model: onnx.ModelProto) -> Collection[str | None]:
        """Returns the limits after which a new turn from a model is worth its time. None stands for a turn
        that no limit ended.
        """
        if self.greedy:
            return (None,)  # it ends at a fixed point, but sees the constants of its result only when they are folded
        # In regions, rounds end a turn on purpose: more of them would find little for their time, unless each
        # launch that is left is dear.
        return UNFINISHED if not self.cuts(model) or self.valuation.target.launch_bound else ("growth",)

    @property
    def greedy(self) -> bool:
        """Tells whether rules run one after the other instead of in an e-graph."""
        return self.settings.engine == "greedy"

    @property
    def least(self) -> Label:
        """Returns the weakest label that a rule may have."""
        return Label.EXACT if self.settings.exact else Label.REAL if self.settings.strict else Label.FINITE


# Many models are optimized with the same rules. What follows from the whole library takes longer
# than all that a small model needs of it.
@lru_cache(maxsize=4)
def _without(library: Library, groups: frozenset[str]) -> Library:
    return Library(tuple(group for group in library.groups if group.name not in groups)) if groups else library
