// ---- softmax of one query's scores, as sliders change what goes in: bars and slopes follow

// Scores of the first `width` numbers, weights, the sink's weight, and the slope of each weight
// along its own score, before the cap
function softened(q, keys, {width, scaled, temperature, softcap, sink}) {
  const size = (scaled ? Math.sqrt(width) : 1) * temperature;
  const scores = keys.map(k => sum(Array.from(q.subarray(0, width), (x, e) => x * k[e])) / size);
  const bound = s => softcap === null ? s : softcap * Math.tanh(s / softcap);
  const capped = scores.map(bound), z = sink ?? -Infinity;
  const top = Math.max(z, ...capped), exps = capped.map(s => Math.exp(s - top));
  const total = sum(exps) + Math.exp(z - top), weights = exps.map(e => e / total);
  const slopes = weights.map((w, j) =>
    w * (1 - w) * (softcap === null ? 1 : 1 - (capped[j] / softcap) ** 2));
  return {scores: capped, weights, slopes, sink: Math.exp(z - top) / total};
}

views.softmax = async (root, d) => {
  const q = new Float32Array(await inflate(d.qdata));
  const all = new Float32Array(await inflate(d.kdata));
  const keys = d.tokens.map((_, j) => all.subarray(j * d.width, (j + 1) * d.width));
  const state = {...d.start}, controls = [];
  const panel = make("div.sliders"), body = make("tbody");
  const heads = ["", "score", "weight", "slope"].map(text => make("th", {scope: "col"}, text));
  const table = make("table.bars", {}, make("thead", {}, make("tr", {}, ...heads)), body);
  const status = make("div.status", {role: "status", ariaLive: "polite"});
  root.append(panel, status, table);

  // A slider: `value(at)` is what a place of it means, null for none; `at(value)` the way back
  function slider(name, label, [least, most, step], value, at, text) {
    const input = make("input", {type: "range", min: least, max: most, step});
    const reading = make("output");
    input.addEventListener("input", () => { state[name] = value(+input.value); show(); });
    panel.append(make("label", {}, make("span", {}, label), input, reading));
    controls.push(() => {
      input.value = at(state[name]);
      input.ariaValueText = reading.textContent = text(state[name]);
    });
  }
  const number = x => x === null ? "none" : two(x).replace("-", "−");
  slider("temperature", "temperature", [-4, 4, 0.25], x => 2 ** x, Math.log2, number);
  slider("width", "width E", [1, d.width, 1], x => x, x => x, String);
  slider("softcap", "cap", [0.5, 20.5, 0.5], x => x > 20 ? null : x, x => x ?? 20.5, number);
  slider("sink", "sink", [-5.5, 15, 0.5], x => x < -5 ? null : x, x => x ?? -5.5, number);
  const scaled = make("input", {type: "checkbox",
    onchange: () => { state.scaled = scaled.checked; show(); }});
  controls.push(() => { scaled.checked = state.scaled; });
  const back = () => { Object.assign(state, d.start); show(); };
  panel.append(make("label.check", {}, scaled, "divide by √E"),
               make("button", {onclick: back}, "reset"));

  const cells = [...d.tokens, "sink"].map((token, j) => {
    const bar = role => make("i", {style: `background: rgb(var(--${role}))`, ariaHidden: "true"});
    const [score, weight, slope] = [make("td"), make("td.bar-cell"), make("td.bar-cell")];
    weight.append(bar(j < d.tokens.length ? "weight" : "grey"), make("span"));
    slope.append(bar("grey"), make("span"));
    const row = make("tr", {}, make("th", {scope: "row", title: token}, token),
                     score, weight, slope);
    body.append(row);
    return {row, score, weight, slope};
  });
  cells.at(-1).row.classList.add("sink");
  function put(cell, x, limit, text) {
    cell.title = exact(x);
    cell.firstChild.style.width = `calc((100% - 60px) * ${x / limit})`;
    cell.lastChild.textContent = text;
  }
  const percent = w => `${(100 * w).toFixed(1)} %`;
  function show() {
    const {scores, weights, slopes, sink} = softened(q, keys, state);
    for (const set of controls) set();
    for (const [j, cell] of cells.slice(0, -1).entries()) {
      cell.score.textContent = written(scores[j]);
      cell.score.title = exact(scores[j]);
      put(cell.weight, weights[j], 1, percent(weights[j]));
      put(cell.slope, slopes[j], 0.25, slopes[j].toFixed(3));
    }
    const last = cells.at(-1);
    last.row.hidden = state.sink === null;
    last.score.textContent = number(state.sink);
    put(last.weight, sink, 1, percent(sink));
    const best = largest(weights), steepest = largest(slopes);
    status.textContent = `The largest weight is ${percent(weights[best])}, of ${d.tokens[best]}; `
      + `the largest slope ${slopes[steepest].toFixed(3)}, of ${d.tokens[steepest]}.`
      + (state.sink === null ? "" : ` The sink takes ${percent(sink)}.`);
    root.dataset.ready = "yes";
  }
  show();
};
