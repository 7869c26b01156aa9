import { afterPause, byId, call, element, following, get, notice, number, options, post, put, sentence, trying } from "./api.js";
import { dataSets, listenForData } from "./describe.js";
import { QuestionForm, inWords } from "./form.js";
import { drawGraph } from "./graph.js";
import { draw, drawBudget, drawTradeOff, scaleOf } from "./plots.js";

let form;
let curve = null;
const POLICIES = {
  full: "any two values", line: "neighbouring cells", threshold: "up to theta cells apart", blocks: "within a block",
};

const theta = () => Number(byId("theta").value);
const asked = () => form.question({ alpha: Number(byId("alpha").value), beta: Number(byId("beta").value) });
const ordered = () => form.attribute?.kind !== "category";
const path = (rest) => `/api/curator/tables/${encodeURIComponent(form.table.name)}/${rest}`;

// The policy of the chosen attribute as the form states it.
function stated() {
  const kind = byId("policy-kind").value;
  if (kind === "threshold") return { kind, theta: theta() };
  if (kind !== "blocks") return { kind };
  const levels = form.attribute.levels;
  const value = (words) => levels ? levels.find((one) => String(one) === words) ?? words : Number(words);
  const blocks = byId("blocks").value.split(/[;\n]+/).map((one) => one.split(",").map((word) => word.trim()).filter(Boolean).map(value));
  return { kind, blocks: blocks.filter((one) => one.length) };
}

const stating = (policy) => ({ ...form.table.policies, [form.attribute.name]: policy });
const now = () => ({ question: asked(), epsilon: Number(byId("epsilon").value) });
const previewed = (body, policies) => post("/api/curator/preview", { ...body, policies });

// The truth and a private answer, on one scale.
function showBoth(shown, title) {
  const truth = { ...shown.private, values: shown.truth, intervals: null };
  // Quantiles are read off running totals; those are the truth.
  if (truth.question.kind === "quantiles") truth.question = { ...truth.question, kind: "cumulative" };
  const scale = truth.question.kind === shown.private.question.kind ? scaleOf([truth, shown.private]) : undefined;
  byId("private-title").textContent = title;
  draw(byId("truth"), [truth], [], scale);
  draw(byId("private"), [shown.private], [], scale);
  return scale;
}

async function preview() {
  // The form may change while answers are on their way: all are about what it says now.
  const body = now();
  const thetas = ordered() ? byId("thetas").value.split(/[^0-9]+/).filter(Boolean).map(Number).slice(0, 4) : [];
  const boxes = thetas.map((value) => {
    const plot = element("div", { class: "plot" });
    return { policies: stating({ kind: "threshold", theta: value }), plot,
      box: element("div", {}, element("h3", {}, `Private, threshold ${value}`), plot) };
  });
  const scale = showBoth(await previewed(body, null), "Private, under the policy in force");
  byId("thresholds").replaceChildren(...boxes.map((one) => one.box));
  for (const one of boxes) draw(one.plot, [(await previewed(body, one.policies)).private], [], scale);
}

async function previewStated() {
  const policy = stated();
  byId("thresholds").replaceChildren();
  showBoth(await previewed(now(), stating(policy)), `Private, ${POLICIES[policy.kind].replace("theta", policy.theta)}`);
}

// A new attribute: offer the policies that fit it, and show the one in force.
function offer() {
  const attribute = form.attribute, inForce = form.table.policies[attribute.name] ?? { kind: "full" };
  const kinds = ordered() ? ["full", "line", "threshold", "blocks"] : ["full", "blocks"];
  byId("policy-kind").replaceChildren(...options(kinds.map((one) => [one, POLICIES[one]]), ordered() && !form.table.policies[attribute.name] ? "threshold" : inForce.kind));
  byId("policy-attribute").textContent = attribute.name;
  byId("theta").max = Math.max(1, attribute.regular - 1);
  if (inForce.theta) byId("theta").value = inForce.theta;
  byId("blocks").value = (inForce.blocks ?? [attribute.levels ?? []]).map((one) => one.join(", ")).join("; ");
  curve = null;
  draw(byId("trade-off"), []);
  byId("draw-trade-off").disabled = !ordered();
}

async function graph() {
  const kind = byId("policy-kind").value;
  byId("theta-field").hidden = kind !== "threshold";
  byId("blocks-field").hidden = kind !== "blocks";
  byId("theta-value").textContent = byId("theta").value;
  const where = `table=${encodeURIComponent(form.table.name)}&attribute=${encodeURIComponent(form.attribute.name)}`;
  const picture = await post(`/api/policy-graph?${where}`, stated());
  drawGraph(byId("graph"), picture);
  byId("graph-words").textContent =
    (picture.shown < picture.cells ? `The first ${picture.shown} of ${picture.cells} cells. ` : "") + sentence(picture.words);
  if (curve) drawTradeOff(byId("trade-off"), curve, theta(), pick);
}
const redraw = following(graph);

function pick(value) {
  byId("policy-kind").value = "threshold";
  byId("theta").value = value;
  trying(async () => { await graph(); await previewStated(); });
}

function state() {
  const table = form.table;
  byId("policy-state").textContent = (table.frozen ? "Frozen, because something was charged. " : "")
    + `In force: ${sentence(table.promise)}`;
  byId("set-policy").disabled = byId("reset-policy").disabled = table.frozen;
  byId("total").value = table.epsilon;
  byId("total").disabled = byId("set-budget").disabled = table.frozen;
  byId("budget").textContent = `${number(table.spent)} of epsilon ${number(table.epsilon)} is spent.`;
}

async function analysts() {
  const name = form.table.name;
  const rows = await get("/api/curator/analysts");
  byId("analysts").tBodies[0].replaceChildren(...rows.map((one) => {
    const share = one.allotments[name];
    return element("tr", {}, element("td", {}, one.name),
      element("td", {}, share ? number(share.epsilon) : "none"),
      element("td", {}, share ? number(share.spent) : "0"),
      element("td", {}, element("button", { class: "plain", type: "button", onclick: () => trying(async () => {
        await call("DELETE", `/api/curator/analysts/${encodeURIComponent(one.name)}`);
        await refresh();
      }) }, "Revoke")));
  }));
}

async function refresh() {
  form.tables = await get("/api/tables");
  state();
  await analysts();
  const rows = await get(`/api/history?table=${encodeURIComponent(form.table.name)}`);
  drawBudget(byId("budget-plot"), rows, form.table.epsilon);
  byId("charges").tBodies[0].replaceChildren(...rows.reverse().map((one) => element("tr", {},
    element("td", {}, new Date(one.time).toLocaleString()), element("td", {}, one.analyst ?? "curator"),
    element("td", { class: "words" }, inWords(one.question)), element("td", {}, one.mechanism),
    element("td", {}, number(one.epsilon)))));
  byId("charges-empty").hidden = rows.length > 0;
}

const policies = (chosen) => trying(async () => {
  await put(path("policies"), chosen());
  notice("the policy is set");
  await refresh();
  offer();
  await graph();
  await preview();
});

const submitted = (id, action) => byId(id).addEventListener("submit", (event) => {
  event.preventDefault();
  trying(action);
});

function listen() {
  submitted("question", preview);
  byId("theta").addEventListener("input", redraw);
  byId("policy-kind").addEventListener("change", redraw);
  byId("blocks").addEventListener("input", afterPause(redraw));
  byId("preview-policy").addEventListener("click", () => trying(previewStated));
  byId("draw-trade-off").addEventListener("click", () => trying(async () => {
    byId("draw-trade-off").disabled = true;
    try {
      curve = await post("/api/curator/trade-off", { question: asked() });
      drawTradeOff(byId("trade-off"), curve, theta(), pick);
    } finally { byId("draw-trade-off").disabled = false; }
  }));
  byId("set-policy").addEventListener("click", () => policies(() => stating(stated())));
  byId("reset-policy").addEventListener("click", () => policies(() => ({})));
  submitted("budget-form", async () => {
    await put(path("budget"), { epsilon: Number(byId("total").value) });
    notice("the budget is set");
    await refresh();
  });
  submitted("analyst-form", async () => {
    const name = byId("analyst-name").value.trim();
    const known = (await get("/api/curator/analysts")).some((one) => one.name === name);
    if (!known) {
      const made = await post(`/api/curator/analysts/${encodeURIComponent(name)}`);
      byId("new-secret").textContent = `Secret of ${name}, shown this once: ${made.secret}`;
    }
    byId("new-secret").hidden = known;
    await put(path(`allotments/${encodeURIComponent(name)}`), { epsilon: Number(byId("analyst-epsilon").value) });
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
    notice("describe a table first");
    await dataSets();
    return;
  }
  form = new QuestionForm(tables, (id) => {
    if (id !== "table" && id !== "attribute" && id !== "kind") return;
    offer();
    redraw();
    if (id === "table") trying(refresh);
  });
  listen();
  offer();
  await graph();
  await refresh();
  await dataSets();
  await preview();
});
