"""Simplify control flow, sequences and optionals, so that rules see plain nodes.

`simplify` takes a model and returns one that computes the same. If nothing applies, it returns the
same object.

- An If with a constant condition becomes its branch; a Loop that runs once becomes its body.
- Carried values that nobody reads or that never change are removed, as are unread outputs.
- Loop-invariant nodes of a body move in front of it. If the body may run zero times, only nodes
  that cannot fail move.
- Reads from sequences and optionals of known content become direct uses of the elements.
"""

from __future__ import annotations

import onnx
from onnx import helper

from eqsat.control.bodies import BODIES, Destination, Graph, Node, count_of, everywhere, fits, rename, replace_nodes, shell
from eqsat.control.containers import READS, constant_node, unpacked
from eqsat.control.splitting import divided, part_sizes
from eqsat.control.surroundings import Scope
from eqsat.control.trips import loop_trips, starts
from eqsat.control.unrolling import unrolled
from eqsat.model.imports import standard_opset
from eqsat.model.model import attribute_graphs, function_key
from eqsat.model.names import FreshNames, NameClash, all_names, captures, defined_names
from eqsat.operators import find_operator, may_train, normal_domain, read_attributes

# Operators that cannot fail on well-typed inputs, so hoisting them is safe. Those of the second
# list need one operand to be a constant scalar.
_TOTAL = frozenset(
    """Abs Acos Asin Atan Ceil Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal
    Relu Round Selu Shape Sigmoid Sign Sin Size Softplus Softsign Sqrt Tan Tanh""".split()
)
_TOTAL_WITH_NUMBER = frozenset("Add And Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mul Or Sub Xor".split())


def simplify(proto: onnx.ModelProto, kept: frozenset[str] = frozenset()) -> onnx.ModelProto:
    """Simplify known control flow, sequences and optionals.

    The result is `proto` itself if nothing applies. Nodes that compute a value in `kept` stay as
    they are.
    """
    graphs = [proto.graph.node, *(function.node for function in proto.functions)]
    if not any(node.op_type in BODIES | READS for nodes in graphs for node in everywhere(nodes)):
        return proto
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    again, changed = True, False
    while again:
        again = _Pass(result, kept).run()
        changed |= again
    return result if changed else proto


class _Pass:
    """One pass over all graphs of a model, innermost first. It changes them in place."""

    def __init__(self, proto: onnx.ModelProto, kept: frozenset[str]) -> None:
        self.proto = proto
        self.kept = kept
        shells = [shell(function) for function in proto.functions]
        self.fresh = FreshNames(name for graph in (proto.graph, *shells) for name in all_names(graph))
        self.functions = {function_key(f.domain, f.name, f.overload) for f in proto.functions}
        self.changed = False

    def run(self) -> bool:
        """Run the pass; tell whether anything changed."""
        self._graph(self.proto.graph, Scope(standard_opset(self.proto.opset_import), self.proto.ir_version >= 4))
        for function in self.proto.functions if not self.kept else ():  # a kept node may call any function
            body = shell(function)
            self._graph(body, Scope(standard_opset((*self.proto.opset_import, *function.opset_import)), False))
            replace_nodes(function.node, body.node)
        return self.changed

    def _graph(self, graph: Graph, outer: Scope) -> None:
        scope = outer.inside(graph)
        for node in graph.node:
            for _, body in attribute_graphs(node) if self.kept.isdisjoint(node.output) else ():
                self._graph(body, scope)
        used = {info.name for info in graph.output}
        for node in graph.node:
            used.update(node.input)
            for _, body in attribute_graphs(node):
                used.update(captures(body))
        used.discard("")
        nodes: list[Node] = []
        for place, node in enumerate(graph.node):
            try:
                stays = normal_domain(node.domain) or not self.kept.isdisjoint(node.output)
                made = None if stays else self._node(node, graph, scope, used)
            except NameClash:
                made = None
            self.changed |= made is not None
            nodes += [node] if made is None else made
            if made is not None and node.op_type == "SplitToSequence":
                nodes += graph.node[place + 1 :]  # its readers see it in the next pass
                break
        replace_nodes(graph.node, nodes)

    def _node(self, node: Node, graph: Graph, scope: Scope, used: set[str]) -> list[Node] | None:
        if node.op_type in BODIES and not fits(node):
            return None
        if node.op_type == "If":
            return self._if(node, graph, scope, used)
        if node.op_type == "Loop":
            return self._loop(node, graph, scope) or self._carried(node, scope, used, 2, 1)
        if node.op_type == "Scan" and scope.opset >= 9:
            return self._carried(node, scope, used, 0, 0)
        if node.op_type == "SplitToSequence":
            sizes = part_sizes(node, scope)
            return None if sizes is None else divided(node, sizes, graph, scope, self.fresh)
        return unpacked(node, scope, self.fresh) if node.op_type in READS else None

    def _if(self, node: Node, graph: Graph, scope: Scope, used: set[str]) -> list[Node] | None:
        bodies = dict(attribute_graphs(node))
        condition = scope.integer(node.input[0])
        if condition is not None:
            return self._branch(bodies["then_branch" if condition else "else_branch"], node, Destination(graph, scope, self.fresh))
        unread = [place for place, name in enumerate(node.output) if name not in used]
        if not unread or len(unread) == len(node.output):
            return None
        for sequence in (node.output, *(body.output for body in bodies.values())):
            for place in reversed(unread):
                del sequence[place]
        return [node]

    @staticmethod
    def _branch(branch: Graph, node: Node, into: Destination) -> list[Node] | None:
        return into.moved(branch, {}, node.output) if into.takes(branch) else None

    def _loop(self, node: Node, graph: Graph, scope: Scope) -> list[Node] | None:
        """Replace a Loop that runs once, or never, by the nodes that it runs."""
        return unrolled(node, trips, Destination(graph, scope, self.fresh)) if (trips := loop_trips(node, scope)) in (0, 1) else None

    def _carried(self, node: Node, scope: Scope, used: set[str], first: int, skip: int) -> list[Node] | None:
        """Simplify the state that a body carries between iterations, and hoist invariant nodes.

        The carried values begin at input `first` of the node, and after `skip` outputs of the body.
        """
        body = dict(attribute_graphs(node))["body"]
        count = len(node.input) - first - count_of(node, "num_scan_inputs")
        schema = find_operator("", node.op_type, scope.opset).schema
        spare = 0 if schema is None else len(node.input) - schema.min_input  # old opsets require a carried value of a Loop
        node.output.extend([""] * (len(body.output) - skip - len(node.output)))
        outputs = [info.name for info in body.output]
        inner = scope.inside(body)
        defined = {
            name for graph in (body, *(inside for item in everywhere(body.node) for _, inside in attribute_graphs(item))) for name in defined_names(graph)
        }
        for place in range(count if spare else 0):
            name, start, result = body.input[first + place].name, node.input[first + place], node.output[place]
            if name in defined and inner.origin(outputs[skip + place]) == name and outputs.count(name) <= 1 and start and start not in defined:
                if outputs.count(name) == 1 and outputs[skip + place] != name:
                    continue  # another output is this value, and each must keep a value of its own
                self._drop(node, body, place, place, first, skip)
                for item in body.node:
                    rename(item, {name: start})
                copies = [helper.make_node("Identity", [start], [result])] if result in used else []
                return [*([node] if any(node.output) else []), *copies]
        live = _live(body, [skip + place for place, name in enumerate(node.output) if name in used] + list(range(skip)), count, first, skip)
        dead = [place for place in range(len(node.output)) if skip + place not in live]
        dead = [place for place in dead if place >= count or dead.index(place) < spare]
        if dead and len(dead) < len(node.output):
            for place in reversed(dead):
                self._drop(node, body, place, place if place < count else None, first, skip, place - count)
            _prune(body)
            return [node]
        moved = self._moved(node, body, inner)
        return [*moved, node] if moved else None

    @staticmethod
    def _drop(node: Node, body: Graph, output: int, carried: int | None, first: int, skip: int, scanned: int = -1) -> None:
        del node.output[output]
        del body.output[skip + output]
        if carried is not None:
            del node.input[first + carried]
            del body.input[first + carried]
        for item in node.attribute:
            if scanned >= 0 and item.name in ("scan_output_axes", "scan_output_directions"):
                del item.ints[scanned]

    def _moved(self, node: Node, body: Graph, scope: Scope) -> list[Node]:
        """Move the nodes that depend only on captured values in front of the body; return them."""
        runs = node.op_type == "Loop" and starts(node, scope)
        own = set(defined_names(body))
        outputs = {info.name for info in body.output}
        names: dict[str, str] = {}
        moved: list[Node] = []
        kept: list[Node] = []
        for item in body.node:
            numbers = {name for name in item.input if name in own and scope.value(name) is not None}
            free = all(name not in own or name in names or name in numbers for name in item.input)
            if not free or numbers.issuperset(item.input) or outputs.intersection(item.output) or not self._movable(item, scope, runs):
                kept.append(item)
                continue
            for name in sorted(numbers - names.keys()):
                array = scope.value(name)
                assert array is not None
                moved.append(constant_node(array, self.fresh.make(name)))
                names[name] = moved[-1].output[0]
            names.update({name: self.fresh.make(name) for name in item.output if name})
            copy = Node()
            copy.CopyFrom(item)
            moved.append(copy)
        if moved:
            replace_nodes(body.node, kept)
            given = {name for item in kept for name in item.output} | {tensor.name for tensor in body.initializer}
            for item in body.node:
                rename(item, {old: new for old, new in names.items() if old not in given})
            for item in moved:
                rename(item, names)
        return moved

    def _movable(self, node: Node, scope: Scope, runs: bool) -> bool:
        if function_key(node.domain, node.op_type, node.overload) in self.functions or normal_domain(node.domain):
            return False
        operator = find_operator("", node.op_type, scope.opset)
        trains = may_train(operator, read_attributes(operator, node.attribute), len(node.input), len(node.output))
        if operator.schema is None or not operator.pure or trains or any(attribute_graphs(node)):
            return False
        if runs or node.op_type in _TOTAL:
            return True
        values = [scope.value(name) for name in node.input]
        return node.op_type in _TOTAL_WITH_NUMBER and sum(value is None or value.size != 1 for value in values) <= 1


def _live(body: Graph, outputs: list[int], count: int, first: int, skip: int) -> set[int]:
    """Return the live outputs of a body.

    They are `outputs`, and the carried values that these need from the previous iteration.
    """
    producers = {name: node for node in body.node for name in node.output if name}
    carried = {info.name: skip + place for place, info in enumerate(list(body.input)[first : first + count])}
    live: set[int] = set()
    while outputs:
        output = outputs.pop()
        if output in live:
            continue
        live.add(output)
        seen: set[str] = set()
        waiting = [body.output[output].name]
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in carried:
                outputs.append(carried[name])
            elif name in producers:
                node = producers[name]
                waiting += [*node.input, *(inner for _, graph in attribute_graphs(node) for inner in captures(graph))]
    return live


def _prune(body: Graph) -> None:
    """Remove the dead nodes of a body."""
    producers = {name: node for node in body.node for name in node.output if name}
    needed: set[str] = set()
    waiting = [info.name for info in body.output]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            node = producers.get(name)
            if node is not None:
                waiting += [*node.output, *node.input, *(inner for _, graph in attribute_graphs(node) for inner in captures(graph))]
    replace_nodes(body.node, [node for node in body.node if not needed.isdisjoint(node.output)])
