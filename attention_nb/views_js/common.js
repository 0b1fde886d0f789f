// What all views share. A page holds one view: one `data` object, no library. In a notebook or in
// the docs it sits in a frame of its own, so views cannot disturb each other or their host.
//
// Python joins the scripts of a page: this file first, then those of its kind of view (the table
// `_parts` of Pages and stills), then begin.js. A view adds itself as `views.kind = (root, data)`.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const views = {};
// Twelve colours, in common.css for light and for dark, which readers with and without
// colour-blindness tell apart; more heads use them again, with dashed and dotted lines
const colours = 12;
const colourName = head => `--head-${head % colours}`;
const colour = head => cssValue(colourName(head));
const round = head => Math.floor(head / colours) % 3;
// Tokens that are no piece of a text: [CLS], <s>, <|endoftext|>
const special = /^(\[[A-Z]+( \d+)?\]|<[^<>\s]+>)$/;
const two = x => x.toFixed(2);
// Shares are said in per cent, everywhere, on one line
const percent = (w, digits = 0) => `${(100 * w).toFixed(digits)}\u00a0%`;
const sum = list => list.reduce((a, b) => a + b, 0);
const largest = list => list.reduce((best, x, n) => x > list[best] ? n : best, 0);
// A column or table of more rows than this has only those near the ones in sight as elements
const whole = 2000;

// What a view hears from outside of its own elements; it ends where another view follows in its
// place (live.js)
let life = new AbortController();
const lasting = (target, name, act) =>
  target.addEventListener(name, act, {signal: life.signal});

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

// A variable of the style sheet, which depends on the theme
const cssValue = name => getComputedStyle(document.documentElement).getPropertyValue(name);

// bytes of base64, inflated by the browser itself; numbers that are there already stay
async function inflate(text) {
  if (typeof text !== "string") return text;
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

// Which of `n` rows are elements, [first, end): all up to `most`, else those near what a scrolled
// box shows. The first moves in strides, so that most scrolling changes nothing.
function near(n, box, rowHeight, most = whole) {
  if (n <= most) return [0, n];
  const stride = 20, seen = Math.floor(box.scrollTop / rowHeight / stride) * stride;
  const first = Math.max(0, Math.min(seen - stride, n - 5 * stride));
  return [first, Math.min(n, first + 5 * stride)];
}
