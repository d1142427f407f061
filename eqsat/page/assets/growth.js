"use strict";
// The plot of the e-graph's growth: e-nodes and e-classes after each step of each graph.

function showGrowth(place) {
  const { saturation } = data.report;
  const steps = saturation.steps;
  if (!steps.length) {
    place.append(element("p", {}, "The e-graph was not saturated."));
    return;
  }
  place.append(
    element(
      "p",
      {},
      `${saturation.iterations} steps over ${saturation.graphs} ${saturation.graphs === 1 ? "graph" : "graphs"} (bodies, functions and later turns count) made ${saturation.nodes} e-nodes in ${saturation.classes} e-classes. Each band is a phase${saturation.graphs > 1 ? ", after the number of its graph" : ""}.`,
    ),
  );
  const width = 900,
    height = 260,
    left = 64,
    right = 90,
    top = 24,
    bottom = 34;
  const svg = d3
    .create("svg")
    .attr("viewBox", `0 0 ${width} ${height}`)
    .attr("class", "plot")
    .attr("role", "img")
    .attr("aria-label", "e-nodes and e-classes after each step");
  const x = d3.scaleLinear([0, Math.max(1, steps.length - 1)], [left, width - right]);
  const y = d3.scaleLinear([0, d3.max(steps, (step) => step.nodes) || 1], [height - bottom, top]).nice();
  const bands = [];
  steps.forEach((step, place) => {
    const last = bands.at(-1);
    if (last && last.phase === step.phase && last.graph === step.graph) last.end = place;
    else bands.push({ phase: step.phase, graph: step.graph, start: place, end: place });
  });
  const label = (band) => (saturation.graphs > 1 ? `${band.graph + 1}: ${band.phase}` : band.phase);
  const edge = (place, by) => Math.max(left, Math.min(width - right, x(place + by)));
  svg
    .append("g")
    .selectAll("rect")
    .data(bands)
    .join("rect")
    .attr("class", (band, place) => "band" + (place % 2))
    .attr("x", (band) => edge(band.start, -0.5))
    .attr("width", (band) => Math.max(1, edge(band.end, 0.5) - edge(band.start, -0.5)))
    .attr("y", top)
    .attr("height", height - top - bottom)
    .append("title")
    .text((band) => `graph ${band.graph + 1}, phase ${band.phase}`);
  svg
    .append("g")
    .selectAll("text")
    .data(bands.filter((band) => edge(band.end, 0.5) - edge(band.start, -0.5) > 6.5 * label(band).length))
    .join("text")
    .attr("class", "phase")
    .attr("x", (band) => (edge(band.start, -0.5) + edge(band.end, 0.5)) / 2)
    .attr("y", top - 7)
    .text(label);
  svg
    .append("g")
    .attr("transform", `translate(0,${height - bottom})`)
    .call(
      d3
        .axisBottom(x)
        .ticks(Math.min(10, steps.length))
        .tickFormat((step) => (Number.isInteger(step) ? step + 1 : "")),
    );
  svg.append("g").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(5));
  svg
    .append("text")
    .attr("class", "axis")
    .attr("x", (left + width - right) / 2)
    .attr("y", height - 3)
    .text("step");
  for (const key of ["nodes", "classes"]) {
    // Each graph has an e-graph of its own, so its line begins anew.
    for (const [, group] of d3.group(
      steps.map((step, place) => ({ ...step, place })),
      (step) => step.graph,
    ))
      svg
        .append("path")
        .attr("class", "line " + key)
        .attr(
          "d",
          d3.line(
            (step) => x(step.place),
            (step) => y(step[key]),
          )(group),
        );
    svg
      .append("text")
      .attr("class", "name " + key)
      .attr("x", width - right + 8)
      .attr("y", y(steps.at(-1)[key]) + (key === "nodes" ? -3 : 11))
      .text("e-" + key);
    svg
      .append("g")
      .selectAll("circle")
      .data(steps)
      .join("circle")
      .attr("class", "dot " + key)
      .attr("r", steps.length > 80 ? 1.6 : 2.6)
      .attr("cx", (step, place) => x(place))
      .attr("cy", (step) => y(step[key]))
      .append("title")
      .text(
        (step) =>
          `graph ${step.graph + 1}, ${step.phase}, ${step.step}: ${step.nodes} e-nodes, ${step.classes} e-classes, ${step.seconds.toFixed(3)} s`,
      );
  }
  place.append(svg.node());
}
