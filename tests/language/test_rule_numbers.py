"""Numbers on their way from a tensor into a rule's right side: none becomes another one where it is
stored.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import defs, helper, numpy_helper

import eqsat
from eqsat.checker.drawing.instances import draw
from eqsat.checker.judging.trial import try_rule
from eqsat.language.compile import Compiled, compile_rule
from eqsat.language.construction import Computed
from eqsat.language.library import built_in, load
from eqsat.language.resolved import Resolved
from eqsat.language.syntax import Call, Name
from tests.support.models import operators, parse, session

FLOATS = (defs.OpSchema.AttrType.FLOAT, defs.OpSchema.AttrType.FLOATS)
SLOPE = """
# A slope that is one number.
{label} rule slope:
    PRelu(x, s) => LeakyRelu<alpha = {value}>(x)
    where known(uniform(s))
    test x: T[2], s: T[]
"""
# By the type of the data: slopes, and whether single precision holds them.
SLOPES = [
    ("float", 0.1, True),
    ("float", 1e-44, True),
    ("float16", 0.1, True),
    ("double", 0.5, True),
    ("double", 0.1, False),
    ("double", 1e-60, False),
    ("double", 1e300, False),
    ("double", float("inf"), True),
]


def prelu(dtype: str, slope: float) -> onnx.ModelProto:
    model = parse(f"g ({dtype}[4] x) => ({dtype}[4] y) {{ y = PRelu(x, s) }}")
    code = model.graph.input[0].type.tensor_type.elem_type
    model.graph.initializer.append(numpy_helper.from_array(np.array(slope).astype(helper.tensor_dtype_to_np_dtype(code)), "s"))
    return model


def made(model: onnx.ModelProto, value: str = "uniform(s)", label: str = "real") -> onnx.ModelProto:
    return eqsat.optimize(model, rules=[SLOPE.format(value=value, label=label)], only=["slope"], verify=False, target="launches").model


@pytest.mark.parametrize(("dtype", "slope", "held"), SLOPES)
def test_a_number_that_an_attribute_can_not_hold_stays_a_tensor(dtype: str, slope: float, held: bool) -> None:
    assert operators(made(prelu(dtype, slope))) == {"LeakyRelu" if held else "PRelu": 1}


def test_what_a_rule_computes_neither_vanishes_nor_overflows() -> None:
    assert operators(made(prelu("float", 1e-30), "uniform(s) * uniform(s)")) == {"PRelu": 1}
    assert operators(made(prelu("float", 1e30), "uniform(s) * uniform(s)")) == {"PRelu": 1}
    assert operators(made(prelu("float", 0.0), "uniform(s) * uniform(s)")) == {"LeakyRelu": 1}
    assert operators(made(prelu("float", 0.1), "uniform(s) * uniform(s)")) == {"LeakyRelu": 1}


def test_under_exact_what_a_rule_computes_is_not_rounded() -> None:
    assert operators(made(prelu("float", 0.1), "uniform(s) * uniform(s)", "exact")) == {"PRelu": 1}
    assert operators(made(prelu("float", 0.5), "uniform(s) * uniform(s)", "exact")) == {"LeakyRelu": 1}


def test_a_literal_neither_vanishes_nor_overflows() -> None:
    rules = """
# A sum of squares of a tiny number, which a type of few bits does not have.
real rule squared:
    Add(Add(x, c), c) => Add(x, T(2 * uniform(c) * uniform(c)))
    where x: T
    test x: float[2], c: float[]
"""
    model = parse("g (float[4] x) => (float[4] y) <float c = {1e-30}> { a = Add(x, c) y = Add(a, c) }")
    assert operators(eqsat.optimize(model, rules=[rules], only=["squared"], verify=False, target="launches").model) == {"Add": 2}


@pytest.mark.parametrize("epsilon", [1e-60, 1e-5, 1.0])
@pytest.mark.parametrize("text", ["r = Div(x, q) y = Mul(r, s)", "i = Reciprocal(q) r = Mul(x, i) y = Mul(r, s)"])
def test_the_epsilon_of_a_norm_in_double_precision(text: str, epsilon: float) -> None:
    model = parse(
        f"""g (double[2, 3] x) => (double[2, 3] y) <double e = {{{epsilon}}}, double[3] s = {{1, 2, 3}}, int64[1] axes = {{-1}}> {{
            p = Mul(x, x) m = ReduceMean(p, axes) v = Add(m, e) q = Sqrt(v) {text} }}""",
        header='<ir_version: 10, opset_import: ["": 23]>',
    )
    feeds = {"x": np.array([[0, 0, 0], [1, 2, 3]], np.float64)}
    (before,), (after,) = (session(made).run(None, feeds) for made in (model, eqsat.optimize(model, verify=False, target="launches").model))
    np.testing.assert_allclose(after, before, rtol=1e-14)


def numbers(compiled: Compiled) -> list[tuple[str, str, str]]:
    """The float attributes of a right side that are one number of a tensor: the operator, the
    attribute, the tensor.
    """
    found: list[tuple[str, str, str]] = []
    for node in compiled.construction.nodes:
        assert node.operator.schema is not None
        for attribute in node.attributes:
            if isinstance(attribute, Computed) and node.operator.schema.attributes[attribute.name].type in FLOATS:
                match attribute.value:
                    case Call("uniform", (Name(tensor),)):
                        found.append((node.operator.name, attribute.name, tensor))
                    case _:
                        pass
    return found


READERS = [(rule, compiled) for rule in built_in().rules for compiled in compile_rule(rule) if numbers(compiled)]


def test_rules_that_put_numbers_of_tensors_into_attributes_are_found() -> None:
    assert {"prelu-leakyrelu", "mul-matmul-gemm", "rmsnormalization", "layernormalization"} <= {rule.rule.name for rule, _ in READERS}


@pytest.mark.parametrize(("rule", "compiled"), READERS, ids=[rule.rule.name for rule, _ in READERS])
def test_each_attribute_is_the_number_of_its_tensor(rule: Resolved, compiled: Compiled) -> None:
    instances = [instance for instance, _ in zip(draw(rule, 0), range(150), strict=False)]
    trials = try_rule(compiled, instances).fired
    assert len(trials) >= 20
    for trial in trials:
        held = {tensor.name: numpy_helper.to_array(tensor) for tensor in instances[trial.instance].model.graph.initializer}
        for operator, name, tensor in numbers(compiled):
            nodes = [node for node in trial.right.graph.node if node.op_type == operator]
            stated = {helper.get_attribute_value(attribute) for node in nodes for attribute in node.attribute if attribute.name == name}
            default = helper.get_attribute_value(onnx.defs.get_schema(operator).attributes[name].default_value)
            # As text, a NaN is itself, and -0 is not 0.
            assert {repr(float(number)) for number in held[tensor].reshape(-1)} <= {repr(number) for number in stated | {default}}


def test_integers_beyond_any_attribute_are_not_known() -> None:
    rules = """
# What an attribute of 64 bits can not hold.
exact rule start:
    y = Mul(x, c)
 => y = Mul(x, Reshape(c, [uniform(c)]))
    test x: uint64[1], c: uint64[1]
"""
    (rule,) = load([rules]).rules
    model = parse("g (uint64[1] x) => (uint64[1] y) <uint64[1] c = {18446744073709551615}> { y = Mul(x, c) }")
    assert rule.rule.name == "start"
    assert operators(eqsat.optimize(model, rules=[rules], only=["start"], verify=False, target="launches").model) == {"Mul": 1}


CHOICE = """
# A choice of two numbers.
exact rule choice:
    y = Where(c, 1, 0)
 => y = Cast<to = T>(c)
    where y: T
    test c: bool[2, 3]
"""


@pytest.mark.parametrize(("rank", "fires"), [(0, True), (1, True), (2, False)])
def test_two_numbers_keep_the_sizes_of_what_is_no_number(rank: int, fires: bool) -> None:
    """Numbers of more axes than the condition enlarge the choice."""
    shape = "float[1, 3]" if rank > 1 else "float[3]"
    model = parse(f"g (bool[3] c) => ({shape} y) {{ y = Where(c, one, zero) }}")
    model.graph.initializer.extend(numpy_helper.from_array(np.full([1] * rank, number, np.float32), name) for name, number in (("one", 1), ("zero", 0)))
    result = eqsat.optimize(model, rules=[CHOICE], only=["choice"], verify=False, target="launches")
    assert operators(result.model) == {"Cast" if fires else "Where": 1}
    assert not result.report["notes"]  # that the rule is wrong
