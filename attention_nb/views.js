// The views: one page, one `data` object, no library. A page holds one view, and in a notebook or in the docs it
// sits in a frame of its own, so views cannot disturb each other or their host.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
// Paul Tol's "muted" colours, which readers with colour-blindness tell apart; more heads use them again
const colours = ["#88ccee", "#cc6677", "#ddcc77", "#44aa99", "#aa4499", "#999933", "#6699cc", "#ee8866", "#bbcc33"];
const colour = head => colours[head % colours.length];
const two = x => x.toFixed(2);
const sum = list => list.reduce((a, b) => a + b, 0);

// ---- small tools

// make("div.status", {title: "x"}, child, "text"): text always enters as text, never as HTML
function make(what, properties = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  element.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && name !== "style") element[name] = value; else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function select(label, names, value, change) {
  const box = make("select", {onchange: () => change(+box.value)}, ...names.map((n, i) => make("option", {value: i}, n)));
  box.value = value;
  return make("label", {}, label, box);
}

// bytes of base64, inflated by the browser itself
async function inflate(text) {
  const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/")), packed = new Uint8Array(letters.length);
  for (let n = 0; n < letters.length; n++) packed[n] = letters.charCodeAt(n);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return await new Response(stream).arrayBuffer();
}

// A layer is unpacked when it is first looked at: for each row a step, for each weight a whole number of steps
function unpack(group, layer) {
  const stored = group.layers[layer];
  stored.ready ??= inflate(stored.data).then(buffer => {
    const rows = stored.heads * group.q.length, S = group.k.length;
    const steps = new Float32Array(buffer, 0, rows), counts = new Uint8Array(buffer, 4 * rows);
    return {heads: stored.heads, at: (h, i, j) => { const r = h * group.q.length + i; return steps[r] * counts[r * S + j]; }};
  });
  return stored.ready;
}

// ---- the frame around us: theme and height

function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let host = null;
  try { host = window.parent !== window && window.parent.document; } catch { /* another origin: the system's theme */ }
  const apply = () => {
    let theme = dark.matches ? "dark" : "light";
    if (host) {
      const html = host.documentElement, body = host.body;
      if (html.dataset.theme) theme = html.dataset.theme;                                   // the docs
      else if (body.dataset.jpThemeLight) theme = body.dataset.jpThemeLight === "true" ? "light" : "dark";   // Jupyter
      else if (html.getAttribute("theme")) theme = html.getAttribute("theme");              // Colab
      else if (body.className.includes("vscode")) theme = body.className.includes("vscode-light") ? "light" : "dark";
    }
    document.documentElement.dataset.theme = theme === "dark" ? "dark" : "light";
    dispatchEvent(new Event("redraw"));
  };
  dark.addEventListener("change", apply);
  if (host) for (const element of [host.documentElement, host.body]) new MutationObserver(apply).observe(element, {attributes: true});
  apply();
}

function followHeight() {
  let frame = null;
  try { frame = window.frameElement; } catch { return; }
  if (!frame) return;
  frame.style.display = "block";
  const still = frame.previousElementSibling;
  if (still && still.dataset.still !== undefined) still.style.display = "none";             // the picture for those without scripts
  const fit = () => { frame.style.height = Math.ceil(document.body.getBoundingClientRect().height) + 2 + "px"; };
  new ResizeObserver(fit).observe(document.body);
  fit();
}

// ---- head view: lines between two columns of tokens

function headView(root, groups, start) {
  const state = {group: start.group ?? 0, layer: start.layer ?? 0, heads: null, threshold: start.threshold ?? 0.05, part: 0, focus: null, pinned: false};
  const rowHeight = 22, padding = 4;
  let weights = null;
  const bar = make("div.bar"), swatches = make("div.heads", {role: "group", ariaLabel: "heads"});
  const status = make("div.status", {role: "status", ariaLive: "polite"});
  const left = make("div.column.left", {role: "listbox", ariaLabel: "queries"}), right = make("div.column.right", {role: "listbox", ariaLabel: "keys"});
  const canvas = make("canvas.lines", {ariaHidden: "true"});
  const stage = make("div.stage", {}, left, make("div", {}, canvas), right);
  const table = make("details", {}, make("summary", {}, "Numbers as a table"), make("div.scroll"));
  root.append(bar, stage, status, table);
  const group = () => groups[state.group];
  const chosen = () => [...state.heads].sort((a, b) => a - b);
  const mean = (i, j) => state.heads.size ? sum(chosen().map(h => weights.at(h, i, j))) / state.heads.size : 0;

  // parts of a pair of texts, A and B: which (query, key) belong to the chosen part
  const parts = ["all", "A to A", "A to B", "B to A", "B to B"];
  function inPart(i, j) {
    if (!state.part) return true;
    const split = group().split, from = i >= split ? "B" : "A", to = j >= split ? "B" : "A";
    return parts[state.part] === `${from} to ${to}`;
  }

  function controls() {
    const g = group(), step = d => { state.layer = (state.layer + d + g.layers.length) % g.layers.length; show(); };
    const threshold = make("input", {type: "range", min: 0, max: 1, step: 0.005, value: state.threshold, oninput: () => { state.threshold = +threshold.value; reading.textContent = state.threshold.toFixed(3); draw(); }});
    const reading = make("span", {}, state.threshold.toFixed(3));
    bar.replaceChildren();
    if (groups.length > 1) bar.append(select("attention ", groups.map(x => x.name), state.group, v => { state.group = v; state.layer = 0; state.heads = null; state.focus = null; state.pinned = false; state.part = 0; show(); }));
    if (g.layers.length > 1) bar.append(make("span", {}, make("button", {onclick: () => step(-1), ariaLabel: "previous layer"}, "‹"), " ",
      select("layer ", g.layers.map(l => l.label), state.layer, v => { state.layer = v; show(); }), " ", make("button", {onclick: () => step(1), ariaLabel: "next layer"}, "›")));
    bar.append(make("label", {}, "at least ", threshold, reading));
    if (g.split !== null) bar.append(select("texts ", parts, state.part, v => { state.part = v; draw(); }));
    bar.append(swatches);
  }

  function showHeads() {
    const toggle = h => { state.heads.has(h) ? state.heads.delete(h) : state.heads.add(h); changed(); };
    const only = h => { state.heads = new Set([h]); changed(); };
    const changed = () => { showHeads(); draw(); };
    const all = state.heads.size === weights.heads;
    swatches.replaceChildren(...(weights.heads < 2 ? [] : [make("button", {style: "--c: var(--line)", onclick: () => { state.heads = new Set(all ? [] : Array(weights.heads).keys()); changed(); }}, all ? "none" : "all"),
      ...Array.from({length: weights.heads}, (_, h) => make("button", {style: `--c: ${colour(h)}`, ariaPressed: String(state.heads.has(h)), title: `head ${h}; double-click: only this one`,
        onclick: () => toggle(h), ondblclick: () => only(h)}, String(h)))]));
  }

  function tokens(column, names, side) {
    column.replaceChildren(...names.map((name, i) => make(`div.token${group().split === i && i ? ".split" : ""}`, {role: "option", tabIndex: i ? -1 : 0, title: name,
      onpointerenter: e => { if (e.pointerType !== "touch" && !state.pinned) focus(side, i); }, onfocus: () => { if (!state.pinned) focus(side, i); }, onclick: () => pin(side, i)},
      make("span.t", {}, name), make("span.n"))));
  }

  const same = (side, i) => state.focus && state.focus.side === side && state.focus.i === i;
  function focus(side, i) { if (!same(side, i)) { state.focus = {side, i}; draw(); } }
  function pin(side, i) { const off = state.pinned && same(side, i); state.focus = {side, i}; state.pinned = !off; draw(); }
  stage.addEventListener("pointerleave", () => { if (!state.pinned && !stage.contains(document.activeElement)) { state.focus = null; draw(); } });
  stage.addEventListener("keydown", e => {
    const column = e.target.parentElement, at = [...column.children].indexOf(e.target);
    if (at < 0) return;
    const other = column === left ? right : left, side = column === left ? "q" : "k";
    const to = {ArrowDown: column.children[at + 1], ArrowUp: column.children[at - 1], Home: column.firstChild, End: column.lastChild,
                ArrowLeft: column === right && other.children[Math.min(at, other.children.length - 1)], ArrowRight: column === left && other.children[Math.min(at, other.children.length - 1)]}[e.key];
    if (to) { e.preventDefault(); state.pinned = false; to.focus(); focus(to.parentElement === left ? "q" : "k", [...to.parentElement.children].indexOf(to)); }
    else if (e.key === "Enter" || e.key === " ") { e.preventDefault(); pin(side, at); }
    else if (e.key === "Escape") { state.pinned = false; state.focus = null; draw(); }
  });

  // what to draw: all pairs above the threshold, or those of the token in focus; at most 3,000 lines, the strongest
  function lines() {
    const g = group(), list = [], top = stage.scrollTop / rowHeight - 2, bottom = top + stage.clientHeight / rowHeight + 4;
    const visible = n => n > top && n < bottom;
    const row = i => { for (let j = 0; j < g.k.length; j++) if ((visible(i) || visible(j)) && inPart(i, j)) for (const h of state.heads) add(h, i, j); };
    const add = (h, i, j) => { const w = weights.at(h, i, j); if (w > 0 && w >= state.threshold) list.push([w, h, i, j]); };
    if (state.focus?.side === "q") row(state.focus.i);
    else if (state.focus) { const j = state.focus.i; for (let i = 0; i < g.q.length; i++) if (inPart(i, j)) for (const h of state.heads) add(h, i, j); }
    else for (let i = 0; i < g.q.length; i++) if (visible(i) || g.k.length < 200) row(i);          // in long texts, only of the queries in sight
    return list.sort((a, b) => a[0] - b[0]).slice(-3000);
  }

  let waiting = 0;
  function draw() { waiting ||= requestAnimationFrame(() => { waiting = 0; paint(); }); }           // once for each picture, however often asked

  function paint() {
    if (!weights) return;
    const scale = devicePixelRatio || 1, width = canvas.parentElement.clientWidth, height = Math.min(stage.clientHeight, stage.scrollHeight);
    canvas.style.height = height + "px";
    canvas.width = width * scale; canvas.height = height * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const y = n => padding + (n + 0.5) * rowHeight - stage.scrollTop, n = Math.max(1, state.heads.size);
    const place = new Map(chosen().map((h, at) => [h, (at - (n - 1) / 2) * Math.min(2, 14 / n)]));
    for (const [w, h, i, j] of lines()) {
      pen.strokeStyle = colour(h); pen.globalAlpha = Math.min(1, 0.08 + 0.92 * w); pen.lineWidth = 0.6 + 2.6 * w;
      pen.beginPath(); pen.moveTo(0, y(i) + place.get(h)); pen.bezierCurveTo(width / 3, y(i) + place.get(h), 2 * width / 3, y(j) + place.get(h), width, y(j) + place.get(h)); pen.stroke();
    }
    mark();
    root.dataset.ready = "yes";
  }

  function mark() {
    const g = group(), f = state.focus;
    const sides = {q: [left, g.q], k: [right, g.k]};
    for (const [side, [column]] of Object.entries(sides)) {
      for (const [n, element] of [...column.children].entries()) {
        const on = !!f && same(side, n), shown = f && f.side !== side, w = shown ? (f.side === "q" ? mean(f.i, n) : mean(n, f.i)) : 0;
        element.classList.toggle("on", on);
        element.ariaSelected = String(on);
        element.style.background = shown && w > 0 ? `rgba(var(--weight), ${Math.min(0.75, w)})` : "";
        element.lastChild.textContent = shown && w >= 0.005 ? two(w) : "";
      }
    }
    const heads = chosen(), many = heads.length === 1 ? `head ${heads[0]}` : `mean of ${heads.length} heads`;
    if (!f) status.textContent = `Point at a token, or move with the arrow keys; Enter keeps it, Escape lets go.`;
    else {
      const [column, names] = sides[f.side === "q" ? "k" : "q"], ws = names.map((_, n) => f.side === "q" ? mean(f.i, n) : mean(n, f.i)), best = ws.indexOf(Math.max(...ws));
      const from = f.side === "q" ? g.q[f.i] : names[best], to = f.side === "q" ? names[best] : g.k[f.i];
      status.textContent = `${from} → ${to}: ${two(ws[best])} (${many}), the largest of this ${f.side === "q" ? "query" : "key"}${state.pinned ? "; kept" : ""}`;
    }
    if (table.open) fillTable();
  }

  function fillTable() {
    const g = group(), f = state.focus, i = f?.side === "q" ? f.i : 0, heads = chosen();
    table.lastChild.replaceChildren(make("table", {}, make("caption", {}, `weights of query ${i}, ${g.q[i]}`),
      make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "key"), ...heads.map(h => make("th", {scope: "col"}, `head ${h}`)))),
      make("tbody", {}, ...g.k.map((name, j) => make("tr", {}, make("th", {scope: "row"}, name), ...heads.map(h => make("td", {}, two(weights.at(h, i, j)))))))));
  }
  table.addEventListener("toggle", () => { if (table.open && weights) fillTable(); });

  async function show() {
    const g = group(), layer = state.layer, unpacked = await unpack(g, layer);
    if (g !== group() || layer !== state.layer) return;                                     // chosen away while it was unpacked
    weights = unpacked;
    const kept = state.heads && [...state.heads].filter(h => h < weights.heads);
    state.heads = new Set(kept?.length ? kept : start.heads?.filter(h => h < weights.heads) ?? Array(weights.heads).keys());
    controls(); showHeads();
    if (left.dataset.group !== String(state.group)) { tokens(left, g.q, "q"); tokens(right, g.k, "k"); left.dataset.group = state.group; }
    draw();
  }
  stage.addEventListener("scroll", draw);
  addEventListener("redraw", draw);
  new ResizeObserver(draw).observe(stage);
  if (start.token !== undefined && start.token !== null) { state.focus = {side: "q", i: start.token}; state.pinned = true; }
  show();
  return {choose(at, layer, head) {
    if (at !== state.group) Object.assign(state, {focus: null, pinned: false, part: 0});
    Object.assign(state, {group: at, layer, heads: new Set([head])});
    return show();
  }};
}

// ---- model view: all layers and heads as thumbnails, one of them large

function modelView(root, groups, start) {
  for (const [at, g] of groups.entries()) {
    const most = Math.max(...g.layers.map(l => l.heads)), side = Math.max(28, Math.min(72, Math.floor(640 / most)));
    const grid = make("div.grid", {style: `--side: ${side}px; grid-template-columns: auto repeat(${most}, auto)`}, make("span"), ...Array.from({length: most}, (_, h) => make("span", {}, String(h))));
    if (groups.length > 1) root.append(make("h2", {}, g.name));
    root.append(grid);
    const waiting = new Map(), seen = new IntersectionObserver(entries => { for (const e of entries) if (e.isIntersecting) { seen.unobserve(e.target); thumbnails(...waiting.get(e.target)); } });
    for (const [l, layer] of g.layers.entries()) {
      const label = make("span", {}, layer.label), row = [];
      for (let h = 0; h < layer.heads; h++) {
        const canvas = make("canvas"), button = make("button", {title: `layer ${layer.label}, head ${h}`, ariaLabel: `layer ${layer.label}, head ${h}`, ariaPressed: "false", onclick: () => open(button, at, l, h)}, canvas);
        row.push(canvas); grid.append(h ? button : label); if (!h) grid.append(button);
      }
      for (let h = layer.heads; h < most; h++) grid.append(make("span"));
      waiting.set(label, [g, l, row]); seen.observe(label);
    }
  }
  const place = make("div.large"), large = make("div");
  root.append(place);
  let view = null;
  function open(button, at, l, h) {
    for (const b of root.querySelectorAll(".grid button")) b.ariaPressed = String(b === button);
    if (!view) { place.append(large); view = headView(large, groups, {...start, group: at, layer: l, heads: [h]}); }
    else view.choose(at, l, h);
    place.scrollIntoView({block: "nearest"});
  }

  // a thumbnail shows the largest weight that falls into each of its pixels, as its square root so that small ones are seen
  async function thumbnails(g, l, row) {
    const w = await unpack(g, l), tall = Math.min(g.q.length, 48), wide = Math.min(g.k.length, 48), fy = g.q.length / tall, fx = g.k.length / wide;
    for (const [h, canvas] of row.entries()) {
      canvas.width = wide; canvas.height = tall;
      const pixels = new Float32Array(tall * wide);
      for (let i = 0; i < g.q.length; i++) for (let j = 0; j < g.k.length; j++) {
        const p = Math.floor(i / fy) * wide + Math.floor(j / fx);
        pixels[p] = Math.max(pixels[p], w.at(h, i, j));
      }
      const paint = () => {
        const pen = canvas.getContext("2d"), image = pen.createImageData(wide, tall), [r, gr, b] = getComputedStyle(document.documentElement).getPropertyValue("--weight").split(",").map(Number);
        pixels.forEach((x, p) => image.data.set([r, gr, b, 255 * Math.sqrt(x)], 4 * p));
        pen.putImageData(image, 0, 0);
      };
      paint(); addEventListener("redraw", paint);
    }
    root.dataset.ready = "yes";
  }
}

// ---- neuron view: one query, every key, neuron by neuron

async function neuronView(root, d) {
  const [q, k] = [new Float32Array(await inflate(d.qdata)), new Float32Array(await inflate(d.kdata))];
  const added = d.added && new Float32Array(await inflate(d.added.data));                   // bias and masks: -infinity where hidden
  const [L, S, E, H] = [d.q.length, d.k.length, d.width, d.heads], state = {layer: d.layer, head: d.head, i: d.query, j: d.key};
  const bar = make("div.bar"), top = make("div.bar"), scroll = make("div.scroll"), status = make("div.status", {role: "status", ariaLive: "polite"});
  root.append(bar, top, scroll, status);
  const query = (l, h, i) => q.subarray(((l * H + h) * L + i) * E, ((l * H + h) * L + i + 1) * E);
  const key = (l, h, j) => { const g = Math.floor(h * d.kvHeads / H), at = (l * d.kvHeads + g) * S + j; return k.subarray(at * E, (at + 1) * E); };
  function plus(l, h, i, j) {                                                               // broadcast over dimensions of size 1
    if (!added) return 0;
    return added[[l, h, i, j].reduce((at, n, axis) => at * d.added.shape[axis] + (d.added.shape[axis] > 1 ? n : 0), 0)];
  }
  function row(l, h, i) {
    const scores = d.k.map((_, j) => {
      let s = 0;
      query(l, h, i).forEach((x, e) => { s += x * key(l, h, j)[e]; });
      s *= d.scale[l];
      if (d.softcap[l]) s = d.softcap[l] * Math.tanh(s / d.softcap[l]);
      return s + plus(l, h, i, j);
    });
    const sink = d.sinks[l]?.[h] ?? -Infinity, most = Math.max(sink, ...scores);
    const parts = scores.map(s => most === -Infinity ? 0 : Math.exp(s - most)), whole = sum(parts) + (sink === -Infinity ? 0 : Math.exp(sink - most));
    return {scores, weights: parts.map(p => whole ? p / whole : 0)};
  }

  // a strip of cells: one colour above zero, another below, as strong as the number
  function strip(values, limit) {
    const canvas = make("canvas", {width: E, height: 1, style: `width: ${Math.max(90, Math.min(192, 4 * E))}px`, role: "img", ariaLabel: `${E} numbers, largest ${two(Math.max(...values))}, smallest ${two(Math.min(...values))}`});
    const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    values.forEach((x, e) => { pen.fillStyle = `rgba(${style.getPropertyValue(x < 0 ? "--minus" : "--plus")}, ${limit ? Math.min(1, Math.abs(x) / limit) : 0})`; pen.fillRect(e, 0, 1, 1); });
    return canvas;
  }

  function show() {
    const {layer: l, head: h, i} = state, {scores, weights} = row(l, h, i), qv = [...query(l, h, i)];
    const keys = d.k.map((_, j) => [...key(l, h, j)]), products = keys.map(v => v.map((x, e) => x * qv[e]));
    const most = list => list.flat().reduce((m, x) => Math.max(m, Math.abs(x)), 0), mk = most(keys), mp = most(products);
    bar.replaceChildren(select("layer ", d.layers, l, v => { state.layer = v; show(); }), select("head ", Array.from({length: H}, (_, n) => String(n)), h, v => { state.head = v; show(); }),
      select("query ", d.q.map((t, n) => `${n}: ${t.slice(0, 40)}`), i, v => { state.i = v; show(); }));
    top.replaceChildren(make("span", {}, `query ${i}, ${d.q[i].slice(0, 40)}`), strip(qv, most(qv)));
    scroll.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...["key", "key, neuron by neuron", "query × key", "score", "weight"].map((t, n) => make(n < 3 ? "th.left" : "th", {scope: "col"}, t)))),
      make("tbody", {}, ...d.k.map((name, j) => make(j === state.j ? "tr.on" : "tr", {onclick: () => { state.j = j; show(); }}, make("th", {scope: "row", title: name}, name),
        make("td", {}, strip(keys[j], mk)), make("td", {}, strip(products[j], mp)), make("td", {}, scores[j] === -Infinity ? "hidden" : two(scores[j])),
        make("td", {}, make("span.meter", {ariaHidden: "true"}, make("i", {style: `width: ${100 * weights[j]}%`})), " ", two(weights[j])))))));
    const p = products[state.j], best = p.map(Math.abs).indexOf(Math.max(...p.map(Math.abs)));
    status.textContent = `${d.q[i]} → ${d.k[state.j]}: ${E} products add up to ${two(sum(p))}; times ${d.scale[l].toFixed(4)} that is ${two(sum(p) * d.scale[l])}. Neuron ${best} says most: ${two(p[best])}. Weight ${two(weights[state.j])}.`;
    root.dataset.ready = "yes";
  }
  addEventListener("redraw", show);
  show();
}

// ---- begin

const root = document.getElementById("view");
if (data.title) root.append(make("h1", {}, data.title));
followTheme();
followHeight();
({head: () => headView(root, data.groups, data.start), model: () => modelView(root, data.groups, data.start), neuron: () => neuronView(root, data)})[data.kind]();
