"""Operators of old opsets, read into the newest and written back, compute the same bits.

Each version with a conversion gets random legal nodes, with varying facts of their inputs. ONNX's
reference runs old versions that ONNX Runtime lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, defs, helper
from onnxruntime import InferenceSession

from eqsat.facts.dims import mul, symbol
from eqsat.facts.fact import Fact
from eqsat.operators import find_operator, read_attributes
from eqsat.spelling.opsets import read, write
from eqsat.spelling.versions import CHANGES, LATEST, RENAMED, lineage
from eqsat.traits import NEWEST
from tests.support.old_nodes import GENERATORS, Draw, ints
from tests.support.spelled import ELEMENTS, NAMES, NOT_RUN, SIZES, TYPE, fault, known

# Versions that no engine runs. Their nodes are checked only in spelling.
NEVER_RUN = {("Cast", 1), ("Dropout", 1), ("Dropout", 6), ("Gemm", 1), ("GlobalLpPool", 1), ("GlobalLpPool", 22)}

VERSIONS = [(name, schema.since_version) for name in sorted(GENERATORS) for schema in lineage(name) if schema.since_version <= NEWEST]


def opset_of(name: str, version: int) -> int:
    """Returns the last opset with this version of the operator."""
    later = [schema.since_version for schema in lineage(name) if schema.since_version > version]
    return min([*later, NEWEST + 1]) - 1


def old_name(name: str, version: int) -> str:
    """Returns the operator's name in that version."""
    return next(schema.name for schema in lineage(name) if schema.since_version == version)


def plain(attributes: Mapping[str, Any]) -> list[AttributeProto]:
    return [helper.make_attribute(name, value) for name, value in attributes.items()]


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_versions_agree(name: str, version: int) -> None:
    opset = opset_of(name, version)
    operator = find_operator("", old_name(name, version), opset)
    assert operator.version == version
    forms = backs = runs = 0
    for seed in range(16):
        draw = Draw(seed, version)
        instance = GENERATORS[name](draw, version)
        attributes = read_attributes(operator, plain(instance.attributes))
        values = [None if value is None else np.asarray(value) for value in instance.values]
        names = [f"output{place}" for place in range(instance.outputs)]
        # Half of the nodes have full facts; the others have varying facts for each input.
        degrees = [ELEMENTS] * len(values) if seed % 2 else [draw.choice(ELEMENTS, SIZES, NAMES, TYPE) for _ in values]
        facts: list[Fact | None] = [known(value, place, degree) for place, (value, degree) in enumerate(zip(values, degrees, strict=True))]
        form = read(operator, attributes, facts, instance.outputs)
        if form is None:
            continue
        forms += 1
        backs += write(form.operator, form.attributes, form.facts(facts), instance.outputs, opset) is not None
        wrong = fault(operator, attributes, form, facts, values, names, back=bool(seed % 2))
        runs += wrong != NOT_RUN
        shown = [value if value is None else value.shape if value.size > 8 else value.tolist() for value in values]
        assert wrong in (None, NOT_RUN), f"seed {seed}: {operator} {dict(instance.attributes)} on {shown}: {wrong}"
    assert forms and backs, f"{forms} of 16 nodes were read, {backs} of them written back"
    assert bool(runs) == ((name, version) not in NEVER_RUN)


# --- what is refused ---


def x(*shape: int, dtype: int = TensorProto.FLOAT) -> Fact:
    return Fact(dtype, shape)


def reads(name: str, opset: int, attributes: Mapping[str, Any], *facts: Fact | None, outputs: int = 1) -> bool:
    operator = find_operator("", name, opset)
    return read(operator, read_attributes(operator, plain(attributes)), facts, outputs) is not None


def writes(name: str, opset: int, attributes: Mapping[str, Any], *facts: Fact | None, outputs: int = 1) -> bool:
    operator = find_operator("", name, NEWEST)
    return write(operator, read_attributes(operator, plain(attributes)), facts, outputs, opset) is not None


BOOL, INT32, INT64, DOUBLE = TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64, TensorProto.DOUBLE


@pytest.mark.parametrize(
    ("name", "opset", "attributes", "facts"),
    [
        ("Add", 6, {"broadcast": 1, "axis": 0}, (x(2, 3), x(2))),
        ("AveragePool", 11, {"kernel_shape": [2], "strides": [3], "ceil_mode": 1}, (x(1, 1, 6),)),
        ("AveragePool", 11, {"kernel_shape": [2], "strides": [2], "pads": [0, 1], "ceil_mode": 1}, (x(1, 1, 6),)),
        ("BatchNormalization", 6, {}, (x(1, 2), x(2), x(2), x(2), x(2))),
        ("BatchNormalization", 7, {"spatial": 0}, (x(1, 2), x(1, 2), x(1, 2), x(1, 2), x(1, 2))),
        ("Cast", 19, {"to": TensorProto.FLOAT8E4M3FNUZ}, (x(2),)),
        ("ConvTranspose", 10, {"auto_pad": "SAME_UPPER"}, (x(1, 1, 3), x(1, 1, 3))),
        ("DequantizeLinear", 10, {}, (x(2, dtype=TensorProto.INT8), x(2))),
        ("Dropout", 6, {}, (x(2),)),
        ("Erf", 9, {}, (x(2, dtype=INT32),)),
        ("GroupNormalization", 18, {"num_groups": 2}, (x(1, 4, 3), x(2), x(2))),
        ("OneHot", 9, {}, (x(2, dtype=INT64), x(1), x(2))),
        ("PRelu", 6, {}, (x(2, 3, 4), x(3))),
        ("Pad", 1, {"paddings": [0, 1]}, (x(2),)),
        ("RandomNormalLike", 13, {}, (x(2),)),
        ("Resize", 10, {"mode": "linear"}, (x(2), known(np.array([2], np.float32)))),
        ("Resize", 10, {"mode": "nearest"}, (x(2), known(np.array([1.5], np.float32)))),
        ("Softmax", 11, {"axis": 1}, (x(2, 3, 4),)),
        ("Softmax", 11, {"axis": 1}, (Fact(TensorProto.FLOAT),)),
        ("Upsample", 6, {"height_scale": 2.0, "width_scale": 2.0}, (x(1, 1, 2, 2),)),
    ],
)
def test_not_read(name: str, opset: int, attributes: Mapping[str, Any], facts: Sequence[Fact | None]) -> None:
    assert not reads(name, opset, attributes, *facts)


@pytest.mark.parametrize(
    ("name", "opset", "attributes", "facts"),
    [
        ("Add", 13, {}, (x(2, dtype=TensorProto.INT8), x(2, dtype=TensorProto.INT8))),
        ("Add", 6, {}, (x(2, 3), x(2, 1))),
        ("Add", 6, {}, (x(3), x(2, 3))),
        ("Add", 6, {}, (Fact(TensorProto.FLOAT), x(3))),
        ("ArgMax", 11, {"select_last_index": 1}, (x(2, 3),)),
        ("ArgMax", 10, {"axis": -1}, (x(2, 3),)),
        ("BatchNormalization", 9, {"training_mode": 1}, (x(1, 2), x(2), x(2), x(2), x(2))),
        ("BatchNormalization", 14, {}, (x(1, 2, dtype=DOUBLE), x(2), x(2), x(2), x(2))),
        ("Cast", 13, {"to": TensorProto.FLOAT8E5M2}, (x(2),)),
        ("Clip", 6, {}, (x(2, dtype=DOUBLE), known(np.float64(1)))),
        ("Clip", 6, {}, (x(2, dtype=DOUBLE), known(np.float64(0.1)), known(np.float64(0.5)))),
        ("Clip", 6, {}, (x(2), x(), known(np.float32(1)))),
        ("Dropout", 11, {}, (x(2), None, Fact(BOOL, ()))),
        ("Dropout", 11, {}, (x(2), known(np.float32(0.5)), known(np.array(True)))),
        ("Gather", 10, {}, (x(3), known(ints(-1)))),
        ("Gelu", 19, {}, (x(2),)),
        ("Gemm", 10, {}, (x(2, 3), x(3, 4))),
        ("Gemm", 6, {}, (x(2, 3), x(3, 4), x(2, 1))),
        ("GridSample", 16, {}, (x(1, 1, 2, 2, 2), x(1, 2, 2, 2, 3))),
        ("Max", 7, {}, (x(2, 3), x(3))),
        ("Pad", 10, {}, (x(2), Fact(INT64, (2,)))),
        ("Pad", 13, {}, (x(2), known(ints(1, 1)), None, known(ints(0)))),
        ("Pad", 18, {"mode": "wrap"}, (x(2), known(ints(1, 1)))),
        ("Pow", 11, {}, (x(2), x(2, dtype=INT64))),
        ("ReduceSum", 12, {"noop_with_empty_axes": 1}, (x(2),)),
        ("ReduceSum", 12, {}, (x(2), Fact(INT64, (1,)))),
        ("ReduceMean", 10, {}, (x(2), known(ints(-1)))),
        ("Reshape", 13, {"allowzero": 1}, (x(0, 3), known(ints(3, 0)))),
        ("Resize", 18, {"coordinate_transformation_mode": "half_pixel_symmetric"}, (x(2), None, known(np.array([2], np.float32)))),
        ("Resize", 10, {"mode": "nearest"}, (x(2), None, known(np.array([2], np.float32)))),
        ("ScatterElements", 16, {"reduction": "max"}, (x(3), Fact(INT64, (1,)), x(1))),
        ("ScatterElements", 13, {"reduction": "add"}, (x(3), Fact(INT64, (1,)), x(1))),
        ("Slice", 9, {}, (x(3), known(ints(0)), known(ints(2)), known(ints(0)), known(ints(2)))),
        ("Slice", 9, {}, (x(3), known(ints(0)), Fact(INT64, (1,)))),
        ("Softmax", 12, {"axis": 1}, (x(2, 3, 4),)),
        ("Softmax", 12, {"axis": 1}, (Fact(TensorProto.FLOAT),)),
        ("TopK", 10, {"largest": 0}, (x(3), known(ints(2)))),
        ("Unsqueeze", 12, {}, (x(3), Fact(INT64, (1,)))),
        ("Where", 8, {}, (x(2, dtype=BOOL), x(2), x(2))),
    ],
)
def test_not_written(name: str, opset: int, attributes: Mapping[str, Any], facts: Sequence[Fact | None]) -> None:
    assert writes(name, NEWEST, attributes, *facts)
    assert not writes(name, opset, attributes, *facts)


def test_equal_parts_must_be_equal_in_old_opsets() -> None:
    assert writes("Split", 17, {"num_outputs": 2}, x(4), outputs=2)
    assert not writes("Split", 17, {"num_outputs": 2}, x(5), outputs=2)
    assert not writes("Split", 17, {"num_outputs": 2}, Fact(TensorProto.FLOAT), outputs=2)
    assert writes("Split", 17, {"num_outputs": 2}, Fact(TensorProto.FLOAT, (mul(symbol("N"), 2),)), outputs=2)
    assert not writes("Split", 17, {"num_outputs": 2}, Fact(TensorProto.FLOAT, (symbol("N"),)), outputs=2)


def test_old_opsets_are_told_to_broadcast() -> None:
    for shape, wanted in (((3,), {"broadcast": 1}), ((1, 1), {"broadcast": 1}), ((2, 3), {})):
        written = write(find_operator("", "Add", NEWEST), {}, [x(2, 3), x(*shape)], 1, 6)
        assert written is not None and written.attributes == wanted


def test_masks_of_the_dropped_are_not_said() -> None:
    assert not reads("Dropout", 10, {}, x(2), outputs=2)
    assert not writes("Dropout", 10, {}, x(2), outputs=2)
    assert reads("Dropout", 12, {}, x(2), outputs=2)


def test_clipped_floats_keep_their_greatest_numbers() -> None:
    operator = find_operator("", "Clip", 6)
    single, double = (read(operator, read_attributes(operator, ()), [x(2, dtype=dtype)], 1) for dtype in (TensorProto.FLOAT, DOUBLE))
    assert single is not None and single.inputs == (0,)
    assert double is not None and len(double.inputs) == 3


@pytest.mark.parametrize("opset", [10, 11, 19, NEWEST])
@pytest.mark.parametrize(("pads", "count"), [([0, 0], 4), ([1, 2], 7)])
def test_an_average_counts_nothing_after_the_padding(opset: int, pads: list[int], count: int) -> None:
    """The texts of all versions are the same in this, and so are ONNX Runtime's results."""
    attributes = {"kernel_shape": [9], "strides": [7], "pads": pads, "ceil_mode": 1, "count_include_pad": 1}
    assert reads("AveragePool", opset, attributes, x(1, 1, 4))
    node = helper.make_node("AveragePool", ["x"], ["y"], **attributes)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "y")]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", min(opset, 25))], ir_version=8)
    session = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    data = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    assert session.run(None, {"x": data})[0] == np.float32(6 / count)


def test_renamed_operators() -> None:
    scatter, upsample = find_operator("", "Scatter", 9), find_operator("", "Upsample", 9)
    form = read(scatter, read_attributes(scatter, ()), [x(3), Fact(INT64, (1,)), x(1)], 1)
    assert form is not None and form.operator.name == "ScatterElements"
    written = write(form.operator, form.attributes, [x(3), Fact(INT64, (1,)), x(1)], 1, 9)
    assert written is not None and written.operator == scatter
    facts = [x(1, 1, 2, 2), known(np.array([1, 1, 2, 3], np.float32))]
    form = read(upsample, read_attributes(upsample, ()), facts, 1)
    assert form is not None and form.operator.name == "Resize" and form.inputs == (0, None, 1)
    written = write(form.operator, form.attributes, form.facts(facts), 1, 9)
    assert written is not None and written.operator == upsample and written.inputs == (0, 2)


# --- the tables ---

# The oldest version that eqsat reads, of operators with older ones, and the operators that it never
# reads.
OLDEST = {
    "AveragePool": 7,
    "BatchNormalization": 6,
    "Clip": 6,
    "GRU": 7,
    "GroupNormalization": 21,
    "LSTM": 7,
    "Pad": 2,
    "RNN": 7,
    "RoiAlign": 16,
    "Scan": 9,
    "Split": 2,
    "Tile": 6,
}
NEWER = {"BitShift": 28, "Mod": 28}


def test_all_versions_are_read_but_those_that_are_listed() -> None:
    known_versions: dict[str, set[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated and schema.name not in RENAMED:
            known_versions.setdefault(schema.name, set()).add(schema.since_version)
    for name, versions in known_versions.items():
        if min(versions) > NEWEST:
            continue
        wanted = sorted(version for version in versions if OLDEST.get(name, 1) <= version < NEWER.get(name, LATEST + 1))
        found = [schema.since_version for schema in lineage(name) if schema.name == name]
        assert found == wanted, name


def test_changes_are_of_versions_that_exist() -> None:
    for name, changes in CHANGES.items():
        versions = {schema.since_version for schema in lineage(name)}
        for change in changes:
            assert change.version in versions and change.version > min(versions), f"{name}-{change.version}"
        assert [change.version for change in changes] == sorted(change.version for change in changes), name


def test_every_changed_operator_is_generated() -> None:
    assert CHANGES.keys() <= GENERATORS.keys()
