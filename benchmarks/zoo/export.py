"""Export: writes one model of the zoo with the description of its inputs.

The name of an export tells the exporter and the sizes: `bert.ts` comes from the TorchScript
exporter at opset 17, `bert.dyn` from the dynamo exporter at opset 20 without its own optimizations,
and `bert.ts.dynamic` has symbolic sizes. The same versions of the libraries write the same bytes
again. Files appear whole or not at all.
"""

from __future__ import annotations

import importlib
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.inputs import Description, Input, description_path
from benchmarks.zoo.architectures import ARCHITECTURES, Architecture
from benchmarks.zoo.names import Export
from benchmarks.zoo.weights import calibrate, perturb
from eqsat.runtime.interleaved import users_session

torch: Any = importlib.import_module("torch")

SEED = 2026
OPSETS = {"ts": 17, "dyn": 20}
CALIBRATION = 4  # images from which the batch norms take their statistics


def export(wanted: Export, folder: Path) -> str:
    """Writes the model and its description. Returns how well the model agrees with the module.

    The exporter's exceptions pass through. A model that disagrees is written too, because an
    optimizer has to keep its results as well.
    """
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    architecture = ARCHITECTURES[wanted.architecture]
    module = random_module(architecture)
    description = architecture.description(wanted.dynamic, _versions(wanted.exporter))
    arguments = tuple(torch.from_numpy(array) for array in description.draw(SEED).values())
    target = folder / f"{wanted.name}.onnx"
    part = folder / f".{wanted.name}.{os.getpid()}.part"
    try:
        (_by_torchscript if wanted.exporter == "ts" else _by_dynamo)(module, arguments, description, part)
        _without_traces(part)
        # The description comes first, so that every model has a description.
        written = part.with_suffix(".description")
        written.write_text(description.to_json(), encoding="utf-8")
        written.replace(description_path(target))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return _agreement(module, target, description)


def random_module(architecture: Architecture) -> Any:
    """Returns a module in evaluation mode, with weights that depend only on the seed."""
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    module = architecture.build().eval()
    perturb(module, generator)
    batch = architecture.description(True, {})
    larger = Description(batch.inputs, {**batch.sizes, "batch": CALIBRATION})
    calibrate(module, tuple(torch.from_numpy(array) for array in larger.draw(SEED).values()), generator)
    return module


def _by_torchscript(module: Any, arguments: tuple[Any, ...], description: Description, path: Path) -> None:
    axes = {name: _symbolic(value) for name, value in description.inputs.items()}
    torch.onnx.export(
        module,
        arguments,
        str(path),
        dynamo=False,
        opset_version=OPSETS["ts"],
        input_names=list(description.inputs),
        output_names=["output"],
        dynamic_axes={**axes, "output": {0: "batch"}} if description.sizes else None,
    )


def _by_dynamo(module: Any, arguments: tuple[Any, ...], description: Description, path: Path) -> None:
    program = torch.onnx.export(
        module,
        arguments,
        dynamo=True,
        optimize=False,
        verbose=False,
        opset_version=OPSETS["dyn"],
        input_names=list(description.inputs),
        output_names=["output"],
        dynamic_shapes=tuple(_symbolic(value) for value in description.inputs.values()) if description.sizes else None,
    )
    program.save(str(path), external_data=False)


def _symbolic(value: Input) -> dict[int, str]:
    return {axis: size for axis, size in enumerate(value.shape) if isinstance(size, str)}


def _without_traces(path: Path) -> None:
    """Removes the dynamo exporter's notes on each node, because their stack traces name folders of
    this machine.
    """
    model = onnx.load_from_string(path.read_bytes())
    for graph in (model.graph, *model.functions):
        for node in graph.node:
            del node.metadata_props[:]
            node.doc_string = ""
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer):
        del value.metadata_props[:]
    del model.graph.metadata_props[:]
    del model.metadata_props[:]
    onnx.checker.check_model(model)  # pyright: ignore[reportUnknownMemberType]
    path.write_bytes(model.SerializeToString(deterministic=True))


def _agreement(module: Any, path: Path, description: Description) -> str:
    """Returns the largest error of ONNX Runtime's output, relative to the module's largest element.
    It uses other symbolic sizes than the exporter saw.
    """
    larger = Description(description.inputs, {name: size + 1 for name, size in description.sizes.items()}, {})
    inputs = larger.draw(SEED + 1)
    with torch.no_grad():
        expected = module(*map(torch.from_numpy, inputs.values())).numpy()
    try:
        (found,) = users_session(path.read_bytes(), None, None).run(None, inputs)
    except Exception as error:  # the runtime has an exception of its own for each status
        return f"does not run: {str(error).splitlines()[0]}"
    if found.shape != expected.shape:
        return f"shape {list(found.shape)} instead of {list(expected.shape)}"
    return f"{np.abs(found - expected).max() / np.abs(expected).max():.0e}"


def _versions(exporter: str) -> dict[str, str]:
    names = {"torch": torch.__version__, "transformers": importlib.import_module("transformers").__version__, "numpy": np.__version__}
    if exporter == "dyn":
        names["onnxscript"] = importlib.import_module("onnxscript").__version__
    return {**names, "exporter": exporter, "seed": str(SEED)}
