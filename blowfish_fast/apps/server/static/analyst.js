import { afterPause, byId, element, following, get, notice, number, post, sentence, trying } from "./api.js";
import { QuestionForm, inWords } from "./form.js";
import { draw, drawCompared } from "./plots.js";

let form;
const kept = new Map();
let compared = [];

const asked = () => form.question({
  alpha: Number(byId("alpha").value), beta: Number(byId("beta").value), scope: byId("scope").value,
});

async function price() {
  const box = byId("cost");
  try {
    const told = await post("/api/explain", { question: asked() });
    box.classList.toggle("over", !told.affordable);
    box.textContent = told.affordable
      ? `costs epsilon ${number(told.cost)}; ${number(told.remaining_after)} would remain`
      : `costs epsilon ${number(told.cost)}, and only ${number(told.remaining)} remains`;
    byId("why").textContent = told.why;
    byId("ask").disabled = !told.affordable;
    byId("candidates").tBodies[0].replaceChildren(...told.candidates.map((one) =>
      element("tr", {}, element("td", {}, one.name),
        element("td", {}, one.epsilon === null ? "—" : number(one.epsilon)),
        element("td", { class: "words" }, one.reason || one.found_by || ""))));
  } catch (problem) {
    box.classList.add("over");
    box.textContent = problem.message;
    byId("why").textContent = "";
    byId("ask").disabled = true;
  }
}

function budget() {
  const table = form.table;
  byId("promise").textContent = `What is protected: ${sentence(table.promise)}`;
  byId("budget").textContent = `${number(table.remaining)} of epsilon ${number(table.granted)} remains for you.`;
  byId("remaining").value = table.granted > 0 ? table.remaining / table.granted : 0;
}

function show(answer) {
  byId("answer-title").textContent = inWords(answer.question);
  draw(byId("answer"), [answer]);
  byId("answer-words").textContent = (answer.replayed ? `Answered before, free; as of ${answer.as_of}. ` : "")
    + `${sentence(answer.promise)} ${
      answer.intervals_hold === "truth"
        ? `Each bar or band holds the true number with probability at least ${number(answer.confidence)}.`
        : "Bars and bands are noise only: what taking buckets as even is off by is not covered."}`;
}

async function history() {
  const rows = await get(`/api/history?table=${encodeURIComponent(form.table.name)}`);
  byId("history").tBodies[0].replaceChildren(...rows.reverse().map((one) => {
    const words = inWords(one.question);
    const box = element("input", { type: "checkbox", "aria-label": `compare ${words}`,
      onchange: () => trying(() => compare(one, box)) });
    return element("tr", {}, element("td", {}, box),
      element("td", {}, new Date(one.time).toLocaleString()), element("td", { class: "words" }, words),
      element("td", {}, one.mechanism), element("td", {}, number(one.epsilon)));
  }));
  byId("history-empty").hidden = rows.length > 0;
  compared = [];
  drawCompared(byId("compared"), [], []);
}

async function compare(row, box) {
  if (!box.checked) compared = compared.filter((one) => one.row !== row);
  else if (compared.length === 2) { box.checked = false; notice("two at a time; clear one first"); return; }
  else {
    const path = `/api/answer?table=${encodeURIComponent(form.table.name)}&request=${encodeURIComponent(row.request)}`;
    if (!kept.has(row.request)) kept.set(row.request, await get(path));
    compared.push({ row, answer: kept.get(row.request) });
  }
  drawCompared(byId("compared"), compared.map((one) => one.answer), compared.map((one) => inWords(one.row.question)));
}

async function refresh() {
  form.tables = await get("/api/tables");
  budget();
  await history();
}

const later = afterPause(following(price));

trying(async () => {
  const tables = await get("/api/tables");
  if (!tables.length) { notice("the curator has not described any table yet"); return; }
  form = new QuestionForm(tables, (id) => {
    byId("ask").disabled = true;
    if (id === "table") trying(refresh);
    later();
  });
  for (const id of ["alpha", "beta", "scope"]) {
    byId(id).addEventListener("input", () => { byId("ask").disabled = true; later(); });
  }
  byId("question").addEventListener("submit", (event) => {
    event.preventDefault();
    byId("ask").disabled = true;
    trying(async () => {
      show(await post("/api/ask", { question: asked() }));
      await refresh();
    }).finally(later);
  });
  budget();
  await history();
  await price();
});
