// Elements from data. Text enters as text nodes only, so nothing that a run is called becomes markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, props, children) {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  const shown = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  node.append(...shown);
  return node;
}

export const h = (tag, props, ...children) => filled(document.createElement(tag), props, children);
export const svg = (tag, props, ...children) => filled(document.createElementNS(SVG, tag), props, children);

export function show(...children) {
  const main = document.getElementById("main");
  main.replaceChildren(...children.flat().filter(Boolean));
  return main;
}

export function section(title, ...children) {
  const id = title.toLowerCase().replace(/[^a-z]+/g, "-");
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), ...children);
}

export function table(heads, rows, props = {}) {
  const head = h("thead", null, h("tr", null, heads.map((word) => (word instanceof Node ? word : h("th", { scope: "col" }, word)))));
  const body = h("tbody", null, rows.map((row) => (row instanceof Node ? row : h("tr", null, row.map((cell) => (cell instanceof Node && cell.matches("td, th") ? cell : h("td", null, cell)))))));
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `${props.label ?? "Values"}, table` }, h("table", { class: props.class }, head, body));
}

// A line of code with a button that copies it.
export function copyable(text) {
  const button = h("button", { type: "button", class: "quiet small", "aria-label": "Copy" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return h("div", { class: "copyable" }, h("code", { tabindex: "0" }, text), button);
}

export const link = (path, pairs) => `${path}?${new URLSearchParams(pairs)}`;
