// The table of runs. Searching, sorting and paging happen on the server; the address holds the state.
import { ask, fault, send, watch } from "./api.js";
import { score, status, tag, worst } from "./badges.js";
import { h, link, show } from "./dom.js";
import { ago, date } from "./words.js";

const SIZE = 50;
const COLUMNS = [["name", "Run"], ["status", "Status"], ["model", "Model"], ["score", "Score"], ["findings", "Doctor"], ["updated", "Updated"]];
const state = { search: "", sort: "updated", down: "1", status: "", archived: "", offset: 0, ...Object.fromEntries(new URLSearchParams(location.search)) };
state.offset = Number(state.offset);
const chosen = new Set(JSON.parse(sessionStorage.getItem("chosen") ?? "[]"));

const search = h("input", { type: "search", id: "search", placeholder: "Search names, settings, notes, #tags", value: state.search, "aria-label": "Search runs", autocomplete: "off" });
const filter = h("select", { "aria-label": "Status" }, ["", "running", "finished", "failed", "interrupted"].map((word) => h("option", { value: word, selected: word === state.status }, word || "any status")));
const archive = h("input", { type: "checkbox", checked: state.archived === "1" });
const count = h("p", { class: "soft", role: "status" });
const heads = h("tr");
const body = h("tbody");
const pages = h("nav", { class: "pages", "aria-label": "Pages of the table" });
const bar = h("div", { class: "bar", role: "region", "aria-label": "Chosen runs" });
let timer = null;

function change(pairs, wait = 0) {
  Object.assign(state, { offset: 0 }, pairs);
  const kept = Object.entries(state).filter(([key, value]) => value && !(key === "sort" && value === "updated") && !(key === "down" && value === "1"));
  history.replaceState(null, "", kept.length || state.down !== "1" ? link("/", state.down === "1" ? kept : [...kept, ["down", "0"]]) : "/");
  clearTimeout(timer);
  timer = setTimeout(() => load().catch(fault), wait);
}

function head([key, word]) {
  const sorted = state.sort === key;
  const sort = () => change({ sort: key, down: sorted ? (state.down === "1" ? "0" : "1") : key === "name" || key === "model" ? "0" : "1" });
  const arrow = sorted ? (state.down === "1" ? "↓" : "↑") : "";
  return h("th", { scope: "col", class: `of-${key}`, "aria-sort": sorted ? (state.down === "1" ? "descending" : "ascending") : null },
    h("button", { type: "button", class: "sort", onclick: sort }, word, h("span", { "aria-hidden": "true" }, arrow)));
}

function line(run) {
  const box = h("input", { type: "checkbox", checked: chosen.has(run.name), "aria-label": `Choose ${run.name}`, onchange: () => choose(run.name, box.checked) });
  return h("tr", { "data-run": run.name },
    h("td", { class: "of-box" }, box),
    h("th", { scope: "row", class: "of-name" }, h("a", { href: link("/run", { run: run.name }) }, run.name), run.tags.map(tag), run.note && h("span", { class: "note" }, run.note.split("\n")[0])),
    h("td", { class: "of-status" }, status(run.status)),
    h("td", { class: "of-model" }, run.model || "–"),
    h("td", { class: "of-score" }, score(run.score)),
    h("td", { class: "of-findings" }, worst(run.worst)),
    h("td", { class: "of-updated" }, h("time", { datetime: new Date(run.updated * 1000).toISOString(), title: date(run.updated) }, ago(run.updated))));
}

function choose(name, on) {
  if (on) chosen.add(name);
  else chosen.delete(name);
  sessionStorage.setItem("chosen", JSON.stringify([...chosen]));
  showBar();
}

async function archiveChosen() {
  for (const name of chosen) {
    const run = await ask("run", { run: name });
    await send("mark", { run: name, tags: run.tags, note: run.note, archived: state.archived !== "1" });
  }
  clear();
}

function clear() {
  chosen.clear();
  choose("", false);
  change({ offset: state.offset });
}

function showBar() {
  bar.hidden = chosen.size === 0;
  const some = [...chosen];
  bar.replaceChildren(
    h("span", null, `${some.length} chosen`),
    h("a", { class: "button", href: link("/compare", some.map((name) => ["run", name])) }, some.length > 1 ? "Compare" : "Show curves"),
    h("button", { type: "button", class: "quiet", onclick: () => archiveChosen().catch(fault) }, state.archived === "1" ? "Bring back" : "Archive"),
    h("button", { type: "button", class: "quiet", onclick: clear }, "Clear"));
}

function showPages(total) {
  const last = Math.min(state.offset + SIZE, total);
  count.textContent = total ? `${(state.offset + 1).toLocaleString("en")}–${last.toLocaleString("en")} of ${total.toLocaleString("en")} runs` : "";
  const turn = (word, offset, on) => h("button", { type: "button", class: "quiet", disabled: !on, onclick: () => change({ offset }) }, word);
  pages.replaceChildren(turn("← Newer", state.offset - SIZE, state.offset > 0), turn("Older →", state.offset + SIZE, last < total));
  pages.hidden = total <= SIZE;
}

function none() {
  const words = state.search || state.status || state.archived ? "No run matches." : "No runs yet. Start one here, or with castalia fit in a terminal.";
  return h("tr", null, h("td", { colspan: COLUMNS.length + 1, class: "none" }, words));
}

async function load() {
  const found = await ask("runs", { ...state, limit: SIZE });
  heads.replaceChildren(h("th", { scope: "col", class: "of-box" }, h("span", { class: "hidden" }, "Choose")), ...COLUMNS.map(head));
  const focused = document.activeElement?.closest?.("tr[data-run]")?.dataset.run;
  body.replaceChildren(...(found.rows.length ? found.rows.map(line) : [none()]));
  if (focused) body.querySelector(`tr[data-run="${CSS.escape(focused)}"] a`)?.focus({ preventScroll: true });
  showPages(found.total);
  showBar();
  document.title = `Runs · ${found.folder.split("/").pop()} · Castalia Studio`;
}

search.addEventListener("input", () => change({ search: search.value }, 150));
filter.addEventListener("change", () => change({ status: filter.value }));
archive.addEventListener("change", () => change({ archived: archive.checked ? "1" : "" }));
addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.matches("input, textarea, select")) { event.preventDefault(); search.focus(); }
});

show(
  h("div", { class: "tools" }, h("h1", null, "Runs"), search, filter, h("label", { class: "check" }, archive, "Archived")),
  h("div", { class: "wide" }, h("table", { class: "runs" }, h("thead", null, heads), body)),
  h("div", { class: "foot" }, count, pages), bar);
load().catch(fault);
watch(() => load().catch(fault));
