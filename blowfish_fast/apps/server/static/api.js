// Calls to the server, and what every page shares.

const csrf = document.querySelector('meta[name="csrf"]')?.content ?? "";

export async function call(method, path, body) {
  const headers = { "X-CSRF-Token": csrf };
  let content;
  if (body instanceof FormData) content = body;
  else if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    content = JSON.stringify(body);
  }
  const response = await fetch(path, { method, headers, body: content });
  if (response.status === 401 && csrf) location.assign("/");
  const answer = response.status === 204 ? null : await response.json();
  if (!response.ok) throw refusal(answer, response.status);
  return answer;
}

function refusal(answer, status) {
  const problem = new Error(answer?.error?.message ?? `status ${status}`);
  problem.fields = answer?.error?.fields ?? [];
  return problem;
}

// Lines of JSON as they come.
export async function stream(path, body, each) {
  const headers = { "X-CSRF-Token": csrf, "Content-Type": "application/json" };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw refusal(await response.json(), response.status);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  for (;;) {
    const { value, done } = await reader.read();
    kept += value ?? "";
    const lines = kept.split("\n");
    kept = lines.pop();
    for (const line of lines) if (line) each(JSON.parse(line));
    if (done) return;
  }
}

// Ask before something that cannot be undone.
export function confirmed(words) {
  const box = byId("confirm");
  byId("confirm-words").textContent = words;
  box.returnValue = "no";
  box.showModal();
  return new Promise((done) => box.addEventListener("close", () => done(box.returnValue === "yes"), { once: true }));
}

// Where a field of a question is written, if not under its own name.
const BOXES = { q: "parts", ranges: "stretches", rectangles: "stretches", granularity: "width", false_values: "false-values", epsilon: "spend", rho: "spend" };

// Mark the fields that a message is about, where `find` says that they are written.
export function markFields(fields, find = ({ field }) => byId(BOXES[field] ?? field)) {
  for (const one of document.querySelectorAll("[aria-invalid]")) {
    one.removeAttribute("aria-invalid");
    one.removeAttribute("title");
  }
  for (const one of fields) {
    const box = find(one);
    box?.setAttribute("aria-invalid", "true");
    box?.setAttribute("title", one.message);
  }
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);
export const put = (path, body) => call("PUT", path, body);
export const byId = (id) => document.getElementById(id);

// The page listens by now: from here on it can be used.
export function listening() {
  document.querySelector("main").inert = false;
}

// Answers may come in another order than they were asked for, and only that to the newest
// request is drawn:
//   const begin = newest();
//   const current = begin(), answer = await get(path);
//   if (current()) draw(answer);
export function newest() {
  let last = 0;
  return function begin() {
    const own = ++last;
    return () => own === last;
  };
}

let hiding;
export function notice(words, bad = false) {
  const box = byId("notice");
  box.textContent = words;
  box.classList.toggle("bad", bad);
  box.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { box.hidden = true; }, 8000);
}

// Run something and say what went wrong, if it did.
export async function trying(action) {
  try { return await action(); } catch (problem) { notice(problem.message, true); }
}

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export const options = (values, chosen) =>
  values.map(([value, words]) => element("option", { value, selected: value === chosen }, words));

// So many digits, but every one before the point: 16,384 cells are not 16,380.
export const number = (value, digits = 4) => Number(value).toLocaleString("en",
  Math.abs(value) >= 10 ** digits ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits });

// The end of an interval with so many digits after the point, rounded outwards: what is shown holds no less than promised.
export const endOf = (value, fraction, upwards) => {
  const unit = 10 ** fraction, scaled = value * unit, close = Math.round(scaled);
  // What differs from a round number in its last bits is that number.
  const rounded = Math.abs(scaled - close) <= 1e-9 * Math.abs(scaled) ? close : upwards ? Math.ceil(scaled) : Math.floor(scaled);
  return (rounded / unit).toLocaleString("en", { maximumFractionDigits: fraction });
};

// Both ends of an interval in words, by the size of the larger one.
export const intervalWords = (low, high, word = "to", digits = 4) => {
  const size = Math.max(Math.abs(low), Math.abs(high), Number.MIN_VALUE);
  const fraction = Math.min(Math.max(digits - 1 - Math.floor(Math.log10(size)), 0), 12);
  return `${endOf(low, fraction, false)} ${word} ${endOf(high, fraction, true)}`;
};

export const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1) + (words.endsWith(".") ? "" : ".");

// Run once typing stops.
export function afterPause(action, milliseconds = 350) {
  let waiting;
  return () => { clearTimeout(waiting); waiting = setTimeout(action, milliseconds); };
}

// Run at once, and once more if asked again meanwhile: a slider is followed as it moves,
// with one request under way at a time and none of them too late.
export function following(action) {
  let running = false, again = false;
  return async function follow() {
    if (running) { again = true; return; }
    running = true;
    try {
      do { again = false; await trying(action); } while (again);
    } finally { running = false; }
  };
}

byId("log-out")?.addEventListener("click", () => trying(async () => {
  await call("DELETE", "/api/session");
  location.assign("/");
}));
