// The form of a question: tables, attributes, granularity, stretches, filters.

import { byId, element, number, options } from "./api.js";
import { day, titleOf } from "./numbers.js";

const SEVERAL = ["histogram2d", "rectangles"];
const ORDERED = ["cumulative", "quantiles", "ranges", "rectangles"];
const MOST_FILTERS = 16;
// Values that are added up, or looked at, group by group.
const BY_GROUP = ["mean", "sum", "share"];
const ROWS = ["histogram", "histogram2d", "marginal"];

// Words that nobody listed are asked by the question which are frequent, and by no other.
const listed = (one) => one.kind !== "words";

const pairs = (list) => options(list.map((one) => [one.name, one.name]));

function refill(select, list, keep) {
  const before = select.value;
  select.replaceChildren(...(keep ?? []), ...pairs(list));
  if ([...select.options].some((one) => one.value === before)) select.value = before;
}

// Which tables share the budget, and whether records may change.
export const shared = (table) => (table.population
  ? ` Its budget is that of the population ${table.population}${table.shares_with.length ? `, shared with ${table.shares_with.join(", ")}` : ""}: a person loses the sum over all tables.` : "")
  + ` ${table.versions}`;

// One filter: an attribute, and some of its levels or a stretch of its values.
class FilterRow {
  constructor(form, number, changed) {
    this.form = form;
    const id = (name) => number === 0 ? name : `${name}-${typeof number === "string" ? number : number + 1}`;
    this.attribute = element("select", { id: id("filter"), onchange: () => { this.refill(); changed("filter"); } });
    // Several levels are picked with the control key, or by dragging.
    this.level = element("select", { id: id("filter-value"), multiple: true, size: 3, onchange: () => changed("filter") });
    this.missing = element("select", { id: id("filter-missing"), onchange: () => changed("filter") },
      ...options([["", "left out"], ["too", "too"], ["alone", "alone"], ["not", "all others"]]));
    this.low = element("input", { type: "text", id: id("filter-low"), oninput: () => changed("filter") });
    this.high = element("input", { type: "text", id: id("filter-high"), oninput: () => changed("filter") });
    const field = (words, box) => element("label", {}, words, box);
    this.fields = [field("is", this.level), field("from", this.low), field("to (not included)", this.high), field("missing values", this.missing)];
    this.box = element("div", { class: "grid" }, field("Only records where", this.attribute), ...this.fields);
    this.refill();
  }

  get chosen() { return this.form.find(this.attribute.value); }

  refill() {
    refill(this.attribute, this.form.table.attributes.filter(listed), [element("option", { value: "" }, "(all records)")]);
    const levels = this.chosen?.levels;
    if (levels) {
      refill(this.level, levels.map((one) => ({ name: String(one) })));
      if (!this.level.selectedOptions.length && this.level.options.length) this.level.options[0].selected = true;
    }
    this.fields[3].hidden = this.chosen?.missing !== "cell";
    // A calendar, where cells begin with days.
    const days = this.chosen?.kind === "date" && this.chosen.dates.every((one) => !day(one).includes("T"));
    for (const box of [this.low, this.high]) {
      box.type = days ? "date" : "text";
      [box.min, box.max] = days ? ends(this.chosen).map(day) : ["", ""];
    }
    this.fields[0].hidden = !levels;
    this.fields[1].hidden = this.fields[2].hidden = !this.chosen || Boolean(levels);
    [this.low.placeholder, this.high.placeholder] = ends(this.chosen).map((one) => day(one ?? ""));
  }

  // Let one bin pass, and say so.
  set(attribute, axis, bin) {
    this.attribute.value = attribute.name;
    this.refill();
    this.low.value = this.high.value = this.missing.value = "";
    if (axis.missing && bin === axis.bins - 1) {
      this.missing.value = "alone";
      return `${attribute.name} is missing`;
    }
    if (attribute.levels) {
      for (const one of this.level.options) one.selected = one.value === String(axis.edges[bin]);
      return `${attribute.name} is ${axis.edges[bin]}`;
    }
    [this.low.value, this.high.value] = [axis.edges[bin], axis.edges[bin + 1]].map(day);
    return `${attribute.name} is from ${this.low.value} to ${this.high.value}`;
  }

  filter() {
    const { chosen } = this;
    if (!chosen) return null;
    const missing = chosen.missing === "cell" ? this.missing.value : "";
    if (missing === "alone" || missing === "not") return { attribute: chosen.name, missing: missing === "alone" };
    const too = missing === "too" ? { missing: true } : {};
    if (chosen.levels) {
      const picked = [...this.level.selectedOptions].map((one) => one.value);
      if (!picked.length) throw new Error(`pick at least one level of ${chosen.name}`);
      return { attribute: chosen.name, values: chosen.levels.filter((one) => picked.includes(String(one))), ...too };
    }
    const bound = (box) => box.value.trim() === "" ? null : value(box.value, chosen);
    const low = bound(this.low), high = bound(this.high);
    return low === null && high === null ? null : { attribute: chosen.name, low, high, ...too };
  }
}

export class QuestionForm {
  constructor(tables, changed) {
    this.tables = tables;
    this.changed = changed;
    byId("table").replaceChildren(...pairs(tables));
    this.rows = [];
    this.property = new FilterRow(this, "property", changed);
    this.property.attribute.closest("label").hidden = true;
    byId("property").append(this.property.box);
    for (const id of ["table", "kind", "attribute", "second", "group", "dates", "missing"]) {
      byId(id).addEventListener("change", () => { this.refill(); changed(id); });
    }
    for (const id of ["width", "second-width", "stretches", "parts", "false-values", "group-width", "clip-low", "clip-high", "at-least"]) {
      byId(id).addEventListener("input", () => { this.words(); changed(id); });
    }
    byId("add-filter").addEventListener("click", () => this.addFilter());
    this.addFilter();
    this.refill();
  }

  get table() { return this.tables.find((one) => one.name === byId("table").value); }
  get attribute() { return this.find(byId("attribute").value); }
  find(name) { return this.table?.attributes.find((one) => one.name === name); }

  addFilter() {
    if (this.rows.length >= MOST_FILTERS) return;
    const row = new FilterRow(this, this.rows.length, this.changed);
    this.rows.push(row);
    byId("filters").append(row.box);
  }

  // Filter by one bin of an answer; returns it in words, or nothing where there is no such attribute.
  drill(axis, bin) {
    const attribute = this.find(axis.attribute);
    if (!attribute || bin === undefined) return null;
    let row = this.rows.find((one) => one.chosen === attribute) ?? this.rows.find((one) => !one.chosen);
    if (!row) { this.addFilter(); row = this.rows.find((one) => !one.chosen); }
    if (!row) return null;
    const words = row.set(attribute, axis, bin);
    this.changed("filter");
    return words;
  }

  // Keep each choice possible after another one changed.
  refill() {
    const table = this.table;
    if (!table) return;
    // Words can be listed and cells counted: what the table has not is not offered.
    const offered = [...byId("kind").options];
    for (const one of offered) one.disabled = !table.attributes.some((attribute) => listed(attribute) !== (one.value === "frequent"));
    if (byId("kind").selectedOptions[0]?.disabled) byId("kind").value = offered.find((one) => !one.disabled)?.value;
    const kind = byId("kind").value;
    const lists = kind === "frequent";
    const grouped = BY_GROUP.includes(kind), added = kind === "mean" || kind === "sum";
    const usable = table.attributes.filter((one) => listed(one) !== lists && (!ORDERED.includes(kind) || one.kind !== "category") && (!added || one.kind === "number"));
    refill(byId("attribute"), usable);
    const first = this.attribute;
    refill(byId("second"), (kind === "rectangles" ? usable : table.attributes.filter(listed)).filter((one) => one !== first));
    for (const row of this.rows) row.refill();
    this.refillGroups(grouped, added, kind === "share");
    const dated = kind === "histogram" && first?.kind === "date";
    byId("dates-field").hidden = !dated;
    const asked = kind === "marginal" ? table.attributes.filter(listed) : [first, SEVERAL.includes(kind) && this.find(byId("second").value)];
    byId("missing-field").hidden = !ROWS.includes(kind) || (dated && byId("dates").value !== "") || !asked.some((one) => one && one.missing === "cell");
    byId("second-field").hidden = byId("second-width-field").hidden = !SEVERAL.includes(kind);
    const second = this.find(byId("second").value);
    // A hidden field must not hold the form back: disabled ones are not judged.
    byId("second-width").disabled = !SEVERAL.includes(kind) || second?.kind === "category";
    byId("second-width").max = second?.regular ?? 1;
    byId("parts-field").hidden = kind !== "quantiles";
    byId("stretches-field").hidden = kind !== "ranges" && kind !== "rectangles";
    byId("stretches").placeholder = kind === "rectangles" ? "20 to 40 by 0 to 64; ..." : "20 to 40; 40 to 80";
    byId("attribute-field").hidden = byId("width-field").hidden = kind === "marginal";
    if (lists || kind === "share" || (dated && byId("dates").value)) byId("width-field").hidden = true;
    byId("false-values-field").hidden = !lists;
    byId("filters").hidden = byId("add-filter").hidden = lists;
    byId("several-field").hidden = kind !== "marginal";
    if (kind === "marginal" && byId("several").dataset.table !== table.name) this.offerSeveral(table);
    byId("width").disabled = lists || first?.kind === "category";
    byId("width").max = first?.regular ?? 1;
    for (const [id, one] of [["width", first], ["second-width", second]]) {
      // Some 32 bins are proposed where another attribute is chosen.
      const box = byId(id), of = `${table.name} ${one?.name}`;
      if (one && box.dataset.of !== of) box.value = Math.max(1, Math.round(one.regular / 32));
      box.dataset.of = of;
    }
    // A mean is as fine as its cells.
    if (added) byId("width").value = 1;
    this.words();
  }

  // What sums, means and shares are taken by, and what they are of.
  refillGroups(grouped, added, share) {
    const { table, attribute } = this;
    refill(byId("group"), table.attributes.filter((one) => listed(one) && one !== attribute), [element("option", { value: "" }, "(all records)")]);
    const group = grouped ? this.find(byId("group").value) : undefined;
    byId("group-field").hidden = !grouped;
    byId("group-width-field").hidden = !group || group.kind === "category";
    byId("group-width").disabled = byId("group-width-field").hidden;
    byId("group-width").max = group?.regular ?? 1;
    byId("clip-low-field").hidden = byId("clip-high-field").hidden = !added;
    [byId("clip-low").placeholder, byId("clip-high").placeholder] = added ? ends(attribute).map((one) => String(one ?? "")) : ["", ""];
    byId("at-least-field").hidden = !grouped || byId("kind").value === "sum";
    byId("at-least").placeholder = table.records ? "all records over the groups" : "";
    byId("property-field").hidden = !share;
    this.property.refill();
    if (share && attribute) { this.property.attribute.value = attribute.name; this.property.refill(); }
  }

  offerSeveral(table) {
    byId("several").dataset.table = table.name;
    byId("several").replaceChildren(...table.attributes.filter(listed).map((one, at) => {
      const chosen = element("input", { type: "checkbox", value: one.name, checked: at < 2, onchange: () => this.changed("several") });
      const cells = element("input", { type: "number", min: 1, max: one.regular, value: one.kind === "category" ? 1 : Math.max(1, Math.round(one.regular / 8)),
        disabled: one.kind === "category", "aria-label": `cells per bin of ${one.name}`, oninput: () => this.changed("several") });
      return element("span", { class: "pick" }, element("label", {}, one.name, chosen), cells);
    }));
  }

  // From where to where bins go, and how wide they are, in the attribute's own values.
  words() {
    const kind = byId("kind").value, second = SEVERAL.includes(kind) && this.find(byId("second").value);
    const said = ([one, id]) => {
      const [low, high] = ends(one).map(day), many = this.widthOf(one, id);
      const wide = one.cells ? `each bin covers ${number(many * one.cells.width)}` : `${Math.ceil(one.regular / many)} bins`;
      return `${titleOf({ ...one, attribute: one.name })} from ${low} to ${high}; ${wide}. `;
    };
    const shown = kind === "marginal" || kind === "frequent" || BY_GROUP.includes(kind) ? [] : [[this.attribute, "width"], [second, "second-width"]];
    byId("bins-words").textContent = shown.filter(([one]) => one && one.kind !== "category").map(said).join("");
  }

  widthOf(attribute, id = "width") {
    if (attribute.kind === "category") return 1;
    return Math.min(Math.max(1, Math.round(Number(byId(id).value) || 1)), attribute.regular);
  }

  question(cost) {
    const kind = byId("kind").value, first = this.attribute;
    if (!first) throw new Error("this table has no attribute for such a question");
    const asked = { kind, table: this.table.name, cost, filters: this.rows.map((one) => one.filter()).filter(Boolean) };
    if (kind === "frequent") {
      asked.attribute = first.name;
      asked.filters = [];
      asked.false_values = Number(byId("false-values").value);
    } else if (BY_GROUP.includes(kind)) {
      Object.assign(asked, this.grouped(kind, first));
    } else if (kind === "histogram" && first.kind === "date" && byId("dates").value) {
      // Stretches of calendars have no equal number of cells.
      Object.assign(asked, { kind: "ranges", attribute: first.name, ranges: calendar(first.dates.map(day), byId("dates").value) });
    } else if (kind === "marginal") {
      const picks = [...document.querySelectorAll("#several .pick")].filter((one) => one.querySelector("[type=checkbox]").checked);
      if (!picks.length) throw new Error("pick at least one attribute");
      asked.attributes = picks.map((one) => one.querySelector("[type=checkbox]").value);
      asked.granularity = picks.map((one) => Number(one.querySelector("[type=number]").value) || 1);
    } else if (SEVERAL.includes(kind)) {
      const second = this.find(byId("second").value);
      if (!second) throw new Error("this question needs a second attribute");
      asked.attributes = [first.name, second.name];
      asked.granularity = [this.widthOf(first), this.widthOf(second, "second-width")];
      if (kind === "rectangles") {
        asked.rectangles = stated().map((one) => one.split(/\s+by\s+/i).map((side, at) => stretch(side, at ? second : first)));
      }
    } else {
      asked.attribute = first.name;
      asked.width = this.widthOf(first);
      if (kind === "ranges") asked.ranges = stated().map((one) => stretch(one, first));
      if (kind === "quantiles") asked.q = byId("parts").value.split(/[\s,;]+/).filter(Boolean).map(Number);
    }
    if (!byId("missing-field").hidden && byId("missing").checked) asked.missing = true;
    return asked;
  }

  // Groups, bounds and property of a sum, mean or share.
  grouped(kind, first) {
    const group = this.find(byId("group").value), asked = { attribute: first.name, by: group ? [group.name] : null };
    if (group) asked.granularity = [this.widthOf(group, "group-width")];
    if (kind !== "sum" && byId("at-least").value) asked.at_least = Number(byId("at-least").value);
    if (kind === "share") {
      const { low, high, values, missing } = this.property.filter() ?? {};
      return { ...asked, low, high, values, missing };
    }
    asked.width = this.widthOf(first);
    const [low, high] = ["clip-low", "clip-high"].map((id, at) => byId(id).value.trim() === "" ? Number(ends(first)[at]) : value(byId(id).value, first));
    if (byId("clip-low").value.trim() || byId("clip-high").value.trim()) asked.clip = [low, high];
    return asked;
  }
}

// Stretches between edges, one for each day, week, month, quarter or year that has one.
export function calendar(edges, unit) {
  const key = (one) => {
    const [year, month] = one.split("-");
    if (unit === "year") return year;
    if (unit === "month") return `${year}-${month}`;
    if (unit === "quarter") return `${year} ${Math.floor((Number(month) - 1) / 3)}`;
    // Weeks begin on Mondays; 1970 began on a Thursday.
    const days = Math.floor(Date.parse(one.slice(0, 10)) / 86_400_000);
    return String(unit === "week" ? Math.floor((days + 3) / 7) : days);
  };
  const starts = edges.slice(0, -1).filter((one, at) => at === 0 || key(one) !== key(edges[at - 1]));
  return starts.map((one, at) => [one, starts[at + 1] ?? edges.at(-1)]);
}

// The first and the last value that an attribute can be cut at.
function ends(attribute) {
  const { cells, edges, dates } = attribute ?? {}, cuts = cells ? [cells.start, cells.stop] : dates ?? edges ?? [];
  return [cuts[0], cuts.at(-1)];
}

function stated() {
  const found = byId("stretches").value.split(/[;\n]+/).map((one) => one.trim()).filter(Boolean);
  if (!found.length) throw new Error("state at least one stretch, such as 20 to 40");
  return found;
}

function stretch(words, attribute) {
  const ends = words.split(/\s+to\s+/i).map((one) => one.trim()).filter(Boolean);
  if (ends.length !== 2) throw new Error(`"${words}" is no stretch; write it as 20 to 40`);
  return ends.map((one) => value(one, attribute));
}

function value(words, attribute) {
  if (attribute.kind === "date") return words.trim();
  const found = Number(words);
  if (!Number.isFinite(found)) throw new Error(`"${words}" is no number`);
  return found;
}

export function inWords(question) {
  if (!question) return "a certificate";
  const axes = question.attributes ?? [question.attribute];
  const passing = (one) => [...(one.values ? [`${one.attribute} = ${one.values.map((level) => String(level).includes(",") ? `"${level}"` : level).join(", ")}`] : []),
    ...((one.low ?? null) !== null || (one.high ?? null) !== null ? [`${one.attribute} from ${one.low ?? "the start"} to ${one.high ?? "the end"}`] : []),
    ...(one.missing === true ? [`${one.attribute} missing`] : one.missing === false ? [`${one.attribute} not missing`] : [])].join(" or ");
  const filters = (question.filters ?? []).map(passing);
  const { alpha, beta, scope, epsilon, rho, mechanism } = question.cost;
  const cost = alpha !== undefined ? `±${alpha}, beta ${beta}${scope === "per_query" ? " for each" : ""}`
    : (epsilon === undefined ? `rho ${rho}` : `epsilon ${epsilon}`) + (mechanism ? `, ${mechanism}` : "");
  const kind = { histogram2d: "histogram", marginal: "table", frequent: "frequent values" }[question.kind] ?? question.kind;
  const widths = question.granularity ?? [question.width ?? 1];
  if (BY_GROUP.includes(question.kind)) {
    const by = [question.by ?? []].flat(), what = question.kind === "share" ? passing(question) : question.attribute;
    const details = [...(question.clip ? [`clipped to ${question.clip.join(" to ")}`] : []), ...filters];
    return [`${question.kind} of ${what}${by.length ? ` by ${by.join(" and ")}` : ""}`, ...details].join(", ") + ` (${cost})`;
  }
  const details = [...(widths.some((one) => one > 1) ? [`by ${widths.join(" and ")} cells`] : []),
    ...(question.q ? [`at ${question.q.join(", ")}`] : []), ...(question.ranges ?? []).slice(0, 8).map((one) => one.join(" to ")), ...((question.ranges ?? []).length > 8 ? [`${question.ranges.length} stretches`] : []),
    ...(question.missing ? ["with what is missing"] : []), ...filters];
  return [`${kind} of ${axes.join(" and ")}`, ...details].join(", ") + ` (${cost})`;
}
