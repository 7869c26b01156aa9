// All tables of some columns: a map of which would be accurate, before anything is paid.

/* global Plotly */
import { byId, element, get, newest, number, post, trying } from "./api.js";
import { save } from "./numbers.js";

const letters = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const title = (one) => one.columns.join(" by ");
let tables = [], described = null;
const predictions = newest();

// A box for each column of the table that the page is about.
function offer() {
  const chosen = tables.find((one) => one.name === byId("table").value) ?? tables[0];
  byId("all-tables-columns").replaceChildren(...(chosen?.attributes ?? []).filter((one) => one.kind !== "words").map((one) =>
    element("label", {}, element("input", { type: "checkbox", value: one.name, checked: true }), ` ${one.name}`)));
}

// Errors of pairs, and of single columns on the diagonal; as parts of mean counts where these are known.
function drawMap(found) {
  const names = found.columns, labels = names.map(letters), at = new Map(names.map((one, place) => [one, place]));
  const cells = names.map(() => names.map(() => null)), words = names.map(() => names.map(() => ""));
  for (const one of found.tables.filter((each) => each.columns.length <= 2)) {
    const [row, column] = [one.columns[0], one.columns.at(-1)].map((each) => at.get(each));
    const part = one.mean_count ? one.error / one.mean_count : one.error;
    const text = `${letters(title(one))}: error ${number(one.error)}${one.mean_count === null ? "" : `, mean count ${number(one.mean_count)}`}`;
    for (const [y, x] of [[row, column], [column, row]]) { cells[y][x] = part; words[y][x] = text; }
  }
  const counted = found.useful !== null, box = byId("all-tables-map");
  box.classList.add("drawn");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "map of errors; the table below lists them");
  const color = getComputedStyle(document.documentElement).getPropertyValue("--ink");
  return Plotly.react(box, [{ type: "heatmap", z: cells, x: labels, y: labels, text: words, hovertemplate: "%{text}<extra></extra>",
    colorscale: "Viridis", reversescale: true, zmin: 0, zmax: counted ? 1 : Math.max(...cells.flat()), xgap: 1, ygap: 1,
    colorbar: { thickness: 10, title: { text: counted ? "error / mean count" : "error of a cell", side: "right" } } }],
  { margin: { l: 90, r: 15, t: 10, b: 70 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false,
    font: { family: "system-ui, sans-serif", size: 12, color }, xaxis: { type: "category" }, yaxis: { type: "category", autorange: "reversed" } },
  { displayModeBar: false, responsive: true });
}

// What would be measured, and what is known of its errors.
function choiceWords(found) {
  const share = found.misplaced === null ? "" : ` The plan by public sizes would put ${number(100 * found.misplaced)} % of the records into a wrong cell.`;
  const told = { plan: "Public sizes say what is measured, and the errors below hold.",
    data: "The data choose, privately, which pairs are followed and how finely. No error of that is known beforehand; those below are of the plan by public sizes, for comparison." };
  const open = "The number of records, with noise where it is secret, decides in the release whether public sizes say what is measured or the data choose; errors below hold for the former.";
  return `${told[found.decided] ?? open}${share}`;
}

// The command that releases the tables; its words are those of the form.
function commandWords({ name }, ways, choose, records) {
  const counted = records === "" ? "" : ` --records ${records}`;
  return [`blowfish release --description ${name}.json --data ${name}.csv --tables ${ways} --choose ${choose}${counted} --epsilon ${byId("all-tables-epsilon").value}`,
    `--ledger ${name}-tables.ledger --budget ${byId("all-tables-epsilon").value}`,
    `--out ${name}.blowfish --table ${name}-tables --synthetic ${name}-made-up.csv --report ${name}.html`].join(" \\\n  ");
}

async function predict() {
  const columns = [...byId("all-tables-columns").querySelectorAll("input:checked")].map((one) => one.value);
  const records = byId("all-tables-records").value, choose = byId("all-tables-choose").value, ways = byId("all-tables-ways").value;
  const current = predictions();
  const found = await post("/api/curator/all-tables", { table: byId("table").value, columns, ways: Number(ways), choose,
    epsilon: Number(byId("all-tables-epsilon").value), records: records === "" ? null : Number(records) });
  if (!current()) return;
  drawMap(found);
  const useful = found.useful === null ? "" : ` ${number(found.useful)} of them have errors below their mean counts; the others are of use in larger groups only.`;
  byId("all-tables-words").textContent = `${number(found.tables.length)} tables for ${found.budget} in all.${useful} ${choiceWords(found)}`;
  described = found.described;
  byId("all-tables-release").hidden = !described;
  if (described) byId("all-tables-command").textContent = commandWords(described, ways, choose, records);
  byId("all-tables-list").hidden = false;
  byId("all-tables-list").tBodies[0].replaceChildren(...found.tables.map((one) => element("tr", {},
    element("td", {}, title(one)), element("td", {}, number(one.cells)), element("td", {}, number(one.error)),
    ...(one.mean_count === null ? [] : [element("td", {}, number(one.mean_count))]))));
  // Mean counts are known where the number of records was stated.
  byId("all-tables-list").tHead.rows[0].cells[3].hidden = found.useful === null;
}

byId("all-tables-save").addEventListener("click", () => save(`${described.name}.json`, JSON.stringify(described, null, 2), "application/json"));
byId("table").addEventListener("change", offer);
byId("all-tables-form").addEventListener("submit", (event) => { event.preventDefault(); trying(predict); });
trying(async () => {
  tables = await get("/api/tables");
  offer();
});
