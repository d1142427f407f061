"use strict";
// The tree that the layout draws: the items that are seen when some folds are open, and an edge
// between two items for all edges of the graph between what they hold.

const WIDEST = 250;

/** Builds the tree of one side. */
function treeOf(side, open) {
  const graph = graphs[side];
  const trees = new Map();
  const build = (fold) => {
    const items = [];
    for (const id of folds[fold].folds) {
      if (!folds[id].nodes[side].length && !folds[id].size[side]) continue;
      items.push(open.has(id) ? build(id) : foldItem(folds[id], side));
    }
    for (const id of folds[fold].nodes[side]) items.push(nodeItem(graph.nodes[id], graph));
    const tree = { id: "f" + fold, title: folds[fold].title, items, ports: new Set(), edges: new Map() };
    trees.set(fold, tree);
    return tree;
  };
  const root = build(0);
  const around = (node) => foldsAround(node.fold).reverse();
  for (const node of graph.nodes)
    for (const value of new Set([...node.inputs, ...node.results])) {
      const maker = graph.makers.get(value);
      if (maker !== undefined) addEdge(trees, graph.nodes[maker], around(graph.nodes[maker]), node, around(node));
    }
  for (const tree of trees.values()) {
    tree.ports = [...tree.ports];
    tree.edges = [...tree.edges.values()];
  }
  return root;
}

/** Adds an edge to the innermost fold around both nodes, and ports to the open folds that it enters. */
function addEdge(trees, from, fromPath, to, toPath) {
  let depth = 0;
  while (depth + 1 < fromPath.length && depth + 1 < toPath.length && fromPath[depth + 1] === toPath[depth + 1]) depth++;
  if (!trees.has(fromPath[depth])) return; // inside a fold that is closed
  const itemAt = (node, path, level) => (level + 1 < path.length ? "f" + path[level + 1] : "n" + node.id);
  const join = (tree, one, other) => tree.edges.set(one + ">" + other, [one, other]);
  const source = itemAt(from, fromPath, depth);
  const target = itemAt(to, toPath, depth);
  join(trees.get(fromPath[depth]), source, target);
  let port = "o:" + target;
  for (let level = depth + 1; level < fromPath.length && trees.has(fromPath[level]); level++, port = "o:" + port) {
    trees.get(fromPath[level]).ports.add(port);
    join(trees.get(fromPath[level]), itemAt(from, fromPath, level), port);
  }
  port = "i:" + source;
  for (let level = depth + 1; level < toPath.length && trees.has(toPath[level]); level++, port = "i:" + port) {
    trees.get(toPath[level]).ports.add(port);
    join(trees.get(toPath[level]), port, itemAt(to, toPath, level));
  }
}

function nodeItem(node, graph) {
  const label = SIGN[node.state] + (node.end ? node.name : node.operator);
  const type = shortType(graph.values[node.outputs.find((value) => value >= 0) ?? -1]?.type ?? "");
  return {
    id: "n" + node.id,
    width: Math.min(WIDEST, Math.max(64, label.length * 7.6 + 20, type.length * 6.1 + 16)),
    height: type ? 38 : 26,
  };
}

function foldItem(fold, side) {
  return {
    id: "f" + fold.id,
    width: Math.min(WIDEST, Math.max(120, (fold.title.length + 3) * 8 + 12, foldCount(fold, side).length * 6.2 + 20)),
    height: 44,
  };
}

function foldCount(fold, side) {
  const changed = fold.changed[side];
  return counted(fold.size[side], "node") + (changed ? ` · ${side === "before" ? "−" : "+"}${changed}` : "");
}

/** Writes a type without the most common element: `1×128×256`. */
function shortType(type) {
  const match = /^(\w+)\[(.*)\]$/.exec(type);
  if (!match) return type;
  const sizes = match[2].split(", ").join("×");
  return (match[1] === "float32" ? "" : match[1] + " ") + (match[2] ? sizes : "scalar");
}
