// Answers by district as a map, drawn here from the borders that the server keeps: no tiles, nothing from elsewhere.
// Arrows lead from district to district, and what is shown of one under the pointer is said of it too.

import { element, get, intervalWords, newest, number } from "./api.js";
import { rowsOf, textOf, whatOf } from "./numbers.js";

const SPACE = "http://www.w3.org/2000/svg";
const WIDTH = 1000, MOST_HEIGHT = 1200, EDGE = 8, MOST_LATITUDE = 80;
// From few to many, as in files for QGIS and in Python.
const CLASSES = ["#eff3ff", "#bdd7e7", "#6baed6", "#3182bd", "#08519c"];
const HATCHED = "hatched: the interval is wider than the number itself; do not read these colours";
// Digits of a legend, and up to how many where fewer do not tell the ends of classes apart.
const LEGEND_DIGITS = 3, MOST_DIGITS = 12;
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

// Ends of classes, one more than there are. A class begins with a number of a district and holds as many districts as the
// others; districts of one number are in one class, so that none is empty (`map_classes.py` does the same for files). Pictures
// that share a scale share classes of one width.
export function classEnds(values, scale) {
  if (scale) {
    const [low, high] = scale;
    return high > low ? [...CLASSES.map((_, at) => low + (high - low) * at / CLASSES.length), high] : [low, low];
  }
  let left = [...values].sort((one, other) => one - other);
  const ends = [left[0]];
  for (let classes = CLASSES.length; classes > 1; classes--) {
    let after = left.slice(Math.ceil(left.length / classes)).filter((value) => value > left[0]);
    if (!after.length) after = left.filter((value) => value > left[0]);
    if (!after.length) break;
    left = left.filter((value) => value >= after[0]);
    ends.push(left[0]);
  }
  return [...ends, left.at(-1)];
}

// Each class with its colour and the words of the legend: fewer than five are spread over all shades, and ends have as many
// digits as tell them apart.
export function coloursOf(ends) {
  const many = ends.length - 1, last = CLASSES.length - 1, unlike = new Set(ends).size;
  let digits = LEGEND_DIGITS, words;
  do words = ends.map((end) => number(end, digits)); while (new Set(words).size < unlike && digits++ < MOST_DIGITS);
  return Array.from({ length: many }, (_, at) => ({ colour: CLASSES[many > 1 ? Math.round(at * last / (many - 1)) : last / 2],
    words: words[at] === words[at + 1] ? words[at] : `${words[at]} to ${words[at + 1]}` }));
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
  return element("ul", { class: "legend quiet" }, ...coloursOf(ends).map(({ colour, words }) => patch(colour, words)),
    ...(hatched ? [patch(`url(#${pattern})`, HATCHED)] : []));
}

function svgOf(answer, shapes, rows, ends, told) {
  const { place, width, height } = placed(shapes), pattern = `hatch-${++maps}`, byLevel = new Map(rows.map((row, at) => [row.places[0], { row, at }]));
  const colours = coloursOf(ends).map(({ colour }) => colour);
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
    const area = make("path", { ...style, fill: colours[classOf(found.row.value, ends)], class: "district", role: "button", tabindex: -1, "aria-label": wordsOf(answer, found.row) });
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
  return { svg, pattern, hatched: drawn.some((one) => isWide(one.row)) };
}

// Draw a map into a box; `otherwise` draws where the borders cannot be had. The newest drawing of a box stays.
export async function drawDistricts(box, answer, scale, otherwise) {
  const current = begun(box);
  let shapes;
  try { shapes = await bordersOf(answer.question.table, answer.axes[0].attribute); } catch { if (current()) otherwise(); return; }
  if (!current()) return;
  const rows = rowsOf(answer), ids = new Set(shapes.districts.map(({ id }) => String(id))), onMap = rows.filter((row) => ids.has(row.places[0]));
  // What has no place on the map, as missing values, is in none of its classes.
  const ends = classEnds((onMap.length ? onMap : rows).map((row) => row.value), scale);
  const told = element("p", { class: "quiet told" }, "Point at a district, or step into the map and use the arrows.");
  const { svg, pattern, hatched } = svgOf(answer, shapes, rows, ends, told), lacking = rows.filter((row) => !ids.has(row.places[0]));
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
