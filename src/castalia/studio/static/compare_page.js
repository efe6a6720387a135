// Several runs beside each other: curves on common charts, scores, settings that differ.
import { ask, fault, watch } from "./api.js";
import { score, status, worst } from "./badges.js";
import { CurvesPanel, sourcesOf } from "./curves_panel.js";
import { h, link, section, show, table } from "./dom.js";
import { number, value } from "./words.js";

const names = new URLSearchParams(location.search).getAll("run");
const question = () => ask("compare", names.map((name) => ["run", name]));
const sources = (found) => found.runs.flatMap((run, place) => sourcesOf(run, place));
let curves = null;

function swatch(place) {
  const node = h("span", { class: "swatch", "aria-hidden": "true" });
  node.style.color = `var(--series-${(place % 8) + 1})`;
  return node;
}

function difference(found, place) {
  if (place === 0) return h("td", { class: "soft" }, "what others are held to");
  const each = found.differences[place - 1];
  if (each.value === undefined) return h("td", { class: "soft" }, each.words);
  const sign = each.value > 0 ? "+" : "";
  const ends = each.interval ? ` [${number(each.interval[0], 3)}, ${number(each.interval[1], 3)}]` : "";
  const tone = each.sure ? (each.better ? "good" : "error") : "";
  return h("td", null, h("b", null, `${sign}${number(each.value, 3)}`), ends, " ", h("span", { class: tone ? `badge ${tone}` : "soft" }, each.words));
}

function without(name) {
  const rest = names.filter((each) => each !== name).map((each) => ["run", each]);
  return h("a", { class: "quiet small", href: rest.length ? link("/compare", rest) : "/", "aria-label": `Leave ${name} out` }, "✕");
}

function runs(found) {
  const rows = found.runs.map((run, place) => h("tr", null,
    h("th", { scope: "row" }, swatch(place), h("a", { href: link("/run", { run: run.name }) }, run.name)),
    h("td", null, status(run.status)), h("td", null, score(run.score)), difference(found, place), h("td", null, worst(run.worst)), h("td", null, without(run.name))));
  return table(["Run", "Status", "Score", "Against the first", "Doctor", ""].map((word) => h("th", { scope: "col" }, word || h("span", { class: "hidden" }, "Leave out"))), rows, { label: "Runs" });
}

function settings(found) {
  if (found.runs.length < 2) return null;
  if (!found.settings.length) return section("Settings", h("p", { class: "soft" }, "All settings are the same."));
  const rows = found.settings.map((each) => [h("th", { scope: "row" }, each.name), ...each.values.map((v) => h("td", { class: JSON.stringify(v) === JSON.stringify(each.values[0]) ? "soft" : "differs" }, value(v)))]);
  return section("Settings that differ", table(["Setting", ...found.runs.map((run) => run.name)], rows, { label: "Settings that differ" }));
}

function page(found) {
  document.title = `${names.length} runs · Castalia Studio`;
  curves = new CurvesPanel(sources(found));
  show(h("p", { class: "crumbs" }, h("a", { href: "/" }, "Runs"), " / "), h("h1", null, `${names.length} run${names.length > 1 ? "s" : ""} side by side`), runs(found), section("Curves", curves.node), settings(found));
}

question().then(page).catch(fault);
watch(async (changed) => {
  if (names.some((name) => changed.has(name))) await curves.refresh(sources(await question()));
});
