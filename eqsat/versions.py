"""The semantic versions of the standard operators: which of them mean what the newest means, and what the others changed.

Comes in: an operator's name in the newest opset. Goes out: its versions, oldest first, from the first on that can be
said in the newest one, and the changes between them. What schemas tell is derived: a version that only adds optional
attributes, inputs or outputs, or takes wider types, means the same. What only their texts tell is listed here: versions
that mean something else and are said otherwise, and those from which on the meaning is known.
"""

from __future__ import annotations

import functools
from typing import Final

from onnx import defs

from eqsat import conversions, spatial
from eqsat.conversions import Change, Moved, moved, same
from eqsat.traits import NEWEST

_ARITHMETIC = "Add And Div Equal Greater Less Mul Or Pow Sub Xor".split()
_REDUCTIONS = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare".split()
_ONE_OUTPUT = (conversions.one_output, conversions.one_output)

# By operator, oldest first, what is said otherwise from a version on.
CHANGES: Final[dict[str, tuple[Change, ...]]] = {
    **dict.fromkeys(_ARITHMETIC, (Change(7, conversions.broadcast_up, conversions.broadcast_down),)),
    **dict.fromkeys(["Max", "Mean", "Min", "Sum"], (Change(8, same, conversions.alike),)),
    **dict.fromkeys(["Hardmax", "LogSoftmax", "Softmax"], (Change(13, conversions.coerced_up, conversions.coerced_down),)),
    **{
        name: (moved(13 if name == "ReduceSum" else 18, Moved("axes", 1)), Change(13 if name == "ReduceSum" else 18, same, conversions.reduced_down))
        for name in _REDUCTIONS
    },
    "Attention": (Change(24, same, conversions.mask_down),),
    "AveragePool": (Change(19, spatial.counted_pads, spatial.counted_pads), Change(22, spatial.ceil_mode, spatial.ceil_mode)),
    "BatchNormalization": (
        Change(7, conversions.tested_up, conversions.tested_down),
        Change(9, conversions.spatial_up, same),
        Change(14, *_ONE_OUTPUT),
    ),
    "Cast": (Change(6, conversions.named_type_up, conversions.named_type_down), Change(24, conversions.infinities, conversions.infinities)),
    "CastLike": (Change(24, conversions.infinities, conversions.infinities),),
    "Clip": (Change(11, conversions.bounds_up, conversions.bounds_down),),
    "Concat": (Change(4, conversions.joined_up, same),),
    "ConvTranspose": (Change(11, spatial.stated_pads, spatial.stated_pads),),
    "DFT": (moved(20, Moved("axis", 2, "scalar")),),
    "DequantizeLinear": (Change(13, conversions.one_scale, conversions.one_scale),),
    "Dropout": (Change(7, conversions.tested_up, conversions.tested_down), Change(12, conversions.ratio_up, conversions.ratio_down)),
    "Gather": (Change(11, same, conversions.indices_down),),
    "Gemm": (Change(7, conversions.addend_up, conversions.addend_down),),
    "GlobalLpPool": (Change(2, spatial.norm_up, spatial.norm_down),),
    "GridSample": (Change(20, spatial.sampled_up, spatial.sampled_down),),
    "LpPool": (Change(2, spatial.norm_up, spatial.norm_down),),
    "MaxPool": (Change(22, spatial.ceil_mode, spatial.ceil_mode),),
    "OneHot": (Change(11, conversions.classes, conversions.classes),),
    "PRelu": (Change(7, conversions.slope, conversions.slope),),
    "Pad": (moved(11, Moved("pads", 1), Moved("value", 2, "like data")),),
    "QuantizeLinear": (Change(13, conversions.one_scale, conversions.one_scale), Change(24, conversions.infinities, conversions.infinities)),
    "Reshape": (moved(5, Moved("shape", 1)), Change(14, same, conversions.zeros_down)),
    "Resize": (
        Change(9, spatial.scales_up, spatial.scales_down),
        Change(11, spatial.resized_up, spatial.resized_down),
        Change(13, spatial.regions_up, spatial.regions_down),
    ),
    "ScatterElements": (Change(11, same, conversions.indices_down),),
    "Slice": (moved(10, Moved("starts", 1), Moved("ends", 2), Moved("axes", 3)),),
    "Split": (moved(13, Moved("split", 1)), Change(18, conversions.parts_up, conversions.parts_down)),
    "Squeeze": (moved(13, Moved("axes", 1)),),
    "TopK": (moved(10, Moved("k", 1, "one")),),
    "Unsqueeze": (moved(13, Moved("axes", 1)),),
}

# The first version whose meaning is known to be that of the newest, where schemas alone would admit older ones.
FIRST: Final = {"AveragePool": 7, "BatchNormalization": 6, "RoiAlign": 16}

# The last opset whose texts were read for these tables, and operators that mean something else since the newest one that rules see.
LATEST: Final = 28
REVISED: Final = frozenset({"BitShift", "Mod"})

# Operators that were given another name, which the old one's versions precede.
RENAMED: Final = {"Scatter": "ScatterElements", "Upsample": "Resize"}

# Values of attributes that came with a version, although the attribute is older.
NEWER_VALUES: Final[dict[tuple[str, str], dict[bytes, int]]] = {
    ("Pad", "mode"): {b"wrap": 19},
    ("Resize", "coordinate_transformation_mode"): {b"half_pixel_symmetric": 19},
    ("Resize", "mode"): {b"cubic": 11},
    ("ScatterElements", "reduction"): {b"max": 18, b"min": 18},
    ("ScatterND", "reduction"): {b"max": 18, b"min": 18},
}

NEGATIVE_AXES: Final = 11  # the opset from which on all texts allow axes that count from the end

HINT: Final = "consumed_inputs"  # of the oldest versions, for memory; it never meant anything


@functools.cache
def lineage(name: str) -> tuple[defs.OpSchema, ...]:
    """The versions of an operator that can be said in its newest one, oldest first; none where there is no such operator."""
    versions: list[defs.OpSchema] = []
    limit = LATEST
    for spelling in (name, *(old for old, new in RENAMED.items() if new == name)):
        while (schema := _schema(spelling, limit)) is not None:
            limit = schema.since_version - 1
            # An operator that got another name is deprecated from then on.
            if not schema.deprecated:
                versions.append(schema)
    found: list[defs.OpSchema] = []
    changed = {change.version for change in CHANGES.get(name, ())}
    for schema in versions:
        if schema.since_version > NEWEST:
            continue
        if schema.since_version < FIRST.get(name, 1) or (found and found[-1].since_version not in changed and not _extends(schema, found[-1])):
            break
        found.append(schema)
    found.reverse()
    for schema in reversed(versions):
        if found and schema.since_version > NEWEST:
            if name in REVISED or not _extends(found[-1], schema):
                break
            found.append(schema)
    return tuple(found)


def _schema(name: str, limit: int) -> defs.OpSchema | None:
    try:
        return defs.get_schema(name, max_inclusive_version=limit, domain="") if limit else None
    except defs.SchemaError:
        return None


def _extends(old: defs.OpSchema, new: defs.OpSchema) -> bool:
    """Whether, as far as schemas tell, each node of `old` is a node of `new` that means the same, its defaults written out."""
    for name, attribute in old.attributes.items():
        if name == HINT:
            continue
        other = new.attributes.get(name)
        if other is None or other.type != attribute.type:
            return False
        # Where leaving it out meant something that is no value, it must not have got a default.
        if not attribute.required and not attribute.default_value.type and (other.required or other.default_value.type):
            return False
    if any(attribute.required for name, attribute in new.attributes.items() if name not in old.attributes):
        return False
    return _continue(list(old.inputs), list(new.inputs)) and _continue(list(old.outputs), list(new.outputs))


def _continue(old: list[defs.OpSchema.FormalParameter], new: list[defs.OpSchema.FormalParameter]) -> bool:
    options = defs.OpSchema.FormalParameterOption
    if len(new) < len(old) or any(formal.option != options.Optional for formal in new[len(old) :]):
        return False
    return all(a.option == b.option or (a.option, b.option) == (options.Single, options.Optional) for a, b in zip(old, new, strict=False))
