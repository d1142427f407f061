"use strict";
// The data of the page, and the two graphs as objects that refer to one another.
// All text of a model goes into the document by textContent, so that it stays text.

const data = JSON.parse(document.getElementById("data").textContent);
const text = (number) => data.strings[number];
const SIDES = ["before", "after"];
const GONE = { before: "gone", after: "new" };
const SIGN = { kept: "", gone: "− ", new: "+ " };

/** Makes an element with properties and children; a string among the children becomes text. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Writes an amount with three digits and the prefix of its unit. */
function scaled(amount, unit) {
  if (amount === null || amount === undefined) return "–";
  for (const [prefix, factor] of [
    ["G", 1e9],
    ["M", 1e6],
    ["k", 1e3],
    ["", 1],
    ["m", 1e-3],
    ["µ", 1e-6],
  ])
    if (Math.abs(amount) >= factor * 0.9995) return `${+(amount / factor).toPrecision(3)} ${prefix}${unit}`;
  return amount ? `${(amount / 1e-9).toPrecision(3)} n${unit}` : `0 ${unit}`;
}

/** Writes a number of things. */
const counted = (amount, thing) => `${amount} ${thing}${amount === 1 ? "" : "s"}`;

/** One graph: nodes, values, and which node makes and which nodes use a value. */
function readGraph(side, number) {
  const given = data.sides[number];
  const graph = { side, nodes: [], makers: new Map(), users: new Map(), values: [], given };
  graph.values = given.values.map(([name, type, stored]) => ({
    name: text(name),
    type: text(type),
    constant: stored !== undefined,
    text: stored === undefined ? "" : text(stored),
  }));
  graph.kernels = given.kernels.map(([operator, seconds, launches, bytes, operations, bound, known]) => ({
    operator: text(operator),
    seconds,
    launches,
    bytes,
    operations,
    bound,
    known,
  }));
  const add = (node) => {
    node.id = graph.nodes.length;
    graph.nodes.push(node);
    for (const value of node.outputs) if (value >= 0) graph.makers.set(value, node.id);
  };
  for (const node of given.nodes)
    add({
      side,
      operator: text(node.o),
      name: text(node.n),
      inputs: node.i,
      results: node.b ?? [],
      outputs: node.r,
      fold: node.f,
      attributes: (node.a ?? []).map((pair) => pair.map(text)),
      kernels: (node.k ?? []).map((kernel) => graph.kernels[kernel]),
      next: node.w,
      state: GONE[side],
      twin: null,
      region: null,
    });
  graph.count = graph.nodes.length;
  for (const value of given.inputs)
    add({
      side,
      operator: "input",
      name: graph.values[value].name,
      inputs: [],
      results: [],
      outputs: [value],
      fold: 0,
      attributes: [],
      kernels: [],
      state: "kept",
      end: true,
    });
  for (const value of given.outputs)
    add({
      side,
      operator: "output",
      name: graph.values[value].name,
      inputs: [value],
      results: [],
      outputs: [],
      fold: 0,
      attributes: [],
      kernels: [],
      state: "kept",
      end: true,
    });
  for (const node of graph.nodes)
    for (const value of new Set([...node.inputs, ...node.results]))
      if (value >= 0) graph.users.has(value) ? graph.users.get(value).push(node.id) : graph.users.set(value, [node.id]);
  graph.seconds = (node) => (node.kernels.length ? node.kernels.reduce((sum, kernel) => sum + kernel.seconds, 0) : null);
  return graph;
}

const graphs = { before: readGraph("before", 0), after: readGraph("after", 1) };
for (const [old, now] of data.kept) {
  Object.assign(graphs.before.nodes[old], { state: "kept", twin: now });
  Object.assign(graphs.after.nodes[now], { state: "kept", twin: old });
}
data.regions.forEach((region, number) => {
  for (const node of region.old) graphs.before.nodes[node].region = number;
  for (const node of region.new) graphs.after.nodes[node].region = number;
});

/** The folds: their titles, what they are in, and what they hold on each side. */
const folds = data.folds.map(([title, parent], id) => ({
  id,
  title: text(title),
  parent,
  folds: [],
  nodes: { before: [], after: [] },
  size: { before: 0, after: 0 },
  changed: { before: 0, after: 0 },
}));
for (const fold of folds) if (fold.id) folds[fold.parent].folds.push(fold.id);
for (const side of SIDES)
  for (const node of graphs[side].nodes) {
    folds[node.fold].nodes[side].push(node.id);
    for (const fold of foldsAround(node.fold)) {
      folds[fold].size[side] += node.end ? 0 : 1;
      folds[fold].changed[side] += node.state === "kept" ? 0 : 1;
    }
  }

/** Lists a fold and those that it is in, from inside to outside. */
function foldsAround(fold) {
  const found = [fold];
  while (fold) found.push((fold = folds[fold].parent));
  return found;
}

/** Opens folds from outside to inside as long as no more than `most` items are seen on a side. */
function firstOpen(most) {
  const open = new Set([0]);
  const seen = (fold) => Math.max(...SIDES.map((side) => folds[fold].nodes[side].length)) + folds[fold].folds.length;
  let total = seen(0);
  for (const waiting = [...folds[0].folds]; waiting.length;) {
    const fold = waiting.shift();
    const more = seen(fold) - 1;
    if (total + more > most) continue;
    total += more;
    open.add(fold);
    waiting.push(...folds[fold].folds);
  }
  return open;
}

/** Describes where a node's value can be read: its operator and its name, or that of its value. */
function titleOf(node, graph) {
  return node.name || (node.outputs.length ? graph.values[node.outputs.find((value) => value >= 0)]?.name : "") || node.operator;
}
