// Numbers, times and sizes as people read them.

export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(Math.max(digits - 2, 0)).replace("e+", "e");
  return Number(value.toPrecision(digits)).toString().replace("-", "−");
}

export function ago(seconds) {
  const gone = Date.now() / 1000 - seconds;
  const steps = [[60, " s", 1], [3600, " min", 60], [86400, " h", 3600], [86400 * 60, " d", 86400]];
  for (const [limit, unit, size] of steps) if (gone < limit) return `${Math.max(Math.floor(gone / size), 0)}${unit} ago`;
  return date(seconds).slice(0, 10);
}

export function date(seconds) {
  const at = new Date(seconds * 1000);
  const two = (part) => String(part).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${number(seconds, 3)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${number(seconds / 3600, 3)} h`;
}

export const bytes = (count) => (count < 1e9 ? `${Math.round(count / 1e6)} MB` : `${number(count / 1e9, 3)} GB`);
// Scores of one column, with the same decimals.
export const fixed = (score) => (typeof score === "number" && Math.abs(score) < 100 ? score.toFixed(3).replace("-", "−") : number(score));
export const metric = (name) => name.replaceAll("_", " ");

export function value(thing) {
  if (thing === null || thing === undefined) return "–";
  if (typeof thing === "number") return Number.isInteger(thing) ? String(thing) : number(thing, 6);
  return typeof thing === "object" ? JSON.stringify(thing) : String(thing);
}
