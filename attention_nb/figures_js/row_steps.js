// ---- one row of logits: probabilities, gradient and loss follow; a step goes against the gradient

// Probabilities of the logits, the gradient of the loss, and the loss; `share` is how often each
// answer came
function descent(logits, share) {
  const top = Math.max(...logits), exps = logits.map(z => Math.exp(z - top)), total = sum(exps);
  const p = exps.map(e => e / total);
  const loss = sum(share.map((s, c) => s * (top - logits[c] + Math.log(total))));
  return {p, gradient: p.map((x, c) => x - share[c]), loss};
}

views.row_steps = (root, d) => {
  const all = sum(d.counts), share = d.counts.map(n => n / all);
  const least = sum(share.map(s => s ? -s * Math.log(s) : 0));
  const view = explorable(d.start, show), {state} = view;
  const signed = x => (x > 0 ? "+" : "") + written(x);
  const sliders = d.tokens.map((token, c) => view.slider({
    label: token, min: -8, max: 8, step: 0.1, get: () => state.logits[c],
    set: z => { state.logits[c] = z; }, text: () => written(state.logits[c])}));
  const rate = view.slider({label: "learning rate", min: 0.5, max: 10, step: 0.5,
    get: () => state.rate, set: x => { state.rate = x; }, text: () => written(state.rate, 1)});
  const step = view.button("step", () => {
    const {gradient} = descent(state.logits, share);
    state.logits = state.logits.map((z, c) => z - state.rate * gradient[c]);
    state.taken += 1;
  });
  const cells = d.tokens.map(token => {
    const p = barCell("weight"), [came, slope] = [make("td"), make("td")];
    const head = make("th", {scope: "row", title: token}, token);
    return {row: make("tr", {}, head, p, came, slope), p, came, slope};
  });
  root.append(make("div.sliders", {}, ...sliders, rate),
              make("div.bar", {}, step, view.reset), view.status,
              tableOf("bars", ["", "probability", "share", "gradient"],
                      ...cells.map(c => c.row)).element);

  function show() {
    const {p, gradient, loss} = descent(state.logits, share);
    for (const [c, {p: cell, came, slope}] of cells.entries()) {
      cell.put(p[c], percent(p[c], 1));
      came.textContent = percent(share[c], 1);
      slope.textContent = signed(gradient[c]);
    }
    view.status.title = [...p, ...gradient, loss].map(exact).join(" ");
    return `The loss is ${written(loss)}; the least possible is ${written(least)}. `
      + `Steps: ${many(state.taken)}.`;
  }
  view.draw();
};
