// Image view: a veil lies over the picture, thinner where the weight of the query is larger; none
// lies over the patch with the most

views.image = (root, d) => {
  const group = d.groups[0], [rows, columns] = d.grid, special = d.special;
  const {layer, head, query} = d.start, n = rows * columns;
  const state = {layer, head: head ?? -1, query, hover: null, seen: 0, veil: 0.85};
  let weights = null;
  const bar = make("div.bar"), others = make("div.bar", {role: "group", ariaLabel: "queries"});
  const status = make("div.status", {role: "status", ariaLive: "polite"});
  const canvas = make("canvas", {width: columns, height: rows, ariaHidden: "true"});
  const frame = make("div.patch", {ariaHidden: "true"});
  const hint = d.own ? "the picture: point at a patch, or move with the arrow keys"
                     : "the picture: move with the arrow keys to hear the weight of each patch";
  const shape = d.pixels[0] / d.pixels[1], widest = Math.round(Math.min(520, 520 * shape));
  const stage = make("div.picture", {tabIndex: 0, role: "application", ariaLabel: hint,
                                     style: `aspect-ratio: ${shape}; max-width: ${widest}px`},
                     make("img", {src: d.image, alt: "", draggable: false}), canvas, frame);
  const table = make("details", {}, make("summary", {}, "Numbers as a table"), make("div.scroll"));
  root.append(bar, others, stage, status, table);

  // the query that is shown: the patch pointed at, or the one that was chosen
  const shown = () => d.own && state.hover !== null ? special + state.hover : state.query;
  const inside = i => i >= special && i < special + n;
  const isPatch = i => d.own && inside(i);
  const name = i => isPatch(i) ? `patch ${group.q[i]}` : group.q[i];
  const keyName = j => inside(j) ? `patch ${group.k[j]}` : group.k[j];
  function weight(i, j) {
    const [from, to] = state.seen ? [j, i] : [i, j], H = weights.heads;
    if (state.head >= 0) return weights.at(state.head, from, to);
    return sum(Array.from({length: H}, (_, h) => weights.at(h, from, to))) / H;
  }
  const all = i => group.k.map((_, j) => weight(i, j));

  // ---- controls

  const layers = group.layers.length;
  const go = l => { state.layer = (l + layers) % layers; show(); };
  const layerBox = select("layer ", group.layers.map(l => l.label), layer, go);
  const step = (text, by, label) =>
    make("button", {onclick: () => go(state.layer + by), ariaLabel: `${label} layer`}, text);
  if (layers > 1) bar.append(make("span", {}, step("‹", -1, "previous"), " ", layerBox, " ",
                                  step("›", 1, "next")));
  const headPlace = make("span");
  bar.append(headPlace);
  function headBox() {
    const H = weights.heads, names = [`mean of ${H}`, ...Array(H).keys()].map(String);
    if (state.head >= H) state.head = -1;
    headPlace.replaceChildren();
    const change = v => { state.head = v - 1; paint(); };
    if (H > 1) headPlace.append(select("head ", names, state.head + 1, change));
  }
  if (d.own) bar.append(select("show ", ["what it takes from", "what it gives to"], 0,
                               v => { state.seen = v; paint(); }));
  const veil = make("input", {type: "range", min: 0, max: 1, step: 0.05, value: state.veil,
    oninput: () => { state.veil = +veil.value; paint(); }});
  bar.append(make("label", {}, "veil ", veil));
  const buttons = new Map();                           // of the queries that are no patches
  for (const [i, text] of group.q.entries())
    if (!isPatch(i)) buttons.set(i, make("button", {onclick: () => choose(i)}, text));
  others.append(...buttons.values());

  // ---- pointing and keys

  function choose(i) { Object.assign(state, {query: i, hover: null}); paint(); }
  function at(e) {
    const box = stage.getBoundingClientRect();
    const place = (x, size, m) => Math.max(0, Math.min(m - 1, Math.floor(x / size * m)));
    return place(e.clientY - box.top, box.height, rows) * columns
      + place(e.clientX - box.left, box.width, columns);
  }
  function hover(p) { if (p !== state.hover) { state.hover = p; paint(); } }
  stage.addEventListener("pointermove", e => { if (e.pointerType !== "touch") hover(at(e)); });
  stage.addEventListener("pointerleave", () => hover(null));
  stage.addEventListener("click", e => d.own ? choose(special + at(e)) : hover(at(e)));
  stage.addEventListener("keydown", e => {
    const p = state.hover ?? (isPatch(state.query) ? state.query - special : null);
    const r = Math.floor((p ?? 0) / columns), c = (p ?? 0) % columns;
    const to = (y, x) => Math.max(0, Math.min(rows - 1, y)) * columns
      + Math.max(0, Math.min(columns - 1, x));
    const move = {ArrowDown: to(r + 1, c), ArrowUp: to(r - 1, c), ArrowLeft: to(r, c - 1),
                  ArrowRight: to(r, c + 1), Home: 0, End: n - 1}[e.key];
    if (e.key === "Escape") choose(query);
    else if (move === undefined) return;
    else {
      const next = p === null ? (e.key === "End" ? n - 1 : 0) : move;
      if (d.own) choose(special + next); else hover(next);
    }
    e.preventDefault();
  });

  // ---- the picture

  function paint() {
    if (!weights) return;
    const i = shown(), w = all(i), patches = w.slice(special, special + n);
    const top = Math.max(...patches);
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, columns, rows);
    pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--paper");
    for (const [p, x] of patches.entries()) {
      pen.globalAlpha = state.veil * (1 - (top ? x / top : 0));
      pen.fillRect(p % columns, Math.floor(p / columns), 1, 1);
    }
    const marked = isPatch(i) ? i - special : state.hover;
    frame.hidden = marked === null;
    if (marked !== null) Object.assign(frame.style, {
      left: `${100 * (marked % columns) / columns}%`, width: `${100 / columns}%`,
      top: `${100 * Math.floor(marked / columns) / rows}%`, height: `${100 / rows}%`});
    for (const [q, button] of buttons) button.ariaPressed = String(q === i);
    say(i, w, patches, top);
    if (table.open) fillTable(i, patches);
    root.dataset.ready = "yes";
  }

  function say(i, w, patches, top) {
    const best = keyName(special + largest(patches)), aside = sum(w) - sum(patches);
    const heads = state.head >= 0 ? `head ${state.head}` : `mean of ${weights.heads} heads`;
    const which = weights.heads > 1 ? ` (${heads})` : "";
    const [does, whom] = state.seen ? ["gives", "to"] : ["takes", "from"];
    const most = `${name(i)} ${does} ${percent(top)} ${whom} ${best}${which}, the most of all `
      + "patches";
    const others = group.k.filter((_, j) => !inside(j));
    const places = others.length > 3 ? `${others.length} other tokens` : others.join(", ");
    const rest = others.length && !state.seen ? `; ${percent(aside)} from ${places}` : "";
    const here = !d.own && state.hover !== null
      ? `; ${keyName(special + state.hover)}: ${percent(patches[state.hover])}` : "";
    status.textContent = most + rest + here;
  }

  function fillTable(i, patches) {
    const head = make("tr", {}, make("th", {scope: "col"}, "row"));
    for (let c = 0; c < columns; c++) head.append(make("th", {scope: "col"}, String(c)));
    const body = make("tbody");
    for (let r = 0; r < rows; r++) {
      const line = patches.slice(r * columns, (r + 1) * columns);
      body.append(make("tr", {}, make("th", {scope: "row"}, String(r)),
                       ...line.map(x => make("td", {}, percent(x, 1)))));
    }
    const what = state.seen ? `what ${name(i)} gives to each patch`
      : `what ${name(i)} takes from each patch`;
    table.lastChild.replaceChildren(make("table", {}, make("caption", {}, what),
                                         make("thead", {}, head), body));
  }
  table.addEventListener("toggle", paint);

  async function show() {
    const wanted = state.layer, unpacked = await unpack(group, wanted);
    if (wanted !== state.layer) return;                 // chosen away while it was unpacked
    weights = unpacked;
    layerBox.lastChild.value = wanted;
    headBox(); paint();
  }
  lasting(window, "redraw", paint);
  show();
};
