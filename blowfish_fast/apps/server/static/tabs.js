// Parts of a page, each with an address of its own: one of them is shown at a time.

/* global Plotly */
import { byId } from "./api.js";

// Offer some parts by name, and show the one that the address names, or else the first.
export function showTabs(offered) {
  const show = () => {
    const named = location.hash.slice(1), chosen = offered.includes(named) ? named : offered[0];
    for (const link of document.querySelectorAll(".tabs a")) {
      const name = link.hash.slice(1);
      link.hidden = !offered.includes(name);
      byId(name).hidden = name !== chosen;
      if (name === chosen) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
    // What was drawn while its part was hidden has not the width of the page yet.
    for (const plot of byId(chosen).querySelectorAll(".plot.drawn")) Plotly.Plots.resize(plot);
  };
  window.addEventListener("hashchange", show);
  show();
}
