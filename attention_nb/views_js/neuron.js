// Neuron view: one query, every key, neuron by neuron

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

views.neuron = neuronView;
