// A form for what the model takes: a row, a text, an image, the steps of a series, a prompt.
import { ask, send } from "./api.js";
import { answered, reasons } from "./answer_view.js";
import { h, section } from "./dom.js";

function field(each) {
  const id = `try-${each.name}`;
  const kept = each.example ?? "";
  const input = each.choices.length
    ? h("select", { name: each.name, id }, ["", ...each.choices].map((word) => h("option", { value: word, selected: word === String(kept) }, word || "missing")))
    : h("input", { name: each.name, id, type: "text", inputmode: each.kind === "numeric" ? "decimal" : null, placeholder: each.kind === "date" ? "YYYY-MM-DD" : "missing", value: String(kept) });
  return h("label", null, each.name, input, each.kind === "numeric" && each.detail && h("span", { class: "soft small" }, each.detail));
}

const area = (name, label, rows, text = "") => h("label", { class: "full" }, label, h("textarea", { name, rows, value: text }));
const upload = (label, accept) => h("label", { class: "full" }, label, h("input", { type: "file", name: "file", accept }));

// What each kind of model is asked for: the fields, and the word on the button.
const KINDS = {
  row: (schema) => [schema.fields.map(field), "Predict"],
  text: (schema) => [area("text", "Text", "6", schema.example), "Predict"],
  prompt: () => [area("prompt", "Prompt", "3"), "Go on"],
  image: () => [upload("Image", "image/*"), "Predict"],
  series: (schema) => [[area("steps", `The last steps of ${schema.target}, at least ${schema.least}, one number a line`, "8", schema.example.join("\n")), upload("or a table with the columns of the training", ".csv,.parquet")], "Forecast"],
};

const inBase64 = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

async function body(run, schema, form) {
  const { file, ...typed } = Object.fromEntries(new FormData(form));
  if (schema.takes === "row") return { run, row: typed };
  return file?.size ? { run, ...typed, name: file.name, file: await inBase64(file) } : { run, ...typed };
}

function form(run, schema) {
  const result = h("div", { class: "result", role: "status" });
  const [fields, word] = KINDS[schema.takes](schema);
  const said = async (work) => {
    result.replaceChildren(h("p", { class: "soft" }, "…"));
    try {
      result.replaceChildren(...(await work()));
    } catch (error) {
      result.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message));
    }
  };
  const answer = (event) => {
    event.preventDefault();
    said(async () => {
      const asked = await body(run, schema, event.target);
      const found = answered(await send("predict", asked));
      return schema.reasons ? [...found, reasons(() => send("why", asked))] : found;
    });
  };
  const node = h("form", { class: "fields", onsubmit: answer }, fields, h("div", { class: "full" }, h("button", null, word)));
  if (schema.takes === "image") node.addEventListener("change", () => node.requestSubmit());
  return h("div", { class: schema.takes === "row" || schema.takes === "text" ? "try" : "try below" }, node, result);
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
