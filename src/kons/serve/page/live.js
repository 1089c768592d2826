"use strict";
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
let token = sessionStorage.getItem("kons token") || "";

function node(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
function number(value) {
  if (value === null || value === undefined) return "\u2013";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2);
  return value.toLocaleString("en", size >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 });
}
const percent = (value) => (100 * value).toLocaleString("en", { maximumFractionDigits: 1 }) + "\u00a0%";

function headline(live) {
  const target = live.target || "the label";
  $("head").className = "same";
  if (live.state !== "ready") {
    $("headline").textContent = live.state === "starting" ? "Starting: the log is replayed" : "The service ends";
    $("remark").textContent = live.replayed ? `${number(live.replayed)} records so far` : "";
    return;
  }
  const { model, ...others } = live.losses;
  $("remark").textContent = `${live.learner}, ${live.task || "no label has come yet"}, ` +
    `${live.keys === undefined ? `${Object.keys(live.columns).length} columns` : `${number(live.keys)} keys`}, ` +
    `${number(live.rows)} rows learned`;
  const best = Object.entries(others).sort((a, b) => a[1] - b[1])[0];
  if (model === undefined || !best) { $("headline").textContent = `Predicting ${target}`; return; }
  const better = model < best[1];
  $("head").className = better ? "better" : "worse";
  const part = best[1] > 0 ? percent(Math.abs(1 - model / best[1])) : "";
  $("headline").textContent = `Predicting ${target}: ${live.loss_name} ${number(model)}, ` +
    `${part} ${better ? "below" : "above"} the best baseline (${best[0]})`;
}

function cards(live) {
  const counts = live.counts;
  const right = live.losses.model === undefined ? "\u2013" : percent(1 - live.losses.model);
  const inside = live.task === "classification"
    ? ["labels predicted rightly", right, `of the last ${number(Math.min(live.rows, live.window))}`]
    : ["labels inside their interval", live.coverage === null ? "\u2013" : percent(live.coverage), `aimed at ${percent(live.level)}`];
  const shown = [
    ["rows that wait for their label", number(live.pending), `${number(counts.predicted)} predicted`],
    ["rows learned", number(live.rows), `${number(counts.labelled)} labels told`],
    inside,
    ["repeated, refused", `${number(counts.repeated)}, ${number(counts.refused)}`, "since the start; changed nothing"],
  ];
  $("cards").replaceChildren(...shown.map(([label, value, note]) =>
    node("div", {}, node("dt", {}, label), node("dd", {}, node("b", {}, value), node("small", {}, note)))));
}

function key(kind, style, label) {
  const mark = node("i", { class: kind });
  if (style) mark.style.background = style;
  return node("span", { class: "key" }, mark, label);
}

function chart(live) {
  const rows = live.recent;
  if (!rows.length) return;
  const box = $("rows"), width = Math.max(280, box.clientWidth), numeric = live.task === "regression";
  const labels = [...new Set(rows.flatMap((r) => [r.y, r.prediction]))].filter((v) => v !== null).map(String).sort();
  const height = numeric ? (width < 500 ? 200 : 260) : Math.min(420, 40 + 44 * labels.length);
  const left = numeric ? 48 : 80, right = 8, top = 10, bottom = 24;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  const x = (i) => left + (width - left - right) * (rows.length > 1 ? i / (rows.length - 1) : 0.5);
  let y;
  if (numeric) {
    const values = rows.flatMap((r) => [r.y, r.prediction]).filter(Number.isFinite).sort((a, b) => a - b);
    const at = (share) => values[Math.round(share * (values.length - 1))];
    // A single wild value does not flatten the picture: what is beyond is drawn at its edge.
    const margin = 0.25 * (at(0.99) - at(0.01)) || 1;
    const low = Math.max(values[0], at(0.01) - margin), high = Math.min(values[values.length - 1], at(0.99) + margin);
    const span = high - low || 1;
    y = (value) => top + (height - top - bottom) * (1 - Math.min(1.02, Math.max(-0.02, (value - low) / span)));
    for (let i = 0; i <= 4; i++) {
      const value = low + (span * i) / 4;
      svg.append(shape("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
      svg.append(shape("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, number(+value.toPrecision(3))));
    }
    const known = rows.map((r, i) => [i, r.interval]).filter(([, interval]) => interval);
    if (known.length > 1) {
      const upper = known.map(([i, [, b]]) => `${x(i)},${y(b)}`), lower = known.map(([i, [a]]) => `${x(i)},${y(a)}`);
      svg.append(shape("polygon", { class: "band", points: [...upper, ...lower.reverse()].join(" ") }));
    }
    svg.append(shape("polyline", { class: "line", points: rows.map((r, i) => `${x(i)},${y(r.prediction)}`).join(" ") }));
  } else {
    y = (value) => top + (height - top - bottom) * ((labels.indexOf(String(value)) + 0.5) / labels.length);
    for (const label of labels) {
      svg.append(shape("line", { class: "grid", x1: left, x2: width - right, y1: y(label), y2: y(label) }));
      svg.append(shape("text", { x: left - 6, y: y(label) + 4, "text-anchor": "end" }, label.slice(0, 11)));
    }
  }
  rows.forEach((row, i) => {
    const wrong = !numeric && row.y !== row.prediction;
    const r = (wrong ? 1.5 : 1) * (width < 500 ? 2 : 2.6);
    svg.append(shape("circle", { class: numeric ? "dot" : wrong ? "wrong" : "right", cx: x(i), cy: y(row.y), r }));
  });
  svg.append(shape("text", { x: width - right, y: height - 6, "text-anchor": "end" }, "last label"));
  svg.append(shape("text", { x: left, y: height - 6 }, `${rows.length} labels back`));
  svg.setAttribute("aria-label", `The last ${rows.length} labels and what was predicted`);
  box.replaceChildren(svg);
  $("keys").replaceChildren(...(numeric
    ? [key("", "var(--c0)", "predicted"), key("area", "", `${percent(live.level)} interval`), key("point", "", "actual")]
    : [key("point", "var(--good)", "predicted rightly"), key("bad", "", "predicted otherwise")]));
}

function bars(place, values, said, colour) {
  const largest = Math.max(...values.map(([, value]) => value), 1e-300);
  $(place).replaceChildren(...values.map(([name, value], i) => {
    const bar = node("span", {});
    bar.style.width = `${(100 * value) / largest}%`;
    if (colour) bar.style.background = colour(name);
    return node("tr", {}, node("th", { scope: "row" }, name), node("td", {}, bar), node("td", { class: "n" }, said(value)));
  }));
  if (!values.length) $(place).replaceChildren(node("tr", {}, node("td", { class: "empty" }, "Not known yet.")));
}

function events(live) {
  const rows = live.events.slice().reverse().map((e) =>
    node("tr", { class: e.severity === "alarm" ? "alarm" : "" },
      node("td", {}, e.kind), node("td", {}, e.columns.join(", ")), node("td", { class: "n" }, number(e.row)),
      node("td", { class: "n" }, number(e.size)), node("td", {}, e.action)));
  const heads = ["what", "column", "row", "size", "and then"].map((head) => node("th", { scope: "col" }, head));
  $("events").replaceChildren(...(rows.length
    ? [node("thead", {}, node("tr", {}, ...heads)), node("tbody", {}, ...rows)]
    : [node("tbody", {}, node("tr", {}, node("td", { class: "empty" }, "Nothing out of the ordinary.")))]));
}

function show(live) {
  headline(live);
  if (live.state !== "ready") return;
  cards(live);
  chart(live);
  $("about-loss").textContent = `The ${live.loss_name} over the last ${number(live.window)} labels at most; shorter is better.`;
  bars("losses", Object.entries(live.losses), number, (name) => (name === "model" ? "var(--c0)" : "var(--c1)"));
  bars("relevance", Object.entries(live.relevances), (value) => value.toFixed(2));
  events(live);
  $("foot").textContent = `kons ${live.kons}; ${number(live.records)} records in the log, ` +
    `${number(live.counts.snapshots)} snapshots since the start. Figures: /v1/metrics.json, /metrics.`;
  document.title = `${live.target || "kons"}: ${number(live.losses.model)}`;
}

async function look() {
  try {
    const answer = await fetch("/v1/metrics.json", { headers: token ? { Authorization: `Bearer ${token}` } : {} });
    $("ask").hidden = answer.status !== 401;
    if (answer.status === 401) $("headline").textContent = "This service asks for a token";
    else if (answer.ok) show(await answer.json());
    else throw new Error((await answer.json()).detail);
  } catch (error) {
    $("head").className = "worse";
    $("headline").textContent = "No answer";
    $("remark").textContent = String(error.message || error);
  }
  setTimeout(look, document.hidden ? 5000 : 1000);
}
$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value;
  sessionStorage.setItem("kons token", token);
});
look();
