"use strict";
// The details of the node that is selected, and of its region.

/** Fills the panel. `act` has what a link to a node, and to a region, does. */
function showDetails(panel, node, act) {
  panel.replaceChildren();
  if (!node) {
    panel.append(
      element(
        "p",
        { class: "hint" },
        "Click a node for its details. Click a changed node to see its counterpart on the other side. Click a fold (▸) to open it, and its title (▾) to close it. Drag to move, turn the wheel to zoom.",
      ),
    );
    return;
  }
  const graph = graphs[node.side];
  const state = {
    kept: "stayed",
    gone: "went: the written model does not have it",
    new: "is new: the original does not have it",
  }[node.state];
  panel.append(
    element("h3", { class: node.state }, SIGN[node.state] + node.operator),
    element("p", { class: "name" }, titleOf(node, graph)),
  );
  panel.append(
    facts([
      ["state", node.end ? "of the model" : state],
      ["graph", node.side === "before" ? "original" : "written"],
      [
        "fold",
        foldsAround(node.fold)
          .reverse()
          .slice(1)
          .map((fold) => folds[fold].title)
          .join(" › "),
      ],
    ]),
  );
  if (node.region !== null && node.region !== undefined) panel.append(regionOf(node.region, act));
  if (node.twin !== null && node.twin !== undefined)
    panel.append(
      element(
        "p",
        {},
        link("show it on the other side", () => act.select(node.side === "before" ? "after" : "before", node.twin)),
      ),
    );
  if (node.attributes.length) panel.append(element("h4", {}, "Attributes"), facts(node.attributes));
  const ends = (title, values, others) => {
    const there = values.filter((value) => value >= 0);
    if (there.length)
      panel.append(
        element("h4", {}, title),
        element("ul", { class: "values" }, ...there.map((value) => valueOf(graph, value, others(value), act))),
      );
  };
  const maker = (value) => (graph.makers.has(value) ? [graph.makers.get(value)] : []);
  ends("Inputs", node.inputs, maker);
  ends("Results of its bodies", node.results, maker);
  ends("Outputs", node.outputs, (value) => graph.users.get(value) ?? []);
  if (!node.end) panel.append(element("h4", {}, "Predicted time"), ...prices(node, graph, act));
}

function facts(pairs) {
  const list = element("dl", {});
  for (const [name, value] of pairs) if (value !== "") list.append(element("dt", {}, name), element("dd", {}, value));
  return list;
}

function link(label, action) {
  return element("button", { type: "button", class: "link", onclick: action }, label);
}

function valueOf(graph, value, others, act) {
  const { name, type, constant, text: shown } = graph.values[value];
  const item = element(
    "li",
    {},
    element("span", { class: "value" }, name),
    element("span", { class: "type" }, (constant ? "constant " : "") + (type || "type unknown") + (shown ? " = " + shown : "")),
  );
  for (const other of others.slice(0, 12))
    item.append(
      link((graph.makers.get(value) === other ? "from " : "to ") + graph.nodes[other].operator, () =>
        act.select(graph.side, other),
      ),
    );
  if (others.length > 12) item.append(element("span", { class: "type" }, `and ${others.length - 12} more`));
  return item;
}

function regionOf(number, act) {
  const region = data.regions[number];
  const listed = (side, nodes) =>
    nodes.slice(0, 20).map((id) =>
      element(
        "li",
        {},
        link(SIGN[graphs[side].nodes[id].state] + graphs[side].nodes[id].operator, () => act.select(side, id)),
      ),
    );
  const box = element(
    "div",
    { class: "region" },
    element(
      "h4",
      {},
      `Region ${number + 1}: ${region.old.length} went, ${region.new.length} ${region.new.length === 1 ? "is" : "are"} new`,
    ),
  );
  const lists = element("div", { class: "both" });
  for (const [side, nodes] of [
    ["before", region.old],
    ["after", region.new],
  ])
    if (nodes.length)
      lists.append(
        element("ul", {}, ...listed(side, nodes), nodes.length > 20 ? element("li", {}, `and ${nodes.length - 20} more`) : null),
      );
  box.append(lists);
  if (region.stands.length)
    box.append(
      element("p", {}, "Its values now come from nodes that stayed: "),
      element("ul", {}, ...listed("after", region.stands)),
    );
  else if (!region.new.length)
    box.append(element("p", {}, "Nothing new took its place: its values became inputs or constants, or nothing needs them."));
  box.append(link("show the region on both sides", () => act.region(number)));
  return box;
}

const BOUND = { launch: "by the launch of the kernel", memory: "by memory: moving bytes takes longest", compute: "by computing" };

function prices(node, graph, act) {
  if (!graph.kernels.length) return [element("p", {}, "The runtime does not load this model, so nothing is predicted.")];
  if (!node.kernels.length) {
    const next = node.next === undefined ? null : graph.nodes[node.next];
    const said = "It has no kernel of its own: the runtime fuses it with others, or computes it once when it loads the model. ";
    return [
      element("p", {}, said),
      ...(next
        ? [
            element(
              "p",
              {},
              "The next kernel that its values reach: ",
              link(next.operator, () => act.select(node.side, next.id)),
            ),
          ]
        : []),
    ];
  }
  return node.kernels.map((kernel) =>
    facts([
      ["kernel", kernel.operator],
      ["seconds", scaled(kernel.seconds, "s")],
      ["bound", BOUND[kernel.bound]],
      ["launches", String(kernel.launches)],
      ["moved", scaled(kernel.bytes, "B")],
      ["operations", scaled(kernel.operations, "")],
      ["note", kernel.known ? "" : "The target does not know this operator, and prices it as slow."],
    ]),
  );
}
