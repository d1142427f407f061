"""A BERT classifier of four narrow layers, as PyTorch's TorchScript exporter writes it in opset 17.

Gelu is decomposed. Batch and sequence have symbolic sizes, so that each Reshape reads a computed
shape. The weights are random, with the deviations of a fresh BERT; biases and the scales of
normalizations are spread as in a trained one.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto

from eqsat.examples.exported_graph import ExportedGraph

_VOCABULARY, _POSITIONS = 1000, 512
_LAYERS, _HEADS, _WIDTH = 4, 2, 128
_CLASSES = 2


def bert() -> onnx.ModelProto:
    """Returns the classifier: a function of token identifiers and the mask of present tokens."""
    graph = ExportedGraph("bert")
    tokens = graph.input("input_ids", TensorProto.INT64, ("batch", "sequence"))
    mask = graph.input("attention_mask", TensorProto.INT64, ("batch", "sequence"))
    with graph.scope("bert"):
        unwanted = _unwanted(graph, mask)
        with graph.scope("embeddings"):
            hidden = _embeddings(graph, tokens)
        with graph.scope("encoder"):
            for number in range(_LAYERS):
                with graph.scope(f"layer.{number}"):
                    hidden = _layer(graph, hidden, unwanted)
        with graph.scope("pooler"):
            first = graph.node("Gather", hidden, graph.constant(0, np.int64), axis=1)
            pooled = graph.node("Tanh", _gemm(graph, "dense", first, _WIDTH))
    return graph.model([(_gemm(graph, "classifier", pooled, _CLASSES), "logits", ("batch", _CLASSES))])


def _gemm(graph: ExportedGraph, name: str, x: str, size: int) -> str:
    with graph.scope(name):
        weight, bias = graph.weight("weight", size, _WIDTH), graph.weight("bias", size)
        return graph.node("Gemm", x, weight, bias, transB=1)


def _unwanted(graph: ExportedGraph, mask: str) -> str:
    """Returns the number that is added to each score: a very low one where there is no token."""
    inner = graph.node("Unsqueeze", mask, graph.constant([1], np.int64))
    spread = graph.node("Unsqueeze", inner, graph.constant([2], np.int64))
    present = graph.node("Cast", spread, to=TensorProto.FLOAT)
    absent = graph.node("Sub", graph.constant(1.0), present)
    return graph.node("Mul", absent, graph.constant(-10000.0))


def _embeddings(graph: ExportedGraph, tokens: str) -> str:
    words = graph.node("Gather", graph.weight("word_embeddings.weight", _VOCABULARY, _WIDTH), tokens)
    batch, length = graph.size(tokens, 0), graph.size(tokens, 1)
    bounds = (graph.constant([0], np.int64), graph.node("Unsqueeze", length, graph.constant([0], np.int64)))
    axes, steps = graph.constant([1], np.int64), graph.constant([1], np.int64)
    types = graph.node("Slice", graph.stored("token_type_ids", np.zeros((1, _POSITIONS), np.int64)), *bounds, axes, steps)
    types = graph.node("Expand", types, graph.shape(batch, length))
    kinds = graph.node("Gather", graph.weight("token_type_embeddings.weight", 2, _WIDTH), types)
    positions = graph.node("Slice", graph.stored("position_ids", np.arange(_POSITIONS)[None]), *bounds, axes, steps)
    places = graph.node("Gather", graph.weight("position_embeddings.weight", _POSITIONS, _WIDTH), positions)
    return _normalized(graph, graph.node("Add", graph.node("Add", words, kinds), places))


def _layer(graph: ExportedGraph, hidden: str, unwanted: str) -> str:
    with graph.scope("attention"):
        with graph.scope("self"):
            context = _attention(graph, hidden, unwanted)
        with graph.scope("output"):
            hidden = _normalized(graph, graph.node("Add", _linear(graph, "dense", context, _WIDTH, _WIDTH), hidden))
    with graph.scope("intermediate"):
        wide = _gelu(graph, _linear(graph, "dense", hidden, _WIDTH, 4 * _WIDTH))
    with graph.scope("output"):
        return _normalized(graph, graph.node("Add", _linear(graph, "dense", wide, 4 * _WIDTH, _WIDTH), hidden))


def _attention(graph: ExportedGraph, hidden: str, unwanted: str) -> str:
    query, key, value = (_linear(graph, name, hidden, _WIDTH, _WIDTH) for name in ("query", "key", "value"))
    query, key, value = _heads(graph, query, 1), _heads(graph, key, 3), _heads(graph, value, 1)
    scores = graph.node("Div", graph.node("MatMul", query, key), graph.constant(math.sqrt(_WIDTH // _HEADS)))
    shares = graph.node("Softmax", graph.node("Add", scores, unwanted), axis=3)
    context = graph.node("Transpose", graph.node("MatMul", shares, value), perm=[0, 2, 1, 3])
    return graph.node("Reshape", context, graph.shape(graph.size(context, 0), graph.size(context, 1), _WIDTH))


def _heads(graph: ExportedGraph, x: str, place: int) -> str:
    """Returns x with its rows cut into heads, and the axis of the sequence at `place` 1 or 3."""
    cut = graph.node("Reshape", x, graph.shape(graph.size(x, 0), graph.size(x, 1), _HEADS, _WIDTH // _HEADS))
    return graph.node("Transpose", cut, perm=[0, 2, 1, 3] if place == 1 else [0, 2, 3, 1])


def _linear(graph: ExportedGraph, name: str, x: str, size: int, width: int) -> str:
    with graph.scope(name):
        weight, bias = graph.weight("weight", size, width), graph.weight("bias", width)
        return graph.node("Add", bias, graph.node("MatMul", x, weight))


def _normalized(graph: ExportedGraph, x: str) -> str:
    with graph.scope("LayerNorm"):
        scale, bias = graph.weight("weight", _WIDTH, mean=1.0, deviation=0.1), graph.weight("bias", _WIDTH, deviation=0.1)
        return graph.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)


def _gelu(graph: ExportedGraph, x: str) -> str:
    with graph.scope("intermediate_act_fn"):
        share = graph.node("Add", graph.node("Erf", graph.node("Div", x, graph.constant(math.sqrt(2.0)))), graph.constant(1.0))
        return graph.node("Mul", graph.node("Mul", x, share), graph.constant(0.5))
