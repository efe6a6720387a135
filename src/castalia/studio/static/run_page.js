// One run: what came of it, its curves, and what the doctor found.
import { ask, fault, watch } from "./api.js";
import { status } from "./badges.js";
import { Chart } from "./chart.js";
import { CurvesPanel, sourcesOf } from "./curves_panel.js";
import { copyable, h, link, section, show, table } from "./dom.js";
import { doctor } from "./doctor_view.js";
import { marks } from "./marks_view.js";
import { searchView } from "./search_view.js";
import { scores } from "./scores_view.js";
import { tryIt } from "./try_view.js";
import { ago, bytes, date, duration, number, value } from "./words.js";

const name = new URLSearchParams(location.search).get("run") ?? "";
let curves = null;
let found = "";

function process(run) {
  if (run.status !== "running" || !run.process) return null;
  const { pid, host, memory, cpu, gpu } = run.process;
  return h("p", { class: "soft" }, `Process ${pid} on ${host}`, memory && ` · ${bytes(memory)} of memory`, cpu && ` · ${duration(cpu)} of CPU time`, gpu && ` · ${bytes(gpu)} on the GPU`);
}

function head(run) {
  const facts = [run.model, `began ${date(run.created)}`, h("time", { title: date(run.updated) }, `updated ${ago(run.updated)}`)];
  return h("div", { class: "head" },
    h("p", { class: "crumbs" }, h("a", { href: "/" }, "Runs"), " / "),
    h("div", { class: "title" }, h("h1", null, run.name), status(run.status), run.report && h("a", { class: "button", href: link("/report", { run: run.name }), target: "_blank", rel: "noopener" }, "Full report")),
    h("p", { class: "facts" }, facts.filter(Boolean).map((fact) => h("span", null, fact))),
    process(run));
}

function verdict(run) {
  if (!run.verdict) return null;
  const advice = run.advice?.length ? h("ul", null, run.advice.map((words) => h("li", null, words))) : null;
  return section("Verdict", h("div", { class: `callout ${run.outcome}` }, h("p", null, run.verdict), advice));
}

const mark = (run) => (run.doctor?.findings ?? []).flatMap((found) => [found, ...found.symptoms]).filter((found) => found.step !== null).map((found) => ({ x: found.step, label: `${found.code} ${found.name}` }));

function mistakes(run) {
  if (!run.mistakes?.length) return null;
  const names = Object.keys(run.mistakes[0].row ?? {}).slice(0, 8);
  const picture = run.mistakes.some((each) => each.image);
  const rows = run.mistakes.map((each) => [
    picture && h("td", null, /^data:image\//.test(each.image ?? "") ? h("img", { src: each.image, alt: `row ${each.index}`, class: "thumb" }) : ""),
    value(each.truth), h("td", null, h("b", null, value(each.prediction))), number(each.confidence ?? null, 3), ...names.map((column) => value(each.row?.[column])),
  ].filter((cell) => cell !== false));
  return section("Worst mistakes", table([picture && "Image", "Truth", "Prediction", "Confidence", ...names].filter(Boolean), rows, { label: "Worst mistakes" }));
}

function calibration(run) {
  const found = run.calibration;
  if (!found) return null;
  const { confidence, accuracy } = found;
  const chart = new Chart("Accuracy over stated confidence");
  const lines = [{ label: "accuracy", x: confidence, mean: accuracy, place: 0 }, { label: "as stated", x: confidence, mean: confidence, place: 7, dashed: true }];
  requestAnimationFrame(() => chart.draw(lines, { weight: 0, log: false, xLabel: "confidence" }));
  return section("Calibration", h("p", { class: "soft" }, `Expected calibration error ${number(found.error, 3)}, over ${number(found.rows.reduce((a, b) => a + b, 0))} test rows. On the dashed line a stated confidence is the accuracy one gets.`), chart.node);
}

function data(run) {
  const columns = run.data?.columns;
  if (!columns?.length) return null;
  const rows = columns.map((each) => [h("th", { scope: "row" }, each.name), each.kind, number(each.missing ?? 0), number(each.unique ?? null), each.detail ?? "", each.note ?? ""]);
  return section("Data", h("p", { class: "soft" }, `${number(run.data.rows)} rows`), table(["Column", "Kind", "Missing", "Distinct", "Values", "Note"], rows, { label: "Columns" }));
}

function settings(run) {
  const list = h("dl", { class: "settings" }, Object.entries(run.settings).map(([key, each]) => h("div", null, h("dt", null, key), h("dd", null, value(each)))));
  const kept = run.trainings.flatMap((each) => each.checkpoints.map((file) => (each.part ? `${each.part}/${file}` : file)));
  return section("Settings", run.command && copyable(run.command), list,
    h("p", { class: "soft" }, `Folder ${run.folder}`, kept.length ? ` · checkpoints: ${kept.slice(-4).join(", ")}` : ""));
}

function page(run) {
  document.title = `${run.name} · Castalia Studio`;
  curves = new CurvesPanel(sourcesOf(run), mark(run));
  found = JSON.stringify(run.doctor);
  show(head(run), marks(run), verdict(run), scores(run), searchView(run), section("Curves", curves.node), doctor(run), tryIt(run), mistakes(run), calibration(run), data(run), settings(run));
}

async function refresh(names) {
  if (!names.has(name)) return;
  const run = await ask("run", { run: name });
  const before = document.querySelector(".title .status")?.textContent;
  if (run.status !== before || JSON.stringify(run.doctor) !== found) page(run);
  else {
    document.querySelector(".head").replaceWith(head(run));
    await curves.refresh(sourcesOf(run));
  }
}

ask("run", { run: name }).then(page).catch(fault);
watch((names) => refresh(names).catch(fault));
