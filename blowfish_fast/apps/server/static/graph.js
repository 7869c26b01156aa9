// A policy as a graph: cells on a circle, or on a grid for two attributes; an edge between two that must not be told apart.
// More cells than a circle holds are a matrix: row and column are cells, dark where the two must not be told apart.

const SPACE = "http://www.w3.org/2000/svg";
const SIZE = 320, MIDDLE = SIZE / 2;
// Room for words beside a circle, and how far to the side, in parts of its radius, they stand beside it.
const ROOM = 36, ASIDE = 0.25;

function make(tag, attributes, words) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (words !== undefined) made.textContent = words;
  return made;
}

const LEFT = 40, SQUARE = SIZE - LEFT - 8;
// Room for the titles of both sides.
const BESIDE = 12;

// Each square stands for some cells by some cells; its shade is the part of their pairs that is joined.
function drawMatrix(box, picture) {
  const { shares, labels } = picture, count = shares.length, side = SQUARE / count;
  const svg = make("svg", { viewBox: `${-BESIDE} 0 ${SIZE + BESIDE} ${SIZE + BESIDE}`, role: "img", class: "matrix", "data-edges": picture.edge_count,
    "aria-label": `${picture.edge_count} edges among ${picture.cells} cells, as a matrix` });
  svg.append(make("rect", { x: LEFT, y: 4, width: SQUARE, height: SQUARE, class: "frame" }));
  // Squares of one shade in a row are one stripe.
  shares.forEach((row, down) => {
    for (let from = 0; from < count;) {
      let to = from + 1;
      while (to < count && row[to] === row[from]) to++;
      if (row[from] > 0) svg.append(make("rect", { x: LEFT + from * side, y: 4 + down * side, width: (to - from) * side, height: side, "fill-opacity": 0.2 + 0.8 * row[from] }));
      from = to;
    }
  });
  const every = Math.ceil(count / 6);
  for (let at = 0; at < count; at += every) {
    const words = labels[at].length > 7 ? `${labels[at].slice(0, 6)}…` : labels[at];
    svg.append(make("text", { x: LEFT - 4, y: 4 + (at + 0.5) * side + 3, class: "end" }, words));
    svg.append(make("text", { x: LEFT + (at + 0.5) * side, y: SIZE - 24 + (at / every % 2) * 12 }, words));
  }
  const centre = LEFT + SQUARE / 2, middle = 4 + SQUARE / 2;
  svg.append(make("text", { x: centre, y: SIZE + 4 }, "a value"));
  svg.append(make("text", { x: 0, y: 0, transform: `translate(${-BESIDE / 2} ${middle}) rotate(-90)` }, "another value"));
  box.replaceChildren(svg);
}

export function drawGraph(box, picture) {
  if (picture.shares) { drawMatrix(box, picture); return; }
  const count = picture.shown, [down, across] = picture.sides, columns = across.length;
  const place = (at, radius) => {
    if (columns) {
      // Edges along a row or column pass by the cells between: they are bent a little.
      const rows = Math.ceil(count / columns);
      return [90 + (at % columns) * (200 / Math.max(columns - 1, 1)), 40 + Math.floor(at / columns) * (250 / Math.max(rows - 1, 1))];
    }
    const turn = (2 * Math.PI * at) / count - Math.PI / 2;
    return [MIDDLE + radius * Math.cos(turn), MIDDLE + radius * Math.sin(turn)];
  };
  const svg = make("svg", { viewBox: `${columns ? 0 : -ROOM} 0 ${SIZE + (columns ? 0 : 2 * ROOM)} ${SIZE}`, role: "img", "data-edges": picture.edges.length,
    "aria-label": `${picture.edges.length} edges among ${count} of ${picture.cells} cells` });
  for (const [one, other] of picture.edges) {
    const [x1, y1] = place(one, 120), [x2, y2] = place(other, 120);
    const bent = columns ? 0.16 : 0, mx = (x1 + x2) / 2 + bent * (y2 - y1), my = (y1 + y2) / 2 - bent * (x2 - x1);
    svg.append(make("path", { d: `M${x1} ${y1}Q${mx} ${my} ${x2} ${y2}` }));
  }
  for (let at = 0; at < count; at++) {
    const [cx, cy] = place(at, 120), [x, y] = place(at, 132), words = String(picture.labels[at]);
    const dot = make("circle", { cx, cy, r: 5 });
    dot.append(make("title", {}, words));
    svg.append(dot);
    // Words beside a circle begin, or end, at its dot; those above and below have it in their middle.
    const aside = (x - MIDDLE) / 132, side = aside > ASIDE ? "start" : aside < -ASIDE ? "end" : "";
    const down = side ? 3 : y > MIDDLE ? 10 : -4;
    if (!columns) svg.append(make("text", { x, y: y + down, class: side }, words.length > 11 ? `${words.slice(0, 10)}…` : words));
  }
  // Two attributes: bins are named along the sides; below them those for what is missing, outside or filtered out.
  if (columns) {
    across.forEach((words, at) => svg.append(make("text", { x: place(at)[0], y: at % 2 ? 12 : 24 }, words)));
    const below = count > down.length * columns ? ["others"] : [];
    [...down, ...below].forEach((words, at) => svg.append(make("text", { x: 38, y: place(at * columns)[1] + 3 }, words)));
  }
  box.replaceChildren(svg);
}
