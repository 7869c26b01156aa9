// Questions that were saved under names, and a board of their answers. What a board shows is free: stored answers, and
// what is read from them; of the others it says what they would cost.
import { byId, call, element, get, newest, notice, number, post, put, trying } from "./api.js";
import { inWords } from "./form.js";
import { draw } from "./plots.js";

const lists = newest(), boards = newest();
let listed = [];

async function show(table, open) {
  const current = lists(), all = await get("/api/saved");
  if (!current()) return;
  listed = all.filter((one) => one.question.table === table);
  byId("saved").replaceChildren(...listed.map((one) => element("li", {},
    element("a", { href: "#ask-title", onclick: () => open(one.question) }, one.name), `: ${inWords(one.question)} `,
    element("button", { class: "plain small", type: "button", "aria-label": `remove ${one.name}`, onclick: () => trying(async () => {
      await call("DELETE", `/api/saved?name=${encodeURIComponent(one.name)}`);
      await show(table, open);
    }) }, "Remove"))));
  byId("saved-empty").hidden = listed.length > 0;
  byId("show-board").hidden = listed.length === 0;
  byId("board").replaceChildren();
}

async function drawBoard(linkTo) {
  const current = boards(), boxes = listed.map((one) => ({ ...one, plot: element("div", { class: "plot" }), words: element("p", { class: "quiet" }, "…") }));
  byId("board").replaceChildren(...boxes.map((one) => element("div", {}, element("h3", {}, one.name), one.plot, one.words)));
  for (const { question, plot, words } of boxes) {
    // One after the other, so that a board does not push others aside.
    const plan = await post("/api/explain", { question }).catch((problem) => ({ problem }));
    if (!current()) return;
    if (plan.problem) { words.textContent = plan.problem.message; continue; }
    if (!plan.answered_before && plan.cost > 0) {
      words.textContent = `Not answered yet: it would cost ${plan.currency} ${number(plan.cost)}. Open it above to ask.`;
      continue;
    }
    const answer = await post("/api/ask", { question });
    if (!current()) return;
    draw(plot, answer.axes.length > 2 ? [] : [answer]);
    words.replaceChildren(`Free; as of ${new Date(answer.as_of).toLocaleString()}. `, element("a", { href: linkTo(answer) }, "The answer"), ".");
  }
}

// `shown` returns the answer that the page shows, `open` puts a question into the page.
export function savedQuestions({ table, shown, open, linkTo }) {
  byId("save-form").addEventListener("submit", (event) => {
    event.preventDefault();
    trying(async () => {
      const name = byId("save-name").value.trim();
      await put("/api/saved", { name, question: shown().question });
      notice(`saved as ${name}`);
      await show(table(), open);
    });
  });
  byId("show-board").addEventListener("click", () => trying(() => drawBoard(linkTo)));
  return () => show(table(), open);
}
