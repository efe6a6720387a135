// Tags, note and archive of a run, kept as they are typed.
import { send } from "./api.js";
import { h } from "./dom.js";

export function marks(run) {
  const tags = h("input", { type: "text", value: run.tags.join(", "), placeholder: "tags, by commas" });
  const note = h("textarea", { rows: "2", placeholder: "Note", value: run.note });
  const archived = h("input", { type: "checkbox", checked: run.archived });
  const state = h("span", { class: "soft", role: "status" });
  let timer = null;
  const keep = async () => {
    try {
      await send("mark", { run: run.name, tags: tags.value.split(","), note: note.value, archived: archived.checked });
      state.textContent = "Kept";
    } catch (error) {
      state.textContent = error.message;
    }
  };
  const soon = () => {
    state.textContent = "…";
    clearTimeout(timer);
    timer = setTimeout(keep, 500);
  };
  for (const field of [tags, note, archived]) field.addEventListener("input", soon);
  return h("form", { class: "marks", onsubmit: (event) => event.preventDefault() },
    h("label", null, "Tags", tags), h("label", null, "Note", note), h("label", { class: "check" }, archived, "Archived"), state);
}
