// A page that answers rows with the ONNX file that it holds: no server, no network.

const facts = JSON.parse(document.getElementById("facts").textContent);
const $ = (id) => document.getElementById(id);

function make(tag, props = {}, ...inside) {
  const found = Object.assign(document.createElement(tag), props);
  found.append(...inside);
  return found;
}

function bytes(id) {
  const text = atob($(id).textContent), found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) found[i] = text.charCodeAt(i);
  return found;
}

async function unzipped(data) {
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// ---- runtime ----

async function session() {
  // a module of a blob has no address of its own, beside which files would be looked for
  const code = $("runtime").textContent.replaceAll("import.meta.url", '"file:///"');
  const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const ort = await import(address);
  ort.env.wasm.wasmBinary = (await unzipped(bytes("wasm"))).buffer;
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  return [ort, await ort.InferenceSession.create(bytes("model"), { executionProviders: ["wasm"] })];
}

// ---- rows, as the model takes them ----

const DAY = 86400000;

function number(text, name, kind) {
  const cell = String(text ?? "").trim();
  if (cell === "") return NaN;
  const low = cell.toLowerCase();
  if (kind === "boolean" && ["true", "yes"].includes(low)) return 1;
  if (kind === "boolean" && ["false", "no"].includes(low)) return 0;
  if (kind === "date" && /^\d{4}-\d{2}-\d{2}/.test(cell)) {
    const bare = cell.replace(" ", "T");
    const moment = Date.parse(bare.length > 10 && !/(Z|[+-]\d\d:?\d\d)$/.test(bare) ? `${bare}Z` : bare);
    if (!Number.isNaN(moment)) return moment / DAY;
  }
  const found = Number(cell);
  if (!Number.isFinite(found)) throw Error(`Column ${name} must hold ${kind === "date" ? "dates (YYYY-MM-DD)" : "numbers"}; got “${cell}”.`);
  return found;
}

function calendar(name, row) {
  // month, weekday and hour of a date, as a fit adds them
  const found = /^(.*) \((month|weekday|hour)\)$/.exec(name);
  if (!found || row[found[1]] === undefined) return undefined;
  const days = number(row[found[1]], found[1], "date");
  if (Number.isNaN(days)) return "";
  const moment = new Date(Math.floor(days * DAY));
  if (found[2] === "month") return String(moment.getUTCMonth() + 1);
  if (found[2] === "hour") return String(moment.getUTCHours());
  return String(((moment.getUTCDay() + 6) % 7) + 1);
}

function cell(row, name) {
  const found = row[name] ?? calendar(name, row);
  if (found === undefined) throw Error(`Column ${name} is missing.`);
  return found;
}

function tableFeeds(ort, rows) {
  const feeds = {};
  for (const [name, kind] of Object.entries(facts.columns)) {
    const cells = rows.map((row) => cell(row, name));
    feeds[name] = kind === "categorical"
      ? new ort.Tensor("string", cells.map((c) => String(c ?? "")), [rows.length, 1])
      : new ort.Tensor("float64", Float64Array.from(cells, (c) => number(c, name, kind)), [rows.length, 1]);
  }
  return feeds;
}

function arrayFeeds(ort, rows) {
  const values = rows.flatMap((row) => facts.names.map((name) => number(row[name], name)));
  return { [facts.inputs[0]]: new ort.Tensor("float64", Float64Array.from(values), [rows.length, facts.names.length]) };
}

function signalFeeds(ort, rows) {
  const size = facts.shape.reduce((a, b) => a * b);
  const values = rows.flatMap((row) => {
    const found = row.values.split(/[\s,;]+/).filter(Boolean).map((word) => number(word, "values"));
    if (found.length !== size) throw Error(`A signal must have ${size} numbers; got ${found.length}.`);
    return found;
  });
  return { [facts.inputs[0]]: new ort.Tensor("float32", Float32Array.from(values), [rows.length, ...facts.shape]) };
}

// ---- images: shrunk by overlapping triangles, as in training ----

function weights(from, to) {
  const scale = from / to, reach = Math.max(scale, 1);
  return Array.from({ length: to }, (_, place) => {
    const centre = (place + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - reach + 0.5)), last = Math.min(from, Math.trunc(centre + reach + 0.5));
    const parts = Array.from({ length: last - first }, (_, i) => Math.max(0, 1 - Math.abs((first + i - centre + 0.5) / reach)));
    const sum = parts.reduce((a, b) => a + b, 0);
    return [first, parts.map((part) => part / sum)];
  });
}

function along(plane, width, height, to) {
  const found = new Float64Array(to * height);
  weights(width, to).forEach(([first, parts], x) => {
    for (let y = 0; y < height; y++) {
      let sum = 0;
      for (let i = 0; i < parts.length; i++) sum += parts[i] * plane[y * width + first + i];
      found[y * to + x] = sum;
    }
  });
  return found;
}

function turned(plane, width, height) {
  const found = new Float64Array(plane.length);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) found[x * height + y] = plane[y * width + x];
  return found;
}

function resized(plane, width, height, [high, wide]) {
  const rows = wide === width ? plane : along(plane, width, height, wide);
  const columns = high === height ? rows : turned(along(turned(rows, wide, height), height, wide, high), high, wide);
  return columns.map((value) => Math.min(255, Math.max(0, Math.round(value))));
}

async function imageFeeds(ort, rows) {
  const [channels, high, wide] = facts.shape;
  const picture = await createImageBitmap(rows[0].file, { colorSpaceConversion: "none" });
  const { width, height } = picture;
  const paint = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  paint.fillStyle = "white";
  paint.fillRect(0, 0, width, height);
  paint.drawImage(picture, 0, 0);
  const data = paint.getImageData(0, 0, width, height).data;
  let planes = [0, 1, 2].map((c) => resized(Float64Array.from({ length: width * height }, (_, i) => data[4 * i + c]), width, height, [high, wide]));
  if (channels === 1) planes = [planes[0].map((red, i) => Math.round(0.299 * red + 0.587 * planes[1][i] + 0.114 * planes[2][i]))];
  const pixels = new Float32Array(channels * high * wide);
  planes.slice(0, channels).forEach((plane, c) => pixels.set(plane, c * high * wide));
  return { [facts.inputs[0]]: new ort.Tensor("float32", pixels, [1, channels, high, wide]) };
}

// ---- texts: hashed n-grams, weighted ----

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});

function hash(text) {
  let found = 0xffffffff;
  for (const byte of new TextEncoder().encode(text)) found = CRC[(found ^ byte) & 255] ^ (found >>> 8);
  return ((found ^ 0xffffffff) >>> 0) % facts.ngrams.buckets;
}

function runs(parts, low, high, glue) {
  const found = [];
  for (let n = low; n <= high; n++)
    for (let i = 0; i + n <= parts.length; i++) found.push(hash(parts.slice(i, i + n).join(glue)));
  return found;
}

function bag(text) {
  const { words, characters, known, rarity } = facts.ngrams;
  const tokens = text.toLowerCase().match(/[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]/gu) ?? [];
  const kinds = [runs(tokens, 1, words, " ")];
  if (characters) kinds.push(tokens.flatMap((word) => runs([...`<${word}>`], ...characters, "")));
  const found = [];
  let before = 0;
  kinds.forEach((hashes, kind) => {
    facts.places ??= known.map((values) => new Map(values.map((value, place) => [value, place])));
    const counts = new Map();
    for (const value of hashes) {
      const place = facts.places[kind].get(value);
      if (place !== undefined) counts.set(place, (counts.get(place) ?? 0) + 1);
    }
    const pairs = [...counts].sort((a, b) => a[0] - b[0]).map(([place, count]) => [place, (1 + Math.log(count)) * rarity[kind][place]]);
    const length = Math.hypot(...pairs.map((pair) => pair[1])) || 1;
    found.push(...pairs.map(([place, weight]) => [before + place, weight / length]));
    before += known[kind].length;
  });
  return found.length ? found : [[0, 0]];
}

function textFeeds(ort, rows) {
  const bags = rows.map((row) => bag(row.text));
  const most = Math.max(...bags.map((each) => each.length));
  const filled = bags.flatMap((each) => [...each, ...Array(most - each.length).fill([0, 0])]);
  return {
    ids: new ort.Tensor("int64", BigInt64Array.from(filled, (pair) => BigInt(pair[0])), [rows.length, most]),
    weights: new ort.Tensor("float32", Float32Array.from(filled, (pair) => pair[1]), [rows.length, most]),
  };
}

const FEEDS = { table: tableFeeds, array: arrayFeeds, signal: signalFeeds, image: imageFeeds, text: textFeeds };

// ---- answers ----

function columns(found, names) {
  // one list for each column of the answers, named as `castalia run` names them
  const lists = {}, order = facts.outputs.map((own, place) => [own, place]);
  order.sort(([a], [b]) => (b === "prediction") - (a === "prediction"));
  order.forEach(([own, place]) => {
    const { data, dims } = found[names[place]];
    const values = Array.from(data, (value) => (typeof value === "bigint" ? Number(value) : value));
    const width = values.length / dims[0];
    for (let i = 0; i < width; i++) {
      const classes = own === "probability" && facts.classes && dims.length === 2;
      const name = classes ? `probability_${facts.classes[i]}` : dims.length === 1 ? own : `${own}_${i}`;
      lists[name] = Array.from({ length: dims[0] }, (_, row) => values[row * width + i]);
    }
  });
  return lists;
}

const shown = (value) => (typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(6)).toString() : String(value));

function showOne(lists) {
  const place = $("answer"), chances = [];
  place.replaceChildren(make("h2", { textContent: "Answer" }));
  if (lists.prediction) place.append(make("p", { className: "prediction", textContent: shown(lists.prediction[0]) }));
  for (const label of facts.classes ?? []) {
    const chance = lists[`probability_${label}`];
    if (chance) chances.push([label, chance[0]]);
  }
  chances.sort((a, b) => b[1] - a[1]);
  for (const [label, chance] of chances.slice(0, 10)) {
    const meter = make("meter", { min: 0, max: 1, value: chance });
    meter.setAttribute("aria-label", `probability of ${label}`);
    place.append(make("div", { className: "share" }, make("span", { textContent: label }), meter, make("span", { textContent: `${(100 * chance).toFixed(1)} %` })));
  }
  const rest = Object.entries(lists).filter(([name]) => name !== "prediction" && !name.startsWith("probability_"));
  if (rest.length) place.append(make("p", { className: "soft", textContent: rest.slice(0, 40).map(([name, list]) => `${name}: ${shown(list[0])}`).join(", ") }));
  place.hidden = false;
}

const quoted = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));

function showMany(lists, count) {
  const names = Object.keys(lists), place = $("many");
  const lines = Array.from({ length: count }, (_, row) => names.map((name) => lists[name][row]));
  const text = [names, ...lines].map((line) => line.map(quoted).join(",")).join("\n");
  const link = make("a", { href: URL.createObjectURL(new Blob([text + "\n"], { type: "text/csv" })), download: "predictions.csv", textContent: "Save all as CSV" });
  const head = make("tr", {}, ...names.map((name) => make("th", { textContent: name, scope: "col" })));
  const body = lines.slice(0, 20).map((line) => make("tr", {}, ...line.map((value) => make("td", { textContent: shown(value) }))));
  const scroll = make("div", { className: "scroll", tabIndex: 0 }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Answers, first 20 rows");
  place.replaceChildren(make("h2", { textContent: `${count} rows` }), make("p", {}, link), scroll);
  place.hidden = false;
}

// ---- forms ----

function field(name, kind, words) {
  if (words || kind === "boolean") {
    const options = (words ?? ["yes", "no"]).map((word) => make("option", { value: word, textContent: word }));
    return make("label", {}, name, make("select", { name }, ...options, make("option", { value: "", textContent: "(missing)" })));
  }
  const type = kind === "date" ? "date" : "number";
  return make("label", {}, name, make("input", { name, type, ...(type === "number" ? { step: "any", placeholder: "missing" } : {}) }));
}

function build() {
  const form = $("form");
  const wide = (label, input) => make("label", { className: "wide" }, label, input);
  if (facts.kind === "table") form.append(...Object.entries(facts.columns).map(([name, kind]) => field(name, kind, facts.words[name])));
  if (facts.kind === "array") form.append(...facts.names.slice(0, 200).map((name) => field(name, "numeric")));
  if (facts.kind === "signal") form.append(wide(`${facts.shape.join(" × ")} numbers`, make("textarea", { name: "values", rows: 4 })));
  if (facts.kind === "text") form.append(wide("Text", make("textarea", { name: "text", rows: 4, required: true })));
  if (facts.kind === "image") form.append(wide("Image", make("input", { name: "file", type: "file", accept: "image/*", required: true })));
  form.append(make("div", { className: "wide" }, make("button", { id: "predict", disabled: true, textContent: "Predict" })));
  if (["table", "array"].includes(facts.kind))
    form.append(wide("Or many rows, from a CSV file with a line of column names", make("input", { id: "file", type: "file", accept: ".csv,text/csv" })));
  $("about").textContent = `${facts.system}, predicting in this browser.`;
}

function csv(text) {
  // RFC 4180: quotes, doubled quotes, line ends inside them
  const lines = [[]];
  for (const found of text.replace(/^\ufeff/, "").matchAll(/("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n|\n|\r|$)/g)) {
    const plain = found[1].startsWith('"') ? found[1].slice(1, -1).replaceAll('""', '"') : found[1];
    lines.at(-1).push(plain);
    if (found[2] === "") break;
    if (found[2] !== ",") lines.push([]);
  }
  const [head, ...rest] = lines.filter((line) => line.length > 1 || line[0]);
  const names = facts.names ?? head ?? []; // columns of an array have places, not names
  return rest.map((line) => Object.fromEntries(names.map((name, i) => [name.trim(), line[i] ?? ""])));
}

function formRow() {
  const row = Object.fromEntries(new FormData($("form")));
  for (const name of facts.names ?? []) row[name] ??= "";
  return row;
}

build();
try {
  const [ort, model] = await session();
  facts.inputs = model.inputNames;
  const answer = async (rows) => columns(await model.run(await FEEDS[facts.kind](ort, rows)), model.outputNames);
  const guarded = (action) => async (event) => {
    event.preventDefault();
    $("status").className = "";
    $("status").textContent = "";
    try {
      await action(event);
    } catch (error) {
      $("status").className = "bad";
      $("status").textContent = error.message;
    }
  };
  $("form").addEventListener("submit", guarded(async () => {
    const row = formRow();
    showOne(await answer([row]));
    if (row.file) $("answer").append(make("img", { src: URL.createObjectURL(row.file), alt: "the image" }));
  }));
  $("file")?.addEventListener("change", guarded(async (event) => {
    const rows = csv(await event.target.files[0].text());
    if (!rows.length) throw Error("The file must have a line of column names and at least one row.");
    showMany(await answer(rows), rows.length);
  }));
  globalThis.castaliaAnswer = answer; // for tests, and for pages that build on this one
  $("status").textContent = "";
  $("predict").disabled = false;
} catch (error) {
  $("status").className = "bad";
  $("status").textContent = `This browser could not read the model: ${error.message}`;
}
