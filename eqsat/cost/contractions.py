"""Counters of sums of products: matrix products, Einsum, attention and recurrent layers.

Each counts operations (a multiply-add is two), the elements of the result, and the elements and
columns of the second factor. Each product of a batch but the first is a row.
"""

from __future__ import annotations

import math
import re

from eqsat.cost.shaped import USUAL_SIZE, PricedNode
from eqsat.cost.workload import Counter, Shape, Work, at, constant_elements, integer, moved, result, shape_at, size_of, text, traffic


def _matrix(shape: Shape | None, transposed: bool = False) -> tuple[int, int, Shape]:
    """Returns rows, columns and batch of a factor. A factor of unknown shape counts as square."""
    if shape is None:
        return USUAL_SIZE, USUAL_SIZE, ()
    if len(shape) == 0:
        return 1, 1, ()
    if len(shape) == 1:
        return 1, shape[0], ()
    rows, columns = shape[-2:]
    return (columns, rows, shape[:-2]) if transposed else (rows, columns, shape[:-2])


def _turned(shape: Shape | None, turn: bool) -> Shape | None:
    """Returns the shape of a factor in the usual order if its rows come before its batch."""
    return (*shape[1:-1], shape[0], shape[-1]) if turn and shape is not None and len(shape) > 2 else shape


def _batch(a: Shape, b: Shape) -> float:
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    return size_of([y if x == 1 else x if y == 1 else min(x, y) if 0 in (x, y) else max(x, y) for x, y in pairs])


def _kind(node: PricedNode, second: int) -> str:
    """Returns the class of a product by a factor, which kernels pack once for all runs if it is one constant matrix."""
    factor = at(node.inputs, second)
    packed = factor is not None and factor.constant and (factor.shape is None or len(factor.shape) <= 2)
    return "matmul" if packed else "product"


def _product(
    node: PricedNode, kind: str, first: int, second: int, flips: tuple[bool, bool] = (False, False), turns: tuple[bool, bool] = (False, False)
) -> Work:
    a, b = (_turned(shape_at(node.inputs, place), turn) for place, turn in zip((first, second), turns, strict=True))
    rows, inner, outer = _matrix(a, flips[0])
    other, columns, batch = _matrix(b, flips[1])
    if b is not None and len(b) == 1:
        # A vector counts as one column if it is the second factor, and as one row if it is the
        # first.
        other, columns = b[0], 1
    if a is None:
        inner = other
    elif b is not None:
        inner = max(inner, other)
    elif a:
        other = columns = inner
    many = _batch(outer, batch)
    results = many * rows * columns
    weights = size_of(batch) * inner * columns
    count = 2.0 * results * inner
    size = traffic(node) if at(node.outputs, 0) is not None else moved(node.inputs) + 4.0 * results
    # One second factor for all makes one product of all rows. A launch starts the first product.
    starts = 0.0 if size_of(batch) == 1 and not flips[0] else max(many - 1.0, 0.0)
    return Work(kind, size, count, results, starts, weights, columns, count / 2, inner, constant_elements(node, first, second))


def matmul(node: PricedNode) -> Work:
    """Counts MatMul, of any ranks. Where the second factor is a vector, each result is a row."""
    work, vector = _product(node, _kind(node, 1), 0, 1), shape_at(node.inputs, 1)
    return work if vector is None or len(vector) != 1 else work._replace(kind="product_vector", rows=work.elements)


def fused_matmul(node: PricedNode) -> Work:
    """Counts com.microsoft.FusedMatMul and the like: factors may be transposed and the product
    scaled. With `transBatchA` and `transBatchB`, the rows of a factor come before its batch.
    """
    flips = (integer(node, "transA", 0) != 0, integer(node, "transB", 0) != 0)
    return _product(node, _kind(node, 1), 0, 1, flips, (integer(node, "transBatchA", 0) != 0, integer(node, "transBatchB", 0) != 0))


def gemm(node: PricedNode) -> Work:
    """Counts Gemm: the product, and one operation per element if it adds C, in a pass of its own. The
    scales are not counted.
    """
    work = fused_matmul(node)._replace(kind="gemm" if _kind(node, 1) == "matmul" else "product")
    extra = at(node.inputs, 2) is not None
    return work._replace(operations=work.operations + extra * work.elements, elements=work.elements * (1 + extra))


def quantized_matmul(second: int) -> Counter:
    """Counts products of integers whose second factor is input `second`."""

    def count(node: PricedNode) -> Work:
        return _product(node, "quantized_matmul", 0, second)

    return count


def blockwise_matmul(node: PricedNode) -> Work:
    """Counts com.microsoft.MatMulNBits and the like: K and N are attributes, the weights are
    packed.
    """
    inner, columns = max(integer(node, "K", USUAL_SIZE), 0), max(integer(node, "N", USUAL_SIZE), 0)
    first = at(node.inputs, 0)
    rows = (first.elements if first is not None else USUAL_SIZE) / max(inner, 1)
    products = float(rows) * inner * columns
    return Work("quantized_matmul", traffic(node), 2.0 * products, rows * columns, rows, float(inner) * columns, columns, products)


_LETTERS = re.compile(r"\.\.\.|[A-Za-z]")


def einsum(node: PricedNode) -> Work:
    """Counts Einsum: joins operands from left to right and sums each letter once nothing needs it."""
    equation = text(node, "equation", "").replace(" ", "")
    left, _, right = equation.partition("->")
    terms = [_LETTERS.findall(term) for term in left.split(",")] if left else []
    sizes: dict[str, float] = {}
    for index, term in enumerate(terms):
        shape = shape_at(node.inputs, index)
        if shape is None:
            continue
        plain = len(term) - ("..." in term)
        where = term.index("...") if "..." in term else len(term)
        for position, letter in enumerate(term):
            if letter == "...":
                size = size_of(shape[where : where + max(len(shape) - plain, 0)])
            else:
                place = position if position < where else position - len(term) + len(shape)
                size = float(shape[place]) if 0 <= place < len(shape) else float(USUAL_SIZE)
            # A size of 1 broadcasts; any other size wins.
            sizes[letter] = size if sizes.get(letter, 1.0) == 1.0 else sizes[letter]
    if "->" in equation:
        wanted = set(_LETTERS.findall(right))
    else:
        flat = [letter for term in terms for letter in term]
        wanted = {letter for letter in flat if flat.count(letter) == 1 or letter == "..."}
    operations = multiply_adds = 0.0
    current: set[str] = set(terms[0]) if terms else set()
    for index in range(1, max(len(terms), 1)):
        joined = current | set(terms[index])
        later = wanted.union(*terms[index + 1 :])
        summed = joined - later
        products = math.prod(sizes.get(letter, USUAL_SIZE) for letter in joined)
        operations += (2.0 if summed else 1.0) * products
        multiply_adds += products if summed else 0.0
        current = joined & later
    if len(terms) == 1:
        operations = math.prod(sizes.get(letter, USUAL_SIZE) for letter in current) if current - wanted else 0.0
    output = math.prod(sizes.get(letter, USUAL_SIZE) for letter in wanted)
    elements = result(node) if at(node.outputs, 0) is not None else output
    # Operands are brought into order, one by one, and so is the result.
    elements += sum(tensor.elements for tensor in node.inputs if tensor is not None)
    size = moved(node.inputs) + (moved(node.outputs) if at(node.outputs, 0) is not None else 4.0 * output)
    return Work("einsum", size, float(operations), elements, multiply_adds=float(multiply_adds))


def _heads(shape: Shape | None, heads: int) -> tuple[int, int, int, int]:
    """Returns batch, heads, tokens and the width of a head, for a tensor with 3 or 4 axes."""
    if shape is not None and len(shape) == 4:
        return shape[0], shape[1], shape[2], shape[3]
    if shape is not None and len(shape) == 3:
        return shape[0], heads, shape[1], shape[2] // max(heads, 1)
    return 1, heads, USUAL_SIZE, USUAL_SIZE


def _scores(node: PricedNode, batch: float, heads: float, queries: float, keys: float, width: float, values: float) -> Work:
    scores = batch * heads * queries * keys
    # Softmax takes four operations per score: subtract the maximum, Exp, sum, divide.
    products = scores * (float(width) + values)
    return Work("attention", traffic(node), 2.0 * products + 4.0 * scores, scores, batch * heads * queries, multiply_adds=products)


def attention(node: PricedNode) -> Work:
    """Counts ONNX's Attention. Grouped heads compute as many scores as the queries have heads."""
    query, key, value = (shape_at(node.inputs, index) for index in range(3))
    query_heads = max(integer(node, "q_num_heads", 1), 1)
    pair_heads = max(integer(node, "kv_num_heads", query_heads), 1)
    batch, heads, queries, width = _heads(query, query_heads)
    keys = _heads(key, pair_heads)[2]
    values = _heads(value, pair_heads)[3]
    past = shape_at(node.inputs, 4)
    keys += past[-2] if past is not None and len(past) == 4 else 0
    return _scores(node, batch, heads, queries, keys, width, values)


def multi_head_attention(node: PricedNode) -> Work:
    """Counts com.microsoft.MultiHeadAttention, GroupQueryAttention and the like: heads are an
    attribute.
    """
    heads = max(integer(node, "num_heads", 1), 1)
    query, key, value = (shape_at(node.inputs, index) for index in range(3))
    batch, many, queries, width = _heads(query, heads)
    if query is not None and len(query) == 5:
        # One tensor holds queries, keys and values, as batch, tokens, heads, 3, width.
        batch, queries, many, _, width = query
    groups = max(integer(node, "kv_num_heads", heads), 1)
    keys, values = (_heads(key, groups)[2], _heads(value, groups)[3]) if key is not None else (queries, width)
    past = shape_at(node.inputs, 3 if "kv_num_heads" in node.attributes else 6)
    keys += past[-2] if past is not None and len(past) == 4 else 0
    return _scores(node, batch, many, queries, keys, width, values if value is not None else width)


def projected_attention(node: PricedNode) -> Work:
    """Counts com.microsoft.Attention: the projections to queries, keys and values, then attention."""
    heads = max(integer(node, "num_heads", 1), 1)
    source, weights = shape_at(node.inputs, 0), shape_at(node.inputs, 1)
    batch, tokens, inner = source if source is not None and len(source) == 3 else (1, USUAL_SIZE, USUAL_SIZE)
    columns = weights[-1] if weights else 3 * inner
    width = columns // 3 // heads
    work = _scores(node, batch, heads, tokens, tokens, width, width)
    projections = float(batch) * tokens * inner * columns
    return work._replace(operations=work.operations + 2.0 * projections, weights=float(inner) * columns, multiply_adds=work.multiply_adds + projections)


def linear_attention(node: PricedNode) -> Work:
    """Counts LinearAttention and the like: each token updates a state of width times width per
    head.
    """
    query, value = shape_at(node.inputs, 0), shape_at(node.inputs, 2)
    heads = max(integer(node, "q_num_heads", 1), 1)
    batch, heads, tokens, width = _heads(query, heads)
    values = _heads(value, heads)[3] if value is not None else width
    count = float(batch) * heads * tokens
    products = count * width * values * 3.0
    return Work("recurrent", traffic(node), 2.0 * products, count * width, float(tokens), float(width) * values, multiply_adds=products)


def recurrent(gates: int) -> Counter:
    """Counts RNN, GRU and LSTM: for each gate and step, one product with the input and one with the
    state.
    """

    def count(node: PricedNode) -> Work:
        source, weights, states = (shape_at(node.inputs, index) for index in range(3))
        steps, batch, inner = source if source is not None and len(source) == 3 else (USUAL_SIZE, 1, USUAL_SIZE)
        if integer(node, "layout", 0) == 1:
            steps, batch = batch, steps
        # The attribute comes first: the states' weights of a DynamicQuantizeLSTM are transposed.
        hidden = max(integer(node, "hidden_size", states[-1] if states else USUAL_SIZE), 0)
        directions = weights[0] if weights else 2 if text(node, "direction", "forward") == "bidirectional" else 1
        runs = float(directions) * steps
        results = runs * batch * hidden * gates
        # Besides the products, each step adds the bias, applies an activation of about ten
        # operations, and updates the state.
        products = results * (inner + hidden)
        operations = 2.0 * products + 12.0 * results
        weight = float(directions) * gates * hidden * (inner + hidden)
        return Work("recurrent", traffic(node), operations, results, runs, weight, hidden, products)

    return count
