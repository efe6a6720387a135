// A search over settings: every trial as a line across its settings, the best so far, and what mattered.
import { bar } from "./badges.js";
import { Chart } from "./chart.js";
import { h, section, svg, table } from "./dom.js";
import { metric, number } from "./words.js";

const [WIDTH, HEIGHT, TOP, BOTTOM, SIDE] = [900, 300, 44, 30, 60];
const FIRST = 10; // trials in the table

const share = (axis, v) => (axis.log ? (Math.log(v) - Math.log(axis.low)) / (Math.log(axis.high) - Math.log(axis.low)) : (v - axis.low) / (axis.high - axis.low || 1));
const shown = (axis, v) => (axis.words ? axis.words[v] : number(v, 3));
const down = (part) => HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);

function scoreAxis(search, done) {
  const all = done.map((trial) => trial.score);
  return { label: metric(search.metric), low: Math.min(...all), high: Math.max(...all), log: false, words: null };
}

// One of seven shades, the best the strongest.
function shade(search, axis, score) {
  const part = axis.high > axis.low ? share(axis, score) : 1;
  return Math.round(6 * (search.higher ? part : 1 - part));
}

function lines(search, axes, done, at) {
  const order = [...done].sort((a, b) => (search.higher ? a.score - b.score : b.score - a.score));
  return order.map((trial) => {
    const heights = axes.map((axis, place) => down(share(axis, place < trial.values.length ? trial.values[place] : trial.score)));
    const points = heights.map((y, place) => `${at(place)},${y.toFixed(1)}`).join(" ");
    return svg("polyline", { points, class: `trial shade-${shade(search, axes.at(-1), trial.score)}`, "data-trial": trial.number });
  });
}

function ticks(axis, x) {
  const values = axis.words ? axis.words.map((_, place) => place) : [axis.low, axis.high];
  return values.map((v) => svg("text", { x: x + 7, y: down(share(axis, v)) + 4, class: "tick" }, String(shown(axis, v)).slice(0, 14)));
}

function parallel(search, done) {
  const axes = [...search.axes, scoreAxis(search, done)];
  const at = (place) => SIDE + (place * (WIDTH - 2 * SIDE - 30)) / (axes.length - 1);
  const rules = axes.map((axis, place) => [
    svg("line", { x1: at(place), x2: at(place), y1: TOP, y2: HEIGHT - BOTTOM, class: "axis" }),
    svg("text", { x: at(place), y: TOP - 16, "text-anchor": "middle", class: "axis-name" }, axis.label),
    ticks(axis, at(place)),
  ]);
  const said = `Parallel coordinates of ${done.length} trials over ${search.axes.map((axis) => axis.label).join(", ")}; the table below has the best of them.`;
  return h("div", { class: "wide", tabindex: "0", role: "img", "aria-label": said }, svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "parallel" }, lines(search, axes, done, at), rules));
}

function course(search, done) {
  const chart = new Chart(`${metric(search.metric)} of each trial`);
  const better = search.higher ? Math.max : Math.min;
  const x = done.map((trial) => trial.number);
  const mean = done.map((trial) => trial.score);
  const best = mean.map((_, place) => better(...mean.slice(0, place + 1)));
  requestAnimationFrame(() => chart.draw([{ label: "trial", place: 7, x, mean }, { label: "best so far", place: 0, x, mean: best }], { weight: 0, log: false, xLabel: "trial" }));
  return chart.node;
}

function mattered(search) {
  if (!search.importances.length) return h("p", { class: "soft" }, "Too few trials, or scores too much alike, to tell which setting mattered.");
  const rows = search.importances.map(([name, part]) => h("tr", null, h("th", { scope: "row" }, name.split("__").at(-1)), h("td", null, bar(part)), h("td", { class: "num" }, `${(100 * part).toFixed(0)} %`)));
  return h("figure", { class: "chart" }, h("figcaption", null, h("h3", null, "What mattered")), h("table", { class: "shares" }, h("tbody", null, rows)), h("p", { class: "soft small" }, "Share of each setting in how much the scores differ (functional ANOVA)."));
}

function best(search, done, node) {
  const order = [...done].sort((a, b) => (search.higher ? b.score - a.score : a.score - b.score)).slice(0, FIRST);
  const rows = order.map((trial) => {
    const light = (on) => () => node.querySelector(`[data-trial="${trial.number}"]`)?.classList.toggle("lit", on);
    const cells = [number(trial.score), `${trial.number}`, ...search.axes.map((axis, place) => String(shown(axis, trial.values[place])))];
    return h("tr", { tabindex: "0", onmouseenter: light(true), onmouseleave: light(false), onfocus: light(true), onblur: light(false) }, h("th", { scope: "row" }, cells[0]), cells.slice(1).map((cell) => h("td", null, cell)));
  });
  return table([metric(search.metric), "Trial", ...search.axes.map((axis) => axis.label)], rows, { label: "Best trials", class: "tight" });
}

export function searchView(run) {
  const search = run.search;
  if (!search) return null;
  const done = search.trials.filter((trial) => trial.score !== null);
  const count = (state) => search.trials.filter((trial) => trial.state === state).length;
  const words = [`${done.length} trials complete`, count("pruned") && `${count("pruned")} given up early`, count("fail") && `${count("fail")} failed`, count("running") && `${count("running")} running`].filter(Boolean).join(" · ");
  if (!done.length) return section("Search", h("p", { class: "soft" }, words));
  const picture = parallel(search, done);
  return section("Search", h("p", { class: "soft" }, words), picture, best(search, done, picture), h("div", { class: "charts" }, course(search, done), mattered(search)));
}
