// The place of the open page in the list of all pages is in sight from the start.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.querySelector(".sidebar-scroll");
  const here = document.querySelector(".sidebar-tree .current-page");
  if (list && here) {
    const below = here.getBoundingClientRect().top - list.getBoundingClientRect().top;
    if (below > list.clientHeight * 0.8) list.scrollTop = below - list.clientHeight / 2;
  }
});
