"""A region: a pair of small models that should compute the same, cut out of a pair of models
(eqsat/verification/regions.py).
"""

from __future__ import annotations

import hashlib

import onnx

from eqsat.frozen import frozen
from eqsat.model.external_data import has_foreign_data
from eqsat.model.likeness import Keys
from eqsat.model.model import attribute_graphs
from eqsat.verification.loaded_model import LoadedModel, depends_on_inputs


@frozen(slots=False)
class Region:
    """Two models that should compute the same, named after a value that they compute.

    If it is `closed`, every input is an input of the whole model, so findings about the region hold
    for the whole model too.
    """

    name: str
    original: LoadedModel
    optimized: LoadedModel
    closed: bool

    def is_same(self) -> bool:
        """Tells whether both models are the same nodes, up to inner names and the order of nodes."""
        a, b = self.original.proto, self.optimized.proto
        if list(a.opset_import) != list(b.opset_import):
            return False
        return not has_foreign_data(a) and not has_foreign_data(b) and Keys().of(a).same(Keys().of(b))

    def moving(self) -> frozenset[str]:
        """Returns the outputs that depend on the values of inputs, and not on their sizes alone."""
        graph = self.original.proto.graph
        bare = onnx.GraphProto(input=graph.input, output=graph.output, node=[node for node in graph.node if node.op_type not in ("Shape", "Size")])
        return depends_on_inputs(onnx.ModelProto(graph=bare))

    def form(self) -> bytes | None:
        """Returns the region up to names, or None if bodies make names matter.

        Either all regions of one form are equal, or none is.
        """
        digest = hashlib.sha256()
        names: dict[str, str] = {}
        for model in (self.original, self.optimized):
            bare = onnx.ModelProto()
            bare.CopyFrom(model.proto)
            graph = bare.graph
            if any(True for node in graph.node for _ in attribute_graphs(node)) or has_foreign_data(bare):
                return None
            for item in (*graph.input, *graph.initializer, *graph.output):
                item.name = names.setdefault(item.name, f"v{len(names)}")
            for info in (*graph.input, *graph.output):
                for size in info.type.tensor_type.shape.dim if info.type.HasField("tensor_type") else ():
                    if size.HasField("dim_param"):
                        size.dim_param = names.setdefault(f"dim {size.dim_param}", f"d{len(names)}")
            for node in graph.node:
                node.ClearField("name")
                node.ClearField("doc_string")
                node.ClearField("metadata_props")
                for field in (node.input, node.output):
                    for index, name in enumerate(field):
                        field[index] = names.setdefault(name, f"v{len(names)}") if name else ""
            digest.update(bare.SerializeToString(deterministic=True) + b"|")
        return digest.digest()
