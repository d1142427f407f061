"""The interface of two models: their inputs and outputs, and the inputs that a caller may give.

`interface_change` and `same_graph` compare two models. `checked_inputs` converts the user's inputs
to the model's types.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from eqsat.errors import InputError
from eqsat.model.external_data import has_external_data
from eqsat.model.names import stored_names
from eqsat.model.prepare import default_inputs
from eqsat.verification.loaded_model import LoadedModel
from eqsat.verification.sample_plan import Plan, Spec
from eqsat.verification.samples import numpy_dtype


def same_graph(original: LoadedModel, optimized: LoadedModel) -> bool:
    """Tells whether two models are the same graph over the same data."""
    a, b = original.proto, optimized.proto
    if a is b:
        return original.folder == optimized.folder
    if len(a.graph.node) != len(b.graph.node) or (has_external_data(a) and original.folder != optimized.folder):
        return False
    return list(a.opset_import) == list(b.opset_import) and a.graph == b.graph and list(a.functions) == list(b.functions)


def interface_change(a: onnx.ModelProto, b: onnx.ModelProto) -> str:
    """Returns the difference between two models' inputs and outputs; empty if there is none."""
    required: list[list[onnx.ValueInfoProto]] = []
    for proto in (a, b):
        given = set(stored_names(proto.graph))
        required.append([value for value in proto.graph.input if value.name not in given])
    missing = sorted(set(default_inputs(a)) - {value.name for value in b.graph.input})
    if missing:
        return f"the optimized model lacks input '{missing[0]}', which has a default value in the original"
    for what, before, after in (("inputs", *required), ("outputs", a.graph.output, b.graph.output)):
        names = [[value.name for value in values] for values in (before, after)]
        if names[0] != names[1]:
            return f"the {what} are {', '.join(names[0]) or 'none'} in the original and {', '.join(names[1]) or 'none'} in the optimized model"
        for old, new in zip(before, after, strict=True):
            types = _type_name(old.type), _type_name(new.type)
            if types[0] != types[1] and "" not in types:
                return f"'{old.name}' of the {what} is {types[0]} in the original and {types[1]} in the optimized model"
    return ""


def _type_name(kind: onnx.TypeProto) -> str:
    """Returns a type without shapes; empty if the file declares no type."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        code = getattr(kind, which).elem_type
        return f"{which.removesuffix('_type')}({onnx.TensorProto.DataType.Name(code).lower()})" if code else ""
    if which == "map_type":
        return f"map({kind.map_type.key_type}, {_type_name(kind.map_type.value_type)})"
    return f"{which.removesuffix('_type')}({_type_name(getattr(kind, which).elem_type)})" if which in ("sequence_type", "optional_type") else ""


def checked_inputs(inputs: Mapping[str, np.ndarray], plan: Plan) -> dict[str, np.ndarray]:
    """Returns the user's inputs in the types of the model.

    Raises `InputError` for the first input that does not fit, or that is empty where the plan is filled.
    """
    missing = [name for name in plan.inputs if name not in inputs]
    extra = [name for name in inputs if name not in plan.inputs]
    if missing or extra:
        parts = [f"{what} {', '.join(names)}" for what, names in (("missing:", missing), ("not an input of the model:", extra)) if names]
        raise InputError(f"the given inputs do not fit the model: {'; '.join(parts)}")
    checked = {name: _checked_input(name, inputs[name], spec) for name, spec in plan.inputs.items()}
    for name, spec in plan.inputs.items() if plan.filled else ():
        if any(isinstance(want, str) and size == 0 for want, size in zip(spec.shape or (), checked[name].shape, strict=True)):
            raise InputError(f"input '{name}' of shape [{', '.join(map(str, checked[name].shape))}] is empty, and --no-empty-inputs promises that none is")
    return checked


def _checked_input(name: str, array: np.ndarray, spec: Spec) -> np.ndarray:
    if spec.kind == "optional" and spec.element is not None:
        return _checked_input(name, array, spec.element)
    if spec.kind != "tensor":
        raise InputError(f"input '{name}' is a {spec.kind}, which a file of arrays can not hold")
    if spec.dtype == "str":
        if array.dtype.kind not in "OU":
            raise InputError(f"input '{name}' must hold strings, not {array.dtype}")
        array = array.astype(object)
    else:
        kind = numpy_dtype(spec.dtype)
        if array.dtype.kind == "V" and array.dtype.itemsize == kind.itemsize:
            # Numpy's files keep the bytes of types that numpy lacks, but not these types' names.
            array = array.view(kind)
        if array.dtype != kind:
            raise InputError(f"input '{name}' must be {spec.dtype}, not {array.dtype}")
    if spec.shape is not None and (
        len(spec.shape) != array.ndim or any(isinstance(want, int) and want != size for want, size in zip(spec.shape, array.shape, strict=True))
    ):
        raise InputError(f"input '{name}' must have shape [{', '.join(map(str, spec.shape))}], not [{', '.join(map(str, array.shape))}]")
    return array
