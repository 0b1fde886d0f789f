// Model view: all layers and heads as thumbnails, one of them open. The parts share one object,
// `v`: for each kind of attention a grid, and all thumbnails as cells {g, at, l, h, button}.

views.model = (root, {groups, start}) => {
  const v = {root, groups, start, cells: [], grids: [], order: null, open: null, view: null};
  v.status = make("div.status.scores", {role: "status", ariaLive: "polite"},
    matchMedia("(hover: none)").matches ? "Tap a head to open it."
      : "Point at a head, or move with the arrow keys; a click or Enter opens it.");
  v.seen = new IntersectionObserver(entries => {
    for (const {isIntersecting, target} of entries) if (isIntersecting) {
      v.seen.unobserve(target);
      thumbnail(v, v.cells.find(cell => cell.button === target));
    }
  });
  const scored = groups.some(g => g.layers.some(layer => layer.scores));
  if (scored) root.append(make("div.bar", {}, sortControl(v)));
  root.append(v.status);
  for (const [at, g] of groups.entries()) addGrid(v, at, g);
};

// ---- the grid

function addGrid(v, at, g) {
  const most = Math.max(...g.layers.map(layer => layer.heads));
  const grid = make("div.grid"), mine = [];
  const across = make("div.axis.across"), down = make("div.axis.down");
  if (v.groups.length > 1) v.root.append(make("h2", {}, g.name));
  const scroller = make("div.scroller", {}, grid);
  const axes = make("div.axes", {}, across, down, scroller);
  v.root.append(axes);
  const shade = () => axes.classList.toggle("cut",
    scroller.scrollLeft + scroller.clientWidth < scroller.scrollWidth - 2);
  scroller.addEventListener("scroll", shade);
  new ResizeObserver(shade).observe(scroller);
  for (const [l, layer] of g.layers.entries())
    for (let h = 0; h < layer.heads; h++) mine.push(addCell(v, {g, at, l, h, grid}));
  v.grids.push({g, grid, most, across, down, mine});
  grid.addEventListener("keydown", e => {
    if (e.target.parentElement === grid) moveTo(grid, e);
  });
  arrange(v, v.grids.at(-1));
}

function addCell(v, cell) {
  const name = headName(cell), canvas = make("canvas", {width: 1, height: 1});
  const tell = () => { v.status.textContent = [name, ...scoresOf(cell)].join(": "); };
  cell.button = make("button", {ariaLabel: name, ariaPressed: "false", tabIndex: -1,
    onclick: () => openHead(v, cell), onpointerenter: tell, onfocus: tell}, canvas,
    make("small"));
  cell.canvas = canvas;
  v.cells.push(cell);
  v.seen.observe(cell.button);
  return cell;
}

const headName = ({g, l, h}) => `layer ${g.layers[l].label}, head ${h}`;

// Put the cells of a grid in order: layer by layer, or by a score, the largest first
function arrange(v, {g, grid, most, across, down, mine}) {
  const by = v.order, columns = `repeat(${most}, minmax(44px, 96px))`;
  grid.classList.toggle("sorted", by !== null);
  const widest = Math.max(...g.layers.map(layer => layer.label.length));
  const labels = by !== null ? 0 : widest > 3 ? 64 : 26;
  grid.style.gridTemplateColumns = (labels ? `${labels}px ` : "") + columns;
  grid.style.minWidth = labels + most * 47 + "px";               // what the open head can stick in
  across.textContent = by === null ? "head" : `layer, head: ${by}, the largest first`;
  down.textContent = by === null ? "layer" : "";
  grid.replaceChildren(...by === null ? byLayer(g, most, mine) : byScore(g, by, mine));
  for (const {button} of mine) button.tabIndex = -1;
  grid.querySelector("button").tabIndex = 0;
  if (v.open?.grid === grid) put(v);
}

function byLayer(g, most, mine) {
  const label = (text, kind = "span") => make(kind, {}, text);
  const rows = [label(""), ...Array.from({length: most}, (_, h) => label(String(h)))];
  for (const [l, layer] of g.layers.entries()) {
    const row = mine.filter(cell => cell.l === l).map(cell => cell.button);
    const rest = Array.from({length: most - row.length}, () => label(""));
    rows.push(label(layer.label, "span.layer"), ...row, ...rest);
  }
  return rows;
}

// Means and rollout have no scores; they stand at the end
function byScore(g, by, mine) {
  const score = ({l, h}) => g.layers[l].scores?.[by]?.[h] ?? -1;
  for (const cell of mine) {
    const said = score(cell) < 0 ? "" : `: ${scoreText(by, score(cell))}`;
    cell.button.lastChild.textContent = `${g.layers[cell.l].label}, ${cell.h}${said}`;
  }
  return [...mine].sort((a, b) => score(b) - score(a)).map(cell => cell.button);
}

// One thumbnail of a grid can be tabbed to, the arrow keys move among them
function moveTo(grid, e) {
  const cells = [...grid.children].filter(child => !child.matches(".large"));
  const columns = columnsOf(grid);
  const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns};
  const next = cells[cells.indexOf(e.target) + steps[e.key]];
  if (!(e.key in steps)) return;
  e.preventDefault();
  if (!next?.matches("button")) return;
  e.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

const columnsOf = grid => getComputedStyle(grid).gridTemplateColumns.split(" ").length;

// ---- scores

const scoreText = (name, x) => name === "entropy" ? two(x) : percent(x);
const scoresOf = ({g, l, h}) => g.layers[l].scores ? [Object.entries(g.layers[l].scores)
  .map(([name, x]) => `${name} ${scoreText(name, x[h])}`).join(", ")] : [];

function sortControl(v) {
  const names = new Set(v.groups.flatMap(g => Object.keys(g.layers[0].scores ?? {})));
  const orders = [null, ...names];
  return select("sort by ", ["layer", ...names], 0, n => {
    v.order = orders[n];
    for (const grid of v.grids) arrange(v, grid);
  });
}

// ---- the open head

async function openHead(v, cell) {
  for (const {button} of v.cells) button.ariaPressed = String(button === cell.button);
  v.open = cell;
  v.name ??= make("strong");
  v.box ??= make("div.large", {role: "group"}, make("div.title", {}, v.name,
    make("button", {ariaLabel: "close", onclick: () => closeHead(v)}, "×")), make("div"));
  v.name.textContent = headName(cell);
  v.box.ariaLabel = `open: ${headName(cell)}`;
  put(v);
  const {at, l, h} = cell, start = {...v.start, group: at, layer: l, heads: [h]};
  if (v.view) await v.view.choose(at, l, h);
  else {
    v.view = headView(v.box.lastChild, v.groups, start);
    await v.view.ready;
  }
  // once the frame around us has its new height
  setTimeout(() => v.box.scrollIntoView({block: "nearest"}), 100);
}

function closeHead(v) {
  v.box.remove();
  v.open.button.ariaPressed = "false";
  v.open.button.focus();
  v.open = globalThis.state = null;
}

// The open head stands below the row of its thumbnail
function put(v) {
  v.box.remove();
  const {grid, button} = v.open, cells = [...grid.children], n = columnsOf(grid);
  const end = (Math.floor(cells.indexOf(button) / n) + 1) * n;          // of the row
  cells[Math.min(end, cells.length) - 1].after(v.box);
}

// ---- thumbnails

// The largest weight that falls into each pixel, as its square root so that small ones are seen
async function thumbnail(v, {g, l, h, canvas}) {
  const w = await unpack(g, l), L = g.q.length, S = g.k.length;
  const tall = canvas.height = Math.min(L, 48), wide = canvas.width = Math.min(S, 48);
  const pixels = new Float32Array(tall * wide);
  for (let i = 0; i < L; i++) for (let j = 0; j < S; j++) {
    const p = Math.floor(i * tall / L) * wide + Math.floor(j * wide / S);
    pixels[p] = Math.max(pixels[p], w.at(h, i, j));
  }
  const paintIt = () => {
    const pen = canvas.getContext("2d"), image = pen.createImageData(wide, tall);
    const rgb = cssValue("--weight").split(",").map(Number);
    pixels.forEach((x, p) => image.data.set([...rgb, 255 * Math.sqrt(x)], 4 * p));
    pen.putImageData(image, 0, 0);
  };
  paintIt();
  lasting(window, "redraw", paintIt);
  v.root.dataset.ready = "yes";
}
