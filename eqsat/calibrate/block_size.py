"""The layout in which ONNX Runtime runs Convs on this machine: images in blocks of channels."""

from __future__ import annotations

import onnx

from eqsat.calibrate.case import Case, Given
from eqsat.cost.price import BLOCKED_DOMAIN
from eqsat.runtime.own_graph import make_own_graph


def channels_of_a_block() -> int | None:
    """Returns the number of channels of a block, which depends on the processor: 16 with AVX-512, 8 with
    AVX2. It is None where the runtime runs no Conv in blocks.
    """
    conv = Case("Conv", (Given((1, 1, 8, 8)), Given((1, 1, 3, 3), constant=True)), optimized=True)
    graph = onnx.ModelProto.FromString(make_own_graph(conv.model(1).SerializeToString(), 0, None, None, {}, 1)).graph
    filters = {node.input[1] for node in graph.node if node.domain == BLOCKED_DOMAIN and node.op_type == "Conv"}
    # The runtime fills the filters of one channel up to a block.
    return next((tensor.dims[0] for tensor in graph.initializer if tensor.name in filters), None)
