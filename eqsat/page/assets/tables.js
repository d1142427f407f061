"use strict";
// The sections around the graphs: figures, changed regions, operators, rules, verification, limits.

const report = data.report;
/** Writes a change as a share of what was there; nothing if it is too small to show. */
function share(before, after) {
  const percent = before ? Math.abs((100 * (before - after)) / before).toFixed(1) : "0.0";
  return percent === "0.0" ? "the same" : `${after <= before ? "−" : "+"}${percent} %`;
}

const lineOf = (topic) => data.lines.filter(([name]) => name === topic).map(([, said]) => said);

/** Makes a table that a click on a heading sorts. Columns are [title, value of a row, text of it]. */
function table(rows, columns, attributes = {}) {
  const body = element("tbody", {});
  const fill = (sorted) =>
    body.replaceChildren(
      ...sorted.map((row) => {
        const made = element(
          "tr",
          {},
          ...columns.map(([, value, shown]) => {
            const said = shown ? shown(row) : value(row);
            return element(
              "td",
              { class: typeof value(row) === "number" ? "number" : "" },
              said instanceof Node ? said : String(said),
            );
          }),
        );
        return made;
      }),
    );
  const heads = columns.map(([title, value]) => {
    let down = false;
    const sort = () => {
      down = !down;
      const sorted = [...rows].sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0));
      fill(down ? sorted.reverse() : sorted);
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    };
    const head = element("th", { scope: "col" }, element("button", { type: "button", class: "link", onclick: sort }, title));
    return head;
  });
  fill(rows);
  return element(
    "div",
    { class: "table" },
    element("table", attributes, element("thead", {}, element("tr", {}, ...heads)), body),
  );
}

function changeOf(was, now) {
  const said = share(was, now);
  return element("span", { class: said === "the same" ? "what" : now < was ? "better" : "worse" }, said);
}

function showSummary(place) {
  const { before, after } = report.cost;
  const tiles = [
    ["nodes", report.nodes.before, report.nodes.after, String],
    ["kernels", before.launches, after.launches, String],
    ["predicted time", before.seconds, after.seconds, (n) => scaled(n, "s")],
    ["bytes moved", before.bytes, after.bytes, (n) => scaled(n, "B")],
    ["operations", before.operations, after.operations, (n) => scaled(n, "")],
    ["peak memory", before.memory, after.memory, (n) => scaled(n, "B")],
    ["file", report.bytes.before, report.bytes.after, (n) => scaled(n, "B")],
  ];
  const made = tiles
    .filter((tile) => tile[1] !== null && tile[2] !== null)
    .map(([name, was, now, shown]) =>
      element(
        "div",
        { class: "tile" },
        element("span", { class: "what" }, name),
        element("span", { class: "figures" }, `${shown(was)} → ${shown(now)}`),
        changeOf(was, now),
      ),
    );
  const status = report.verify.status;
  made.push(
    element(
      "div",
      { class: "tile" },
      element("span", { class: "what" }, "verification"),
      element("span", { class: "figures " + (status === "equal" ? "better" : "worse") }, status),
      element("span", { class: "what" }, report.limits.hit ? `limit hit: ${report.limits.hit}` : "no limit hit"),
    ),
  );
  place.append(
    element("p", { class: "files" }, `${report.input ?? "a model in memory"} → ${report.output ?? "not written"}`),
    element("div", { class: "tiles" }, ...made),
  );
}

function showChanges(place, act) {
  const names = (pairs) =>
    pairs.map(([name, count]) => (count > 1 ? `${count} ${text(name)}` : text(name))).join(", ") || "nothing";
  const total = (kind, side) => kind.regions.reduce((sum, region) => sum + data.regions[region][side].length, 0);
  if (!data.kinds.length) {
    place.append(element("p", {}, "No node changed."));
    return;
  }
  place.append(
    element(
      "p",
      {},
      "A region is a connected group of nodes that went or are new, between values that both graphs have. Regions with the same operators on both sides share a line; a click shows the next of them.",
    ),
  );
  const button = (kind) => {
    let next = 0;
    return element(
      "button",
      { type: "button", class: "link show", onclick: () => act.region(kind.regions[next++ % kind.regions.length]) },
      kind.regions.length > 1 ? `show next of ${kind.regions.length}` : "show",
    );
  };
  place.append(
    table(data.kinds, [
      ["times", (kind) => kind.regions.length],
      ["went, of each", (kind) => names(kind.old)],
      ["is new, of each", (kind) => names(kind.new)],
      ["− in all", (kind) => total(kind, "old")],
      ["+ in all", (kind) => total(kind, "new")],
      ["", () => "", button],
    ]),
  );
}

/** Sums by operator over both graphs. `rows` lists [operator, figures]; figures are numbers. */
function byOperator(rowsOf) {
  const found = new Map();
  for (const side of SIDES)
    for (const [operator, figures] of rowsOf(graphs[side])) {
      if (!found.has(operator)) found.set(operator, { operator, before: {}, after: {} });
      const sums = found.get(operator)[side];
      for (const [name, amount] of Object.entries(figures)) sums[name] = (sums[name] ?? 0) + amount;
    }
  return [...found.values()];
}

function showOperators(place) {
  const both = (name, shown) => (row) => element("span", {}, `${shown(row.before[name] ?? 0)} → ${shown(row.after[name] ?? 0)}`);
  const change = (name) => (row) => (row.after[name] ?? 0) - (row.before[name] ?? 0);
  const most = (name) => (row) => Math.max(row.before[name] ?? 0, row.after[name] ?? 0);
  const kernels = byOperator((graph) =>
    graph.kernels.map((kernel) => [kernel.operator, { count: kernel.launches, seconds: kernel.seconds }]),
  ).sort((a, b) => most("seconds")(b) - most("seconds")(a));
  const scale = Math.max(1e-12, ...kernels.map(most("seconds")));
  const bars = (row) => {
    const svg = d3
      .create("svg")
      .attr("class", "bars")
      .attr("viewBox", "0 0 100 14")
      .attr("preserveAspectRatio", "none")
      .attr("aria-hidden", "true");
    SIDES.forEach((side, index) =>
      svg
        .append("rect")
        .attr("class", GONE[side])
        .attr("y", 1 + index * 6.5)
        .attr("height", 5.5)
        .attr("width", (100 * (row[side].seconds ?? 0)) / scale),
    );
    return svg.node();
  };
  const nodes = byOperator((graph) => graph.nodes.slice(0, graph.count).map((node) => [node.operator, { count: 1 }])).sort(
    (a, b) => Math.abs(change("count")(b)) - Math.abs(change("count")(a)) || most("count")(b) - most("count")(a),
  );
  const signed = (amount) => (amount > 0 ? "+" + amount : amount < 0 ? "−" + -amount : "0");
  const priced = report.cost.before.seconds !== null;
  const target = report.cost.target;
  const left = element(
    "div",
    {},
    element("h3", {}, "Kernels"),
    element(
      "p",
      {},
      kernels.length
        ? `The kernels that run on ${target}${report.cost.asked ? ", after ONNX Runtime's own fusions" : ", of the graphs as they stand"}: before → after.`
        : "The runtime does not load these models, so nothing is predicted.",
    ),
  );
  if (kernels.length)
    left.append(
      table(kernels, [
        ["kernel", (row) => row.operator],
        ["launches", most("count"), both("count", String)],
        ...(priced
          ? [
              ["predicted time", most("seconds"), both("seconds", (amount) => scaled(amount, "s"))],
              [
                "change",
                change("seconds"),
                (row) =>
                  Math.abs(change("seconds")(row)) < 1e-12
                    ? "0"
                    : (change("seconds")(row) > 0 ? "+" : "−") + scaled(Math.abs(change("seconds")(row)), "s"),
              ],
              ["", () => "", bars],
            ]
          : []),
      ]),
    );
  place.append(
    element(
      "div",
      { class: "columns" },
      left,
      element(
        "div",
        {},
        element("h3", {}, "Nodes of the model"),
        element("p", {}, "The nodes as they are written in the two files: before → after."),
        table(nodes, [
          ["operator", (row) => row.operator],
          ["nodes", most("count"), both("count", String)],
          ["change", change("count"), (row) => signed(change("count")(row))],
        ]),
      ),
    ),
  );
}

function showTuning(place) {
  const { tune } = report;
  if (!tune) return;
  const ratio = (row) =>
    row.ratio ? `${row.ratio[1].toFixed(3)} (${row.ratio[0].toFixed(3)} to ${row.ratio[2]?.toFixed(3) ?? "?"})` : "–";
  place.append(
    element("h3", {}, "Tuning"),
    element(
      "p",
      {},
      `The models that were timed in turn, in ${tune.batches} batches; '${tune.kept}' was kept. A ratio is a time in parts of the original's.`,
    ),
    table(tune.candidates, [
      ["model", (row) => row.name],
      ["nodes", (row) => row.nodes],
      ["predicted", (row) => row.predicted ?? 0, (row) => scaled(row.predicted, "s")],
      ["measured", (row) => row.measured ?? 0, (row) => scaled(row.measured, "s")],
      ["ratio (least to greatest)", (row) => row.ratio?.[1] ?? 0, ratio],
      ["", (row) => (row.kept ? "kept" : row.same ? `the same as '${row.same}'` : row.reason)],
    ]),
  );
}

function showRules(place) {
  const rules = report.rules;
  if (!rules.length) {
    place.append(element("p", {}, "No rule fired."));
    return;
  }
  const asked = rules.some((rule) => rule.needed !== null);
  const needed = { true: "yes", false: "no", null: "not asked" };
  const used = { true: "yes", false: "no", null: "not known" };
  const rank = (rule) => (rule.needed ? 1e14 : 0) + (rule.used ? 1e12 : 0) + rule.matches;
  place.append(
    element(
      "p",
      {},
      `${rules.length} rules fired or were left out, and the result uses ${rules.filter((rule) => rule.used).length} of them. ` +
        (asked
          ? "A rule is needed if the result would have more nodes without it."
          : "Run with --needed to learn which of them the result needs."),
    ),
  );
  place.append(
    table(
      [...rules].sort((a, b) => rank(b) - rank(a)),
      [
        ["rule", (rule) => rule.name],
        ["promise", (rule) => rule.label],
        ["fired", (rule) => rule.matches],
        ["seconds", (rule) => rule.seconds, (rule) => rule.seconds.toFixed(3)],
        ["used", (rule) => used[rule.used]],
        ["why not", (rule) => rule.unused?.text ?? ""],
        ...(asked ? [["needed", (rule) => needed[rule.needed]]] : []),
        ...(rules.some((rule) => rule.dropped) ? [["left out", (rule) => (rule.dropped ? "its result was wrong" : "")]] : []),
      ],
    ),
  );
}

function showVerification(place) {
  const verdict = report.verify;
  place.append(element("p", { class: verdict.status === "equal" ? "better" : "worse" }, lineOf("verify")[0] ?? verdict.status));
  if (verdict.runs)
    place.append(
      element(
        "p",
        {},
        `${verdict.runs} inputs were tried on ${verdict.engine || "no runtime"}, ${verdict.edges} of them at edges.`,
      ),
    );
  const error = (amount) => (amount === null || amount === undefined ? "not finite" : amount.toPrecision(3));
  if (verdict.outputs?.length)
    place.append(
      table(verdict.outputs, [
        ["output", (output) => output.name],
        ["equal", (output) => (output.random ? "random" : output.bitwise ? "bit by bit" : "up to rounding")],
        ["largest error", (output) => output.max_error ?? Infinity, (output) => error(output.max_error)],
        ["tolerance", (output) => output.tolerance ?? 0, (output) => (output.tolerance === null ? "–" : error(output.tolerance))],
        ["exercised", (output) => (output.exercised === false ? "no: no input moved it" : "yes")],
      ]),
    );
  for (const note of verdict.notes ?? []) place.append(element("p", {}, note));
}

function showLimits(place) {
  const said = [...lineOf("limit"), ...lineOf("finite"), ...report.notes];
  place.append(
    said.length
      ? element("ul", {}, ...said.map((one) => element("li", {}, one)))
      : element("p", {}, "No limit was hit, and there is nothing to note."),
  );
  const waiting = Object.entries(report.limits.waiting).sort((a, b) => b[1] - a[1]);
  if (waiting.length)
    place.append(
      table(waiting, [
        ["rule", ([name]) => name],
        ["matches not applied", ([, count]) => count],
      ]),
    );
  if (report.left.length)
    place.append(
      element(
        "p",
        {},
        "Nodes of these values stay as they were, because their replacement did not pass verification: " + report.left.join(", "),
      ),
    );
  const stages = Object.entries(report.seconds).filter(([name]) => name !== "total");
  place.append(
    element(
      "p",
      {},
      `The run took ${report.seconds.total.toFixed(2)} s: ` +
        stages.map(([name, seconds]) => `${name} ${seconds.toFixed(2)} s`).join(", ") +
        ".",
    ),
  );
}

function showAbout(place) {
  place.append(
    element(
      "p",
      {},
      `Written by eqsat ${data.version}. The file needs no network; it has no weights of the model. It has these libraries:`,
    ),
  );
  for (const { name, version, license, text: terms } of data.libraries)
    place.append(
      element("details", {}, element("summary", {}, `${name} ${version}, ${license} license`), element("pre", {}, terms)),
    );
}
