// Head view: lines between two columns of tokens. This file holds what is chosen and answers
// pointer and keyboard; head_bar.js asks, head_words.js writes, head_lines.js draws. They share
// one object, `v`: what is shown, what is chosen (`v.state`) and the elements of the page.
const other = {q: "k", k: "q"};                          // the sides: queries left, keys right
// Of the columns, as in head.css; a finger needs more room
const rowHeight = matchMedia("(pointer: coarse)").matches ? 30 : 22, padding = 4;

function headView(root, groups, start) {
  const v = {root, groups, start, weights: null, first: {q: 0, k: 0}, marks: null};
  v.state = {group: start.group ?? 0, layer: start.layer ?? 0, part: 0,
             heads: start.heads ? new Set(start.heads) : null,
             dim: start.dim ?? false, threshold: start.threshold ?? 0.05, focus: null,
             pinned: null};
  if (start.token !== undefined && start.token !== null)
    v.state.focus = v.state.pinned = {side: "q", i: start.token};
  v.state.picked = () => ({layer: v.state.layer, heads: chosen(v), dim: v.state.dim,
    threshold: v.state.threshold, token: v.state.pinned?.side === "q" ? v.state.pinned.i : null});
  globalThis.state = v.state;                             // for a host that computes
  buildHead(v);
  listen(v);
  return {
    ready: showLayer(v),
    choose(at, layer, head) {
      globalThis.state = v.state;
      if (at !== v.state.group) choose(v, {focus: null, pinned: null, part: 0});
      choose(v, {group: at, layer, heads: new Set([head])});
      return showLayer(v);
    }};
}
views.head = (root, {groups, start}) => headView(root, groups, start);

function buildHead(v) {
  const column = (side, label) => make(`div.column.${side}`, {role: "listbox", ariaLabel: label});
  Object.assign(v, {
    bar: make("div.bar"), swatches: make("div.heads", {role: "group", ariaLabel: "heads"}),
    columns: {q: column("left", "queries"), k: column("right", "keys")},
    canvas: make("canvas.lines", {ariaHidden: "true"}),
    status: make("div.status", {role: "status", ariaLive: "polite"}),
    table: make("details", {}, make("summary", {}, "Numbers as a table"), make("div.scroll")),
  });
  v.stage = make("div.stage", {}, v.columns.q, make("div", {}, v.canvas), v.columns.k);
  const hint = make("div.hint", {},
    matchMedia("(hover: none)").matches ? "Tap a token to keep it, and again to let go."
      : "Point at a token, or use the arrow keys; a click or Enter keeps it, Escape lets go.");
  v.root.append(v.bar, v.stage, v.status, hint, v.table);
}

// ---- what is chosen, and what follows from it

const choose = (v, what) => Object.assign(v.state, what);
const group = v => v.groups[v.state.group];
const chosen = v => [...v.state.heads ?? []].sort((a, b) => a - b);
const isAt = (at, side, i) => at?.side === side && at.i === i;
const isFocus = (v, side, i) => isAt(v.state.focus, side, i);
const isSpecial = (v, side, i) => v.marks[side].has(i);
const isDim = (v, i, j) => v.state.dim && (isSpecial(v, "q", i) || isSpecial(v, "k", j));

// Mean over the chosen heads, of query i on key j
function mean(v, i, j) {
  let total = 0;
  for (const h of v.state.heads) total += v.weights.at(h, i, j);
  return total / Math.max(1, v.state.heads.size);
}

// Parts of a pair of texts, A and B: which (query, key) belong to the chosen part
const parts = ["all", "A to A", "A to B", "B to A", "B to B"];
function inPart(v, i, j) {
  if (!v.state.part) return true;
  const split = group(v).split, from = i >= split ? "B" : "A", to = j >= split ? "B" : "A";
  return parts[v.state.part] === `${from} to ${to}`;
}

// Unpack the chosen layer and show it, with the heads that were chosen if this layer has them
async function showLayer(v) {
  const g = group(v), {layer} = v.state, unpacked = await unpack(g, layer);
  if (g !== group(v) || layer !== v.state.layer) return;      // chosen away while it was unpacked
  v.weights = unpacked;
  const there = heads => heads?.filter(h => h < unpacked.heads);
  const kept = v.state.heads && there([...v.state.heads]);
  const heads = kept?.length ? kept : there(v.start.heads) ?? Array(unpacked.heads).keys();
  choose(v, {heads: new Set(heads)});
  if (v.bar.dataset.group !== String(v.state.group)) {
    const marked = names => new Set(names.flatMap((name, n) => special.test(name) ? [n] : []));
    v.marks = {q: marked(g.q), k: marked(g.k)};
    showBar(v);
  }
  if (v.layerBox) v.layerBox.lastChild.value = layer;
  showHeads(v); fillColumns(v); draw(v);
}

// ---- pointer and keyboard

function listen(v) {
  const {stage} = v;
  stage.addEventListener("pointerleave", () => {
    if (v.state.pinned) { choose(v, {focus: v.state.pinned}); draw(v); }
    else if (!stage.contains(document.activeElement)) letGo(v);
  });
  stage.addEventListener("keydown", e => {
    const side = ["q", "k"].find(s => v.columns[s] === e.target.parentElement);
    const action = side && keys(v, side, e.target)[e.key];
    if (action) { e.preventDefault(); action(); }
  });
  stage.addEventListener("scroll", () => { if (v.weights) { fillColumns(v); draw(v); } });
  v.table.addEventListener("toggle", () => { if (v.table.open && v.weights) fillTable(v); });
  lasting(window, "redraw", () => draw(v));
  lasting(matchMedia("print"), "change", () => paint(v));              // at once, paper waits not
  new ResizeObserver(() => draw(v)).observe(stage);
}

function keys(v, side, element) {
  const n = group(v)[side].length, opposite = group(v)[other[side]].length;
  const i = v.first[side] + [...v.columns[side].children].indexOf(element);
  const cross = from => () => {
    if (side === from) reach(v, other[side], Math.min(i, opposite - 1));
  };
  return {
    ArrowDown: () => reach(v, side, i + 1), ArrowUp: () => reach(v, side, i - 1),
    Home: () => reach(v, side, 0), End: () => reach(v, side, n - 1),
    ArrowLeft: cross("k"), ArrowRight: cross("q"),
    Enter: () => pin(v, side, i), " ": () => pin(v, side, i), Escape: () => letGo(v),
  };
}

function pointAt(v, side, i) {
  if (isFocus(v, side, i)) return;
  choose(v, {focus: {side, i}});
  draw(v);
}

function pin(v, side, i) {
  const here = {side, i};
  choose(v, {pinned: isAt(v.state.pinned, side, i) ? null : here, focus: here});
  draw(v);
}

function letGo(v) { choose(v, {pinned: null, focus: null}); draw(v); }

// Move the keyboard's focus to a row, which in a long text may have to be fetched first
function reach(v, side, i) {
  const column = v.columns[side], end = v.first[side] + column.children.length;
  if (i < 0 || i >= group(v)[side].length) return;
  if (i < v.first[side] || i >= end) {
    v.stage.scrollTop = (i - 10) * rowHeight;
    fillColumns(v);
  }
  choose(v, {pinned: null});
  column.children[i - v.first[side]].focus();
  pointAt(v, side, i);
}
