// The place of the open page in the list of all pages is in sight from the start.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.querySelector(".sidebar-scroll");
  const here = document.querySelector(".sidebar-tree .current-page");
  if (list && here) {
    const below = here.getBoundingClientRect().top - list.getBoundingClientRect().top;
    if (below > list.clientHeight * 0.8) list.scrollTop = below - list.clientHeight / 2;
  }
});

// What the theme leaves unsaid to those who hear a page, or move by keyboard.
window.addEventListener("load", () => {
  const say = (where, name, value) =>
    document.querySelectorAll(where).forEach((one) => one.setAttribute(name, value));
  say(".caption[role=heading]", "aria-level", "2");
  say(".sidebar-drawer", "aria-label", "All pages");
  say(".toc-drawer", "aria-label", "On this page");
  // Parameters of a long signature stand in a list whose term is not shown.
  for (const list of document.querySelectorAll("dt.sig > dl")) {
    const term = document.createElement("dt");
    term.textContent = "parameters";
    term.style.cssText = "position: absolute; clip-path: inset(50%); width: 1px";
    list.prepend(term);
  }
  for (const one of document.querySelectorAll("pre, .table-wrapper, .math")) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
  }
  if (!document.querySelector("h1")) {
    const heading = document.createElement("h1");
    heading.textContent = document.title.split(" - ")[0];
    document.querySelector("article")?.prepend(heading);
  }
});
