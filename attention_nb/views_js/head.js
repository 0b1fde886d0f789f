// Head view: lines between two columns of tokens

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

views.head = (root, {groups, start}) => headView(root, groups, start);
