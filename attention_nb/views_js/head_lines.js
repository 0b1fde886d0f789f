// The picture of a head view: lines, and swatches where there are many heads. Of few heads each
// has a line of its own; of more than this, lines side by side become a braid in which no eye finds
// its way. Then a pair of words has one line, in the colour of its strongest head, and beside each
// word stands a row of swatches, one for each head.
const braid = 8;

// Once for each picture, however often it is asked for
function draw(v) {
  v.waiting ||= requestAnimationFrame(() => { v.waiting = 0; paint(v); });
}

function paint(v) {
  if (!v.weights) return;
  const lines = linesOf(v), pen = sheet(v), heads = chosen(v), room = swatchRoom(v, heads.length);
  const left = v.state.focus?.side === "k" ? room : 0, right = v.width - (room - left);
  const n = heads.length <= braid ? heads.length : 1, middle = (n - 1) / 2;
  const apart = new Map(heads.map((h, at) => [h, (at - middle) * Math.min(2, 14 / n)]));
  if (n < heads.length) apart.clear();
  const full = n > 1 ? 2.4 : 9;                     // pixels of a whole weight; side by side, thin
  const inks = new Map(heads.map(h => [h, ink(v, h)]));
  for (const [w, h, i, j] of lines) {
    pen.globalAlpha = (isDim(v, i, j) ? 0.2 : 1) * strength(w);
    pen.strokeStyle = inks.get(h);
    pen.lineWidth = 1 + full * w;
    pen.setLineDash([[], [6, 3], [2, 3]][round(h)]);
    const off = apart.get(h) ?? 0;
    curve(pen, left, y(v, i) + off, right, y(v, j) + off);
  }
  if (room) swatches(v, pen, heads, left ? "q" : "k", left ? 0 : right + gap);
  v.canvas.dataset.lines = lines.length;
  markWords(v);
  say(v, lines);
  if (v.table.open) fillTable(v);
  v.root.dataset.ready = "yes";
  globalThis.onchosen?.();
}

// The root makes small weights visible: 0.07 is as strong as 0.4, of a thin line a whole pixel
const strength = w => Math.min(1, 0.18 + 0.82 * Math.sqrt(w));
const y = (v, row) => padding + (row + 0.5) * rowHeight - v.stage.scrollTop + 0.5;
// Colours tell heads apart; one alone has that of weights
const ink = (v, head) => v.state.heads.size > 1 ? colour(head) : `rgb(${cssValue("--weight")})`;

// An empty canvas as large as what the stage shows, and the pen for it
function sheet(v) {
  const {canvas, stage} = v, scale = devicePixelRatio || 1, pen = canvas.getContext("2d");
  const rows = Math.max(group(v).q.length, group(v).k.length);
  const height = Math.min(stage.clientHeight, 2 * padding + rows * rowHeight);
  v.width = canvas.parentElement.clientWidth;
  canvas.style.height = height + "px";
  canvas.width = v.width * scale;
  canvas.height = height * scale;
  pen.scale(scale, scale);
  return pen;
}

function curve(pen, left, from, right, to) {
  const third = (right - left) / 3;
  pen.beginPath();
  pen.moveTo(left, from);
  pen.bezierCurveTo(left + third, from, right - third, to, right, to);
  pen.stroke();
}

// ---- which lines

// All pairs above the threshold, or those of the token in focus, as [weight, head, query, key];
// at most 3,000, the strongest last
function linesOf(v) {
  const g = group(v), f = v.state.focus, list = [], heads = chosen(v), inSight = rowsInSight(v);
  const add = (i, j) => {
    if (inPart(v, i, j) && (!f || inSight(i) || inSight(j))) addPair(v, list, heads, i, j);
  };
  if (f?.side === "k") for (let i = 0; i < g.q.length; i++) add(i, f.i);
  else for (let i = 0; i < g.q.length; i++)
    if (f ? i === f.i : g.k.length < 200 || inSight(i))   // of a long text, the queries in sight
      for (let j = 0; j < g.k.length; j++) add(i, j);
  return list.sort((a, b) => a[0] - b[0]).slice(-3000);
}

function addPair(v, list, heads, i, j) {
  const many = heads.length > braid;
  let best = 0, which = -1;
  for (const h of heads) {
    const w = v.weights.at(h, i, j);
    if (!(w > 0 && w >= v.state.threshold)) continue;
    if (!many) list.push([w, h, i, j]);
    else if (w > best) [best, which] = [w, h];
  }
  if (which >= 0) list.push([best, which, i, j]);
}

function rowsInSight(v) {
  const first = v.stage.scrollTop / rowHeight - 2;
  const last = first + v.stage.clientHeight / rowHeight + 4;
  return n => n > first && n < last;
}

// ---- swatches

const swatchWidth = (v, n) => Math.max(3, Math.min(9, Math.floor(0.2 * v.width / n)));
const gap = 6, swatchRoom = (v, n) => n > braid ? n * swatchWidth(v, n) + gap : 0;

// Beside each word in sight, one for each head: its weight with the token in focus, or, where no
// token is, what a key gets from all queries in the mean
function swatches(v, pen, heads, side, left) {
  const wide = swatchWidth(v, heads.length), inSight = rowsInSight(v);
  const empty = cssValue("--panel"), inks = heads.map(h => ink(v, h));
  for (let n = 0; n < group(v)[side].length; n++) {
    if (!inSight(n)) continue;
    for (const [at, h] of heads.entries()) {
      const place = [left + at * wide, y(v, n) - 7, wide - 1, 14];
      pen.globalAlpha = 1;
      pen.fillStyle = empty;
      pen.fillRect(...place);
      pen.globalAlpha = Math.sqrt(Math.min(1, swatch(v, h, side, n)));
      pen.fillStyle = inks[at];
      pen.fillRect(...place);
    }
  }
}

function swatch(v, h, side, n) {
  const f = v.state.focus, L = group(v).q.length;
  if (f) return side === "k" ? v.weights.at(h, f.i, n) : v.weights.at(h, n, f.i);
  let total = 0;
  for (let i = 0; i < L; i++) total += v.weights.at(h, i, n);
  return total / L;
}
