// Data sets: add a CSV file, then say what is public about its columns.

import { byId, element, get, markFields, newest, notice, options, post, trying } from "./api.js";
import { splitItems } from "./items.js";

const KINDS = [["", "leave out"], ["number", "number"], ["category", "category"], ["districts", "districts, drawn as a map"], ["date", "date"], ["words", "words nobody listed"]];
const guess = (type) => /int|float|decimal/.test(type) ? "number" : /date|timestamp/.test(type) ? "date" : /string/.test(type) ? "category" : "";

const MONTHS = Array.from({ length: 13 }, (_, at) => `${new Date().getFullYear() - 1 + Math.floor(at / 12)}-${String(at % 12 + 1).padStart(2, "0")}-01`);

// Where a field of a table is written, if not under its own name.
const FIELDS = { name: "table-name", at_most: "at-most", description: "table-description", epsilon: "description-epsilon", rho: "description-epsilon", rate: "drawn-of", sample: "drawn-classes", column: "drawn-column", weights: "drawn-classes" };

let sets = {};
const listings = newest();

// What is no number stays a text, and the server says that the column holds none.
const asNumber = (text) => text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text);

// Coordinates of GeoJSON are degrees unless the file states another system.
const DEGREES = /CRS84|EPSG:+4326$/i;

// Borders out of a file that the curator chose; the server says what is wrong with them.
async function bordersIn(file, id) {
  if (!file) return { id, features: [] };
  let content;
  try { content = JSON.parse(await file.text()); } catch { throw new Error(`${file.name} holds no GeoJSON`); }
  const stated = content?.crs?.properties?.name;
  return { id, features: content?.features ?? [], ...(stated && !DEGREES.test(stated) ? { degrees: false } : {}) };
}

// An empty field is nothing, and not 0: the server asks for it.
const stated = (box) => box.value.trim() === "" ? null : Number(box.value);

// Only names and types of columns are known here: ranges and levels are for the curator to state.
function row(name, type) {
  const kind = element("select", { "aria-label": `kind of ${name}` }, ...options(KINDS, guess(type)));
  const small = (label, value) => element("input", { type: "number", step: "any", value, "data-field": label === "end" ? "stop" : label, "aria-label": `${label} of ${name}` });
  // No range is proposed: whoever overlooked one would publish all else as its ends.
  const [start, stop, width] = [small("start", ""), small("end", ""), small("width", 1)];
  const unit = element("input", { type: "text", maxlength: "40", placeholder: "unit: years", "data-field": "unit", "aria-label": `unit of ${name}` });
  const cells = element("span", { class: "cells" }, "from", start, "to", stop, "by", width, unit);
  const listed = element("input", { type: "text", "aria-label": `levels of ${name}` });
  // Every word of these symbols, up to this length, could occur: no list is needed.
  const symbols = element("input", { type: "text", maxlength: "256", value: "a-z0-9 -", "data-field": "symbols", "aria-label": `symbols of ${name}` });
  const longest = element("input", { type: "number", min: "1", max: "512", step: "1", value: 14, "data-field": "longest", "aria-label": `longest word of ${name}` });
  const rule = element("span", { class: "cells" }, "of", symbols, "up to", longest, "long");
  // Borders are a file of the curator's: each district is a level by one of its properties.
  const file = element("input", { type: "file", accept: ".geojson,.json,application/geo+json", "data-field": "features", "aria-label": `borders of ${name}, a file of GeoJSON` });
  const id = element("input", { type: "text", maxlength: "128", value: name, "data-field": "id", "aria-label": `property that holds ${name}` });
  const map = element("span", { class: "cells" }, file, "by", id);
  const joined = element("select", { "aria-label": `missing values of ${name}` },
    ...options([["all", "all values"], ["end", "the last values"], ["apart", "nothing: it is public"]], "all"));
  const key = () => [byId("person").value, byId("record").value].includes(name);
  const refresh = () => {
    // Whose record it is, and which of hers, is no attribute.
    kind.disabled = key();
    cells.hidden = key() || kind.value !== "number";
    map.hidden = key() || kind.value !== "districts";
    rule.hidden = key() || kind.value !== "words";
    listed.hidden = key() || (kind.value !== "category" && kind.value !== "date");
    listed.placeholder = kind.value === "date" ? "2024-01-01, 2024-02-01, ..." : 'a, earth science, "b, c"';
    if (kind.value === "date" && !listed.value) listed.value = MONTHS.join(", ");
    // Any two words are joined, and to what is missing, too.
    joined.hidden = key() || type.startsWith("!") || kind.value === "" || kind.value === "words";
  };
  kind.addEventListener("change", refresh);
  refresh();
  const values = () => splitItems(listed.value);
  const attribute = async () => {
    // The types that the database knows begin with ! where NULL is ruled out.
    const made = { name, ...(type.startsWith("!") ? { missing: "none" } : kind.value === "words" ? {} : { extras_joined: joined.value }) };
    if (kind.value === "words") return { ...made, words: { symbols: symbols.value, longest: Number(longest.value) } };
    if (kind.value === "number") return { ...made, cells: { start: stated(start), stop: stated(stop), width: Number(width.value) },
      ...(/^!?u?int\d/.test(type) ? { whole: true } : {}),
      ...(unit.value.trim() ? { unit: unit.value.trim() } : {}) };
    if (kind.value === "districts") return { ...made, districts: await bordersIn(file.files[0], id.value.trim()) };
    if (kind.value === "date") return { ...made, dates: values() };
    return { ...made, levels: /int|bool|float|decimal/.test(type) ? values().map(asNumber) : values() };
  };
  const words = type.startsWith("!") ? `${type.slice(1)}, never missing` : type;
  const line = element("tr", {}, element("td", {}, name), element("td", { class: "quiet" }, words),
    element("td", {}, kind), element("td", {}, cells, listed, rule, map), element("td", {}, joined));
  // Where a field of the attribute is written: its own box, or the first that is shown.
  const box = (field) => line.querySelector(`[data-field="${field}"]`) ?? (!cells.hidden ? start : !rule.hidden ? symbols : !map.hidden ? file : listed);
  return { name, line, used: () => kind.value !== "" && !key(), attribute, refresh, box };
}

function describe() {
  const name = byId("data-set").value, columns = sets[name] ?? {};
  const keys = Object.keys(columns).map((one) => [one, one]);
  byId("person").replaceChildren(...options([["", "one row, one person"], ...keys], ""));
  byId("record").replaceChildren(...options([["", "drawn anew each time"], ...keys], ""));
  const rows = Object.entries(columns).map(([column, type]) => row(column, type));
  byId("columns").tBodies[0].replaceChildren(...rows.map((one) => one.line));
  byId("table-name").value = name.split(/[:.]/).at(-1);
  const keyed = () => {
    byId("at-most").disabled = byId("record").disabled = byId("population").disabled = !byId("person").value;
    for (const one of rows) one.refresh();
  };
  byId("person").onchange = byId("record").onchange = keyed;
  keyed();
  byId("drawn-column").replaceChildren(...options(keys, ""));
  byId("drawn").onchange = () => {
    const drawn = byId("drawn").value, classes = ["stratified", "weighted"].includes(drawn), weights = drawn === "weighted";
    byId("drawn-of-label").hidden = byId("drawn-of").disabled = !["simple", "bernoulli"].includes(drawn);
    byId("drawn-of-words").textContent = drawn === "bernoulli" ? "The chance" : "So many people; empty: a superpopulation";
    byId("drawn-column-label").hidden = byId("drawn-classes-label").hidden = !classes;
    byId("drawn-column-words").textContent = weights ? "Column of the classes of weights" : "Column of the strata";
    byId("drawn-classes-words").textContent = weights ? "Weights of its cells, in their order" : "People of each stratum in the population";
    byId("drawn-classes").placeholder = weights ? "64, 32, 16" : "north = 12000, south = 36842";
  };
  byId("drawn").onchange();
  byId("describe-form").hidden = !rows.length;
  byId("describe-form").onsubmit = (event) => {
    event.preventDefault();
    trying(async () => {
      const person = byId("person").value, record = byId("record").value, presence = byId("presence").value;
      const attributes = await Promise.all(rows.filter((one) => one.used()).map((one) => one.attribute()));
      const table = { name: byId("table-name").value, source: name, attributes, description: byId("table-description").value,
        ...(person ? { person, at_most: Number(byId("at-most").value), ...(record ? { record } : {}) } : {}),
        ...(person && byId("population").value ? { population: byId("population").value } : {}),
        ...(byId("snapshot").value ? { snapshot: byId("snapshot").value } : {}),
        ...sampleStated(),
        ...(presence ? { presence: presence === "true" ? true : Number(presence) } : {}) };
      const budget = byId("description-epsilon").value;
      const wrong = ({ field, of }) => rows.find((one) => one.name === of)?.box(field) ?? byId(FIELDS[field] ?? field);
      try {
        await post("/api/curator/tables", { table, ...(budget ? { [byId("description-currency").value]: Number(budget) } : {}) });
      } catch (problem) {
        markFields(problem.fields, wrong);
        document.querySelector("#describe-form [aria-invalid]")?.focus();
        throw problem;
      }
      location.reload();
    });
  };
}

// People of strata by level: the last equals sign parts them, since a level may hold one.
const peopleOf = (text) => Object.fromEntries(splitItems(text).map((item) => {
  const at = item.lastIndexOf("=");
  return [item.slice(0, at < 0 ? item.length : at).trim(), asNumber(at < 0 ? "" : item.slice(at + 1).trim())];
}));

// How the records were drawn, where they are a sample: of so many people, with a chance, or by classes.
function sampleStated() {
  const drawn = byId("drawn").value, of = byId("drawn-of").value.trim();
  if (!drawn) return {};
  const column = byId("drawn-column").value, classes = byId("drawn-classes").value;
  if (drawn === "stratified") return { sample: { drawn, column, population: peopleOf(classes) } };
  if (drawn === "weighted") return { sample: { drawn, column, weights: splitItems(classes).map(asNumber) } };
  const people = drawn === "simple" && of ? { population: asNumber(of) } : {};
  return { sample: { drawn, ...people, ...(drawn === "bernoulli" ? { rate: of } : {}) } };
}

// Which of the first steps are done.
export function done(step, yes) {
  document.querySelector(`#steps [data-step=${step}]`)?.classList.toggle("done", yes);
}

export async function dataSets(chosen) {
  const current = listings(), answer = await get("/api/curator/data-sets");
  if (!current()) return;
  sets = answer;
  done("connect", Object.keys(sets).length > 0);
  byId("data-set").replaceChildren(...options(Object.keys(sets).map((one) => [one, one]), chosen));
  describe();
}

export function listenForData() {
  byId("data-set").addEventListener("change", describe);
  byId("data-form").addEventListener("submit", (event) => {
    event.preventDefault();
    trying(async () => {
      const content = new FormData();
      content.append("name", byId("data-name").value);
      content.append("file", byId("data-file").files[0]);
      const added = await post("/api/curator/data-sets", content);
      notice(`added ${added.name}; now describe its columns`);
      await dataSets(added.name);
    });
  });
}
