// The doctor's findings: what was seen, the numbers, the remedy as a line to copy, and its layers.
import { bar } from "./badges.js";
import { Chart } from "./chart.js";
import { copyable, h, section } from "./dom.js";
import { metric, number } from "./words.js";

// A measured number as a bar, with its threshold as a line across it.
function evidence(each) {
  if (each.threshold === null || typeof each.value !== "number") return h("li", null, h("span"), each.text);
  const most = 1.1 * Math.max(Math.abs(each.value), Math.abs(each.threshold));
  return h("li", null, bar(Math.abs(each.value) / most, Math.abs(each.threshold) / most), each.text);
}

function finding(found, inner = false) {
  const head = h("summary", null,
    h("span", { class: `badge ${found.severity}` }, found.severity), " ", h("b", null, found.name.replaceAll("-", " ")), " ",
    h("span", { class: "soft" }, found.code, found.where && ` · ${found.where}`, ` · ${Math.round(found.confidence * 100)} % sure`));
  return h("details", { class: `finding ${found.severity}`, open: !inner },
    head,
    h("p", null, found.summary),
    found.evidence.length ? h("ul", { class: "evidence" }, found.evidence.map(evidence)) : null,
    found.source && h("p", null, h("code", null, found.source.place), " ", h("code", { class: "soft" }, found.source.text)),
    found.remedy && h("p", { class: "remedy" }, h("b", null, "Remedy: "), found.remedy),
    found.code_line && copyable(found.code_line),
    found.symptoms.length ? h("div", { class: "symptoms" }, h("p", { class: "soft" }, "What follows from it"), found.symptoms.map((each) => finding(each, true))) : null);
}

// The layers over the steps, a chart for each thing that was measured of them.
function overTime(curves) {
  const groups = new Map();
  for (const [key, { step, value }] of Object.entries(curves)) {
    const cut = key.indexOf("/");
    const lines = groups.get(key.slice(0, cut)) ?? groups.set(key.slice(0, cut), []).get(key.slice(0, cut));
    lines.push({ label: key.slice(cut + 1), x: step, mean: value, place: lines.length });
  }
  return [...groups].map(([name, lines]) => {
    const chart = new Chart(`${metric(name)}, by layer`);
    requestAnimationFrame(() => chart.draw(lines, { weight: 0, log: name !== "active_share", xLabel: "step" }));
    return chart.node;
  });
}

const NAMES = { gradient_norm: "Gradient norm, last sampled step", update_over_weight: "Update over weight, last sampled step", dead_fraction: "Share of dead units" };

function layers([name, pairs]) {
  const most = Math.max(...pairs.map(([, v]) => (Number.isFinite(v) ? v : 0)), 1e-300);
  const rows = pairs.map(([layer, each]) => h("tr", null, h("th", { scope: "row" }, layer), h("td", null, bar((each ?? 0) / most)), h("td", { class: "num" }, number(each, 3))));
  return h("figure", { class: "layers" }, h("figcaption", null, h("h3", null, NAMES[name] ?? metric(name))), h("table", null, h("thead", { class: "hidden" }, h("tr", null, h("th", { scope: "col" }, "Layer"), h("th", { scope: "col" }, "Bar"), h("th", { scope: "col" }, "Value"))), h("tbody", null, rows)));
}

export function doctor(run) {
  const found = run.doctor;
  if (!found) return null;
  const charts = Object.entries(found.layers);
  const cure = run.command.startsWith("castalia fit") && found.findings.length ? copyable(`castalia cure ${run.folder}`) : null;
  return section("Doctor",
    found.findings.length ? found.findings.map((each) => finding(each)) : h("div", { class: "callout better" }, h("p", null, found.verdict)),
    cure && h("p", { class: "soft" }, "Try all remedies, and keep what helps on validation rows:"), cure,
    found.notes.map((words) => h("p", { class: "soft" }, words)),
    h("div", { class: "charts" }, overTime(found.curves)),
    charts.length ? h("div", { class: "layer-grid" }, charts.map(layers)) : null);
}
