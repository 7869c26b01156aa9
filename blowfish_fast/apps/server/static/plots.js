// Pictures of answers. Colours are told apart by everybody (Okabe and Ito).

/* global Plotly */
import { element, intervalWords, number } from "./api.js";
import { begun, byDistrict, drawDistricts } from "./districts.js";
import { inTime, labels, numbersBeside, textOf, titleOf, whatOf } from "./numbers.js";

const BLUE = "#0072b2", ORANGE = "#d55e00";
const ANALYSTS = ["#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
const DASHES = ["dot", "dashdot", "longdash", "dash", "longdashdot"];
const SHORT_SPAN = 60_000;
const LAYOUT = {
  margin: { l: 55, r: 15, t: 10, b: 45 },
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
  font: { family: "system-ui, sans-serif", size: 12 }, showlegend: false,
  hovermode: "closest", barmode: "overlay", dragmode: false,
};
const CONFIG = { displayModeBar: false, responsive: true };

// Plotly reads tags in labels: names and levels are only letters here, "<18" as well.
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

const isNamed = (axis) => axis.kind === "category" || Boolean(axis.missing);

const middles = (axis) => axis.missing ? labels(axis).map(plain) : axis.kind === "number"
  ? axis.edges.slice(0, -1).map((low, at) => (low + axis.edges[at + 1]) / 2)
  : axis.kind === "date" ? axis.edges.slice(0, -1) : axis.edges.map(plain);

// Levels are set aslant where they would overlap: room is made for the longest.
const named = (category) => category ? { type: "category", automargin: true } : {};

// Light or dark, as the page is.
const shade = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function put(box, traces, layout, words) {
  box.classList.add("drawn");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", words);
  const axis = { gridcolor: shade("--line"), zerolinecolor: shade("--quiet") };
  return Plotly.react(box, traces, { ...LAYOUT, font: { ...LAYOUT.font, color: shade("--ink") }, ...layout,
    xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis } }, CONFIG);
}

function errors(answer) {
  if (!answer.intervals || answer.values.length > 400) return undefined;
  // Three kinds: of the true number, of the noise alone, and of the population, which are bold.
  const people = answer.intervals_hold === "population";
  return {
    type: "data", symmetric: false, thickness: people ? 3 : 1, width: people ? 8 : 2,
    color: shade(people ? "--orange" : answer.intervals_hold === "truth" ? "--ink" : "--quiet"),
    array: answer.values.map((value, at) => Math.max(0, answer.intervals[at][1] - value)),
    arrayminus: answer.values.map((value, at) => Math.max(0, value - answer.intervals[at][0])),
  };
}

// Many bins: a band instead of bars of error.
function band(answer, x, colour) {
  if (!answer.intervals || answer.values.length <= 400) return [];
  const edge = (side) => ({ type: "scatter", mode: "lines", x, y: answer.intervals.map((one) => one[side]),
    line: { width: 0 }, hoverinfo: "skip", showlegend: false });
  const hatched = answer.intervals_hold !== "noise" ? {} : { fillpattern: { shape: "/", fgcolor: colour, bgcolor: shade("--paper") } };
  return [edge(0), { ...edge(1), fill: "tonexty", fillcolor: `${colour}33`, ...hatched }];
}

const sides = (pair) => plain(`${pair[0]} to ${pair[1]}`);

function places(answer) {
  const question = answer.question;
  if (question.kind === "ranges") return question.ranges.map(sides);
  if (question.kind === "rectangles") return question.rectangles.map((box) => box.map(sides).join(" by "));
  if (question.kind === "quantiles") return question.q;
  const axis = answer.axes[0];
  // Running totals are reached where a bin ends.
  return question.kind === "cumulative" ? axis.edges.slice(1) : middles(axis);
}

function oneAxis(given, at, name) {
  const answer = inTime(given);
  const colour = shade(at % 2 ? "--orange" : "--blue"), x = places(answer), kind = answer.question.kind;
  const shared = { x, y: answer.values, name, error_y: errors(answer) };
  if (kind === "quantiles") {
    const points = { ...shared, type: "scatter", mode: "markers", marker: { color: colour, size: 9 } };
    if (answer === given || !answer.intervals) return [points];
    // Moments have no bars of error: their intervals are lines of their own.
    const bars = { type: "scatter", mode: "lines", line: { color: colour, width: 1.5 }, hoverinfo: "skip", showlegend: false,
      x: x.flatMap((one) => [one, one, null]), y: answer.intervals.flatMap((pair) => [...pair, null]) };
    return [bars, { ...points, error_y: undefined }];
  }
  if (kind === "cumulative" || answer.values.length > 400) {
    const shape = kind === "cumulative" ? "linear" : "hvh";
    return [...band(answer, x, colour), { ...shared, type: "scatter", mode: "lines", line: { color: colour, shape } }];
  }
  return [{ ...shared, type: "bar", marker: { color: colour, opacity: 0.75 } }];
}

// What an interval under the pointer is called.
const HELD = { truth: "interval", population: "population:" };

const isMap = (answer) => answer.axes.length === 2 && Array.isArray(answer.values[0]);

function drawMap(box, answer, scale) {
  const [down, across] = answer.axes;
  // Cells as wide as their bins, with their noise intervals on touch.
  const sides = (axis) => axis.kind === "number" && !axis.missing ? axis.edges : middles(axis);
  const text = answer.intervals?.map((row) => row.map((pair) => intervalWords(pair[0], pair[1])));
  return put(box, [{ type: "heatmap", z: answer.values, x: sides(across), y: sides(down), text,
    hovertemplate: `%{z:,.6~g}${text ? `<br>${HELD[answer.intervals_hold] ?? "noise only:"} %{text}` : ""}<extra></extra>`,
    colorscale: "Viridis", zmin: scale?.colours[0], zmax: scale?.colours[1], colorbar: { thickness: 10, title: { text: plain(whatOf(answer)), side: "right" } } }],
  { xaxis: { title: { text: plain(titleOf(across)) }, ...named(isNamed(across)) },
    yaxis: { title: { text: plain(titleOf(down)) }, ...named(isNamed(down)) } }, textOf(answer));
}

// One range of heights, and one of colours, for several pictures.
export function scaleOf(answers) {
  const cells = answers.flatMap((one) => one.values.flat(9)), ends = answers.flatMap((one) => (one.intervals ?? []).flat(9));
  const least = (numbers, start) => numbers.reduce((low, one) => Math.min(low, one), start);
  const most = (numbers, start) => numbers.reduce((high, one) => Math.max(high, one), start);
  const low = least([...cells, ...ends], 0), high = most([...cells, ...ends], 1);
  return { heights: [low - 0.03 * (high - low), high + 0.05 * (high - low)], colours: [least(cells, Infinity), most(cells, -Infinity)] };
}

// Bins of two widths have unlike counts where the records are alike: densities can be compared.
const widthsOf = (axis) => axis.edges.slice(1).map((high, at) => high - axis.edges[at]);
const ofUnlikeBins = (answers) => answers.every((one) => one.question.kind === "histogram" && one.axes[0].kind === "number" && !one.axes[0].missing)
  && new Set(answers.map((one) => number(widthsOf(one.axes[0])[0]))).size > 1;

function asDensity(answer) {
  const widths = widthsOf(answer.axes[0]);
  return { ...answer, values: answer.values.map((value, at) => value / widths[at]),
    intervals: answer.intervals?.map((pair, at) => pair.map((end) => end / widths[at])) ?? null };
}

// Leave nothing of a map behind where something else is drawn, nor of anything where a map is.
function cleared(box) {
  begun(box);
  if (box.classList.contains("districts")) { box.classList.remove("districts"); box.replaceChildren(); }
}

export function draw(box, answers, names = [], scale = undefined) {
  if (answers.length === 1 && byDistrict(answers[0])) {
    if (box.data) { Plotly.purge(box); box.replaceChildren(); }
    return drawDistricts(box, answers[0], scale?.colours, () => drawBars(box, answers, names, scale));
  }
  return drawBars(box, answers, names, scale);
}

function drawBars(box, answers, names, scale) {
  cleared(box);
  if (!answers.length) { if (box.data) Plotly.purge(box); box.classList.remove("drawn"); return undefined; }
  const first = answers[0], kind = first.question.kind;
  if (isMap(first)) return drawMap(box, first, scale);
  const many = answers.length > 1, dense = many && ofUnlikeBins(answers);
  const traces = answers.flatMap((one, at) => oneAxis(dense ? asDensity(one) : one, at, plain(names[at] ?? `answer ${at + 1}`)));
  const attribute = first.axes.map((one) => plain(titleOf(one))).join(" and ");
  const category = isNamed(first.axes[0]) || kind === "ranges" || kind === "rectangles";
  return put(box, traces, {
    showlegend: many, legend: { orientation: "h", y: 1, yanchor: "bottom" },
    barmode: many ? "group" : "overlay",
    xaxis: { title: { text: kind === "quantiles" ? "part of all records" : attribute }, ...named(category) },
    yaxis: { title: { text: kind === "quantiles" ? attribute : dense ? plain(`records per ${first.axes[0].unit ?? `1 of ${first.axes[0].attribute}`}`) : plain(whatOf(first)) }, range: scale?.heights,
      ...(kind === "quantiles" && first.axes[0].kind === "date" ? { type: "date", automargin: true } : kind === "quantiles" ? {} : { rangemode: "tozero" }) },
  }, answers.map(textOf).join(". "));
}

// Two answers share a picture if their axes mean the same, and stand side by side else.
export function drawCompared(box, answers, names) {
  if (!answers.length) { box.replaceChildren(); return; }
  const alike = (one) => JSON.stringify([isMap(one), one.question.kind === "quantiles", one.axes.map((axis) => axis.attribute)]);
  const apart = (one) => isMap(one) || byDistrict(one);
  const groups = answers.length === 2 && (apart(answers[0]) || alike(answers[0]) !== alike(answers[1])) ? [[0], [1]] : [answers.map((_, at) => at)];
  const plots = groups.map((members) => ({ members, plot: element("div", { class: "plot" }) }));
  box.replaceChildren(...plots.map(({ members, plot }) =>
    element("div", {}, element("h3", {}, members.map((at) => names[at]).join(" and ")), plot,
      ...members.flatMap((at) => [element("p", { class: "quiet" }, `${names[at]}: ${textOf(answers[at])}.`), numbersBeside(answers[at], names[at])]))));
  const scale = answers.length > 1 && (answers.every(isMap) || answers.every(byDistrict)) ? scaleOf(answers) : undefined;
  for (const { members, plot } of plots) draw(plot, members.map((at) => answers[at]), members.map((at) => names[at]), scale);
}

// Steps of the budget, of all charges and of each analyst; oldest charges first.
export function drawBudget(box, charges, total) {
  if (!charges.length) { draw(box, []); return; }
  const times = charges.map((one) => one.time), last = charges.length - 1;
  const dated = new Date(times[last]) - new Date(times[0]) >= SHORT_SPAN;
  const x = dated ? times : charges.map((_, at) => at + 1);
  const start = dated ? times[0] : 0, end = dated ? new Date().toISOString() : last + 2;
  const steps = (chosen, name, line) => {
    let spent = 0;
    const y = chosen.map((at) => { spent += charges[at].cost; return spent; });
    return { type: "scatter", mode: "lines", name: plain(name), x: [start, ...chosen.map((at) => x[at]), end], y: [0, ...y, spent],
      text: ["", ...chosen.map((at) => charges[at].mechanism), ""], line: { shape: "hv", ...line },
      hovertemplate: `${plain(name).replace(/[%{}]/g, "")}: %{y:.4g}<br>%{text}<extra></extra>` };
  };
  const every = charges.map((_, at) => at);
  const names = [...new Set(charges.map((one) => one.analyst ?? "curator"))];
  const own = names.length < 2 ? [] : names.map((name, number) => steps(
    every.filter((at) => (charges[at].analyst ?? "curator") === name), name,
    { color: ANALYSTS[number % ANALYSTS.length], dash: DASHES[number % DASHES.length], width: 2 }));
  put(box, [
    { ...steps(every, "spent", { color: BLUE, width: 3 }), fill: "tozeroy", fillcolor: `${BLUE}22` }, ...own,
    { type: "scatter", mode: "lines", name: "budget", x: [start, end], y: [total, total], hoverinfo: "skip",
      line: { color: ORANGE, dash: "dash" } },
  ], { showlegend: true, legend: { orientation: "h", y: 1, yanchor: "bottom" },
    xaxis: { title: { text: dated ? "" : "charges" }, dtick: dated || last > 20 ? undefined : 1 },
    yaxis: { title: { text: `${charges[last].currency} spent` }, range: [0, 1.08 * total] } },
  `${charges.length} charges; the table below lists them`);
}

// Running totals of a series after each epoch, and the band of their intervals.
export function drawSeries(box, one) {
  const side = (name, y, more) => ({ type: "scatter", mode: "lines", name, x: one.epochs, y, hoverinfo: "skip",
    showlegend: false, line: { width: 0, color: BLUE }, ...more });
  put(box, [
    side("low", one.low, {}), side("high", one.high, { fill: "tonexty", fillcolor: `${BLUE}33` }),
    { type: "scatter", mode: "lines+markers", name: "running total", x: one.epochs, y: one.totals,
      line: { color: BLUE, width: 2 }, hovertemplate: "%{x}: %{y:,.6~g}<extra></extra>" },
  ], { showlegend: false, xaxis: { type: "category", title: { text: plain(`${one.column}, by ${one.every}`) } },
    yaxis: { title: { text: "records so far" }, rangemode: "tozero" } },
  `running total after ${one.epochs.length} epochs: ${number(one.totals.at(-1))}, from ${intervalWords(one.low.at(-1), one.high.at(-1))}`);
}

export function drawTradeOff(box, rows, chosen, picked, currency) {
  const points = rows.filter((one) => one.theta !== null).sort((one, other) => one.theta - other.theta);
  const full = rows.find((one) => one.theta === null);
  if (!points.length) return;
  const here = points.findLast((one) => one.theta <= chosen) ?? points[0];
  put(box, [
    { type: "scatter", mode: "lines+markers", x: points.map((one) => one.theta), y: points.map((one) => one.cost),
      marker: { size: 11, color: shade("--blue") }, line: { color: shade("--blue") },
      hovertemplate: `theta %{x}: ${currency} %{y:.4g}<extra></extra>` },
    { type: "scatter", mode: "lines", x: [points[0].theta, points.at(-1).theta], y: [full.cost, full.cost],
      line: { dash: "dash", color: ORANGE }, hovertemplate: `default policy: ${number(full.cost)}<extra></extra>` },
    { type: "scatter", mode: "markers", x: [here.theta], y: [here.cost], hoverinfo: "skip",
      marker: { size: 18, color: "rgba(0,0,0,0)", line: { color: ORANGE, width: 3 } } },
  ], { xaxis: { type: "log", title: { text: "threshold theta" } },
    yaxis: { title: { text: currency }, rangemode: "tozero" } },
  `from ${number(points[0].cost)} at theta ${points[0].theta} to ${number(full.cost)} where whole records are secret; the table below lists all`);
  box.removeAllListeners?.("plotly_click");
  box.on("plotly_click", (event) => {
    const point = event.points.find((one) => one.curveNumber === 0);
    if (point) picked(point.x);
  });
}
