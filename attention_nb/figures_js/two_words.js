// ---- attention of two words, by matrices that a reader can change

const times = (x, W) => x.map(row => W[0].map((_, n) => dot(row, W.map(r => r[n]))));

function attentionOf(x, {Wq, Wk, Wv}) {
  const [q, k, v] = [Wq, Wk, Wv].map(W => times(x, W));
  const scores = q.map(a => k.map(b => dot(a, b) / Math.sqrt(a.length)));
  const weights = scores.map(row => {
    const parts = row.map(s => Math.exp(s - Math.max(...row)));
    return parts.map(p => p / sum(parts));
  });
  return {query: q, key: k, value: v, scores, weights, output: times(weights, v)};
}

views.two_words = (root, d) => {
  const {tokens, x} = d, view = explorable(d.start, show), {state} = view;
  const names = {Wq: "query", Wk: "key", Wv: "value"};
  const inputs = Object.keys(names).map(name => state[name].map((row, i) => row.map((_, j) => {
    const input = make("input", {type: "number", min: -20, max: 20, step: 1,
      ariaLabel: `${names[name]} matrix, row ${i + 1}, column ${j + 1}`,
      oninput: () => {
        const value = Math.min(20, Math.max(-20, input.valueAsNumber));
        if (Number.isFinite(value)) { state[name][i][j] = value; view.draw(); }
      }});
    return input;
  })));
  const grids = Object.entries(names).map(([name, role], n) =>
    make(`fieldset.${role}`, {}, make("legend", {}, `W of the ${role}`),
         ...inputs[n].flat()));
  const rows = counts(["query", "key", "value", "scores", "weights", "output"], ["", ...tokens]);
  root.append(make("div.matrices", {}, ...grids), make("div.bar", {}, view.reset), rows.element,
              view.status);

  function show() {
    const found = attentionOf(x, state);
    Object.keys(names).forEach((name, n) => inputs[n].forEach((line, i) => line.forEach(
      (input, j) => {
        if (input !== document.activeElement || input.valueAsNumber !== state[name][i][j]) {
          input.value = state[name][i][j];
        }
      })));
    rows.put(tokens.map((_, t) =>
      Object.values(found).map(lists => lists[t].map(v => written(v)).join("   "))));
    view.status.title = Object.values(found).flat(2).map(exact).join(" ");
    return tokens.map((token, t) => {
      const [a, b] = found.weights[t], out = found.output[t].map(v => written(v)).join(", ");
      return `${token} takes ${percent(a)} from ${tokens[0]} and ${percent(b)} from `
        + `${tokens[1]}: (${out}).`;
    }).join(" ");
  }
  view.draw();
};
