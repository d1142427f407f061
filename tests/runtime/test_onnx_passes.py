"""The passes of onnx in the worker: what they find, and that no vector is too long for them."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

from eqsat.runtime.onnx_passes import inferred, infers


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')


def sizes(found: onnx.ModelProto, name: str) -> list[int | str]:
    values = {value.name: value for values in (found.graph.value_info, found.graph.output) for value in values}
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in values[name].type.tensor_type.shape.dim]


def test_inference_follows_the_elements_of_shapes() -> None:
    found = inferred(
        model("""g (float[N, 6] x) => (y) <int64[1] rows = {-1}, int64[1] one = {1}> {
            two = Add(one, one) target = Concat<axis=0>(rows, two) y = Reshape(x, target) }""")
    )
    assert sizes(found, "y")[1] == 2


# A message for each element of these vectors would take some 10 GiB.
CHAIN = "a = Add(x, x) b = Mul(a, a) c = Concat<axis=0>(b, b) y = Sub(c, c)"


@pytest.mark.parametrize("unknown", ["", "k = NonZero(x)"])
def test_long_vectors_are_inferred(unknown: str) -> None:
    long = model(f"g (float[67108864] x) => (y) {{ {unknown} {CHAIN} }}")
    assert sizes(inferred(long), "y") == [134217728]
    assert infers(long)


def test_long_vectors_in_bodies_are_inferred() -> None:
    body = f"body () => (float[M] y) {{ {CHAIN} }}"
    long = model(f"g (float[67108864] x, bool which) => (float[N] r) {{ k = NonZero(x) r = If (which) <then_branch = {body}, else_branch = {body}> }}")
    assert sizes(inferred(long), "r") == [134217728]
    assert infers(long)


def test_strict_inference_finds_sizes_that_contradict_elements() -> None:
    text = "g (float[2, 6] x) => (float[4, 5] y) <int64[1] four = {4}, int64[1] three = {3}> { target = Concat<axis=0>(four, three) y = Reshape(x, target) }"
    assert not infers(model(text))
    assert infers(model(text.replace("float[4, 5]", "float[4, 3]")))
