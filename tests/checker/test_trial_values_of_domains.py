"""Values of instances stay in the domains of their inputs, where these have elements."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from eqsat.checker.drawing.domains import Domain
from eqsat.checker.judging.trial_values import Slot, Style, Values


@pytest.mark.parametrize("style", list(Style))
def test_integers_stay_in_their_domain(style: Style) -> None:
    domain = Domain(low=-3, high=2)
    drawn = Values({"i": Slot(TensorProto.INT64, (40,), domain)}, (), 0).draw(style, 0)["i"]
    assert domain.holds(drawn) and drawn.shape == (40,)


@pytest.mark.parametrize("style", list(Style))
def test_a_domain_without_elements_ends_no_check(style: Style) -> None:
    """That of the indices of an axis of no size: a left side refuses whatever is drawn."""
    drawn = Values({"i": Slot(TensorProto.INT64, (4,), Domain(low=0, high=-1))}, (), 0).draw(style, 0)["i"]
    assert drawn.shape == (4,)
