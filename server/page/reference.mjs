/** The search of /docs: what a text is not found in is hidden. The text stands in the address, so that it can be shared. */

import { byId } from "./dom.mjs";

const routes = [...document.querySelectorAll(".route")].map((section) => ({ section, text: textOf(section) }));
const forms = [...document.querySelectorAll(".form")].map((section) => ({
  section,
  name: section.id.toLowerCase(),
  rows: [...section.querySelectorAll("tbody tr")].map((row) => ({ row, text: textOf(row) })),
}));

function textOf(element) {
  return element.textContent.toLowerCase();
}

function find(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text) => words.every((word) => text.includes(word));
  let [numRoutes, numRows] = [0, 0];
  for (const { section, text } of routes) {
    section.hidden = !has(text);
    numRoutes += section.hidden ? 0 : 1;
  }
  for (const { section, name, rows } of forms) {
    const isNamed = has(name);
    let numHere = 0;
    for (const { row, text } of rows) {
      row.hidden = !isNamed && !has(text);
      numHere += row.hidden ? 0 : 1;
    }
    section.hidden = !isNamed && !numHere;
    numRows += numHere;
  }
  document.body.classList.toggle("searched", words.length > 0);
  byId("found").textContent = words.length ? `${plural(numRoutes, "route")}, ${plural(numRows, "parameter")}` : "";
}

function plural(count, name) {
  return `${count || "no"} ${name}${count === 1 ? "" : "s"}`;
}

function showAddressed() {
  byId("search").value = new URLSearchParams(location.search).get("q") ?? "";
  find(byId("search").value);
}

byId("search").addEventListener("input", (event) => {
  const query = event.target.value.trim();
  history.replaceState(null, "", query ? `?${new URLSearchParams({ q: query })}` : location.pathname);
  find(query);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target === byId("search")) return;
  event.preventDefault();
  byId("search").focus();
});
// A link to what the search has hidden ends the search.
addEventListener("hashchange", () => {
  if (!document.getElementById(decodeURIComponent(location.hash.slice(1)))?.hidden) return;
  byId("search").value = "";
  find("");
  document.getElementById(decodeURIComponent(location.hash.slice(1))).scrollIntoView();
});

byId("search-field").hidden = false;
showAddressed();
