"use strict";
// The layout of a tree of folds by dagre. Each open fold is laid out by itself, as a graph of its
// items, so that the work grows with what is seen. This file runs in a worker, too: it uses no
// document. A tree is {id, title, items: [{id, width, height} or a tree], ports: [id], edges: [[from, to]]}.

const TITLE = 26; // the height of the title of an open fold
const MANY = 250; // items from which a faster way to rank them is used

/** Lays out a tree. Returns its size, and boxes, nodes and lines at absolute places. */
function layoutTree(tree) {
  const found = { boxes: [], nodes: [], lines: [] };
  const laid = layoutFold(tree);
  place(laid, 0, 0, 0, found);
  return { ...found, width: laid.width, height: laid.height };
}

function layoutFold(tree) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({
    rankdir: "TB",
    nodesep: 14,
    ranksep: 26,
    edgesep: 8,
    marginx: 12,
    marginy: 10,
    ranker: tree.items.length > MANY ? "longest-path" : "network-simplex",
  });
  graph.setDefaultEdgeLabel(() => ({}));
  const inner = new Map();
  for (const item of tree.items) {
    const size = item.items ? layoutFold(item) : item;
    if (item.items) inner.set(item.id, size);
    graph.setNode(item.id, { width: size.width, height: size.height });
  }
  for (const port of tree.ports) graph.setNode(port, { width: 6, height: 2 });
  for (const [from, to] of tree.edges) if (from !== to) graph.setEdge(from, to, {});
  try {
    dagre.layout(graph);
  } catch {
    stack(graph); // dagre calls itself for each node of a chain, and a long one may be too much
  }
  const { width, height } = graph.graph();
  const least = tree.title.length * 7.4 + 40;
  return {
    tree,
    graph,
    inner,
    width: Math.max(width || 40, Math.min(least, 320)),
    height: (height || 20) + (tree.id === "f0" ? 0 : TITLE),
  };
}

/** Places the nodes of a graph below one another. */
function stack(graph) {
  const { marginx, marginy, ranksep } = graph.graph();
  const width = Math.max(...graph.nodes().map((id) => graph.node(id).width));
  let y = marginy;
  for (const id of graph.nodes()) {
    const node = graph.node(id);
    Object.assign(node, { x: marginx + width / 2, y: y + node.height / 2 });
    y += node.height + ranksep;
  }
  for (const edge of graph.edges())
    graph.edge(edge).points = [edge.v, edge.w].map((id) => ({ x: graph.node(id).x, y: graph.node(id).y }));
  Object.assign(graph.graph(), { width: width + 2 * marginx, height: y - ranksep + marginy });
}

/** Adds a fold at a place. Returns the absolute places of its ports. */
function place(laid, x, y, depth, found) {
  const { tree, graph, inner } = laid;
  const top = y + (tree.id === "f0" ? 0 : TITLE);
  const left = x + Math.max(0, (laid.width - (graph.graph().width || 0)) / 2);
  if (tree.id !== "f0") found.boxes.push({ id: tree.id, x, y, width: laid.width, height: laid.height, depth });
  const ports = new Map();
  const portsOf = new Map();
  for (const port of tree.ports) ports.set(port, { x: left + graph.node(port).x, y: top + graph.node(port).y });
  for (const item of tree.items) {
    const at = graph.node(item.id);
    const corner = { x: left + at.x - at.width / 2, y: top + at.y - at.height / 2 };
    if (inner.has(item.id)) portsOf.set(item.id, place(inner.get(item.id), corner.x, corner.y, depth + 1, found));
    else found.nodes.push({ id: item.id, ...corner, width: at.width, height: at.height });
  }
  for (const edge of graph.edges()) {
    const points = (graph.edge(edge).points ?? []).map((point) => ({ x: left + point.x, y: top + point.y }));
    const start = portsOf.get(edge.v)?.get("o:" + edge.w) ?? ports.get(edge.v);
    const end = portsOf.get(edge.w)?.get("i:" + edge.v) ?? ports.get(edge.w);
    found.lines.push({
      from: edge.v,
      to: edge.w,
      arrow: !end,
      points: [...(start ? [start] : []), ...points, ...(end ? [end] : [])],
    });
  }
  return ports;
}
