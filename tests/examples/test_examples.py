"""The examples are valid models that compute what they are said to, the same bytes each time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from eqsat.examples.bert import bert
from eqsat.examples.examples import EXAMPLES

ort: Any = onnxruntime
check: Any = onnx.checker.check_model


@pytest.fixture(scope="module")
def session() -> Any:
    return ort.InferenceSession(bert().SerializeToString(), providers=["CPUExecutionProvider"])


def logits(session: Any, tokens: list[list[int]], mask: list[list[int]]) -> Any:
    return session.run(None, {"input_ids": np.array(tokens, np.int64), "attention_mask": np.array(mask, np.int64)})[0]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_valid_small_and_the_same_each_time(name: str) -> None:
    about, make = EXAMPLES[name]
    model = make()
    check(model, full_check=True)
    assert about and model.ByteSize() < 8 << 20
    assert model.SerializeToString(deterministic=True) == make().SerializeToString(deterministic=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_weight_of_an_example_is_uniform_or_unused(name: str) -> None:
    graph = EXAMPLES[name][1]().graph
    read = {name for node in graph.node for name in node.input}
    for tensor in graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        assert tensor.name in read
        # The identifiers of token types are 0, as in each BERT.
        assert tensor.name.endswith("token_type_ids") or np.unique(values).size > 1


def test_bert_has_what_an_exporter_writes() -> None:
    nodes = bert().graph.node
    counts = Counter(node.op_type for node in nodes)
    assert counts["LayerNormalization"] == 9 and counts["Softmax"] == 4 and counts["Erf"] == 4 and counts["Gelu"] == 0
    assert counts["Shape"] > 30, "each Reshape computes its shape"
    assert len({node.name for node in nodes}) == len(nodes)


def test_bert_reads_neither_masked_tokens_nor_other_sentences(session: Any) -> None:
    alone = logits(session, [[7, 11, 13]], [[1, 1, 1]])
    padded = logits(session, [[7, 11, 13, 900, 901], [5, 5, 5, 5, 5]], [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    np.testing.assert_allclose(padded[:1], alone, rtol=0, atol=1e-6)
    assert np.abs(padded[1] - alone[0]).max() > 1e-3


def test_bert_reads_each_token_and_its_place(session: Any) -> None:
    base = logits(session, [[7, 11, 13]], [[1, 1, 1]])
    for tokens in ([[8, 11, 13]], [[7, 12, 13]], [[7, 13, 11]]):
        assert np.abs(logits(session, tokens, [[1, 1, 1]]) - base).max() > 1e-6
