// What a model answers: a value with its classes, a text token by token, an image with what lies over it, a forecast.
import { bar, signed } from "./badges.js";
import { Chart } from "./chart.js";
import { h, svg, table } from "./dom.js";
import { number, value } from "./words.js";

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const row = (...cells) => h("tr", null, h("th", { scope: "row" }, cells[0]), cells.slice(1).map((cell) => (cell instanceof Node && cell.matches("td") ? cell : h("td", null, cell))));
const shares = (rows) => h("table", { class: "shares" }, h("tbody", null, rows));
const figure = (text) => h("td", { class: "num" }, text);

function classes(found) {
  if (!found?.length) return null;
  return shares(found.map(([name, share]) => row(name, bar(share), figure(percent(share)))));
}

function plain(found) {
  const answer = typeof found.prediction === "number" ? number(found.prediction, 5) : value(found.prediction);
  const more = Object.entries(found.more ?? {}).map(([key, each]) => h("p", { class: "soft" }, `${key}: ${value(each)}`));
  return [h("p", { class: "prediction" }, answer), classes(found.classes), ...more];
}

// Each token on a ground that is darker the less likely it was.
function tokens(found) {
  const said = found.tokens.map(([text, chance]) => {
    const node = h("span", { class: "token", title: chance === null ? null : percent(chance) }, text);
    if (chance !== null) node.style.setProperty("--doubt", `${Math.round(45 * (1 - chance))}%`);
    return node;
  });
  const known = found.tokens.map(([, chance]) => chance).filter((chance) => chance !== null && chance > 0);
  const mean = known.length ? Math.exp(known.reduce((sum, chance) => sum + Math.log(chance), 0) / known.length) : null;
  return [h("p", { class: "generated" }, h("b", null, found.prompt), said),
    mean && h("p", { class: "soft small" }, `${found.tokens.length} tokens, each with probability ${percent(mean)} in the geometric mean. The darker the ground, the less likely the token.`)];
}

function swatch(colour) {
  const node = h("span", { class: "swatch" });
  node.style.color = colour;
  return node;
}

function drawn(boxes) {
  return boxes.flatMap(({ name, score, corners: [left, top, right, bottom], colour }) => {
    const frame = h("span", { class: "box" }, h("span", { class: "box-name" }, `${name} ${percent(score)}`));
    for (const [key, share] of Object.entries({ left, top, width: right - left, height: bottom - top })) frame.style[key] = `${100 * share}%`;
    frame.style.setProperty("--colour", colour);
    return frame;
  });
}

function description(found) {
  if (found.boxes) return found.boxes.length ? `The image with ${found.boxes.map(({ name }) => name).join(", ")} in boxes` : "The image, without a box";
  if (found.legend) return `The image and its classes: ${found.legend.map(({ name, share }) => `${name} ${percent(share)}`).join(", ")}`;
  return `The image: ${found.prediction}`;
}

function image(found) {
  const over = found.layer && h("img", { src: found.layer, alt: "", class: "layer" });
  const strength = over && h("input", { type: "range", min: "0", max: "1", step: "0.05", value: "0.55", oninput: () => (over.style.opacity = strength.value) });
  const words = found.heat ? "What speaks for the class" : "Classes over the image";
  const view = h("div", { class: "view" }, h("img", { src: found.image, alt: description(found) }), over, found.boxes && h("div", { "aria-hidden": "true" }, drawn(found.boxes)));
  const parts = found.legend
    ? shares(found.legend.map(({ name, share, colour }) => row([swatch(colour), ` ${name}`], bar(share), figure(percent(share)))))
    : found.boxes
      ? found.boxes.length ? shares(found.boxes.map(({ name, score, colour }) => row([swatch(colour), ` ${name}`], bar(score), figure(percent(score))))) : h("p", null, "Nothing was found on this image.")
      : plain(found);
  return [h("div", { class: "imaged" }, h("div", null, view, over && h("label", { class: "small soft strength" }, words, strength)), h("div", null, parts))];
}

function forecast(found) {
  const { past, forecast: ahead, target, notes } = found;
  const chart = new Chart(target);
  chart.node.classList.add("main");
  const from = (first, count) => Array.from({ length: count }, (_, place) => first + place);
  const last = past.at(-1);
  const band = ahead.low ? { low: [last, ...ahead.low], high: [last, ...ahead.high] } : {};
  const lines = [
    { label: "past", place: 0, x: from(1 - past.length, past.length), mean: past },
    { label: "forecast", place: 1, x: from(0, ahead.prediction.length + 1), mean: [last, ...ahead.prediction], ...band },
  ];
  requestAnimationFrame(() => chart.draw(lines, { weight: 0, log: false, xLabel: "step" }));
  const names = [ahead.time ? "Time" : "Step", "Forecast", ...(ahead.low ? ["Low, 90 %", "High, 90 %"] : [])];
  const rows = ahead.prediction.map((mean, place) => [ahead.time?.[place] ?? place + 1, number(mean, 5), ...(ahead.low ? [number(ahead.low[place], 5), number(ahead.high[place], 5)] : [])]);
  return [chart.node, ...notes.map((words) => h("p", { class: "soft" }, words)), h("details", null, h("summary", null, "Numbers"), table(names, rows, { label: "Forecast", class: "tight" }))];
}

export function answered(found) {
  const shown = found.image ? image(found) : found.forecast ? forecast(found) : found.tokens ? tokens(found) : found.text !== undefined ? [h("p", { class: "generated" }, found.text)] : plain(found);
  return shown.filter(Boolean);
}

function why(found) {
  const most = Math.max(...found.columns.map(({ effect }) => Math.abs(effect)), 1e-12);
  const rows = found.columns.map(({ column, value: cell, effect }) => row(`${column} = ${value(cell)}`, signed(effect / most), figure(number(effect, 3))));
  const what = found.class === null || found.class === "" || found.class === undefined ? "The answer" : `The probability of ${found.class}`;
  const { columns, rows: like } = found.similar;
  return [
    h("h3", null, "What its columns did"),
    h("p", { class: "soft small" }, `${what} is ${number(found.output, 3)} here and ${number(found.background, 3)} over the training table; its columns make up the difference (Shapley values).`),
    shares(rows),
    h("h3", null, "Training rows like it"),
    table(columns, like.map((cells) => cells.map((cell, place) => (place ? value(cell) : h("th", { scope: "row" }, value(cell))))), { label: "Training rows like it", class: "tight" }),
  ];
}

// A button that gives way to the reasons.
export function reasons(asked) {
  const place = h("div", { class: "reasons" });
  const button = h("button", { type: "button", class: "quiet small", onclick: async () => {
    place.replaceChildren(h("p", { class: "soft" }, "Comparing with the training table…"));
    try {
      place.replaceChildren(...why(await asked()));
    } catch (error) {
      place.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message));
    }
  } }, "Why?");
  place.append(button);
  return place;
}
