// Answers as numbers: a table, a file, a few lines of Python, and a sentence.

import { element, endOf, number } from "./api.js";

// An attribute with what its numbers count: "salary (thousand a year)".
export const titleOf = (axis) => axis.unit ? `${axis.attribute} (${axis.unit})` : axis.attribute;

// A date without the midnight at which it begins.
export const day = (one) => String(one).replace(/T00:00:00$/, "");

const moment = (one) => Date.parse(String(one).includes("T") ? `${one}Z` : one);
const ofDates = (answer) => answer.question.kind === "quantiles" && answer.axes[0].kind === "date";

// Quantiles of dates come as places among the bins: 2.5 is the middle of the third. As moments they can be drawn.
export function inTime(answer) {
  if (!ofDates(answer)) return answer;
  const cuts = answer.axes[0].edges.map(moment);
  const when = (place) => {
    const at = Math.min(Math.floor(place), cuts.length - 2);
    return cuts[at] + (place - at) * (cuts[at + 1] - cuts[at]);
  };
  return { ...answer, values: answer.values.map(when), intervals: answer.intervals?.map((pair) => pair.map(when)) ?? null };
}

// A number, or a moment in the same column: whole days where bins are days or more. Ends of intervals are rounded outwards.
function readable(one, digits, end) {
  if (typeof one === "string") return one;
  if (digits === undefined) return number(one, 6);
  return end === "value" ? one.toLocaleString("en", { maximumFractionDigits: digits }) : endOf(one, digits, end === "high");
}

// Digits after the point that an interval leaves any meaning: two of its half width.
function fraction({ low, high }) {
  const half = (high - low) / 2;
  return half > 0 ? Math.min(Math.max(0, 1 - Math.floor(Math.log10(half))), 9) : undefined;
}

const between = (low, high) => `${low} to ${high}`;

export function labels(axis) {
  const named = axis.kind === "category" ? axis.edges.map(String)
    : axis.edges.slice(0, -1).map((low, at) => between(day(low), day(axis.edges[at + 1])));
  return axis.missing ? [...named, "(missing)"] : named;
}

// What the numbers of an answer are: records, or a mean in its unit.
export const whatOf = (answer) => answer.unit ? `${answer.what} (${answer.unit})` : answer.what ?? "records";

// One row per number: where it stands, value, and both ends of its interval.
export function rowsOf(answer) {
  const { kind } = answer.question, rows = [];
  const add = (places, value, pair) => rows.push({ places, value, low: pair?.[0], high: pair?.[1] });
  const walk = (values, intervals, places, axes) => values.forEach((value, at) => {
    const here = [...places, axes[0][at]];
    if (Array.isArray(value)) walk(value, intervals?.[at], here, axes.slice(1));
    else add(here, value, intervals?.[at]);
  });
  let axes;
  if (kind === "ranges") axes = [answer.question.ranges.map((pair) => between(...pair))];
  else if (kind === "rectangles") axes = [answer.question.rectangles.map((box) => box.map((pair) => between(...pair)).join(" by "))];
  else if (kind === "quantiles") axes = [answer.question.q];
  else if (kind === "cumulative") axes = [answer.axes[0].edges.slice(1).map((one) => `up to ${day(one)}`)];
  else axes = answer.axes.map(labels);
  const { values, intervals } = inTime(answer);
  walk(values, intervals, [], axes);
  if (!ofDates(answer)) return rows;
  const length = answer.axes[0].edges.some((one) => day(one).includes("T")) ? 16 : 10;
  const date = (one) => one === undefined ? one : new Date(one).toISOString().slice(0, length);
  return rows.map(({ places, value, low, high }) => ({ places, value: date(value), low: date(low), high: date(high) }));
}

export function headsOf(answer) {
  const { kind } = answer.question;
  const first = kind === "quantiles" ? ["part"] : kind === "rectangles" ? [answer.axes.map(titleOf).join(" by ")]
    : answer.axes.map(titleOf);
  const held = { truth: "", population: "population: " }[answer.intervals_hold] ?? "noise only: ";
  const ends = answer.intervals ? ["low", "high"].map((end) => held + end) : [];
  return [...first, kind === "quantiles" ? titleOf(answer.axes[0]) : whatOf(answer), ...ends];
}

// With the true numbers beside them, on the curator's page.
// True numbers stand beside private ones, by their names: {"true": [...]}.
export function fillNumbers(table, answer, truths = {}, most = 2000) {
  const rows = rowsOf(answer), ends = answer.intervals ? ["low", "high"] : [];
  const heads = [...headsOf(answer), ...Object.keys(truths)];
  // The list is cut where the next row would stand: how many there are is said.
  const title = table.closest("details")?.querySelector("summary");
  if (title) title.textContent = `The numbers: ${rows.length} rows`;
  table.tHead.replaceChildren(element("tr", {}, ...heads.map((one) => element("th", { scope: "col" }, one))));
  table.tBodies[0].replaceChildren(...rows.slice(0, most).map((row, at) => element("tr", {},
    ...row.places.map((one) => element("td", {}, String(one))), ...["value", ...ends].map((one) => element("td", {}, row[one] === undefined ? "" : readable(row[one], fraction(row), one))),
    ...Object.values(truths).map((one) => element("td", {}, number(one[at], 6))))));
}

// A table of its own for a picture that came later than the page.
export function numbersBeside(answer, about, truths = {}) {
  const table = element("table", {}, element("thead"), element("tbody"));
  fillNumbers(table, answer, truths);
  return element("details", {}, element("summary", {}, `The numbers: ${about}`),
    element("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": `table: ${about}` }, table));
}

const quoted = (value) => /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value);

// Both ends of the bins of each ordered attribute, in the order of rows.
function boundsOf(answer) {
  const { kind } = answer.question, ends = (cuts) => cuts.slice(0, -1).map((low, at) => [low, cuts[at + 1]]);
  if (kind === "quantiles") return { heads: [], rows: [] };
  let axes = answer.axes.map((axis) => axis.kind === "category" ? null : ends(axis.edges.map(day)));
  if (kind === "ranges") axes = [answer.question.ranges];
  else if (kind === "cumulative") axes = [axes[0].map((pair) => [day(answer.axes[0].edges[0]), pair[1]])];
  else if (kind === "rectangles") {
    return { heads: answer.axes.flatMap((axis) => [`${axis.attribute} from`, `${axis.attribute} to`]), rows: answer.question.rectangles.map((box) => box.flat()) };
  }
  const heads = answer.axes.flatMap((axis, at) => axes[at] ? [`${axis.attribute} from`, `${axis.attribute} to`] : []);
  let rows = [[]];
  answer.axes.forEach((axis, at) => {
    const bins = kind === "ranges" ? axes[at].length : axis.bins;
    rows = rows.flatMap((row) => Array.from({ length: bins }, (_, bin) => axes[at] ? [...row, ...(axes[at][bin] ?? ["", ""])] : row));
  });
  return { heads, rows };
}

// One line per number; what was asked, promised and paid is said in each, so that no line stands alone.
export function csvOf(answer) {
  const ends = answer.intervals ? ["low", "high"] : [], bounds = boundsOf(answer), raw = answer.raw?.flat(9) ?? null;
  // The accuracy that was asked for is about records.
  const alpha = answer.intervals_hold === "population" ? undefined : answer.question.cost.alpha, currency = answer.rho === undefined ? "epsilon" : "rho";
  const about = [...(raw ? ["raw estimate"] : []), ...bounds.heads, currency, "alpha", "confidence", "as of", "question"];
  const lines = rowsOf(answer).map((row, at) => [...row.places, row.value, ...ends.map((end) => row[end]), ...(raw ? [raw[at]] : []),
    ...(bounds.rows[at] ?? bounds.heads.map(() => "")), answer[currency], alpha ?? "", answer.confidence, answer.as_of ?? "", JSON.stringify(answer.question)]);
  return [[...headsOf(answer), ...about], ...lines].map((line) => line.map(quoted).join(",")).join("\n") + "\n";
}

// A name for files that says what is inside.
export const fileName = (answer, words) => `${answer.question.table} ${words}`.toLowerCase().replace(/[^\p{L}\p{N}.]+/gu, "_").replace(/^_+|_+$/g, "").slice(0, 100);

const python = (value) => value === null ? "None" : value === true ? "True" : value === false ? "False"
  : Array.isArray(value) ? `[${value.map(python).join(", ")}]`
    : typeof value === "object" ? `{${Object.entries(value).filter(([, one]) => one !== null)
      .map(([name, one]) => `${JSON.stringify(name)}: ${python(one)}`).join(", ")}}` : JSON.stringify(value);

export const pythonOf = (answer) => `import blowfish_fast as bf

client = bf.connect(${JSON.stringify(location.origin)}, token="your secret")
question = ${python(answer.question)}
# This answer, which was paid for. client.ask(question) brings it too, unless it was asked under another request.
answer = client.${answer.of ? "population" : "answer"}(${JSON.stringify(answer.question.table)}, ${JSON.stringify(answer.request)}${answer.together ? ", together=True" : ""})
print(answer.values, answer.intervals)
`;

// What a picture shows, in a sentence.
export function textOf(answer) {
  const rows = rowsOf(answer), values = rows.map((one) => one.value);
  if (ofDates(answer)) return `${rows.length} dates: ${rows.map((one) => `${one.places[0]} at ${one.value}`).join(", ")}`;
  const least = rows[values.indexOf(Math.min(...values))], most = rows[values.indexOf(Math.max(...values))];
  return `${rows.length} numbers; the smallest is ${number(least.value)} at ${least.places.join(", ")}, the largest ${number(most.value)} at ${most.places.join(", ")}`;
}

export function save(name, text, type = "text/csv") {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}
