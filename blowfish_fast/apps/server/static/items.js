// Lists that people type: items with separators between, as in a CSV file.
// One with a separator, a quotation mark at its begin or blanks at its ends stands in quotation marks, which are
// doubled inside:  biology, earth science, "Bern, Stadt", "say ""yes"""

const QUOTED = /"((?:[^"]|"")*)"/y;

// The items between separators, each with the separator behind it; empty ones without quotation marks are none.
function items(text, separators) {
  const found = [];
  for (let at = 0; at <= text.length;) {
    while (/\s/.test(text[at] ?? "") && !separators.includes(text[at])) at++;
    QUOTED.lastIndex = at;
    const whole = QUOTED.exec(text);
    const behind = whole ? at + whole[0].length : at;
    let end = behind;
    while (end < text.length && !separators.includes(text[end])) end++;
    const rest = text.slice(behind, end).trim();
    // Letters behind the closing mark: the text is taken as it stands.
    if (whole && !rest) found.push({ value: whole[1].replaceAll('""', '"'), end: text[end] });
    else if (whole || rest) found.push({ value: text.slice(at, end).trim(), end: text[end] });
    else if (found.length && text[end] !== ",") found.at(-1).end = text[end];
    at = end + 1;
  }
  return found;
}

export const splitItems = (text) => items(text, ",").map((one) => one.value);

// Lists of items, with a semicolon or a line break between two lists.
export function splitLists(text) {
  const lists = [[]];
  for (const { value, end } of items(text, ",;\n")) {
    lists.at(-1).push(value);
    if (end === ";" || end === "\n") lists.push([]);
  }
  return lists.filter((one) => one.length);
}

export function writtenItem(value) {
  const text = String(value);
  return text && text === text.trim() && !/^"|[,;\r\n]/.test(text) ? text : `"${text.replaceAll('"', '""')}"`;
}
