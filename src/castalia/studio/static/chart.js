// One uPlot chart: lines with the range behind them, marks, a legend that can be read and switched.
import { h } from "./dom.js";
import { number } from "./words.js";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const color = (place) => css(`--series-${(place % 8) + 1}`);

// Exponential smoothing, unbiased at the start.
function smooth(values, weight) {
  let sum = 0;
  let share = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = sum * weight + (1 - weight) * value;
    share = share * weight + (1 - weight);
    return sum / share;
  });
}

// Every line needs its own x; uPlot wants one common x, so the tables are joined.
function columns(lines, weight, log) {
  const positive = (values) => (log ? values.map((v) => (v !== null && v > 0 ? v : null)) : values);
  const tables = lines.map((line) => {
    const main = positive(weight > 0 ? smooth(line.mean, weight) : line.mean);
    const table = [line.x, main];
    if (line.low) table.push(positive(line.low), positive(line.high));
    else if (weight > 0) table.push(positive(line.mean));
    return table;
  });
  return tables.length === 1 ? tables[0] : uPlot.join(tables);
}

function series(lines, weight) {
  const found = [{}];
  const bands = [];
  for (const line of lines) {
    const stroke = color(line.place);
    found.push({ label: line.label, stroke, width: 1.75, dash: line.dashed ? [6, 4] : undefined, points: { show: line.x.length < 3, size: 5 }, spanGaps: false });
    const pale = { stroke: `${stroke}55`, width: 1, points: { show: false }, label: "" };
    if (line.low) {
      bands.push({ series: [found.length + 1, found.length], fill: `${stroke}22` });
      found.push({ ...pale, stroke: `${stroke}00` }, { ...pale, stroke: `${stroke}00` });
    } else if (weight > 0) found.push(pale);
  }
  return [found, bands];
}

const power = (v) => Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9;

function axes(xLabel, log) {
  const common = { stroke: css("--soft"), font: "12px system-ui, sans-serif", grid: { stroke: css("--rule"), width: 1 }, ticks: { show: false } };
  const values = (_, splits) => splits.map((v) => (v === null ? "" : number(v, 4)));
  return [{ ...common, values, grid: { show: false }, label: xLabel, labelFont: common.font, labelSize: 18, size: 30 }, { ...common, values, size: 58, grid: { ...common.grid, filter: (_, splits) => (log ? splits.map((v) => (power(v) ? v : null)) : splits) } }];
}

// Draws the steps at which findings began.
function marker(marks) {
  return (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    for (const mark of marks) {
      const x = plot.valToPos(mark.x, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.strokeStyle = ctx.fillStyle = css("--bad");
      ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const right = x > bbox.left + bbox.width * 0.5;
      ctx.textAlign = right ? "right" : "left";
      ctx.fillText(mark.label, x + (right ? -5 : 5) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
    }
    ctx.restore();
  };
}

function said(lines, xLabel) {
  return lines.map((line) => {
    const known = line.mean.filter((v) => v !== null);
    return `${line.label}: from ${number(known[0])} to ${number(known.at(-1))} over ${xLabel}s up to ${number(line.x.at(-1))}, lowest ${number(Math.min(...known))}`;
  }).join("; ");
}

export class Chart {
  constructor(title, onZoom) {
    this.off = new Set();
    this.onZoom = onZoom;
    this.legend = h("ul", { class: "legend" });
    this.place = h("div", { class: "plot", role: "img", "aria-label": title, tabindex: "0", onkeydown: (event) => this.key(event) });
    this.reset = h("button", { type: "button", class: "quiet small", hidden: true, onclick: () => this.zoom(null) }, "Reset zoom");
    this.node = h("figure", { class: "chart" }, h("figcaption", null, h("h3", null, title), this.reset), this.place, this.legend);
    this.title = title;
    new ResizeObserver(() => this.plot?.setSize({ width: this.place.clientWidth, height: this.height() })).observe(this.place);
    addEventListener("theme", () => this.lines && this.draw(this.lines, this.options));
  }

  height() { return this.node.classList.contains("main") ? Math.min(360, Math.max(240, innerHeight * 0.42)) : 200; }

  zoom(span) {
    this.reset.hidden = span === null;
    this.onZoom?.(span);
  }

  draw(lines, options) {
    this.lines = lines;
    this.options = options;
    const shown = lines.filter((line) => !this.off.has(line.label) && line.x.length);
    this.plot?.destroy();
    this.plot = null;
    this.showLegend(lines);
    this.place.setAttribute("aria-label", shown.length ? `${this.title}. ${said(shown, options.xLabel)}` : `${this.title}: no points`);
    if (!shown.length) return;
    const [all, bands] = series(shown, options.weight);
    const chart = {
      width: this.place.clientWidth, height: this.height(), series: all, bands, axes: axes(options.xLabel, options.log),
      legend: { show: false }, padding: [8, 12, 0, 0],
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 7 } },
      scales: { x: { time: false }, y: options.log ? { distr: 3 } : {} },
      hooks: {
        draw: [marker(options.marks ?? [])],
        setCursor: [(plot) => this.values(plot)],
        setSelect: [(plot) => {
          const { left, width } = plot.select;
          if (width > 4) this.zoom([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
        }],
      },
    };
    this.plot = new uPlot(chart, columns(shown, options.weight, options.log), this.place);
    this.plot.over.addEventListener("dblclick", () => this.zoom(null));
  }

  showLegend(lines) {
    this.cells = new Map();
    const names = [...new Map(lines.map((line) => [line.label, line])).values()];
    this.legend.replaceChildren(...names.map((line) => {
      const known = line.mean.filter((v) => v !== null);
      const cell = h("span", { class: "soft" }, number(known.at(-1)));
      this.cells.set(line.label, cell);
      const swatch = h("span", { class: line.dashed ? "swatch dashed" : "swatch" });
      swatch.style.color = color(line.place);
      const toggle = () => {
        if (!this.off.delete(line.label)) this.off.add(line.label);
        this.draw(this.lines, this.options);
      };
      return h("li", null, h("button", { type: "button", "aria-pressed": String(!this.off.has(line.label)), onclick: toggle }, swatch, line.label, " ", cell));
    }));
  }

  values(plot) {
    const at = plot.cursor.idx;
    if (at === null || at === undefined) return;
    plot.series.forEach((line, place) => {
      if (place === 0 || !line.label) return;
      let back = at;
      while (back > 0 && plot.data[place][back] == null) back -= 1;
      this.cells.get(line.label)?.replaceChildren(number(plot.data[place][back]));
    });
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !this.plot) return;
    event.preventDefault();
    const last = this.plot.data[0].length - 1;
    const now = this.plot.cursor.idx ?? 0;
    const at = Math.min(Math.max(now + step * (event.shiftKey ? 20 : 1), 0), last);
    this.plot.setCursor({ left: this.plot.valToPos(this.plot.data[0][at], "x"), top: 10 });
  }
}
