// Scores of the contenders with their intervals.
import { whisker } from "./badges.js";
import { h, section, table } from "./dom.js";
import { duration, fixed, metric } from "./words.js";

export function scores(run) {
  if (!run.contenders.length) return null;
  const ends = run.contenders.flatMap((each) => [each.scores[run.metric], ...(each.interval ?? [])]).filter((v) => typeof v === "number");
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const others = Object.keys(run.contenders[0].scores).filter((name) => name !== run.metric).slice(0, 3);
  const rows = run.contenders.map((each) => {
    const best = each.name === run.recommended;
    const words = each.interval ? `${fixed(each.interval[0])} – ${fixed(each.interval[1])}` : "";
    return h("tr", { class: best ? "best" : null },
      h("th", { scope: "row" }, each.name, best && h("span", { class: "badge good" }, "use this")),
      h("td", { class: "num" }, fixed(each.scores[run.metric])),
      h("td", { class: "of-whisker" }, whisker(each.scores[run.metric], each.interval, low, high, best), h("span", { class: "soft" }, words)),
      others.map((name) => h("td", { class: "num" }, fixed(each.scores[name] ?? null))),
      h("td", { class: "num soft" }, duration(each.seconds)));
  });
  return section("Scores", table(["Model", run.label || metric(run.metric ?? ""), "95 % interval", ...others.map(metric), "Time"], rows, { label: "Scores", class: "scores" }));
}
