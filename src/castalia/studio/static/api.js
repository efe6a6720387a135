// Questions to the server, and its news.
import { h, link, show } from "./dom.js";

async function answer(response) {
  const found = await response.json().catch(() => ({ error: response.statusText }));
  if (!response.ok) throw new Error(found.error ?? `the studio answered ${response.status}`);
  return found;
}

export const ask = async (name, pairs = {}) => answer(await fetch(link(`/api/${name}`, pairs)));

export const send = async (name, body) =>
  answer(await fetch(`/api/${name}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }));

export function fault(error) {
  show(h("h1", null, "That did not work"), h("p", { role: "alert" }, error.message), h("p", null, h("a", { href: "/" }, "All runs")));
}

// Calls back with the names of runs that changed, at most once in `wait` milliseconds.
export function watch(changed, wait = 700) {
  const state = document.getElementById("live");
  const source = new EventSource("/api/live");
  let names = new Set();
  let timer = null;
  source.addEventListener("open", () => { state.textContent = "live"; state.dataset.on = "1"; });
  source.addEventListener("error", () => { state.textContent = "studio closed"; delete state.dataset.on; });
  source.addEventListener("runs", (event) => {
    for (const name of JSON.parse(event.data)) names.add(name);
    timer ??= setTimeout(() => {
      const found = names;
      names = new Set();
      timer = null;
      changed(found);
    }, wait);
  });
  addEventListener("pagehide", () => source.close());
}
