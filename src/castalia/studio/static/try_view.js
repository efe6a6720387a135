// A form made from the columns of the model, and its answer with confidence.
import { ask, send } from "./api.js";
import { bar } from "./badges.js";
import { h, section } from "./dom.js";
import { number, value } from "./words.js";

function field(each) {
  const id = `try-${each.name}`;
  const kept = each.example ?? "";
  if (each.kind === "text") return h("label", { class: "full" }, each.name, h("textarea", { name: each.name, rows: "4" }));
  const input = each.choices.length
    ? h("select", { name: each.name, id }, ["", ...each.choices].map((word) => h("option", { value: word, selected: word === String(kept) }, word || "missing")))
    : h("input", { name: each.name, id, type: "text", inputmode: each.kind === "numeric" ? "decimal" : null, placeholder: each.kind === "date" ? "YYYY-MM-DD" : "missing", value: String(kept) });
  return h("label", null, each.name, input, each.kind === "numeric" && each.detail && h("span", { class: "soft small" }, each.detail));
}

function shown(found) {
  if (found.text !== undefined) return [h("p", { class: "generated" }, found.text)];
  const classes = (found.classes ?? []).map(([name, share]) => h("tr", null, h("th", { scope: "row" }, name), h("td", null, bar(share)), h("td", { class: "num" }, `${(100 * share).toFixed(1)} %`)));
  const more = Object.entries(found.more ?? {}).map(([key, each]) => h("p", { class: "soft" }, `${key}: ${value(each)}`));
  const answer = typeof found.prediction === "number" ? number(found.prediction, 5) : value(found.prediction);
  return [h("p", { class: "prediction" }, answer), classes.length ? h("table", { class: "shares" }, h("tbody", null, classes)) : null, ...more].filter(Boolean);
}

function form(run, schema) {
  const result = h("div", { class: "result", role: "status" });
  const prompt = schema.writes && h("label", { class: "full" }, "Prompt", h("textarea", { name: "prompt", rows: "3" }));
  const fields = schema.writes ? [prompt] : schema.fields.map(field);
  const answer = async (event) => {
    event.preventDefault();
    const typed = Object.fromEntries(new FormData(event.target));
    result.replaceChildren(h("p", { class: "soft" }, "…"));
    try {
      result.replaceChildren(...shown(await send("predict", schema.writes ? { run, prompt: typed.prompt } : { run, row: typed })));
    } catch (error) {
      result.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message));
    }
  };
  return h("div", { class: "try" }, h("form", { class: "fields", onsubmit: answer }, fields, h("div", { class: "full" }, h("button", null, schema.writes ? "Go on" : "Predict"))), result);
}

export function tryIt(run) {
  if (!run.usable) return null;
  const place = h("div", null);
  const open = h("button", { type: "button", class: "quiet", onclick: async () => {
    place.replaceChildren(h("p", { class: "soft", role: "status" }, "Loading the model…"));
    try {
      place.replaceChildren(form(run.name, await ask("schema", { run: run.name })));
      place.querySelector("input, select, textarea")?.focus();
    } catch (error) {
      place.replaceChildren(h("p", { role: "alert" }, error.message));
    }
  } }, "Load the model");
  place.append(open);
  return section("Try it", place);
}
