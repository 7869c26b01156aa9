// Answers by district as a map, drawn here from the borders that the server keeps: no tiles, nothing from elsewhere.
// Arrows lead from district to district, and what is shown of one under the pointer is said of it too.

import { element, get, intervalWords, newest, number } from "./api.js";
import { rowsOf, textOf, whatOf } from "./numbers.js";

const SPACE = "http://www.w3.org/2000/svg";
const WIDTH = 1000, MOST_HEIGHT = 1200, EDGE = 8, MOST_LATITUDE = 80;
// From few to many, as in files for QGIS and in Python.
const CLASSES = ["#eff3ff", "#bdd7e7", "#6baed6", "#3182bd", "#08519c"];
const HATCHED = "hatched: the interval is wider than the number itself; do not read these colours";
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const borders = new Map(), drawings = new WeakMap();
let maps = 0;

function make(tag, attributes, words) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (words !== undefined) made.textContent = words;
  return made;
}

// Borders are public and stay as they are once a table was asked: each is fetched once.
function bordersOf(table, attribute) {
  const path = `/api/districts?table=${encodeURIComponent(table)}&attribute=${encodeURIComponent(attribute)}`;
  if (!borders.has(path)) borders.set(path, get(path).catch((problem) => { borders.delete(path); throw problem; }));
  return borders.get(path);
}

export const byDistrict = (answer) => answer.axes.length === 1 && Boolean(answer.axes[0].districts) && !Array.isArray(answer.values[0]);

// Ends of the five classes: as many districts in each, or as wide as each other where pictures share them.
function classEnds(values, scale) {
  const parts = CLASSES.map((_, at) => at / CLASSES.length).concat(1);
  if (scale) return parts.map((part) => Math.max(0, scale[0]) + part * (scale[1] - Math.max(0, scale[0])));
  const sorted = [...values].sort((one, other) => one - other);
  return parts.map((part) => {
    const place = part * (sorted.length - 1), at = Math.floor(place);
    return sorted[at] + (place - at) * ((sorted[at + 1] ?? sorted[at]) - sorted[at]);
  });
}

const classOf = (value, ends) => ends.slice(1, -1).filter((end) => value >= end).length;
const isWide = ({ value, low, high }) => low !== undefined && high - low > value;

// A degree of longitude is shorter than one of latitude, and north is above.
function placed({ degrees, districts }) {
  let west = Infinity, east = -Infinity, south = Infinity, north = -Infinity;
  for (const { polygons } of districts) for (const [x, y] of polygons.flat(2)) {
    west = Math.min(west, x); east = Math.max(east, x); south = Math.min(south, y); north = Math.max(north, y);
  }
  const middle = Math.min(Math.abs(south + north) / 2, MOST_LATITUDE), narrow = degrees ? Math.cos(middle * Math.PI / 180) : 1;
  const wide = Math.max((east - west) * narrow, 1e-12), tall = Math.max(north - south, 1e-12);
  const size = Math.min((WIDTH - 2 * EDGE) / wide, (MOST_HEIGHT - 2 * EDGE) / tall);
  const place = ([x, y]) => [EDGE + (x - west) * narrow * size, EDGE + (north - y) * size];
  return { place, width: wide * size + 2 * EDGE, height: tall * size + 2 * EDGE };
}

function outline(polygons, place) {
  const rings = polygons.flat().map((ring) => ring.map(place));
  const points = rings.flat(), ends = (at) => points.reduce(([low, high], one) => [Math.min(low, one[at]), Math.max(high, one[at])], [Infinity, -Infinity]);
  const [left, right] = ends(0), [top, bottom] = ends(1);
  const path = rings.map((ring) => `M${ring.map((point) => point.map((one) => one.toFixed(1)).join(" ")).join("L")}Z`).join("");
  return { path, middle: [(left + right) / 2, (top + bottom) / 2] };
}

function wordsOf(answer, row) {
  const interval = row.low === undefined ? "no interval is known"
    : `${{ truth: "between", population: "in the population between" }[answer.intervals_hold] ?? "noise only: between"} ${intervalWords(row.low, row.high, "and")}`;
  return `${row.places[0]}: ${number(row.value)} ${whatOf(answer)}, ${interval}${isWide(row) ? "; hatched, the interval is wider than the number" : ""}`;
}

// The district that is next in a direction: near, and not far to the side.
function next(drawn, from, [dx, dy]) {
  const cost = ({ middle }) => {
    const x = middle[0] - from.middle[0], y = middle[1] - from.middle[1], along = x * dx + y * dy;
    return along > 0 ? along + 3 * Math.abs(x * dy - y * dx) : Infinity;
  };
  const best = drawn.reduce((least, one) => one !== from && cost(one) < cost(least) ? one : least, from);
  return best;
}

function legendOf(ends, hatched, pattern) {
  const patch = (fill, words) => {
    const swatch = make("svg", { viewBox: "0 0 20 14", width: 20, height: 14, "aria-hidden": "true" });
    swatch.append(make("rect", { x: 0.5, y: 0.5, width: 19, height: 13, fill, stroke: "#5b6573" }));
    return element("li", {}, swatch, ` ${words}`);
  };
  return element("ul", { class: "legend quiet" }, ...CLASSES.map((colour, at) => patch(colour, `${number(ends[at], 3)} to ${number(ends[at + 1], 3)}`)),
    ...(hatched ? [patch(`url(#${pattern})`, HATCHED)] : []));
}

function svgOf(answer, shapes, rows, ends, told) {
  const { place, width, height } = placed(shapes), pattern = `hatch-${++maps}`, byLevel = new Map(rows.map((row, at) => [row.places[0], { row, at }]));
  const svg = make("svg", { viewBox: `0 0 ${width.toFixed(1)} ${height.toFixed(1)}`, role: "group", "aria-label": textOf(answer) });
  const lines = make("pattern", { id: pattern, width: 10, height: 10, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  lines.append(make("rect", { width: 3, height: 10, fill: "#3c3c3c" }));
  svg.append(lines);
  const ring = make("path", { class: "ring", d: "", "aria-hidden": "true" });
  const drawn = shapes.districts.map(({ id, polygons }) => {
    const { path, middle } = outline(polygons, place), found = byLevel.get(String(id));
    const style = { d: path, "fill-rule": "evenodd", stroke: "#ffffff", "stroke-width": 1 };
    // What a filter left out is there, without a number.
    if (!found) { svg.append(make("path", { ...style, fill: "none", stroke: "#9aa5b1", class: "left-out", "aria-hidden": "true" })); return null; }
    const area = make("path", { ...style, fill: CLASSES[classOf(found.row.value, ends)], class: "district", role: "button", tabindex: -1, "aria-label": wordsOf(answer, found.row) });
    svg.append(area);
    if (isWide(found.row)) svg.append(make("path", { ...style, fill: `url(#${pattern})`, class: "hatched", "aria-hidden": "true" }));
    return { area, path, middle, ...found };
  }).filter(Boolean);
  svg.append(ring);
  const show = (one) => { ring.setAttribute("d", one.path); told.textContent = wordsOf(answer, one.row); };
  for (const one of drawn) {
    one.area.addEventListener("pointerenter", () => show(one));
    one.area.addEventListener("focus", () => {
      // One stop for whoever tabs through the page; arrows lead on from there.
      for (const other of drawn) other.area.setAttribute("tabindex", other === one ? 0 : -1);
      show(one);
    });
    const pick = () => svg.parentElement.dispatchEvent(new CustomEvent("district", { detail: one.at }));
    one.area.addEventListener("click", pick);
    one.area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") pick();
      else if (ARROWS[event.key]) next(drawn, one, ARROWS[event.key]).area.focus();
      else if (event.key === "Home") drawn[0].area.focus();
      else if (event.key === "End") drawn.at(-1).area.focus();
      else return;
      event.preventDefault();
    });
  }
  drawn[0]?.area.setAttribute("tabindex", 0);
  const ids = new Set(shapes.districts.map(({ id }) => String(id)));
  return { svg, pattern, hatched: drawn.some((one) => isWide(one.row)), lacking: rows.filter((row) => !ids.has(row.places[0])) };
}

// Draw a map into a box; `otherwise` draws where the borders cannot be had. The newest drawing of a box stays.
export async function drawDistricts(box, answer, scale, otherwise) {
  const current = begun(box);
  let shapes;
  try { shapes = await bordersOf(answer.question.table, answer.axes[0].attribute); } catch { if (current()) otherwise(); return; }
  if (!current()) return;
  const rows = rowsOf(answer), ends = classEnds(rows.map((row) => row.value), scale);
  const told = element("p", { class: "quiet told" }, "Point at a district, or step into the map and use the arrows.");
  const { svg, pattern, hatched, lacking } = svgOf(answer, shapes, rows, ends, told);
  box.classList.add("drawn", "districts");
  box.removeAttribute("role");
  box.removeAttribute("aria-label");
  box.replaceChildren(svg, told, legendOf(ends, hatched, pattern),
    ...(lacking.length ? [element("p", { class: "quiet lacking" }, `Not on the map: ${lacking.map((row) => wordsOf(answer, row)).join("; ")}.`)] : []));
}

// Whoever draws into a box ends what was on its way to it.
export function begun(box) {
  if (!drawings.has(box)) drawings.set(box, newest());
  return drawings.get(box)();
}

// A picture of the map in a box with its title and legend, as a PNG.
export async function pictureOf(box, title) {
  const svg = box.querySelector("svg").cloneNode(true), [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const lines = [...box.querySelectorAll(".legend li")].map((one) => ({ words: one.textContent.trim(), fill: one.querySelector("rect").getAttribute("fill") }));
  const whole = make("svg", { xmlns: SPACE, viewBox: `0 0 ${WIDTH} ${height + 60 + 26 * lines.length}`, width: WIDTH, height: height + 60 + 26 * lines.length });
  whole.append(make("rect", { width: "100%", height: "100%", fill: "#ffffff" }), make("text", { x: EDGE, y: 28, "font-size": 18, "font-family": "sans-serif" }, title));
  svg.querySelector(".ring").remove();
  for (const [name, value] of Object.entries({ x: 0, y: 44, width, height })) svg.setAttribute(name, value);
  whole.append(svg);
  lines.forEach(({ words, fill }, at) => {
    const y = height + 56 + 26 * at;
    whole.append(make("rect", { x: EDGE, y, width: 26, height: 18, fill, stroke: "#5b6573" }), make("text", { x: EDGE + 36, y: y + 14, "font-size": 14, "font-family": "sans-serif" }, words));
  });
  const link = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(whole)], { type: "image/svg+xml" })), picture = new Image();
  try {
    await new Promise((done, failed) => { picture.onload = done; picture.onerror = () => failed(new Error("the map could not be drawn as a picture")); picture.src = link; });
    const canvas = element("canvas", { width: WIDTH, height: Math.ceil(height + 60 + 26 * lines.length) });
    canvas.getContext("2d").drawImage(picture, 0, 0);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally { URL.revokeObjectURL(link); }
}
