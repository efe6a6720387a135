// Small signs that several pages show.
import { h, link, svg } from "./dom.js";
import { metric, number } from "./words.js";

export const status = (word) => h("span", { class: `status ${word}` }, word);
export const worst = (word) => (word ? h("span", { class: `badge ${word}` }, word) : h("span", { class: "soft" }, "–"));
export const tag = (word) => h("a", { class: "tag", href: link("/", { search: `#${word}` }) }, word);

export function score(found) {
  if (!found) return h("span", { class: "soft" }, "–");
  return h("span", { class: "score" }, h("b", null, number(found.value)), " ", h("span", { class: "soft" }, metric(found.metric)));
}

// Intervals as dots with whiskers on a common scale.
export function whisker(value, interval, low, high, strong) {
  const at = (x) => (high > low ? 4 + (192 * (x - low)) / (high - low) : 100);
  const [left, right] = interval ?? [value, value];
  return svg("svg", { viewBox: "0 0 200 14", class: strong ? "whisker strong" : "whisker", "aria-hidden": "true" },
    svg("line", { x1: at(left), x2: at(right), y1: 7, y2: 7 }), svg("circle", { cx: at(value), cy: 7, r: 4 }));
}

// A share between 0 and 1, with a line where the threshold is.
export function bar(share, threshold = null) {
  const width = Math.max(Math.min(Number.isFinite(share) ? share : 1, 1), 0) * 100;
  return svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", class: "share", "aria-hidden": "true" },
    svg("rect", { width: 100, height: 8, class: "whole" }), svg("rect", { width, height: 8, class: "part" }),
    threshold === null ? null : svg("rect", { x: threshold * 100 - 0.5, width: 1.2, height: 8, class: "limit" }));
}

// An effect between -1 and 1, to the left or to the right of the middle.
export function signed(share) {
  const width = 50 * Math.min(Math.abs(share), 1);
  return svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", class: "share", "aria-hidden": "true" },
    svg("rect", { width: 100, height: 8, class: "whole" }), svg("rect", { x: share < 0 ? 50 - width : 50, width, height: 8, class: share < 0 ? "less" : "part" }));
}
