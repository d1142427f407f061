"use strict";
// The page in action: which folds are open, what is selected, and what the controls do.

const get = (id) => document.getElementById(id);
const seen = { open: firstOpen(36), node: null, region: null, change: -1 };
const act = { toggle, select, region: showRegion };
const panes = Object.fromEntries(SIDES.map((side) => [side, makePane(side, act)]));

/** Draws both graphs anew; `anchor` is an item that keeps its place on the screen. */
async function refresh(anchor) {
  await Promise.all(SIDES.map((side) => panes[side].show(seen.open, anchor)));
  mark();
}

function mark() {
  const chosen = seen.node === null ? null : panes[seen.node.side].itemOf(seen.node.id, seen.open);
  for (const side of SIDES) panes[side].mark(litOn(side), seen.node?.side === side ? chosen : null);
}

/** Lists what is lit on a side: the region that is shown, or the node selected and its twin. */
function litOn(side) {
  const ids =
    seen.region !== null
      ? regionNodes(seen.region, side)
      : seen.node === null
        ? []
        : seen.node.side === side
          ? [seen.node.id]
          : (seen.node.twin ?? null) === null
            ? []
            : [seen.node.twin];
  return new Set(ids.map((id) => panes[side].itemOf(id, seen.open)));
}

/** Lists the nodes of a region on a side; of a region without new nodes, those that stand for it. */
function regionNodes(number, side) {
  const region = data.regions[number];
  return [...(side === "before" ? region.old : region.new.length ? region.new : region.stands)];
}

async function toggle(fold) {
  if (seen.open.has(fold)) for (const other of within(fold)) seen.open.delete(other);
  else seen.open.add(fold);
  await refresh("f" + fold);
}

function within(fold) {
  return [fold, ...folds[fold].folds.flatMap(within)];
}

/** Opens what is around some nodes of a side. Returns whether anything was closed. */
function openAround(side, ids) {
  const size = seen.open.size;
  for (const id of ids) for (const fold of foldsAround(graphs[side].nodes[id].fold)) seen.open.add(fold);
  return seen.open.size !== size;
}

/** Selects a node, shows its details, and shows its region or its twin on the other side. */
async function select(side, id) {
  const node = graphs[side].nodes[id];
  if (node.region !== null && node.region !== undefined) {
    await showRegion(node.region, node);
    return;
  }
  const hidden = panes[side].itemOf(id, seen.open) !== "n" + id;
  const moved = seen.node?.id !== id || seen.node.side !== side;
  Object.assign(seen, { node, region: null });
  showDetails(get("details"), node, act);
  if (hidden && openAround(side, [id])) await refresh();
  mark();
  const other = side === "before" ? "after" : "before";
  if (hidden || moved) bringIntoView(side, [id]);
  if ((node.twin ?? null) !== null) bringIntoView(other, [node.twin]);
}

/** Shows a region on both sides; the details are those of a node of it. */
async function showRegion(number, node) {
  const region = data.regions[number];
  const chosen = node ?? (region.new.length ? graphs.after.nodes[region.new[0]] : graphs.before.nodes[region.old[0]]);
  Object.assign(seen, { node: chosen, region: number, change: order.indexOf(number) });
  showDetails(get("details"), chosen, act);
  get("position").textContent = `${seen.change + 1} of ${order.length}`;
  // A region over many folds lights the folds; a smaller one is shown node by node.
  const small = SIDES.every((side) => new Set(regionNodes(number, side).map((id) => graphs[side].nodes[id].fold)).size <= 6);
  const opened = SIDES.map((side) => small && openAround(side, regionNodes(number, side)));
  const alone = openAround(chosen.side, [chosen.id]);
  if (opened.some(Boolean) || alone) await refresh();
  mark();
  for (const side of SIDES) {
    const ids = regionNodes(number, side);
    if (ids.includes(chosen.id) && chosen.side === side) ids.unshift(chosen.id);
    if (ids.length) bringIntoView(side, ids);
    else nearby(number, side);
  }
}

/** Shows where a region without a counterpart was: the users of its values on the other side. */
function nearby(number, side) {
  const region = data.regions[number];
  const twins = region.old.flatMap((id) =>
    graphs.before.nodes[id].outputs.flatMap((value) =>
      (graphs.before.users.get(value) ?? []).map((user) => graphs.before.nodes[user].twin),
    ),
  );
  const ids = side === "after" ? twins.filter((twin) => twin !== null && twin !== undefined) : [];
  if (ids.length) bringIntoView(side, ids.slice(0, 3));
}

function bringIntoView(side, ids) {
  panes[side].focus([...new Set(ids.map((id) => panes[side].itemOf(id, seen.open)))]);
}

// Changed regions, in the order of the graphs.
const order = data.regions.map((_, number) => number).sort((a, b) => placeOf(a) - placeOf(b));

function placeOf(number) {
  const region = data.regions[number];
  return region.old.length ? region.old[0] / graphs.before.count : region.new[0] / Math.max(1, graphs.after.count);
}

function step(by) {
  if (!order.length) return;
  const next = seen.change < 0 ? (by > 0 ? 0 : order.length - 1) : (seen.change + by + order.length) % order.length;
  showRegion(order[next]);
}

/** Lists the nodes whose operator, name or values contain a text, the closest first. */
function search(wanted) {
  const needle = wanted.trim().toLowerCase();
  if (!needle) return [];
  const found = [];
  for (const side of SIDES)
    for (const node of graphs[side].nodes) {
      const operator = node.operator.toLowerCase();
      const names = [
        node.name,
        ...node.outputs.filter((value) => value >= 0).map((value) => graphs[side].values[value].name),
      ].map((name) => name.toLowerCase());
      const rank =
        operator === needle
          ? 0
          : operator.startsWith(needle)
            ? 1
            : names.includes(needle)
              ? 1
              : operator.includes(needle) || names.some((name) => name.includes(needle))
                ? 2
                : null;
      if (rank !== null) found.push({ rank, node });
    }
  return found.sort((a, b) => a.rank - b.rank).map(({ node }) => node);
}

function showFound() {
  const list = get("found");
  const found = search(get("search").value);
  list.replaceChildren(
    ...found.slice(0, 60).map((node) =>
      element(
        "li",
        {},
        element(
          "button",
          {
            type: "button",
            class: "link " + node.state,
            onclick: () => {
              list.hidden = true;
              select(node.side, node.id);
            },
          },
          `${SIGN[node.state]}${node.operator}`,
          element(
            "span",
            { class: "type" },
            ` ${node.side === "before" ? "original" : "written"} · ${titleOf(node, graphs[node.side])}`,
          ),
        ),
      ),
    ),
  );
  if (get("search").value.trim())
    list.append(
      element(
        "li",
        { class: "type" },
        found.length > 60 ? `60 of ${found.length} nodes` : found.length ? `${found.length} nodes` : "no node",
      ),
    );
  list.hidden = !list.children.length;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  get("theme").textContent = theme === "dark" ? "light" : "dark";
}

function start() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  get("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  for (const [id, show] of [
    ["summary", showSummary],
    [
      "changes",
      (place) =>
        showChanges(place, {
          region: (number) => {
            get("graphs").scrollIntoView();
            showRegion(number);
          },
        }),
    ],
    ["operators", showOperators],
    ["operators", showTuning],
    ["rules", showRules],
    ["growth", showGrowth],
    ["verification", showVerification],
    ["limits", showLimits],
    ["about", showAbout],
  ])
    show(get(id));
  for (const section of document.querySelectorAll("main section[id]")) {
    const title = section.querySelector("h2")?.textContent;
    if (title) get("sections").append(element("a", { href: "#" + section.id }, title));
  }
  for (const side of SIDES)
    get(side).querySelector("figcaption").textContent =
      `${side === "before" ? "original" : "written"}: ${graphs[side].count} nodes`;
  get("search").addEventListener("input", showFound);
  get("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") get("found").querySelector("button")?.click();
    if (event.key === "Escape") get("found").hidden = true;
  });
  get("next").addEventListener("click", () => step(1));
  get("previous").addEventListener("click", () => step(-1));
  get("unfold").addEventListener("click", () => {
    seen.open = new Set(folds.map((fold) => fold.id));
    refresh();
  });
  get("fold").addEventListener("click", async () => {
    seen.open = new Set([0]);
    await refresh();
    SIDES.forEach((side) => panes[side].fit());
  });
  get("fit").addEventListener("click", () => SIDES.forEach((side) => panes[side].fit()));
  get("position").textContent = order.length ? `${order.length} regions` : "no changes";
  showDetails(get("details"), null, act);
  refresh().then(() => {
    document.documentElement.dataset.ready = "yes";
  });
}

start();
