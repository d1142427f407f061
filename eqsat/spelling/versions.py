"""The versions of the standard operators, and how their meanings differ from the newest.

`lineage` takes an operator's name and returns its versions, oldest first, from the first that the
newest opset can express. Schemas tell most of it: a version means the same as the next if that one
only adds optional attributes, inputs or outputs, or accepts more types. The tables hold the changes
that only the texts describe, and the first versions whose meaning is known.
"""

from __future__ import annotations

import functools
from typing import Final

from onnx import defs

from eqsat.families import FAMILIES
from eqsat.spelling import conversions, spatial_conversions
from eqsat.spelling.conversions import Change, Moved, moved, same
from eqsat.traits import NEWEST

_ARITHMETIC = "Add And Div Equal Greater Less Mul Or Pow Sub Xor".split()
_ONE_OUTPUT = (conversions.one_output, conversions.one_output)

# By operator, oldest first: the changes of meaning or spelling.
CHANGES: Final[dict[str, tuple[Change, ...]]] = {
    **dict.fromkeys(_ARITHMETIC, (Change(7, conversions.broadcast_up, conversions.broadcast_down),)),
    **dict.fromkeys(FAMILIES["variadic"].members, (Change(8, same, conversions.alike),)),
    **dict.fromkeys(["Hardmax", "LogSoftmax", "Softmax"], (Change(13, conversions.coerced_up, conversions.coerced_down),)),
    **{
        name: (moved(13 if name == "ReduceSum" else 18, Moved("axes", 1)), Change(13 if name == "ReduceSum" else 18, same, conversions.reduced_down))
        for name in FAMILIES["reduction"].members
    },
    "Attention": (Change(24, same, conversions.mask_down),),
    **dict.fromkeys(["AveragePool", "MaxPool"], (Change(22, spatial_conversions.ceil_mode, spatial_conversions.ceil_mode),)),
    "BatchNormalization": (
        Change(7, conversions.tested_up, conversions.tested_down),
        Change(9, conversions.spatial_up, same),
        Change(14, *_ONE_OUTPUT),
    ),
    "Cast": (Change(6, conversions.named_type_up, conversions.named_type_down), Change(24, conversions.infinities, conversions.infinities)),
    "CastLike": (Change(24, conversions.infinities, conversions.infinities),),
    "Clip": (Change(11, conversions.bounds_up, conversions.bounds_down),),
    "Concat": (Change(4, conversions.joined_up, same),),
    "ConvTranspose": (Change(11, spatial_conversions.stated_pads, spatial_conversions.stated_pads),),
    "DFT": (moved(20, Moved("axis", 2, "scalar")),),
    "DequantizeLinear": (Change(13, conversions.one_scale, conversions.one_scale),),
    "Dropout": (Change(7, conversions.tested_up, conversions.tested_down), Change(12, conversions.ratio_up, conversions.ratio_down)),
    "Gather": (Change(11, same, conversions.indices_down),),
    "Gemm": (Change(7, conversions.addend_up, conversions.addend_down),),
    "GlobalLpPool": (Change(2, spatial_conversions.norm_up, spatial_conversions.norm_down),),
    "GridSample": (Change(20, spatial_conversions.sampled_up, spatial_conversions.sampled_down),),
    "LpPool": (Change(2, spatial_conversions.norm_up, spatial_conversions.norm_down),),
    "OneHot": (Change(11, conversions.classes, conversions.classes),),
    "PRelu": (Change(7, conversions.slope, conversions.slope),),
    "Pad": (moved(11, Moved("pads", 1), Moved("value", 2, "like data")),),
    "QuantizeLinear": (Change(13, conversions.one_scale, conversions.one_scale), Change(24, conversions.infinities, conversions.infinities)),
    "Reshape": (moved(5, Moved("shape", 1)), Change(14, same, conversions.zeros_down)),
    "Resize": (
        Change(9, spatial_conversions.scales_up, spatial_conversions.scales_down),
        Change(11, spatial_conversions.resized_up, spatial_conversions.resized_down),
        Change(13, spatial_conversions.regions_up, spatial_conversions.regions_down),
    ),
    "ScatterElements": (Change(11, same, conversions.indices_down),),
    "Slice": (moved(10, Moved("starts", 1), Moved("ends", 2), Moved("axes", 3)),),
    "Split": (moved(13, Moved("split", 1)), Change(18, conversions.parts_up, conversions.parts_down)),
    "Squeeze": (moved(13, Moved("axes", 1)),),
    "TopK": (moved(10, Moved("k", 1, "one")),),
    "Unsqueeze": (moved(13, Moved("axes", 1)),),
}

# The first version known to mean the same as the newest, where schemas alone would admit older
# ones.
FIRST: Final = {"AveragePool": 7, "BatchNormalization": 6, "RoiAlign": 16}

# The last opset that these tables cover, and the operators whose meaning changed after the newest
# opset that rules see.
LATEST: Final = 28
REVISED: Final = frozenset({"BitShift", "Mod"})

# Renamed operators: the versions of the old name come first.
RENAMED: Final = {"Scatter": "ScatterElements", "Upsample": "Resize"}

# Attribute values that came with a later version than the attribute.
NEWER_VALUES: Final[dict[tuple[str, str], dict[bytes, int]]] = {
    ("Pad", "mode"): {b"wrap": 19},
    ("Resize", "coordinate_transformation_mode"): {b"half_pixel_symmetric": 19},
    ("Resize", "mode"): {b"cubic": 11},
    ("ScatterElements", "reduction"): {b"max": 18, b"min": 18},
    ("ScatterND", "reduction"): {b"max": 18, b"min": 18},
}

# The first opset from which on all texts allow negative axes.
NEGATIVE_AXES: Final = 11

# An attribute of the oldest versions: a hint about memory, without meaning.
HINT: Final = "consumed_inputs"


@functools.cache
def lineage(name: str) -> tuple[defs.OpSchema, ...]:
    """Return the versions of an operator that the newest opset can express, oldest first.

    The result is empty if there is no such operator.
    """
    versions: list[defs.OpSchema] = []
    limit = LATEST
    for spelling in (name, *(old for old, new in RENAMED.items() if new == name)):
        while (schema := _schema(spelling, limit)) is not None:
            limit = schema.since_version - 1
            # A renamed operator is deprecated from then on.
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
    """Tell whether, by the schemas, each node of `old` means the same as a node of `new`.

    Omitted attributes have their default values.
    """
    for name, attribute in old.attributes.items():
        if name == HINT:
            continue
        other = new.attributes.get(name)
        if other is None or other.type != attribute.type:
            return False
        # Absence had a meaning of its own, which no value has, so a new default would change it.
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
