// The form of a question: tables, attributes, granularity, stretches and one filter.

import { byId, element, options } from "./api.js";

const SEVERAL = ["histogram2d", "rectangles"];
const ORDERED = ["cumulative", "quantiles", "ranges", "rectangles"];

const pairs = (list) => options(list.map((one) => [one.name, one.name]));

function refilled(id, list, keep) {
  const select = byId(id), before = select.value;
  select.replaceChildren(...(keep ?? []), ...pairs(list));
  if ([...select.options].some((one) => one.value === before)) select.value = before;
}

export class QuestionForm {
  constructor(tables, changed) {
    this.tables = tables;
    byId("table").replaceChildren(...pairs(tables));
    for (const id of ["table", "kind", "attribute", "second", "filter"]) {
      byId(id).addEventListener("change", () => { this.refill(); changed(id); });
    }
    for (const id of ["width", "second-width", "filter-value", "filter-low", "filter-high", "stretches", "parts"]) {
      byId(id).addEventListener("input", () => changed(id));
    }
    this.refill();
  }

  get table() { return this.tables.find((one) => one.name === byId("table").value); }
  get attribute() { return this.find(byId("attribute").value); }
  find(name) { return this.table?.attributes.find((one) => one.name === name); }

  // Keep each choice possible after another one changed.
  refill() {
    const table = this.table;
    if (!table) return;
    const kind = byId("kind").value;
    const usable = table.attributes.filter((one) => !ORDERED.includes(kind) || one.kind !== "category");
    refilled("attribute", usable);
    const first = this.attribute;
    refilled("second", (kind === "rectangles" ? usable : table.attributes).filter((one) => one !== first));
    refilled("filter", table.attributes, [element("option", { value: "" }, "everybody")]);
    byId("second-field").hidden = byId("second-width-field").hidden = !SEVERAL.includes(kind);
    const second = this.find(byId("second").value);
    // A hidden field must not hold the form back: disabled ones are not judged.
    byId("second-width").disabled = !SEVERAL.includes(kind) || second?.kind === "category";
    byId("second-width").max = second?.regular ?? 1;
    byId("parts-field").hidden = kind !== "quantiles";
    byId("stretches-field").hidden = kind !== "ranges" && kind !== "rectangles";
    byId("stretches").placeholder = kind === "rectangles" ? "20 to 40 by 0 to 64; ..." : "20 to 40; 40 to 80";
    const filtered = this.find(byId("filter").value);
    const levels = filtered?.levels ?? null;
    byId("filter-value-field").hidden = !levels;
    byId("filter-low-field").hidden = byId("filter-high-field").hidden = !filtered || Boolean(levels);
    if (levels) refilled("filter-value", levels.map((one) => ({ name: String(one) })));
    byId("width").disabled = first?.kind === "category";
    byId("width").max = first?.regular ?? 1;
  }

  widthOf(attribute, id = "width") {
    if (attribute.kind === "category") return 1;
    return Math.min(Math.max(1, Math.round(Number(byId(id).value) || 1)), attribute.regular);
  }

  question(cost) {
    const kind = byId("kind").value, first = this.attribute;
    if (!first) throw new Error("this table has no attribute for such a question");
    const asked = { kind, table: this.table.name, cost, filters: this.filters() };
    if (SEVERAL.includes(kind)) {
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
    return asked;
  }

  filters() {
    const chosen = this.find(byId("filter").value);
    if (!chosen) return [];
    if (chosen.levels) {
      const value = chosen.levels.find((one) => String(one) === byId("filter-value").value);
      return [{ attribute: chosen.name, values: [value] }];
    }
    const bound = (id) => byId(id).value.trim() === "" ? null : value(byId(id).value, chosen);
    const low = bound("filter-low"), high = bound("filter-high");
    return low === null && high === null ? [] : [{ attribute: chosen.name, low, high }];
  }
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
  if (!question) return "";
  const axes = question.attributes ?? [question.attribute];
  const filters = (question.filters ?? []).map((one) => one.values
    ? `${one.attribute} = ${one.values.join(", ")}`
    : `${one.attribute} from ${one.low ?? "the start"} to ${one.high ?? "the end"}`);
  const cost = question.cost.alpha !== undefined ? `±${question.cost.alpha}` : `epsilon ${question.cost.epsilon}`;
  const kind = { histogram2d: "histogram" }[question.kind] ?? question.kind;
  return `${kind} of ${axes.join(" and ")}` + (filters.length ? `, ${filters.join(", ")}` : "") + ` (${cost})`;
}
