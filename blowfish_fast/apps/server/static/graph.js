// A policy as a graph: its cells on a circle, an edge between two that must not be told apart.

const SPACE = "http://www.w3.org/2000/svg";
const SIZE = 320, MIDDLE = SIZE / 2;

function make(tag, attributes, words) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (words !== undefined) made.textContent = words;
  return made;
}

export function drawGraph(box, picture) {
  const count = picture.shown;
  const place = (at, radius) => {
    const turn = (2 * Math.PI * at) / count - Math.PI / 2;
    return [MIDDLE + radius * Math.cos(turn), MIDDLE + radius * Math.sin(turn)];
  };
  const svg = make("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "data-edges": picture.edges.length,
    "aria-label": `${picture.edges.length} edges among the first ${count} cells` });
  for (const [one, other] of picture.edges) {
    const [x1, y1] = place(one, 120), [x2, y2] = place(other, 120);
    svg.append(make("line", { x1, y1, x2, y2 }));
  }
  for (let at = 0; at < count; at++) {
    const [cx, cy] = place(at, 120), [x, y] = place(at, 142);
    svg.append(make("circle", { cx, cy, r: 5 }), make("text", { x, y: y + 3 }, String(picture.labels[at]).slice(0, 11)));
  }
  box.replaceChildren(svg);
}
