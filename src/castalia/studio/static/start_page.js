// Choose a file, see its columns, press fit. The process is a run like any other.
import { ask, fault, send } from "./api.js";
import { h, section, show, table } from "./dom.js";
import { number } from "./words.js";

const chooser = h("div");
const chosen = h("div");
const outcome = h("div", { role: "status" });

async function browse(folder) {
  const found = await ask("files", { folder });
  const join = (name) => (found.folder ? `${found.folder}/${name}` : name);
  const up = found.folder ? h("li", null, h("button", { type: "button", class: "entry", onclick: () => browse(found.folder.split("/").slice(0, -1).join("/")).catch(fault) }, "↑ up")) : null;
  const folders = found.folders.map((name) => h("li", null,
    h("button", { type: "button", class: "entry", onclick: () => browse(join(name)).catch(fault) }, `${name}/`),
    h("button", { type: "button", class: "quiet small", onclick: () => choose(join(name)).catch(fault), "aria-label": `fit folder ${name}` }, "fit folder")));
  const files = found.files.map((name) => h("li", null, h("button", { type: "button", class: "entry", onclick: () => choose(join(name)).catch(fault) }, name)));
  const none = !folders.length && !files.length ? h("li", { class: "soft" }, "No data files here.") : null;
  chooser.replaceChildren(h("p", { class: "soft" }, `${found.home}/${found.folder}`), h("ul", { class: "files" }, up, folders, files, none));
}

function options(profile) {
  const names = profile.columns.map((column) => column.name);
  const target = names.length
    ? h("select", { name: "target" }, names.map((name, place) => h("option", { value: name, selected: place === names.length - 1 }, name)))
    : h("input", { type: "text", name: "target", placeholder: "none: folders or texts say it" });
  return [h("label", null, "Column to predict", target), h("label", null, "Trainings", h("input", { type: "number", name: "seeds", min: "1", placeholder: "3" })),
    h("label", null, "Seconds at most", h("input", { type: "number", name: "time_limit", min: "1", placeholder: "no limit" })),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "doctor" }), "Let the doctor try remedies first")];
}

async function choose(path) {
  chosen.replaceChildren(h("p", { class: "soft", role: "status" }, `Reading ${path}…`));
  const profile = await ask("profile", { path });
  const start = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    try {
      await follow(await send("start", { path, target: form.get("target"), seeds: form.get("seeds"), time_limit: form.get("time_limit"), doctor: form.get("doctor") === "on" }));
    } catch (error) {
      outcome.replaceChildren(h("p", { role: "alert" }, error.message));
    }
  };
  const rows = profile.columns.map((each) => [h("th", { scope: "row" }, each.name), each.kind, number(each.missing ?? 0), number(each.unique ?? null), each.detail ?? "", each.note ?? ""]);
  chosen.replaceChildren(section(path,
    h("form", { class: "fields", onsubmit: start }, options(profile), h("div", { class: "full" }, h("button", null, "Fit"))), outcome,
    profile.notes.map((words) => h("p", { class: "soft" }, words)),
    rows.length ? [h("p", { class: "soft" }, `${number(profile.rows)} rows`), table(["Column", "Kind", "Missing", "Distinct", "Values", "Note"], rows, { label: "Columns" })] : h("p", { class: "soft" }, "Not profiled here; fit reads it.")));
  outcome.replaceChildren();
  chosen.scrollIntoView({ behavior: "smooth" });
}

async function follow(started) {
  const log = h("pre", { class: "log", tabindex: "0", "aria-label": "What the fit says" });
  const state = h("p", null, `Started as process ${started.pid}. It goes on if you close the studio. `, h("a", { href: "/" }, "Runs"));
  outcome.replaceChildren(state, log);
  for (;;) {
    const found = await ask("started", { number: started.number });
    log.textContent = found.said;
    log.scrollTop = log.scrollHeight;
    if (found.code !== null) {
      state.prepend(found.code === 0 ? "Finished. " : `It ended with an error (${found.code}). `);
      return;
    }
    await new Promise((resume) => setTimeout(resume, 1000));
  }
}

document.title = "Start · Castalia Studio";
show(h("h1", null, "Start a fit"), section("Choose a file", chooser), chosen);
browse("").catch(fault);
