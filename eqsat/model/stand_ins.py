"""Stand-ins: a model whose large weights are one file of zeros, where only their types matter.

The runtime's graph does not depend on the elements of large tensors of floats, so nobody has to
copy them to ask for it.
"""

from __future__ import annotations

import onnx
from onnx import TensorProto

from eqsat.model.external_data import refer
from eqsat.model.file_bytes import written_bytes
from eqsat.model.model import all_graphs, without_weights
from eqsat.model.tensors import is_weight, tensor_bytes
from eqsat.runtime.own_graph import ZEROS

_READ_AS_THEY_ARE = frozenset("GRU Gather Gemm LSTM MatMul MatMulInteger RNN".split())
COPIES = 4  # copies of other weights at worst: as fused, laid out anew, written, and the message


def prepared_bytes(graph: onnx.GraphProto) -> int:
    """Returns the bytes that weights take at worst while ONNX Runtime prepares a graph with stand-ins.

    Weights that matrix products alone read, and their like, stay in the file. Filters are fused with what
    follows, and laid out anew.
    """
    copied = {name for part in all_graphs(graph) for node in part.node if node.op_type not in _READ_AS_THEY_ARE for name in node.input}
    kept = (tensor for tensor in graph.initializer if is_weight(tensor) and tensor.name not in copied)
    return COPIES * (written_bytes(graph) - sum(map(tensor_bytes, kept)))


def with_stand_ins(model: onnx.ModelProto) -> tuple[bytes, int]:
    """Returns a model as a message whose large weights are at the front of the external file
    `ZEROS`, and the bytes that this file needs. A model with other external data stays as it is, and
    needs none.
    """
    weights = model.graph.initializer
    largest = max((tensor_bytes(tensor) for tensor in weights if is_weight(tensor)), default=0)
    if not largest or any(tensor.data_location == TensorProto.EXTERNAL and not is_weight(tensor) for tensor in weights):
        return model.SerializeToString(), 0
    found = without_weights(model)
    for tensor in weights:
        if not is_weight(tensor):
            found.graph.initializer.append(tensor)
            continue
        refer(found.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims), ZEROS, 0, tensor_bytes(tensor))
    return found.SerializeToString(), largest
