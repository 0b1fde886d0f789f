// ---- softmax of one query's scores, as sliders change what goes in: bars and slopes follow

// Scores of the first `width` numbers, weights, the sink's weight, and the slope of each weight
// along its own score, before the cap
function softened(q, keys, {width, scaled, temperature, softcap, sink}) {
  const size = (scaled ? Math.sqrt(width) : 1) * temperature;
  const scores = keys.map(k => dot(q.subarray(0, width), k) / size);
  const capped = scores.map(s => softcap === null ? s : softcap * Math.tanh(s / softcap));
  const z = sink ?? -Infinity, top = Math.max(z, ...capped);
  const exps = capped.map(s => Math.exp(s - top)), total = sum(exps) + Math.exp(z - top);
  const weights = exps.map(e => e / total);
  const slopes = weights.map((w, j) =>
    w * (1 - w) * (softcap === null ? 1 : 1 - (capped[j] / softcap) ** 2));
  return {scores: capped, weights, slopes, sink: Math.exp(z - top) / total};
}

views.softmax = async (root, d) => {
  const [q] = await rowsOf(d.qdata, d.width), keys = await rowsOf(d.kdata, d.width);
  const view = explorable(d.start, show), {state} = view;
  const number = x => x === null ? "none" : two(x).replace("-", "−");
  // `value(at)` is what a place of a slider means, null for none; `at(value)` the way back
  const slider = (name, label, [min, max, step], value, at, text = number) => view.slider({
    label, min, max, step, get: () => at(state[name]), text: () => text(state[name]),
    set: x => { state[name] = value(x); }});
  const cells = [...d.tokens, "sink"].map((token, j) => {
    const score = make("td"), slope = barCell("grey");
    const weight = barCell(j < d.tokens.length ? "weight" : "grey");
    const head = make("th", {scope: "row", title: token}, token);
    return {row: make("tr", {}, head, score, weight, slope), score, weight, slope};
  });
  const last = cells.at(-1);
  last.row.classList.add("sink");
  const sliders = {
    temperature: ["temperature", [-4, 4, 0.25], x => 2 ** x, Math.log2],
    width: ["width E", [1, d.width, 1], x => x, x => x, String],
    softcap: ["cap", [0.5, 20.5, 0.5], x => x > 20 ? null : x, x => x ?? 20.5],
    sink: ["sink", [-5.5, 15, 0.5], x => x < -5 ? null : x, x => x ?? -5.5]};
  root.append(make("div.sliders", {},
    ...d.sliders.map(name => slider(name, ...sliders[name])),
    view.check("scaled", "divide by √E"), view.reset), view.status,
    tableOf("bars", ["", "score", "weight", "slope"], ...cells.map(c => c.row)).element);

  function put(cell, x, limit, text) {
    cell.title = exact(x);
    cell.put(x / limit, text);
  }
  function show() {
    const {scores, weights, slopes, sink} = softened(q, keys, state);
    for (const [j, score] of scores.entries()) {
      cells[j].score.textContent = written(score);
      cells[j].score.title = exact(score);
      put(cells[j].weight, weights[j], 1, percent(weights[j], 1));
      put(cells[j].slope, slopes[j], 0.25, slopes[j].toFixed(3));
    }
    last.row.hidden = state.sink === null;
    last.score.textContent = number(state.sink);
    put(last.weight, sink, 1, percent(sink, 1));
    const best = largest(weights), steepest = largest(slopes);
    return `The largest weight is ${percent(weights[best], 1)}, of ${d.tokens[best]}; `
      + `the largest slope ${slopes[steepest].toFixed(3)}, of ${d.tokens[steepest]}.`
      + (state.sink === null ? "" : ` The sink has ${percent(sink, 1)}.`);
  }
  view.draw();
};
