import { afterPause, byId, confirmed, element, following, get, listening, markFields, newest, notice, number, post, sentence, trying } from "./api.js";
import { savedQuestions } from "./board.js";
import { pictureOf } from "./districts.js";
import { QuestionForm, inWords, shared } from "./form.js";
import { csvOf, day, fileName, fillNumbers, pythonOf, save } from "./numbers.js";
import { draw, drawCompared } from "./plots.js";

/* global Plotly */

let form;
let shown = null;
const kept = new Map();
let compared = [];
let lines = [];
// What the last edit was about: an error to be priced, or a cost to be turned into one.
let wanted = "alpha";
// Each part of the page that is drawn from answers of the server.
const prices = newest(), answers = newest(), states = newest(), readings = newest();

// Where a price comes from.
const FOUND = { bound: "a proved bound", simulation: "a proved bound, sharpened by draws without data", scaling: "scaled from its noise: not the cheapest" };

const money = () => form.table.currency;
const lists = () => byId("kind").value === "frequent";
const spending = () => ({ [money()]: Number(byId("spend").value) });

function cost() {
  const mechanism = byId("mechanism").value;
  // A list has a threshold in place of an error.
  if (lists()) return spending();
  if (mechanism) return { ...spending(), ...(mechanism === "any" ? {} : { mechanism }) };
  const fixed = byId("fixed").checked ? { chosen: false } : {};
  return { alpha: Number(byId("alpha").value), beta: Number(byId("beta").value), scope: byId("scope").value, ...fixed };
}

// A question in SQL stands until the form is changed.
let inSql = null;
const asked = () => inSql ? { ...inSql, cost: cost() } : form.question(cost());

function working(words) {
  byId("cost").setAttribute("aria-busy", "true");
  byId("cost").classList.add("working");
  byId("cost").textContent = words;
}

function told(words, bad) {
  byId("cost").removeAttribute("aria-busy");
  byId("cost").classList.remove("working");
  byId("cost").classList.toggle("over", bad);
  byId("cost").textContent = words;
}

// The least error that a cost buys, into the field of errors.
async function errorFor(current) {
  const beta = Number(byId("beta").value), scope = byId("scope").value;
  const bought = await post("/api/accuracy", { question: { ...asked(), cost: spending() }, beta, scope });
  // Whoever typed an error meanwhile keeps it.
  if (current() && wanted === "spend") byId("alpha").value = Number(bought.alpha.toPrecision(4));
}

// What a question that is too dear could be asked for: the error that the rest buys.
async function restBuys(plan) {
  if (plan.affordable || !(plan.remaining > 0)) return "";
  const question = { ...asked(), cost: { [money()]: plan.remaining } }, beta = Number(byId("beta").value), scope = byId("scope").value;
  const bought = await post("/api/accuracy", { question, beta, scope }).catch(() => null);
  return bought ? `, which would buy a largest error of ${number(bought.alpha)}` : "";
}

async function price() {
  // A list is asked for a budget: one is proposed where none is stated.
  if (lists() && !byId("spend").value) byId("spend").value = 0.1;
  // A price of what the form said before must not open the button for what it says now.
  const current = prices();
  const any = lists() || byId("mechanism").value !== "";
  byId("alpha").disabled = any;
  byId("ask").disabled = true;
  working("working out the price …");
  try {
    if (wanted === "spend" && !any) await errorFor(current);
    const plan = await post("/api/explain", { question: asked() });
    const rest = current() && !any ? await restBuys(plan) : "";
    if (!current()) return;
    markFields([]);
    const paid = `${plan.currency} ${number(plan.cost)}`;
    byId("known").hidden = !plan.known;
    byId("known").textContent = plan.known ? knownWords(plan) : "";
    if (plan.how === "read") told(`free: earlier answers tell it within ${number(plan.known.alpha)}; alone it would cost ${plan.currency} ${number(plan.price_alone)}`, false);
    else told(plan.affordable ? `costs ${paid}; ${number(plan.remaining_after)} would remain`
      : `costs ${paid}, and only ${number(plan.remaining)} remains${rest}`, !plan.affordable);
    // What is free now would cost this alone: the price of another question must not stay there.
    const worth = plan.cost || plan.price_alone;
    if (wanted === "alpha" && !any) byId("spend").value = worth ? Number(worth.toPrecision(4)) : "";
    // The words that the answer will have: what is promised before is promised after.
    byId("why").textContent = (plan.accuracy ? `${plan.accuracy} ` : "") + sentence(plan.why) + (any && !lists() ? " No error is promised: intervals are of the noise alone." : "");
    byId("gain").hidden = !plan.gain;
    byId("gain").textContent = plan.gain ? sentence(plan.gain) : "";
    byId("ask").disabled = !plan.affordable || (form.table.closed && !plan.answered_before);
    byId("candidates").tBodies[0].replaceChildren(...plan.candidates.map((one, at) => {
      const chosen = at === 0;
      return element("tr", { class: chosen ? "chosen" : "", "aria-current": chosen && "true" }, element("td", {}, one.name, chosen ? " (chosen)" : ""),
        element("td", {}, (one[plan.currency] ?? null) === null ? "—" : (one.found_by === "scaling" ? "about " : "") + number(one[plan.currency])),
        element("td", { class: "words" }, one.reason || FOUND[one.found_by] || ""));
    }));
  } catch (problem) {
    if (!current()) return;
    markFields(problem.fields ?? []);
    told(problem.message, true);
    byId("why").textContent = "";
    byId("gain").hidden = true;
    byId("known").hidden = true;
    byId("ask").disabled = true;
  }
}

// What stored answers tell already, beside what a better answer costs.
function knownWords(plan) {
  const since = new Date(plan.known.as_of).toLocaleString();
  const led = plan.known.holds === "any" ? "also if they led you to this question" : "as they did not lead you to this question";
  const rest = plan.how === "refine" ? ` The rest costs ${plan.currency} ${number(plan.cost)}, where a new answer would cost ${number(plan.price_alone)}.` : "";
  return `Known by now, free: these numbers within ${number(plan.known.alpha)}, ${led}; as of ${since}.${rest}`
    + (plan.how === "fresh" || plan.how === "refine" ? " State that as the largest error to read them." : "");
}

function values(one) {
  if (one.levels) return one.levels.join(", ");
  if (one.words) return `words of up to ${one.words.longest} of ${one.words.symbols}`;
  const unit = one.unit ? ` ${one.unit}` : "", cuts = one.dates?.map(day) ?? one.edges;
  return one.cells ? `${one.cells.start} to ${one.cells.stop}${unit}, by ${one.cells.width}` : `${cuts[0]} to ${cuts.at(-1)}${unit}`;
}

function budget() {
  const table = form.table;
  for (const one of document.querySelectorAll(".currency")) one.textContent = table.currency;
  // One line; all of it is in what is said of the table.
  byId("promise").replaceChildren(`What is protected: ${table.promise.split(/[;.] /)[0]} … `, wholePromise("in full"));
  byId("promise-in-full").textContent = `What is protected: ${sentence(table.promise)}${shared(table)}`;
  byId("description").textContent = table.description || "No description was given.";
  byId("lost").hidden = !table.at_most;
  byId("lost").textContent = !table.at_most ? "" : table.lost_records ? sentence(table.lost_records.sentence)
    : `At most ${number(table.at_most)} records of a person are counted; how many that leaves out was not measured.`;
  byId("attributes").tBodies[0].replaceChildren(...table.attributes.map((one) => element("tr", {},
    element("td", {}, one.name), element("td", { class: "words" }, values(one)), element("td", { "data-head": "cells:" }, String(one.regular)),
    element("td", { class: "words", "data-head": "missing values:" }, one.missing_words ?? "none"))));
  byId("budget").textContent = `${number(table.remaining)} of ${table.currency} ${number(table.granted)} remains for you.`
    + (table.closed ? " The table was closed: earlier answers stay, new ones are not given." : "");
  byId("remaining").value = table.granted > 0 ? table.remaining / table.granted : 0;
}

const linkTo = (answer) => `/analyst?table=${encodeURIComponent(answer.question.table)}&answer=${encodeURIComponent(answer.request)}`;

// A link to the whole promise, which stands once on the page.
const wholePromise = (words) => element("a", { href: "#about", onclick: () => { byId("about").open = true; } }, words);

// What is said of the intervals of an answer, by what they hold.
function heldWords(answer) {
  const most = form.table.at_most, counted = most ? ` among at most ${number(most)} records of a person` : "";
  // Of a population the promise says it.
  if (answer.intervals === null) return "No intervals are known.";
  if (answer.intervals_hold === "population") return "";
  return answer.intervals_hold === "truth" ? `Each interval holds the true number${counted} with probability at least ${number(answer.confidence)}.`
    : "Intervals are noise only: what spreading buckets over their cells is off by is not covered.";
}

// The answer that is shown as numbers of the population, or as it was given; never the former unasked.
async function ofPopulation() {
  const current = answers(), given = shown.of ?? shown, together = byId("together").checked;
  if (!byId("of-population").checked) { show(given); return; }
  const path = `/api/population?table=${encodeURIComponent(given.question.table)}&request=${encodeURIComponent(given.request)}${together ? "&together=true" : ""}`;
  try {
    const found = await get(path);
    if (current()) show({ ...found, of: given, together });
  } catch (problem) {
    if (current()) show(given);
    throw problem;
  }
}

// What an answer is of. The accuracy that was asked for is about records, and is not said of a population.
function titleWords(answer) {
  const words = inWords(answer.question);
  if (!answer.of) return words;
  const added = answer.together ? `, added up over ${form.table.strata}` : "";
  return `In the population: ${words.replace(/ \([^()]*\)$/, "")}${added}`;
}

function show(answer) {
  shown = answer;
  byId("population-line").hidden = !form.table.sample;
  byId("sample-words").textContent = form.table.sample ? `The curator says that these records are ${form.table.sample}.` : "";
  byId("of-population").checked = Boolean(answer.of);
  // Of strata and weights each class has its numbers; a tick adds them up.
  byId("together-label").hidden = !answer.of || !form.table.strata;
  byId("together").checked = Boolean(answer.together);
  byId("strata-name").textContent = form.table.strata ?? "";
  byId("answer-title").textContent = titleWords(answer);
  draw(byId("answer"), answer.axes.length > 2 ? [] : [answer]);
  const noise = !["truth", "population"].includes(answer.intervals_hold);
  byId("answer-words").textContent = (answer.mechanism === "refiner" && !answer.replayed ? `An earlier answer was made finer, for the rest of the price; as of ${new Date(answer.as_of).toLocaleString()}. `
    : answer.sources?.length && !answer.replayed ? `Read from an earlier answer, free; as of ${new Date(answer.as_of).toLocaleString()}. ` : answer.replayed ? `Answered before, free; as of ${new Date(answer.as_of).toLocaleString()}. ` : "")
    + `${sentence(answer.promise.replace(`: ${form.table.promise}.`, "."))} ${heldWords(answer)}`
    + (answer.remarks ?? []).map((one) => answer.of ? one : ` Look again: ${one}`).join("");
  byId("answer-words").append(" ", wholePromise("What is protected"), ".");
  // A bar or a cell that is clicked becomes filters of the next question.
  byId("answer").removeAllListeners?.("plotly_click");
  if (answer.axes.length < 3) byId("answer").on?.("plotly_click", (event) => drill(answer, event.points[0]));
  fillNumbers(byId("numbers"), answer);
  byId("save-png").disabled = answer.axes.length > 2;
  byId("answer-more").hidden = false;
  byId("certify-line").hidden = !noise || answer.intervals === null;
  byId("certificate").hidden = !answer.certificate;
  byId("certificate").textContent = answer.certificate ?? "";
  byId("permanent").href = linkTo(answer);
  window.history.replaceState(null, "", linkTo(answer));
}

function drill(answer, point) {
  const { kind } = answer.question, at = [point.pointNumber].flat();
  if (!["histogram", "histogram2d", "marginal", "mean", "sum", "share"].includes(kind) || answer.question.table !== form.table.name) return;
  const words = answer.axes.flatMap((axis, place) => form.drill(axis, at[place]) ?? []);
  if (words.length) notice(`only records where ${words.join(" and ")}: choose what to ask about them`);
}

function row(one) {
  const words = inWords(one.question);
  const box = element("input", { type: "checkbox", "aria-label": `compare ${words}`,
    onchange: () => trying(() => compare(one, box)) });
  const link = element("a", { href: linkTo({ question: { table: form.table.name }, request: one.request }),
    onclick: (event) => { event.preventDefault(); trying(() => open(one)); } }, words);
  const time = new Date(one.time).toLocaleString();
  const line = element("tr", {}, element("td", {}, box), element("td", {}, time), element("td", { class: "words" }, link),
    element("td", {}, one.mechanism), element("td", { "data-head": money() }, number(one.cost)));
  return { line, text: `${words} ${time} ${one.time} ${one.mechanism}`.toLowerCase() };
}

function search() {
  const sought = byId("history-search").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const one of lines) one.line.hidden = !sought.every((word) => one.text.includes(word));
}

// Show a stored answer, if nothing else was opened or asked meanwhile.
async function open(one) {
  const current = answers(), answer = await fetched(one);
  if (current()) show(answer);
}

async function history(current = states()) {
  const listed = await get(`/api/history?table=${encodeURIComponent(form.table.name)}`);
  if (!current()) return;
  // What made an earlier answer finer stands with the question that it was for.
  const costs = new Map(listed.map((one) => [one.request, one.cost]));
  const rows = listed.filter((one) => one.question).map((one) => ({ ...one, cost: costs.get(one.paid) ?? one.cost }));
  lines = rows.reverse().map(row);
  byId("history").tBodies[0].replaceChildren(...lines.map((one) => one.line));
  byId("history-empty").hidden = rows.length > 0;
  search();
  compared = [];
  drawCompared(byId("compared"), [], []);
}

async function fetched(one) {
  const path = `/api/answer?table=${encodeURIComponent(form.table.name)}&request=${encodeURIComponent(one.request)}`;
  if (!kept.has(one.request)) kept.set(one.request, await get(path));
  return kept.get(one.request);
}

async function compare(one, box) {
  if (!box.checked) compared = compared.filter((other) => other.row !== one);
  else if (compared.length === 2) { box.checked = false; notice("two answers are compared at a time, so that they share a picture: untick one of them first"); return; }
  else {
    const other = { row: one, answer: null };
    compared.push(other);
    other.answer = await fetched(one);
  }
  // Those that are still on their way are drawn when they are here.
  const here = compared.filter((other) => other.answer);
  drawCompared(byId("compared"), here.map((other) => other.answer), here.map((other) => inWords(other.row.question)));
}

async function refresh() {
  const current = states(), tables = await get("/api/tables");
  if (!current()) return;
  form.tables = tables;
  budget();
  await history(current);
  if (current()) await saved();
}

let saved = async () => {};

// A saved question stands, as one in SQL does, until the form is changed.
function openSaved(question, edited) {
  inSql = question;
  if (question.cost.alpha !== undefined) {
    byId("mechanism").value = "";
    for (const id of ["alpha", "beta", "scope"]) if (question.cost[id] !== undefined) byId(id).value = question.cost[id];
    byId("fixed").checked = question.cost.chosen === false;
    wanted = "alpha";
  } else {
    byId("mechanism").value = question.cost.mechanism === "dawa" ? "dawa" : "any";
    byId("spend").value = question.cost[money()];
    wanted = "spend";
  }
  byId("sql-words").textContent = `Opened: ${inWords(question)}. Its price stands below; a change of the form takes the form's question again.`;
  byId("sql-box").open = true;
  edited();
}

// One price at a time, and once more if the form changed meanwhile.
const repriced = following(price);

function listen() {
  const later = afterPause(repriced);
  const edited = (about) => {
    wanted = about ?? wanted;
    byId("ask").disabled = true;
    // What is said of the price is not about this form any more, and a price under way is not either.
    prices();
    byId("cost").setAttribute("aria-busy", "true");
    later();
  };
  for (const id of ["alpha", "beta", "scope", "spend", "mechanism", "fixed"]) {
    byId(id).addEventListener("input", () => edited(id === "alpha" || id === "spend" ? id : undefined));
  }
  byId("question").addEventListener("submit", (event) => {
    event.preventDefault();
    byId("ask").disabled = true;
    prices();
    working("asking …");
    trying(async () => {
      const current = answers(), answer = await post("/api/ask", { question: asked() });
      // What was opened meanwhile stays; the answer that was paid for is in the list.
      if (current()) show(answer);
      // Where it is read, and read aloud.
      byId("answer-title").scrollIntoView();
      byId("answer-title").focus({ preventScroll: true });
      await refresh();
    }).finally(later);
  });
  byId("history-search").addEventListener("input", search);
  for (const tick of ["of-population", "together"]) byId(tick).addEventListener("change", () => trying(ofPopulation));
  byId("answer").addEventListener("district", (event) => drill(shown, { pointNumber: event.detail }));
  byId("save-csv").addEventListener("click", () => save(`${fileName(shown, titleWords(shown))}.csv`, csvOf(shown)));
  byId("save-png").addEventListener("click", () => trying(() => {
    const box = byId("answer"), words = titleWords(shown);
    if (box.classList.contains("districts")) return pictureOf(box, `${shown.question.table}: ${words}`).then((picture) => save(`${fileName(shown, words)}.png`, picture, "image/png"));
    const plain = words.replace(/&/g, "&amp;").replace(/</g, "&lt;");
    // On the page the title is a heading; a picture takes it along.
    const layout = { ...box.layout, title: { text: `${shown.question.table}: ${plain}`, font: { size: 15 } }, margin: { ...box.layout.margin, t: 60 }, paper_bgcolor: "#ffffff", plot_bgcolor: "#ffffff" };
    return Plotly.downloadImage({ data: box.data, layout }, { format: "png", width: 1200, height: 700, filename: fileName(shown, words) });
  }));
  byId("read-sql").addEventListener("click", () => trying(async () => {
    const current = readings(), lines = { sql: byId("sql").value, cost: { alpha: 1 } };
    const size = byId("at-least").value ? { at_least: Number(byId("at-least").value) } : {};
    const read = await post("/api/sql", { ...lines, ...size });
    if (!current()) return;
    if (form.table.name !== read.question.table) {
      byId("table").value = read.question.table;
      form.refill();
      await refresh();
    }
    inSql = read.question;
    byId("sql-words").textContent = `Read as: ${inWords({ ...inSql, cost: cost() })}. Its price stands below; a change of the form takes the form's question again.`;
    edited();
  }));
  byId("copy-python").addEventListener("click", () => trying(async () => {
    await navigator.clipboard.writeText(pythonOf(shown));
    notice("copied: a few lines of Python that fetch this answer");
  }));
  byId("certify").addEventListener("click", () => trying(async () => {
    const amount = Number(byId("certify-cost").value);
    if (!await confirmed(`A certificate costs ${money()} ${number(amount)} of your budget. It says how far these numbers are off the truth, not the noise alone.`)) return;
    const found = await post("/api/certify", { table: form.table.name, request: shown.request, [money()]: amount });
    byId("certificate").hidden = false;
    byId("certificate").textContent = found.words;
    await refresh();
  }));
  return edited;
}

trying(async () => {
  const tables = await get("/api/tables");
  if (!tables.length) { notice("the curator has not described any table yet"); return; }
  let edited = () => {};
  form = new QuestionForm(tables, (id) => {
    inSql = null;
    byId("sql-words").textContent = "";
    if (id === "table") trying(refresh);
    edited();
  });
  edited = listen();
  listening();
  const linked = new URLSearchParams(location.search);
  if (tables.some((one) => one.name === linked.get("table"))) {
    byId("table").value = linked.get("table");
    form.refill();
  }
  budget();
  await history();
  saved = savedQuestions({ table: () => form.table.name, shown: () => shown, open: (question) => openSaved(question, edited), linkTo });
  await trying(saved);
  // A permanent link, or a page that was loaded again, shows its answer.
  if (linked.get("answer")) await trying(() => open({ request: linked.get("answer") }));
  await repriced();
});
