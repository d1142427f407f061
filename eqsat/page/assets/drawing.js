"use strict";
// A pane: one graph drawn as SVG, which can be moved and zoomed. Layouts come from a worker, so that
// the page stays alive; where a browser allows none, they are made here.

const layouter = (() => {
  const asked = new Map();
  let count = 0;
  let worker = null;
  try {
    const source = ["dagre", "layout"].map((id) => document.getElementById("script-" + id).textContent).join("\n;");
    const answer = "\n;onmessage = (event) => postMessage({ number: event.data.number, found: layoutTree(event.data.tree) });";
    worker = new Worker(URL.createObjectURL(new Blob([source, answer], { type: "text/javascript" })));
    worker.onmessage = (event) => finish(event.data.number, event.data.found);
    worker.onerror = () => {
      worker = null;
      for (const [number, { tree }] of [...asked]) finish(number, layoutTree(tree));
    };
  } catch {
    worker = null;
  }
  const finish = (number, found) => {
    asked.get(number)?.resolve(found);
    asked.delete(number);
  };
  return (tree) =>
    new Promise((resolve) => {
      const number = count++;
      asked.set(number, { tree, resolve });
      if (worker) worker.postMessage({ number, tree });
      else setTimeout(() => finish(number, layoutTree(tree)));
    });
})();

const READABLE = 0.7; // the scale at which letters are easy to read
const LEAST = 0.4; // the scale below which they can not be read
const TOP = 34; // the height of a pane's caption, with some air
const curve = d3
  .line(
    (point) => point.x,
    (point) => point.y,
  )
  .curve(d3.curveBasis);

/** Makes the pane of a side. `act` has what a click on a node, a closed or an open fold does. */
function makePane(side, act) {
  const graph = graphs[side];
  const svg = d3.select(`#${side} svg`);
  const stage = svg.append("g").attr("class", "stage");
  const layers = Object.fromEntries(
    ["boxes", "lines", "titles", "nodes"].map((name) => [name, stage.append("g").attr("class", name)]),
  );
  svg
    .append("defs")
    .append("marker")
    .attr("id", `arrow-${side}`)
    .attr("viewBox", "0 0 8 8")
    .attr("refX", 7)
    .attr("refY", 4)
    .attr("markerUnits", "userSpaceOnUse")
    .attr("markerWidth", 8)
    .attr("markerHeight", 8)
    .attr("orient", "auto")
    .append("path")
    .attr("d", "M0,0.5 L8,4 L0,7.5 z");
  const zoom = d3
    .zoom()
    .scaleExtent([0.02, 3])
    .on("zoom", (event) => stage.attr("transform", event.transform));
  svg.call(zoom).on("dblclick.zoom", null);
  const pane = { side, laid: null, asked: 0 };

  pane.show = async (open, anchor) => {
    const mine = ++pane.asked;
    svg.attr("aria-busy", "true");
    const laid = await layouter(treeOf(side, open));
    if (mine !== pane.asked) return; // a newer one is under way
    const was = anchor && pane.laid ? pane.at(anchor) : null;
    const first = pane.laid === null;
    pane.laid = laid;
    draw();
    if (first) zoomTo(whole(), READABLE, 1, 0);
    else if (was && pane.at(anchor)) keepAt(was, pane.at(anchor));
    svg.attr("aria-busy", null);
  };

  pane.at = (id) => [...pane.laid.nodes, ...pane.laid.boxes].find((item) => item.id === id) ?? null;

  /** Names the item that is seen for a node: itself, or the outermost closed fold around it. */
  pane.itemOf = (id, open) => {
    const closed = foldsAround(graph.nodes[id].fold)
      .reverse()
      .find((fold) => !open.has(fold));
    return closed === undefined ? "n" + id : "f" + closed;
  };

  const whole = () => ({ x: 0, y: 0, width: pane.laid.width, height: pane.laid.height });
  pane.fit = () => zoomTo(whole(), 0, 1, 0);

  /** Shows some items; if they are too far apart to be read together, the first of them. */
  pane.focus = (items) => {
    const found = items.map(pane.at).filter(Boolean);
    if (!found.length) return;
    const { width, height } = svg.node().getBoundingClientRect();
    const around = hull(found);
    const together = around.width * LEAST < width && around.height * LEAST < height;
    zoomTo(together ? around : found[0], LEAST, 1.1, 60);
  };

  pane.mark = (lit, chosen) => {
    for (const layer of [layers.nodes, layers.boxes])
      layer
        .selectAll("g.item")
        .classed("lit", (item) => lit.has(item.id))
        .classed("chosen", (item) => item.id === chosen);
    layers.lines.selectAll("path").classed("lit", (line) => chosen !== null && (line.from === chosen || line.to === chosen));
  };

  function zoomTo(box, least, most, margin) {
    const { width, height } = svg.node().getBoundingClientRect();
    const scale = Math.max(0.02, Math.min(most, (width - 2 * margin - 10) / box.width, (height - 2 * margin - 10) / box.height));
    // A graph that is too large to be read whole is shown from its top.
    const readable = Math.max(scale, least);
    const top =
      box.height * readable > height - 2 * TOP ? TOP - box.y * readable : (height - box.height * readable) / 2 - box.y * readable;
    const transform = d3.zoomIdentity.translate((width - box.width * readable) / 2 - box.x * readable, top).scale(readable);
    svg.call(zoom.transform, transform);
  }

  function keepAt(was, now) {
    const { k, x, y } = d3.zoomTransform(svg.node());
    svg.call(zoom.transform, d3.zoomIdentity.translate(x + k * (was.x - now.x), y + k * (was.y - now.y)).scale(k));
  }

  function draw() {
    const { boxes, nodes, lines } = pane.laid;
    layers.lines
      .selectAll("path")
      .data(lines, (line) => line.from + ">" + line.to)
      .join("path")
      .attr("d", (line) => curve(line.points))
      .attr("marker-end", (line) => (line.arrow ? `url(#arrow-${side})` : null));
    layers.boxes
      .selectAll("g.item")
      .data(boxes, (box) => box.id)
      .join(makeBox)
      .attr("transform", (box) => `translate(${box.x},${box.y})`)
      .each(function (box) {
        d3.select(this)
          .select("rect")
          .attr("width", box.width)
          .attr("height", box.height)
          .attr("class", "depth" + (box.depth % 4));
      });
    // Titles are above the lines that enter a fold.
    layers.titles
      .selectAll("text")
      .data(boxes, (box) => box.id)
      .join(makeTitle)
      .attr("x", (box) => box.x + 10)
      .attr("y", (box) => box.y + 18)
      .text((box) => clipped("▾ " + folds[+box.id.slice(1)].title, box.width - 6, 7.4));
    layers.nodes
      .selectAll("g.item")
      .data(nodes, (node) => node.id)
      .join(makeItem)
      .attr("transform", (node) => `translate(${node.x},${node.y})`)
      .each(function (node) {
        d3.select(this).select("rect").attr("width", node.width).attr("height", node.height);
      });
  }

  function makeBox(enter) {
    const made = enter
      .append("g")
      .attr("class", "item box")
      .attr("data-id", (box) => box.id);
    made.append("rect").attr("rx", 8);
    return made;
  }

  function makeTitle(enter) {
    return activated(
      enter.append("text").attr("data-title", (box) => box.id),
      (box) => act.toggle(+box.id.slice(1)),
    );
  }

  function makeItem(enter) {
    const made = enter
      .append("g")
      .attr("data-id", (item) => item.id)
      .attr("class", (item) => "item " + kindOf(item));
    made.append("rect").attr("rx", (item) => (item.id[0] === "f" ? 8 : 4));
    made
      .append("text")
      .attr("class", "label")
      .attr("x", (item) => item.width / 2)
      .attr("y", (item) => (item.height > 26 ? 16 : 17))
      .text((item) => clipped(labelOf(item), item.width, item.id[0] === "f" ? 8 : 7.4));
    made
      .append("text")
      .attr("class", "small")
      .attr("x", (item) => item.width / 2)
      .attr("y", (item) => item.height - 8)
      .text((item) => clipped(smallOf(item), item.width, 6));
    made
      .append("title")
      .text((item) => (item.id[0] === "f" ? folds[+item.id.slice(1)].title : titleOf(graph.nodes[+item.id.slice(1)], graph)));
    return activated(made, (item) => (item.id[0] === "f" ? act.toggle(+item.id.slice(1)) : act.select(side, +item.id.slice(1))));
  }

  function activated(selection, action) {
    return selection
      .attr("tabindex", 0)
      .attr("role", "button")
      .on("click", (event, item) => action(item))
      .on("keydown", (event, item) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          action(item);
        }
      });
  }

  function kindOf(item) {
    const id = +item.id.slice(1);
    if (item.id[0] === "f") return folds[id].changed[side] ? `fold has-${GONE[side]}` : "fold";
    return `node ${graph.nodes[id].state}${graph.nodes[id].end ? " end" : ""}`;
  }

  function labelOf(item) {
    const id = +item.id.slice(1);
    if (item.id[0] === "f") return "▸ " + folds[id].title;
    return SIGN[graph.nodes[id].state] + (graph.nodes[id].end ? graph.nodes[id].name : graph.nodes[id].operator);
  }

  function smallOf(item) {
    const id = +item.id.slice(1);
    if (item.id[0] === "f") return foldCount(folds[id], side);
    if (item.height <= 26) return "";
    return shortType(graph.values[graph.nodes[id].outputs.find((value) => value >= 0) ?? -1]?.type ?? "");
  }

  return pane;
}

/** Returns the box around some items. */
function hull(items) {
  const x = d3.min(items, (item) => item.x);
  const y = d3.min(items, (item) => item.y);
  return {
    x,
    y,
    width: d3.max(items, (item) => item.x + item.width) - x,
    height: d3.max(items, (item) => item.y + item.height) - y,
  };
}

/** Shortens a text to a width in pixels, for letters of a usual width. */
function clipped(label, width, letter) {
  const most = Math.floor((width - 8) / letter);
  return label.length > most ? label.slice(0, Math.max(1, most - 1)) + "…" : label;
}
