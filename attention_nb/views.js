// The views: one page, one `data` object, no library. A page holds one view, and in a notebook or
// in the docs it sits in a frame of its own, so views cannot disturb each other or their host.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
// Paul Tol's "muted" colours, which readers with colour-blindness tell apart; more heads use them
// again
const colours = ["#88ccee", "#cc6677", "#ddcc77", "#44aa99", "#aa4499", "#999933", "#6699cc",
                 "#ee8866", "#bbcc33"];
const colour = head => colours[head % colours.length];
const two = x => x.toFixed(2);
const sum = list => list.reduce((a, b) => a + b, 0);
const largest = list => list.reduce((best, x, n) => x > list[best] ? n : best, 0);
// A column or table of more rows than this has only those near the ones in sight as elements
const whole = 2000;

// ---- small tools

// make("div.status", {title: "x"}, child, "text"): text always enters as text, never as HTML
function make(what, properties = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  element.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && name !== "style") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function select(label, names, value, change) {
  const box = make("select", {onchange: () => change(+box.value)});
  for (const [i, name] of names.entries()) box.append(make("option", {value: i}, name));
  box.value = value;
  return make("label", {}, label, box);
}

// bytes of base64, inflated by the browser itself
async function inflate(text) {
  const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const packed = new Uint8Array(letters.length);
  for (let n = 0; n < letters.length; n++) packed[n] = letters.charCodeAt(n);
  const inflater = new DecompressionStream("deflate-raw");
  return await new Response(new Blob([packed]).stream().pipeThrough(inflater)).arrayBuffer();
}

// A layer is unpacked when it is first looked at: for each row a step, for each weight a whole
// number of steps
function unpack(group, layer) {
  const stored = group.layers[layer];
  stored.ready ??= inflate(stored.data).then(buffer => {
    const rows = stored.heads * group.q.length, S = group.k.length;
    const steps = new Float32Array(buffer, 0, rows), counts = new Uint8Array(buffer, 4 * rows);
    const row = (h, i) => h * group.q.length + i;
    const at = (h, i, j) => steps[row(h, i)] * counts[row(h, i) * S + j];
    return {heads: stored.heads, at};
  });
  return stored.ready;
}

// Which of `n` rows are elements, [first, end): all, or those near what a scrolled box shows. The
// first moves in strides, so that most scrolling changes nothing.
function near(n, box, rowHeight) {
  if (n <= whole) return [0, n];
  const stride = 20, seen = Math.floor(box.scrollTop / rowHeight / stride) * stride;
  const first = Math.max(0, Math.min(seen - stride, n - 5 * stride));
  return [first, Math.min(n, first + 5 * stride)];
}

// ---- the frame around us: theme and height

function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let host = null;
  try { host = window.parent !== window && window.parent.document; }
  catch { /* another origin: the system's theme */ }
  const apply = () => {
    let theme = dark.matches ? "dark" : "light";
    if (host) {
      const html = host.documentElement, body = host.body, shade = body.dataset.jpThemeLight;
      if (html.dataset.theme) theme = html.dataset.theme;                             // the docs
      else if (shade) theme = shade === "true" ? "light" : "dark";                    // Jupyter
      else if (html.getAttribute("theme")) theme = html.getAttribute("theme");        // Colab
      else if (body.className.includes("vscode"))
        theme = body.className.includes("vscode-light") ? "light" : "dark";
    }
    document.documentElement.dataset.theme = theme === "dark" ? "dark" : "light";
    dispatchEvent(new Event("redraw"));
  };
  dark.addEventListener("change", apply);
  if (host) for (const element of [host.documentElement, host.body])
    new MutationObserver(apply).observe(element, {attributes: true});
  apply();
}

function followHeight() {
  let frame = null;
  try { frame = window.frameElement; } catch { return; }
  if (!frame) return;
  frame.style.display = "block";
  const still = frame.previousElementSibling;               // the picture for those without scripts
  if (still && still.dataset.still !== undefined) still.style.display = "none";
  const fit = () => {
    frame.style.height = Math.ceil(document.body.getBoundingClientRect().height) + 2 + "px";
  };
  new ResizeObserver(fit).observe(document.body);
  fit();
}

// ---- tokens: a box for each

function tokensView(root, {tokens, ids, special}) {
  const boxes = make("div.boxes"), marks = new Set(special);
  const status = make("div.status", {role: "status", ariaLive: "polite"});
  for (const [n, text] of tokens.entries()) {
    const which = `token ${n} of ${tokens.length}`;
    const more = (ids ? `, id ${ids[n]}` : "") + (marks.has(n) ? ", special" : "");
    const say = () => { status.textContent = which + more; };
    const style = `--c: ${colour(n)}`, kind = marks.has(n) ? "span.special" : "span";
    const box = make(kind, {style, title: `token ${n}${more}`, onpointerenter: say}, text);
    boxes.append(ids ? make("div.cut", {}, box, make("small", {}, String(ids[n]))) : box);
  }
  root.append(boxes, status);
  root.dataset.ready = "yes";
}

// ---- head view: lines between two columns of tokens

function headView(root, groups, start) {
  const state = {group: start.group ?? 0, layer: start.layer ?? 0, heads: null, part: 0,
                 threshold: start.threshold ?? 0.05, focus: null, pinned: false};
  const rowHeight = 22, padding = 4;
  let weights = null;
  const bar = make("div.bar"), swatches = make("div.heads", {role: "group", ariaLabel: "heads"});
  const status = make("div.status", {role: "status", ariaLive: "polite"});
  const left = make("div.column.left", {role: "listbox", ariaLabel: "queries"});
  const right = make("div.column.right", {role: "listbox", ariaLabel: "keys"});
  const canvas = make("canvas.lines", {ariaHidden: "true"});
  const stage = make("div.stage", {}, left, make("div", {}, canvas), right);
  const table = make("details", {}, make("summary", {}, "Numbers as a table"), make("div.scroll"));
  root.append(bar, stage, status, table);
  const group = () => groups[state.group];
  const side = name => name === "q" ? {column: left, names: group().q, other: "k"}
                                    : {column: right, names: group().k, other: "q"};
  const first = {q: 0, k: 0};            // of the rows that are elements, in long texts not all
  const chosen = () => [...state.heads].sort((a, b) => a - b);
  const mean = (i, j) => {
    let total = 0;
    for (const h of state.heads) total += weights.at(h, i, j);
    return total / Math.max(1, state.heads.size);
  };

  // parts of a pair of texts, A and B: which (query, key) belong to the chosen part
  const parts = ["all", "A to A", "A to B", "B to A", "B to B"];
  function inPart(i, j) {
    if (!state.part) return true;
    const split = group().split, from = i >= split ? "B" : "A", to = j >= split ? "B" : "A";
    return parts[state.part] === `${from} to ${to}`;
  }

  let layerBox = null;
  function controls() {
    const g = group(), n = g.layers.length;
    const go = l => { state.layer = (l + n) % n; show(); };
    const level = () => state.threshold < 0.01 ? String(+state.threshold.toPrecision(2))
                                               : state.threshold.toFixed(3);
    const reading = make("span", {}, level());
    const threshold = make("input", {type: "range", min: 0, max: 1, step: 0.005,
      value: state.threshold, oninput: () => {
        state.threshold = +threshold.value;
        reading.textContent = level();
        draw();
      }});
    const another = v => {
      Object.assign(state, {group: v, layer: 0, heads: null, focus: null, pinned: false, part: 0});
      show();
    };
    bar.replaceChildren();
    bar.dataset.group = state.group;
    layerBox = null;
    if (groups.length > 1)
      bar.append(select("attention ", groups.map(x => x.name), state.group, another));
    if (n > 1) {
      const step = (text, d, label) =>
        make("button", {onclick: () => go(state.layer + d), ariaLabel: `${label} layer`}, text);
      layerBox = select("layer ", g.layers.map(l => l.label), state.layer, go);
      const back = step("‹", -1, "previous"), on = step("›", 1, "next");
      bar.append(make("span", {}, back, " ", layerBox, " ", on));
    }
    bar.append(make("label", {}, "at least ", threshold, reading));
    if (g.split !== null)
      bar.append(select("texts ", parts, state.part, v => { state.part = v; draw(); }));
    bar.append(swatches);
  }

  // a button for each head; they stay when one is pressed, so that the keyboard's focus stays too
  function showHeads() {
    const n = weights.heads;
    const choose = heads => { state.heads = new Set(heads); showHeads(); draw(); };
    const all = () => choose(state.heads.size === n ? [] : Array(n).keys());
    const others = h => chosen().filter(x => x !== h);
    const toggle = h => choose(state.heads.has(h) ? others(h) : [...state.heads, h]);
    if (swatches.children.length !== (n < 2 ? 0 : n + 1)) {
      swatches.replaceChildren();
      if (n > 1) swatches.append(make("button", {style: "--c: var(--line)", onclick: all}));
      if (n > 1) for (let h = 0; h < n; h++) swatches.append(make("button", {
        style: `--c: ${colour(h)}`, title: `head ${h}; double-click: only this one`,
        onclick: () => toggle(h), ondblclick: () => choose([h])}, String(h)));
    }
    for (const [at, button] of [...swatches.children].entries()) {
      if (at) button.ariaPressed = String(state.heads.has(at - 1));
      else button.textContent = state.heads.size === n ? "none" : "all";
    }
  }

  // put the rows of a column that should be elements into it, with room for the others
  function fill(name) {
    const {column, names} = side(name), n = names.length;
    const [begin, end] = near(n, stage, rowHeight), rows = `${state.group}: ${begin}`;
    if (column.dataset.rows === rows) return;
    const held = first[name] + [...column.children].indexOf(document.activeElement);
    const holds = column.contains(document.activeElement);
    column.dataset.rows = rows;
    column.style.paddingTop = padding + begin * rowHeight + "px";
    column.style.paddingBottom = padding + (n - end) * rowHeight + "px";
    column.style.width = n > whole ? "180px" : "";
    column.replaceChildren();
    for (let i = begin; i < end; i++) column.append(row(name, i, names[i], i === begin, n));
    first[name] = begin;
    if (holds && held >= begin && held < end)
      column.children[held - begin].focus({preventScroll: true});
  }

  function row(name, i, text, reachable, n) {
    const split = group().split === i && i ? ".split" : "";
    const element = make(`div.token${split}`, {role: "option", tabIndex: reachable ? 0 : -1,
      title: text, onfocus: () => { if (!state.pinned) focus(name, i); },
      onpointerenter: e => { if (e.pointerType !== "touch" && !state.pinned) focus(name, i); },
      onclick: () => pin(name, i)}, make("span.t", {}, text), make("span.n"));
    if (n > whole) Object.assign(element, {ariaSetSize: String(n), ariaPosInSet: String(i + 1)});
    return element;
  }

  const same = (name, i) => state.focus && state.focus.side === name && state.focus.i === i;
  function focus(name, i) { if (!same(name, i)) { state.focus = {side: name, i}; draw(); } }
  function pin(name, i) {
    state.pinned = !(state.pinned && same(name, i));
    state.focus = {side: name, i};
    draw();
  }
  function release() { state.pinned = false; state.focus = null; draw(); }
  // move the keyboard's focus to a row, which in a long text may have to be fetched first
  function reach(name, i) {
    const {column, names} = side(name), end = first[name] + column.children.length;
    if (i < 0 || i >= names.length) return;
    if (i < first[name] || i >= end) {
      stage.scrollTop = (i - 10) * rowHeight;
      fill("q"); fill("k");
    }
    state.pinned = false;
    column.children[i - first[name]].focus();
    focus(name, i);
  }
  stage.addEventListener("pointerleave", () => {
    if (!state.pinned && !stage.contains(document.activeElement)) release();
  });
  stage.addEventListener("keydown", e => {
    const name = new Map([[left, "q"], [right, "k"]]).get(e.target.parentElement);
    if (!name) return;
    const {column, names, other} = side(name);
    const i = first[name] + [...column.children].indexOf(e.target);
    const across = () => reach(other, Math.min(i, side(other).names.length - 1));
    const action = {
      ArrowDown: () => reach(name, i + 1), ArrowUp: () => reach(name, i - 1),
      Home: () => reach(name, 0), End: () => reach(name, names.length - 1),
      ArrowLeft: () => { if (name === "k") across(); },
      ArrowRight: () => { if (name === "q") across(); },
      Enter: () => pin(name, i), " ": () => pin(name, i), Escape: release,
    }[e.key];
    if (action) { e.preventDefault(); action(); }
  });

  // what to draw: all pairs above the threshold, or those of the token in focus; at most 3,000
  // lines, the strongest
  function lines() {
    const g = group(), list = [], f = state.focus, some = f || g.k.length >= 200;
    const top = stage.scrollTop / rowHeight - 2, bottom = top + stage.clientHeight / rowHeight + 4;
    const visible = n => n > top && n < bottom;
    const add = (i, j) => {
      if (!inPart(i, j) || f && !visible(i) && !visible(j)) return;
      for (const h of state.heads) {
        const w = weights.at(h, i, j);
        if (w > 0 && w >= state.threshold) list.push([w, h, i, j]);
      }
    };
    if (f?.side === "k") for (let i = 0; i < g.q.length; i++) add(i, f.i);
    else for (let i = 0; i < g.q.length; i++)
      if (f ? i === f.i : !some || visible(i))        // in long texts, only of the queries in sight
        for (let j = 0; j < g.k.length; j++) add(i, j);
    return list.sort((a, b) => a[0] - b[0]).slice(-3000);
  }

  let waiting = 0;                           // once for each picture, however often it is asked for
  function draw() { waiting ||= requestAnimationFrame(() => { waiting = 0; paint(); }); }

  function paint() {
    if (!weights) return;
    const scale = devicePixelRatio || 1, width = canvas.parentElement.clientWidth;
    const height = Math.min(stage.clientHeight, stage.scrollHeight);
    canvas.style.height = height + "px";
    canvas.width = width * scale; canvas.height = height * scale;
    const pen = canvas.getContext("2d"), heads = chosen(), n = Math.max(1, heads.length);
    pen.scale(scale, scale);
    const apart = new Map(heads.map((h, at) => [h, (at - (n - 1) / 2) * Math.min(2, 14 / n)]));
    const style = getComputedStyle(document.documentElement);
    const purple = `rgb(${style.getPropertyValue("--weight")})`;  // of a head without siblings
    const y = (h, row) => padding + (row + 0.5) * rowHeight - stage.scrollTop + apart.get(h);
    const list = lines();
    for (const [w, h, i, j] of list) {
      pen.strokeStyle = weights.heads === 1 ? purple : colour(h);
      pen.globalAlpha = Math.min(1, 0.08 + 0.92 * w);
      pen.lineWidth = 0.6 + 2.6 * w;
      pen.beginPath();
      pen.moveTo(0, y(h, i));
      pen.bezierCurveTo(width / 3, y(h, i), 2 * width / 3, y(h, j), width, y(h, j));
      pen.stroke();
    }
    canvas.dataset.lines = list.length;
    mark();
    root.dataset.ready = "yes";
  }

  function mark() {
    const f = state.focus, asks = f?.side === "q";
    const between = asks ? n => mean(f.i, n) : n => mean(n, f.i);
    for (const name of ["q", "k"]) {
      for (const [at, element] of [...side(name).column.children].entries()) {
        const n = first[name] + at, on = !!same(name, n), shown = f && f.side !== name;
        const w = shown ? between(n) : 0;
        element.classList.toggle("on", on);
        element.ariaSelected = String(on);
        element.style.background = w > 0 ? `rgba(var(--weight), ${Math.min(0.75, w)})` : "";
        element.lastChild.textContent = w >= 0.005 ? two(w) : "";
      }
    }
    const heads = chosen();
    const which = heads.length === 1 ? `head ${heads[0]}` : `mean of ${heads.length} heads`;
    if (!f) status.textContent =
      "Point at a token, or move with the arrow keys; Enter keeps it, Escape lets go.";
    else {
      const mine = side(f.side).names[f.i], others = side(side(f.side).other).names;
      const ws = others.map((_, n) => between(n)), best = largest(ws);
      const [from, to] = asks ? [mine, others[best]] : [others[best], mine];
      status.textContent = `${from} → ${to}: ${two(ws[best])} (${which}), the largest of this `
        + (asks ? "query" : "key") + (state.pinned ? "; kept" : "");
    }
    if (table.open) fillTable();
  }

  // the numbers of one query; of a long text the 1,000 largest
  function fillTable() {
    const g = group(), f = state.focus, i = f?.side === "q" ? f.i : 0, heads = chosen();
    let keys = [...g.k.keys()], caption = `weights of query ${i}, ${g.q[i]}`;
    if (keys.length > whole) {
      const w = keys.map(j => mean(i, j));
      keys = keys.sort((a, b) => w[b] - w[a]).slice(0, 1000);
      caption += `: the 1,000 largest of ${g.k.length.toLocaleString("en")}`;
    }
    const head = make("tr", {}, make("th", {scope: "col"}, "key"));
    for (const h of heads) head.append(make("th", {scope: "col"}, `head ${h}`));
    const body = make("tbody");
    for (const j of keys) {
      const row = make("tr", {}, make("th", {scope: "row"}, g.k[j]));
      for (const h of heads) row.append(make("td", {}, two(weights.at(h, i, j))));
      body.append(row);
    }
    table.lastChild.replaceChildren(
      make("table", {}, make("caption", {}, caption), make("thead", {}, head), body));
  }
  table.addEventListener("toggle", () => { if (table.open && weights) fillTable(); });

  async function show() {
    const g = group(), layer = state.layer, unpacked = await unpack(g, layer);
    if (g !== group() || layer !== state.layer) return;         // chosen away while it was unpacked
    weights = unpacked;
    const there = heads => heads?.filter(h => h < weights.heads);
    const kept = state.heads && there([...state.heads]);
    state.heads = new Set(kept?.length ? kept : there(start.heads) ?? Array(weights.heads).keys());
    if (bar.dataset.group !== String(state.group)) controls();
    if (layerBox) layerBox.lastChild.value = layer;
    showHeads(); fill("q"); fill("k"); draw();
  }
  stage.addEventListener("scroll", () => { if (weights) { fill("q"); fill("k"); draw(); } });
  addEventListener("redraw", draw);
  new ResizeObserver(draw).observe(stage);
  if (start.token !== undefined && start.token !== null)
    Object.assign(state, {focus: {side: "q", i: start.token}, pinned: true});
  show();
  return {choose(at, layer, head) {
    if (at !== state.group) Object.assign(state, {focus: null, pinned: false, part: 0});
    Object.assign(state, {group: at, layer, heads: new Set([head])});
    return show();
  }};
}

// ---- model view: all layers and heads as thumbnails, one of them large

function modelView(root, groups, start) {
  const waiting = new Map();
  const seen = new IntersectionObserver(entries => {
    for (const e of entries) if (e.isIntersecting) {
      seen.unobserve(e.target);
      thumbnails(...waiting.get(e.target));
    }
  });
  for (const [at, g] of groups.entries()) {
    const most = Math.max(...g.layers.map(l => l.heads));
    const side = Math.max(28, Math.min(72, Math.floor(640 / most)));
    const style = `--side: ${side}px; grid-template-columns: auto repeat(${most}, auto)`;
    const grid = make("div.grid", {style}, make("span"));
    for (let h = 0; h < most; h++) grid.append(make("span", {}, String(h)));
    if (groups.length > 1) root.append(make("h2", {}, g.name));
    root.append(grid);
    for (const [l, layer] of g.layers.entries()) {
      const label = make("span", {}, layer.label), row = [];
      grid.append(label);
      for (let h = 0; h < layer.heads; h++) {
        const canvas = make("canvas"), name = `layer ${layer.label}, head ${h}`;
        row.push(canvas);
        const button = make("button", {title: name, ariaLabel: name, ariaPressed: "false",
                                       onclick: () => open(button, at, l, h)}, canvas);
        grid.append(button);
      }
      for (let h = layer.heads; h < most; h++) grid.append(make("span"));
      waiting.set(label, [g, l, row]);
      seen.observe(label);
    }
  }
  const place = make("div.large"), large = make("div");
  root.append(place);
  let view = null;
  function open(button, at, l, h) {
    for (const b of root.querySelectorAll(".grid button")) b.ariaPressed = String(b === button);
    if (view) view.choose(at, l, h);
    else {
      place.append(large);
      view = headView(large, groups, {...start, group: at, layer: l, heads: [h]});
    }
    place.scrollIntoView({block: "nearest"});
  }

  // a thumbnail shows the largest weight that falls into each of its pixels, as its square root so
  // that small ones are seen
  async function thumbnails(g, l, row) {
    const w = await unpack(g, l), L = g.q.length, S = g.k.length;
    const tall = Math.min(L, 48), wide = Math.min(S, 48);
    for (const [h, canvas] of row.entries()) {
      canvas.width = wide; canvas.height = tall;
      const pixels = new Float32Array(tall * wide);
      for (let i = 0; i < L; i++) for (let j = 0; j < S; j++) {
        const p = Math.floor(i * tall / L) * wide + Math.floor(j * wide / S);
        pixels[p] = Math.max(pixels[p], w.at(h, i, j));
      }
      const paint = () => {
        const pen = canvas.getContext("2d"), image = pen.createImageData(wide, tall);
        const style = getComputedStyle(document.documentElement);
        const rgb = style.getPropertyValue("--weight").split(",").map(Number);
        pixels.forEach((x, p) => image.data.set([...rgb, 255 * Math.sqrt(x)], 4 * p));
        pen.putImageData(image, 0, 0);
      };
      paint(); addEventListener("redraw", paint);
    }
    root.dataset.ready = "yes";
  }
}

// ---- neuron view: one query, every key, neuron by neuron

async function neuronView(root, d) {
  const numbers = async text => new Float32Array(await inflate(text));
  const q = await numbers(d.qdata), k = await numbers(d.kdata);
  const added = d.added && await numbers(d.added.data);   // bias and masks: -infinity where hidden
  const L = d.q.length, S = d.k.length, E = d.width, H = d.heads, rowHeight = 22;
  const state = {layer: d.layer, head: d.head, i: d.query, j: d.key};
  const bar = make("div.bar"), top = make("div.bar"), body = make("tbody");
  const titles = ["key", "key, neuron by neuron", "query × key", "score", "weight"];
  const header = make("tr");
  for (const [n, t] of titles.entries())
    header.append(make(n < 3 ? "th.left" : "th", {scope: "col"}, t));
  const scroll = make(S > whole ? "div.scroll.long" : "div.scroll", {},
                      make("table", {}, make("thead", {}, header), body));
  const status = make("div.status", {role: "status", ariaLive: "polite"});
  root.append(bar, top, scroll, status);
  const query = () => {
    const at = ((state.layer * H + state.head) * L + state.i) * E;
    return q.subarray(at, at + E);
  };
  const key = j => {
    const shared = Math.floor(state.head * d.kvHeads / H);
    const at = ((state.layer * d.kvHeads + shared) * S + j) * E;
    return k.subarray(at, at + E);
  };
  function plus(j) {                                    // broadcast over dimensions of size 1
    if (d.causal && j > state.i + S - L) return -Infinity;
    if (!added) return 0;
    const step = (at, n, axis) => at * d.added.shape[axis] + (d.added.shape[axis] > 1 ? n : 0);
    return added[[state.layer, state.head, state.i, j].reduce(step, 0)];
  }
  const products = j => { const y = key(j); return query().map((x, e) => x * y[e]); };

  // the scores and weights of the query, and how large its numbers get
  function compute() {
    const l = state.layer, cap = d.softcap[l], scores = new Float64Array(S), x = query();
    let mk = 0, mp = 0;
    for (let j = 0; j < S; j++) {
      const y = key(j);
      let s = 0;
      for (let e = 0; e < E; e++) {
        s += x[e] * y[e];
        mk = Math.max(mk, Math.abs(y[e]));
        mp = Math.max(mp, Math.abs(x[e] * y[e]));
      }
      s *= d.scale[l];
      scores[j] = (cap ? cap * Math.tanh(s / cap) : s) + plus(j);
    }
    const sink = d.sinks[l]?.[state.head] ?? -Infinity;
    const high = scores.reduce((m, s) => Math.max(m, s), sink);
    const part = s => s === -Infinity ? 0 : Math.exp(s - high);
    const total = sum(scores.map(part)) + part(sink);
    return {scores, weights: scores.map(s => total ? part(s) / total : 0), mk, mp};
  }

  // a strip of cells: one colour above zero, another below, as strong as the number
  function strip(values, limit) {
    const size = `width: ${Math.max(90, Math.min(192, 4 * E))}px`;
    const [high, low] = [Math.max(...values), Math.min(...values)];
    const name = `${E} numbers, largest ${two(high)}, smallest ${two(low)}`;
    const canvas = make("canvas", {width: E, height: 1, style: size, role: "img", ariaLabel: name});
    const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    const colours = ["--minus", "--plus"].map(n => style.getPropertyValue(n));
    values.forEach((x, e) => {
      const strength = limit ? Math.min(1, Math.abs(x) / limit) : 0;
      pen.fillStyle = `rgba(${colours[x < 0 ? 0 : 1]}, ${strength})`;
      pen.fillRect(e, 0, 1, 1);
    });
    return canvas;
  }

  let found = null, begin = -1;
  function row(j) {
    const {scores, weights, mk, mp} = found, w = weights[j];
    const length = make("i", {style: `width: ${100 * w}%`});
    const meter = make("span.meter", {ariaHidden: "true"}, length);
    return make(j === state.j ? "tr.on" : "tr", {onclick: e => pick(e.currentTarget, j)},
      make("th", {scope: "row", title: d.k[j]}, d.k[j]),
      make("td", {}, strip(key(j), mk)), make("td", {}, strip(products(j), mp)),
      make("td", {}, scores[j] === -Infinity ? "hidden" : two(scores[j])),
      make("td", {}, meter, " ", two(w)));
  }
  function pick(element, j) {
    state.j = j;
    for (const r of body.children) r.classList.toggle("on", r === element);
    say();
  }
  // the rows that should be elements, between two that keep the room of the others
  function rows(anew) {
    const [from, end] = near(S, scroll, rowHeight);
    if (!anew && from === begin) return;
    begin = from;
    const room = n => make("tr", {style: `height: ${n * rowHeight}px`, ariaHidden: "true"});
    body.replaceChildren();
    if (from) body.append(room(from));
    for (let j = from; j < end; j++) body.append(row(j));
    if (end < S) body.append(room(S - end));
  }
  function say() {
    const p = products(state.j), best = largest(p.map(Math.abs)), scale = d.scale[state.layer];
    status.textContent = `${d.q[state.i]} → ${d.k[state.j]}: ${E} products add up to `
      + `${two(sum(p))}; times ${scale.toFixed(4)} that is ${two(sum(p) * scale)}. `
      + `Neuron ${best} says most: ${two(p[best])}. Weight ${two(found.weights[state.j])}.`;
  }
  const short = t => t.slice(0, 40);
  function show() {
    found = compute();
    top.replaceChildren(make("span", {}, `query ${state.i}, ${short(d.q[state.i])}`),
                        strip(query(), Math.max(...query().map(Math.abs))));
    rows(true);
    say();
    root.dataset.ready = "yes";
  }
  const heads = Array.from({length: H}, (_, n) => String(n));
  const queries = d.q.map((t, n) => `${n}: ${short(t)}`);
  for (const [label, names, what] of [["layer ", d.layers, "layer"], ["head ", heads, "head"],
                                      ["query ", queries, "i"]])
    bar.append(select(label, names, state[what], v => { state[what] = v; show(); }));
  if (S > whole) scroll.addEventListener("scroll", () => rows(false));
  addEventListener("redraw", show);
  show();
  if (S > whole) { scroll.scrollTop = (state.j - 10) * rowHeight; rows(false); }
}

// ---- begin

const root = document.getElementById("view");
if (data.title) root.append(make("h1", {}, data.title));
followTheme();
followHeight();
if (data.kind === "tokens") tokensView(root, data);
if (data.kind === "head") headView(root, data.groups, data.start);
if (data.kind === "model") modelView(root, data.groups, data.start);
if (data.kind === "neuron") neuronView(root, data);
