// The curves of one run or of several: a chart for each metric, with what all charts share above them.
import { ask } from "./api.js";
import { Chart } from "./chart.js";
import { h } from "./dom.js";
import { metric } from "./words.js";

const HIDDEN = new Set(["epoch", "seconds", "stage"]);
const LAYERS = /^(gradient_norm|update_over_weight|activation_std|active_share)\/(.+)$/;
const stem = (key) => key.match(LAYERS)?.[1] ?? key.replace(/^(batch|val|valid|validation|train|test|eval)[_/.]/, "");

// Charts by stem: `loss` and `val_loss` share one, and so do the layers of a network.
function grouped(sources) {
  const groups = new Map();
  for (const source of sources) {
    for (const key of source.keys) {
      if (HIDDEN.has(key)) continue;
      const name = stem(key);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push({ ...source, key });
    }
  }
  return [...groups].sort(([a], [b]) => (b === "loss") - (a === "loss") || a.localeCompare(b));
}

function label(curve, runs, parts, keys) {
  const words = [runs > 1 && curve.run, parts > 1 && (curve.part || (runs === 1 && curve.run)), (keys > 1 || (runs === 1 && parts === 1)) && metric(curve.key.match(LAYERS)?.[2] ?? curve.key)];
  return words.filter(Boolean).join(" · ");
}

// Colour and dashes: runs differ by colour; of one run, layers do, and validation beside training.
function look(curve, row, many, keys, name) {
  const layer = LAYERS.test(curve.key);
  const second = keys && !layer && curve.key !== name && row > 0;
  return { place: many ? curve.place : layer ? row : second ? 1 : 0, dashed: second };
}

export class CurvesPanel {
  // sources: run, part, keys, place (of its colour); marks: step and label
  constructor(sources, marks = []) {
    this.marks = marks;
    this.sources = sources;
    this.axis = h("select", { "aria-label": "Horizontal axis", onchange: () => this.redraw() }, ["step", "epoch", "time"].map((word) => h("option", { value: word }, word)));
    this.smoothing = h("input", { type: "range", min: "0", max: "0.99", step: "0.01", value: "0", "aria-label": "Smoothing", oninput: () => this.redraw() });
    this.log = h("input", { type: "checkbox", onchange: () => this.redraw() });
    const tools = h("div", { class: "chart-tools" }, h("label", null, "x ", this.axis), h("label", null, "Smoothing ", this.smoothing), h("label", { class: "check" }, this.log, "Log y"), h("span", { class: "soft hint" }, "Drag to zoom"));
    this.grid = h("div", { class: "charts" });
    this.node = h("div", { class: "curves" }, tools, this.grid);
    this.seen = new IntersectionObserver((entries) => entries.forEach((entry) => entry.isIntersecting && this.first(entry.target)), { rootMargin: "600px" });
    this.build();
  }

  build() {
    const groups = grouped(this.sources);
    this.charts = groups.map(([name, curves], place) => {
      const found = { name, curves, span: null, lines: null };
      found.chart = new Chart(metric(name), (span) => this.zoom(found, span));
      if (place === 0) found.chart.node.classList.add("main");
      this.seen.observe(found.chart.node);
      return found;
    });
    this.grid.replaceChildren(...this.charts.map((found) => found.chart.node));
    if (!groups.length) this.grid.replaceChildren(h("p", { class: "soft" }, "No curves yet."));
  }

  first(node) {
    const found = this.charts.find((each) => each.chart.node === node);
    if (found && !found.lines) this.load(found);
  }

  async load(found) {
    found.lines ??= [];
    const quick = await this.read(found, "1");
    if (quick.some((line) => !line.exact)) await this.read(found, "0");
  }

  async read(found, quick) {
    const width = Math.max(Math.round(found.chart.place.clientWidth), 100);
    const span = found.span && this.axis.value === "step" ? { first: Math.max(Math.floor(found.span[0]), 0), last: Math.ceil(found.span[1]) } : {};
    const [runs, parts, keys] = ["run", "part", "key"].map((name) => new Set(found.curves.map((curve) => curve[name])).size);
    const lines = await Promise.all(found.curves.map(async (curve, row) => {
      const points = await ask("curve", { run: curve.run, part: curve.part, key: curve.key, width, quick, ...span });
      return { ...points, label: label(curve, runs, parts, keys), ...look(curve, row, runs * parts > 1, keys > 1, found.name) };
    }));
    found.lines = lines;
    this.draw(found);
    return lines;
  }

  draw(found) {
    const axis = this.axis.value;
    const cut = axis === "step" ? null : found.span;
    const lines = found.lines.filter((line) => line[axis]).map((line) => {
      const keep = cut ? line[axis].map((x) => x >= cut[0] && x <= cut[1]) : null;
      const part = (values) => (keep && values ? values.filter((_, place) => keep[place]) : values);
      return { ...line, x: part(line[axis]), mean: part(line.mean), low: part(line.low), high: part(line.high) };
    });
    const marks = axis === "step" && found.name === "loss" ? this.marks : [];
    const xLabel = axis === "time" ? "second" : axis;
    found.chart.draw(lines, { weight: Number(this.smoothing.value), log: this.log.checked, marks, xLabel });
  }

  zoom(found, span) {
    found.span = span;
    if (this.axis.value === "step") this.load(found);
    else this.draw(found);
  }

  redraw() {
    for (const found of this.charts) if (found.lines) this.draw(found);
  }

  // After a change on the server: new points of the charts that are shown, new charts for new metrics.
  async refresh(sources) {
    const names = (all) => JSON.stringify(all.map(({ run, part, keys }) => [run, part, keys]));
    if (names(sources) !== names(this.sources)) {
      this.sources = sources;
      this.build();
    } else await Promise.all(this.charts.filter((found) => found.lines).map((found) => this.load(found)));
  }
}

export const sourcesOf = (run, place = null) =>
  run.trainings.filter((part) => part.keys.length).map((part, number) => ({ run: run.name, part: part.part, keys: part.keys, place: place ?? number }));
