import { afterPause, byId, call, confirmed, element, following, get, intervalWords, listening, newest, notice, number, options, post, put, sentence, stream, trying } from "./api.js";
import { dataSets, done, listenForData } from "./describe.js";
import { QuestionForm, inWords, shared } from "./form.js";
import { drawGraph } from "./graph.js";
import { splitLists, writtenItem } from "./items.js";
import { fillNumbers, numbersBeside, textOf } from "./numbers.js";
import { draw, drawBudget, drawSeries, drawTradeOff, scaleOf } from "./plots.js";
import { showTabs } from "./tabs.js";

let form;
// The policy of the attribute as it is in force, and whether another one was chosen since.
let inForce = { kind: "full" }, edited = false, offered = "";
let curve = null;
let listed = [];
// Each part of the page that is drawn from answers of the server.
const previews = newest(), graphs = newest(), rosters = newest(), states = newest(), losses = newest();
const FEW = 12;
const POLICIES = {
  full: "any two values", line: "neighbouring cells", threshold: "up to theta cells apart", blocks: "within a block",
};

const theta = () => Number(byId("theta").value);
const asked = () => form.question({ alpha: Number(byId("alpha").value), beta: Number(byId("beta").value) });
const ordered = () => !["category", "words"].includes(form.attribute?.kind);
// Words have no picture and no truth of the same shape: what is shown of them is the threshold.
const lists = () => form.attribute?.kind === "words";
const money = () => form.table.currency;
const path = (rest) => `/api/curator/tables/${encodeURIComponent(form.table.name)}/${rest}`;

// The policy of the chosen attribute as the form states it.
function stated() {
  const kind = byId("policy-kind").value;
  if (kind === inForce.kind && !edited) return inForce;
  if (kind === "threshold") return { kind, theta: theta() };
  if (kind !== "blocks") return { kind };
  const levels = form.attribute.levels;
  const value = (words) => levels ? levels.find((one) => String(one) === words) ?? words : Number(words);
  return { kind, blocks: splitLists(byId("blocks").value).map((one) => one.map(value)) };
}

const stating = (policy) => lists() ? form.table.policies : ({ ...form.table.policies, [form.attribute.name]: policy });
const now = () => ({ question: asked(), epsilon: Number(byId("epsilon").value) });
const previewed = (body, policies, compared = []) => post("/api/curator/preview", { ...body, policies, compared });

// The truth and private answers, on one scale.
function showBoth(shown, title) {
  const truth = { ...shown.private, values: shown.truth, intervals: null };
  // Quantiles are read off running totals; those are the truth.
  if (truth.question.kind === "quantiles") truth.question = { ...truth.question, kind: "cumulative" };
  const flat = comparable(shown), drawn = [truth], names = [];
  // Where few records of a person count, all of them stand beside those that do; a map has room for one.
  if (shown.whole && truth.axes.length === 1) {
    drawn.unshift({ ...truth, values: shown.whole });
    names.push("all records", `at most ${form.table.at_most} of a person`);
  }
  const scale = flat ? scaleOf([...drawn, shown.private, ...(shown.compared ?? [])]) : undefined;
  // The form below may say something else by now.
  byId("truth-title").textContent = `True answer: ${inWords(shown.private.question).replace(/ \([^()]*\)$/, "")}`;
  byId("private-title").textContent = title;
  draw(byId("truth"), drawn, names, scale);
  draw(byId("private"), [shown.private], [], scale);
  byId("preview-error").textContent = flat ? offBy(flat, shown.private.values.flat(9)) : "";
  fillNumbers(byId("preview-numbers"), shown.private, truthsOf(shown));
  return scale;
}

// The true numbers in a row, where they stand for the same as the private ones.
const comparable = (shown) => shown.private.question.kind === "quantiles" ? null : shown.truth.flat(9);

// True numbers by their names: of the records that count, and of all.
function truthsOf(shown) {
  const flat = comparable(shown);
  if (!flat) return {};
  return shown.whole ? { [`true, at most ${form.table.at_most} of a person`]: flat, "true, all records": shown.whole.flat(9) } : { true: flat };
}

// How far the private numbers are off, in numbers.
function offBy(truth, noisy) {
  const off = truth.map((one, at) => Math.abs(one - noisy[at]));
  const mean = off.reduce((sum, one) => sum + one, 0) / off.length;
  return `On this draw the private numbers are off by ${number(mean)} on average, and by ${number(Math.max(...off))} at most.`;
}

// Which words analysts would see, before anybody asks: nothing is counted for it.
async function previewThreshold() {
  const current = previews();
  const plan = await post("/api/explain", { question: form.question({ [money()]: Number(byId("epsilon").value) }) });
  if (!current()) return;
  byId("truth-title").textContent = "True answer: not shown of words";
  byId("private-title").textContent = "Private";
  for (const id of ["truth", "private"]) draw(byId(id), []);
  byId("preview-numbers").tBodies[0].replaceChildren();
  byId("thresholds").replaceChildren();
  byId("preview-error").textContent = sentence(plan.why);
}

// The whole numbers that a field lists; null where it lists none.
function numbersIn(id) {
  const listed = byId(id).value.split(/[^0-9]+/).filter(Boolean).map(Number);
  return listed.length ? listed : null;
}

async function preview() {
  if (lists()) return previewThreshold();
  // The form may change while answers are on their way: all are about what it says now.
  const body = now(), current = previews();
  const typed = ordered() ? (numbersIn("thetas") ?? []).slice(0, 4) : [];
  // Beyond the last cell a threshold joins no more.
  const thetas = [...new Set(typed.map((one) => Math.min(one, Math.max(1, form.attribute.regular - 1))))];
  // All are about the same counts: a large table is counted once.
  const shown = await previewed(body, null, thetas.map((value) => stating({ kind: "threshold", theta: value })));
  if (!current()) return;
  const scale = showBoth(shown, "Private, under the policy in force"), truth = comparable(shown);
  const boxes = thetas.map((value) => ({ plot: element("div", { class: "plot" }), words: `Private, threshold ${value}` }));
  byId("thresholds").replaceChildren(...boxes.map(({ plot, words }, at) => element("div", {}, element("h3", {}, words), plot,
    element("p", { class: "quiet" }, truth ? offBy(truth, shown.compared[at].values.flat(9)) : `${textOf(shown.compared[at])}.`),
    numbersBeside(shown.compared[at], words, truthsOf(shown)))));
  boxes.forEach(({ plot }, at) => draw(plot, [shown.compared[at]], [], scale));
}

async function previewStated() {
  if (lists()) return previewThreshold();
  const policy = stated(), near = policy.unit === "value" ? `values up to ${policy.theta} apart` : POLICIES[policy.kind];
  const current = previews(), shown = await previewed(now(), stating(policy));
  if (!current()) return;
  byId("thresholds").replaceChildren();
  showBoth(shown, `Private, ${near.replace("theta", policy.theta)}`);
}

// A new attribute: offer the policies that fit it, and show the one in force.
function offer() {
  const attribute = form.attribute;
  inForce = form.table.policies[attribute.name] ?? { kind: "full" };
  edited = false;
  const kinds = ordered() ? ["full", "line", "threshold", "blocks"] : lists() ? ["full"] : ["full", "blocks"];
  byId("policy-kind").replaceChildren(...options(kinds.map((one) => [one, POLICIES[one]]), inForce.kind));
  byId("policy-attribute").textContent = attribute.name;
  byId("theta").max = Math.max(1, attribute.regular - 1);
  const wide = inForce.unit === "value" ? attribute.cells?.width ?? 1 : 1;
  if (inForce.theta) byId("theta").value = Math.max(1, Math.floor(inForce.theta / wide));
  byId("blocks").value = (inForce.blocks ?? [attribute.levels ?? []]).map((one) => one.map(writtenItem).join(", ")).join("; ");
  byId("draw-trade-off").disabled = !ordered();
  offered = chosen();
}
const chosen = () => `${form.table.name} ${form.attribute?.name}`;

// A curve is about one question and one accuracy: it goes when they change.
function forget() {
  curve = null;
  draw(byId("trade-off"), []);
  byId("trade-off-table").hidden = true;
}

async function graph() {
  const kind = byId("policy-kind").value, current = graphs();
  byId("theta-field").hidden = kind !== "threshold";
  byId("blocks-field").hidden = kind !== "blocks";
  byId("theta-value").textContent = theta() === 1 ? "1 cell" : `${theta()} cells`;
  if (lists()) {
    for (const id of ["graph", "projected"]) byId(id).replaceChildren();
    byId("graph-words").textContent = "Any two words cannot be told apart; there are too many for a picture.";
    byId("projected-words").textContent = "";
    return;
  }
  const where = `table=${encodeURIComponent(form.table.name)}&attribute=${encodeURIComponent(form.attribute.name)}`;
  const picture = await post(`/api/policy-graph?${where}`, stated());
  if (!current()) return;
  drawGraph(byId("graph"), picture);
  byId("graph-words").textContent = `${part(picture, "cells")}${number(picture.edge_count)} edges in all. ${sentence(picture.words)}`;
  // A question that is not written yet, or does not fit, has no bins to be drawn.
  const seen = await post("/api/curator/projected-graph", { question: asked(), policies: stating(stated()) }).catch(() => null);
  if (!current()) return;
  if (seen) drawGraph(byId("projected"), seen); else byId("projected").replaceChildren();
  byId("projected-words").textContent = !seen ? "" : `${part(seen, "bins")}${number(seen.edge_count)} edges in all${seen.absent ? ", and whether somebody is there" : ""}. ${sentence(seen.words)}`;
  if (curve) drawTradeOff(byId("trade-off"), curve, theta(), pick, money());
}
const part = (picture, what) => picture.shown < picture.cells && !picture.shares ? `${picture.shown} of ${picture.cells} ${what}. ` : "";
const redraw = following(graph);

function pick(value) {
  byId("policy-kind").value = "threshold";
  byId("theta").value = value;
  edited = true;
  trying(async () => { await graph(); await previewStated(); });
}

function state() {
  const table = form.table;
  for (const one of document.querySelectorAll(".currency")) one.textContent = table.currency;
  byId("policy-state").textContent = (table.frozen ? "Frozen, because something was charged. " : "")
    + `In force: ${sentence(table.promise)}`;
  byId("set-policy").disabled = byId("reset-policy").disabled = table.frozen || table.population !== null;
  byId("total").value = table.budget;
  byId("total").disabled = byId("set-budget").disabled = table.frozen;
  byId("raise-form").hidden = !table.frozen;
  const raised = (table.raises ?? []).map((one) => ` Raised to ${number(one.amount)} by ${one.by} on ${new Date(one.time).toLocaleDateString()}: ${one.why}.`);
  byId("budget").textContent = `${number(table.spent)} of ${table.currency} ${number(table.budget)} is spent.${raised.join("")}`
    + (table.clone_of ? ` A clone of ${table.clone_of}, where ${table.currency_before} ${number(table.spent_before)} was spent on the same people: the two add up.` : "")
    + shared(table) + (table.closed ? " Closed: stored answers only." : "");
  byId("close-table").textContent = table.closed ? "Open the table again" : "Close the table";
  // What shares its budget is neither cloned nor deleted.
  byId("clone-form").hidden = byId("delete-table").hidden = table.population !== null;
  done("describe", true);
  done("policy", table.frozen || Object.keys(table.policies).length > 0);
  done("budget", table.budget > 0);
}

async function analysts() {
  const name = form.table.name, current = rosters();
  const [rows, people] = await Promise.all([get("/api/curator/analysts"), get("/api/curator/people")]);
  if (!current()) return;
  done("invite", rows.some((one) => one.allotments[name]));
  listed = rows.map((one) => {
    const share = one.allotments[name];
    return { name: one.name, line: element("tr", {}, element("td", {}, one.name),
      element("td", {}, share ? number(share.granted) : "none"),
      element("td", {}, share ? number(share.spent) : "0"),
      element("td", {}, revoking("analysts", one.name))) };
  });
  byId("analysts").tBodies[0].replaceChildren(...listed.map((one) => one.line));
  sift();
  byId("others").replaceChildren(...[["curators", people.curator], ["monitors", people.monitor]].flatMap(([role, names]) =>
    names.map((one) => element("li", {}, `${one}, ${role.slice(0, -1)} `, revoking(role, one)))));
}

const revoking = (role, name) => element("button", { class: "plain small", type: "button", "aria-label": `revoke ${name}`, onclick: () => trying(async () => {
  if (!await confirmed(`Revoke the secret of ${name}? Their sessions end now; what they spent stays spent.`)) return;
  await call("DELETE", `/api/curator/${role}/${encodeURIComponent(name)}`);
  await refresh();
}) }, "Revoke");

// The first few analysts, or those that are searched for.
function sift() {
  const sought = byId("analyst-search").value.toLowerCase();
  let shown = 0;
  for (const one of listed) {
    one.line.hidden = sought ? !one.name.toLowerCase().includes(sought) : shown >= FEW;
    shown += !one.line.hidden;
  }
  byId("analyst-search").placeholder = listed.length > FEW ? `${shown} of ${listed.length} are shown` : "";
}

async function refresh() {
  const current = states(), tables = await get("/api/tables");
  if (!current()) return;
  form.tables = tables;
  if (!form.table) { location.reload(); return; }
  state();
  await analysts();
  const rows = await get(`/api/history?table=${encodeURIComponent(form.table.name)}`);
  if (!current()) return;
  drawBudget(byId("budget-plot"), rows, form.table.budget);
  byId("charges").tBodies[0].replaceChildren(...rows.reverse().map((one) => element("tr", {},
    element("td", {}, new Date(one.time).toLocaleString()), element("td", {}, one.analyst ?? "curator"),
    element("td", { class: "words" }, one.epoch ? `${one.epoch} of a series` : one.request.startsWith("lost-records") ? "how many records of persons are left out" : inWords(one.question)), element("td", {}, one.mechanism),
    element("td", { "data-head": money() }, number(one.cost)))));
  byId("charges-empty").hidden = rows.length > 0;
  const totals = await get(path("series"));
  if (current()) series(totals);
  // A database that is away leaves the rest of the page as it is.
  if (current()) await trying(lost);
}

// Running totals of a table that grows: one picture for each series of its ledger.
function series(listed) {
  byId("series-card").hidden = listed.length === 0;
  const boxes = listed.map((one) => [one, element("div", { class: "plot" })]);
  byId("series").replaceChildren(...boxes.flatMap(([one, box]) => [
    element("p", { class: "quiet" }, `${one.name}: ${number(one.totals.at(-1))} records since ${one.epochs[0]}, from ${intervalWords(one.low.at(-1), one.high.at(-1))} (95 %, ${one.holds === "truth" ? "holds the truth" : "noise only"}), for ${one.spent} in all.`), box]));
  for (const [one, box] of boxes) drawSeries(box, one);
}

// How many true records each number of records of a person leaves out, for the curator; and what everybody is told.
async function lost() {
  const table = form.table, current = losses();
  byId("lost-card").hidden = !table.at_most;
  if (!table.at_most) return;
  const shown = await get(path("lost-records"));
  if (!current()) return;
  byId("lost").tBodies[0].replaceChildren(...shown.losses.map((one) => element("tr", { class: one.at_most === table.at_most ? "chosen" : "", "aria-current": one.at_most === table.at_most && "true" },
    element("td", {}, `${number(one.at_most)}${one.at_most === table.at_most ? " (in force)" : ""}`), element("td", { "data-head": "records:" }, number(one.records, 9)),
    element("td", { "data-head": "of all:" }, `${number(100 * one.part, 3)} %`), element("td", { "data-head": "persons:" }, number(one.persons, 9)))));
  byId("lost-words").textContent = `Of ${number(shown.records, 9)} records of ${number(shown.persons, 9)} persons. ${shown.little} of a person leaves out at most 1 %; more of them cost more noise for everybody. These are true numbers, for you alone.`;
  byId("lost-form").hidden = shown.measured !== null || table.population !== null;
  byId("lost-up-to").min = table.at_most + 1;
  if (!byId("lost-up-to").value) byId("lost-up-to").value = 4 * table.at_most;
  byId("lost-told").textContent = shown.measured ? `Analysts read: ${sentence(shown.measured.sentence)}` : "Analysts read that it was not measured.";
}

async function tradeOff() {
  const button = byId("draw-trade-off"), words = byId("trade-off-words").textContent;
  button.disabled = true;
  byId("trade-off").setAttribute("aria-busy", "true");
  byId("trade-off-words").textContent = "working out the curve …";
  const own = curve = [], body = byId("trade-off-table").tBodies[0];
  body.replaceChildren();
  try {
    await stream("/api/curator/trade-off", { question: asked(), thetas: numbersIn("curve-thetas") }, (one) => {
      if (curve !== own) return;
      curve.push(one);
      body.prepend(element("tr", {}, element("td", {}, one.theta === null ? "whole records" : String(one.theta)), element("td", {}, number(one.cost)),
        element("td", {}, one.theta === null ? "" : element("button", { class: "plain small", type: "button", "aria-label": `preview under threshold ${one.theta}`, onclick: () => pick(one.theta) }, "Preview"))));
      byId("trade-off-table").hidden = false;
      drawTradeOff(byId("trade-off"), curve, theta(), pick, money());
    });
  } finally {
    button.disabled = false;
    byId("trade-off").removeAttribute("aria-busy");
    byId("trade-off-words").textContent = words;
  }
}

const policies = (wanted) => trying(async () => {
  const untouched = previews();
  await put(path("policies"), wanted());
  notice("the policy is set");
  await refresh();
  forget();
  offer();
  await graph();
  if (untouched()) await preview();
});

const submitted = (id, action) => byId(id).addEventListener("submit", (event) => {
  event.preventDefault();
  trying(action);
});

function listen() {
  submitted("question", preview);
  byId("theta").addEventListener("input", () => { edited = true; redraw(); });
  byId("policy-kind").addEventListener("change", redraw);
  byId("blocks").addEventListener("input", () => { edited = true; });
  byId("blocks").addEventListener("input", afterPause(redraw));
  byId("preview-policy").addEventListener("click", () => trying(previewStated));
  byId("draw-trade-off").addEventListener("click", () => trying(tradeOff));
  for (const id of ["alpha", "beta", "curve-thetas"]) byId(id).addEventListener("input", forget);
  byId("set-policy").addEventListener("click", () => policies(() => stating(stated())));
  byId("reset-policy").addEventListener("click", () => policies(() => ({})));
  byId("analyst-search").addEventListener("input", sift);
  submitted("budget-form", async () => {
    await put(path("budget"), { [money()]: Number(byId("total").value) });
    notice("the budget is set");
    await refresh();
  });
  submitted("raise-form", async () => {
    const amount = Number(byId("raised").value);
    if (!await confirmed(`Raise the budget of ${form.table.name} to ${money()} ${number(amount)}? Everybody in the table is protected less from then on; the ledger keeps your reason.`)) return;
    await post(path("raise"), { [money()]: amount, why: byId("raise-why").value });
    await refresh();
  });
  submitted("lost-form", async () => {
    const amount = Number(byId("lost-cost").value);
    if (!await confirmed(`Say to everybody how many records are left out? It costs ${money()} ${number(amount)} of the budget, once; nothing where the policy does not hide how many records a person has.`)) return;
    await post(path("lost-records"), { up_to: Number(byId("lost-up-to").value), [money()]: amount });
    await refresh();
  });
  submitted("clone-form", async () => {
    const name = byId("clone-name").value.trim();
    if (!await confirmed(`Clone ${form.table.name} as ${name} under the policy above, and close ${form.table.name}? What both spend on the same people adds up.`)) return;
    await post(path("clone"), { name, policies: stating(stated()), [money()]: Number(byId("clone-budget").value) });
    location.reload();
  });
  byId("close-table").addEventListener("click", () => trying(async () => {
    const { name, closed } = form.table;
    if (!closed && !await confirmed(`Close ${name}? Stored answers stay; new questions are refused.`)) return;
    await post(path(closed ? "open" : "close"));
    await refresh();
  }));
  byId("delete-table").addEventListener("click", () => trying(async () => {
    if (!await confirmed(`Delete ${form.table.name} and its answers from the server? Its ledger is kept aside, because what was spent stays spent.`)) return;
    await call("DELETE", path("").slice(0, -1));
    location.reload();
  }));
  submitted("other-form", async () => {
    const name = byId("other-name").value.trim();
    const made = await post(`/api/curator/${byId("other-role").value}/${encodeURIComponent(name)}`);
    byId("new-secret").textContent = `Secret of ${name}, shown this once: ${made.secret}`;
    byId("new-secret").hidden = false;
    await analysts();
  });
  submitted("analyst-form", async () => {
    const name = byId("analyst-name").value.trim();
    const known = (await get("/api/curator/analysts")).some((one) => one.name === name);
    if (!known) {
      const made = await post(`/api/curator/analysts/${encodeURIComponent(name)}`);
      byId("new-secret").textContent = `Secret of ${name}, shown this once: ${made.secret}`;
    }
    byId("new-secret").hidden = known;
    await put(path(`allotments/${encodeURIComponent(name)}`), { [money()]: Number(byId("analyst-epsilon").value) });
    await analysts();
  });
  byId("verify").addEventListener("click", () => trying(async () => {
    byId("head").textContent = `Intact; head ${(await post(path("verify"))).head}`;
  }));
}

trying(async () => {
  listenForData();
  const tables = await get("/api/tables");
  if (!tables.length) {
    // What needs a table waits for one.
    byId("table").closest("label").hidden = true;
    showTabs(["data"]);
    listening();
    await dataSets();
    return;
  }
  form = new QuestionForm(tables, (id) => {
    forget();
    if (chosen() !== offered) offer();
    redraw();
    if (id === "table") trying(async () => { const untouched = previews(); await refresh(); if (untouched()) await preview(); });
  });
  listen();
  offer();
  showTabs(["policy", "all-tables", "account", "people", "data"]);
  listening();
  // Whoever asks for a preview before the first one is shown keeps it.
  const untouched = previews();
  await graph();
  await refresh();
  await dataSets();
  if (untouched()) await preview();
});
