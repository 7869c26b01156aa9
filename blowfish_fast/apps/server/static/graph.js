// A policy as a graph: cells on a circle, or on a grid for two attributes; an edge between two that must not be told apart.

const SPACE = "http://www.w3.org/2000/svg";
const SIZE = 320, MIDDLE = SIZE / 2;

function make(tag, attributes, words) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (words !== undefined) made.textContent = words;
  return made;
}

export function drawGraph(box, picture) {
  const count = picture.shown, columns = picture.columns;
  const place = (at, radius) => {
    if (columns) {
      // Edges along a row or column pass by the cells between: they are bent a little.
      const step = 240 / Math.max(columns - 1, Math.ceil(count / columns) - 1, 1);
      return [40 + (at % columns) * step, 30 + Math.floor(at / columns) * step + (radius > 120 ? 16 : 0)];
    }
    const turn = (2 * Math.PI * at) / count - Math.PI / 2;
    return [MIDDLE + radius * Math.cos(turn), MIDDLE + radius * Math.sin(turn)];
  };
  const svg = make("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "data-edges": picture.edges.length,
    "aria-label": `${picture.edges.length} edges among ${count} of ${picture.cells} cells` });
  for (const [one, other] of picture.edges) {
    const [x1, y1] = place(one, 120), [x2, y2] = place(other, 120);
    const bent = columns ? 0.16 : 0, mx = (x1 + x2) / 2 + bent * (y2 - y1), my = (y1 + y2) / 2 - bent * (x2 - x1);
    svg.append(make("path", { d: `M${x1} ${y1}Q${mx} ${my} ${x2} ${y2}` }));
  }
  for (let at = 0; at < count; at++) {
    const [cx, cy] = place(at, 120), [x, y] = place(at, 142);
    svg.append(make("circle", { cx, cy, r: 5 }), make("text", { x, y: y + 3 }, String(picture.labels[at]).slice(0, 11)));
  }
  box.replaceChildren(svg);
}
