// ---- two tokens of two numbers are mixed: by one softmax, or by one softmax for each number

// The output: number n averages the tokens' numbers n, `weights[n]` of it from the first token
function mixture(values, weights) {
  return weights.map((a, n) => a * values[0][n] + (1 - a) * values[1][n]);
}
// The weights that come nearest to what is wanted: one for both numbers, or one for each
function nearest(values, wanted, heads) {
  const best = numbers => {
    const steps = numbers.map(n => values[0][n] - values[1][n]);
    const along = dot(steps, numbers.map(n => wanted[n] - values[1][n]));
    return Math.min(1, Math.max(0, along / (dot(steps, steps) || 1)));
  };
  const one = best([0, 1]);
  return heads === 1 ? [one, one] : [best([0]), best([1])];
}
const distance = (a, b) => Math.hypot(...a.map((x, n) => x - b[n]));

views.mixing = (root, d) => {
  const {values, wanted, tokens, names} = d, view = explorable(d.start, show), {state} = view;
  const [width, height] = [400, 232], brief = text => cut(text, 14);
  const plane = view.picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img"});
  // one scale for both axes, so that a distance is what it looks like
  const ends = [0, 1].map(n => [Math.min, Math.max].map(f => f(
    ...[...values, wanted].map(p => p[n]))));
  const [spanX, spanY] = ends.map(([low, high]) => high - low);
  const [midX, midY] = ends.map(([low, high]) => (low + high) / 2);
  const unit = Math.min(230 / (spanX || 1), 140 / (spanY || 1));
  const at = ([x, y]) => [width / 2 + (x - midX) * unit, height / 2 - 8 - (y - midY) * unit];
  const alike = n => { if (state.heads === 1) state.weights[1 - n] = state.weights[n]; };
  const buttons = [1, 2].map(heads => view.button(heads === 1 ? "one head" : "two heads", () => {
    state.heads = heads;
    alike(0);
  }));
  const share = a => `${brief(tokens[0])} ${percent(a)}, ${brief(tokens[1])} ${percent(1 - a)}`;
  root.append(
    make("div.bar.mixing", {role: "group", ariaLabel: "how many heads"}, ...buttons, view.reset),
    make("div.sliders.mixing", {}, ...names.map((label, n) => view.slider({label, max: 1,
      step: 0.01, get: () => state.weights[n], text: () => share(state.weights[n]),
      set: a => { state.weights[n] = a; alike(n); }}))), plane, view.status);

  function show() {
    const {heads, weights} = state, out = mixture(values, weights), off = distance(out, wanted);
    const best = nearest(values, wanted, heads), least = distance(mixture(values, best), wanted);
    for (const [i, button] of buttons.entries()) button.ariaPressed = String(heads === i + 1);
    const [[ax, ay], [bx, by]] = values.map(at), [ox, oy] = at(out), [wx, wy] = at(wanted);
    const label = (x, y, text, kind = "", more = {}) =>
      svg("text", {x, y, class: kind, "text-anchor": "middle", ...more}, text);
    const circle = (kind, [cx, cy], r) => svg("circle", {class: kind, cx, cy, r});
    const off2 = y => y < height / 2 ? -11 : 20;
    plane.replaceChildren(
      heads === 1 ? svg("line", {class: "reach", x1: ax, y1: ay, x2: bx, y2: by})
        : svg("rect", {class: "reach", x: Math.min(ax, bx), y: Math.min(ay, by),
                       width: Math.abs(ax - bx), height: Math.abs(ay - by)}),
      svg("line", {class: "off", x1: ox, y1: oy, x2: wx, y2: wy}),
      circle("wanted", [wx, wy], 10), ...values.map(p => circle("token", at(p), 5)),
      circle("out", [ox, oy], 6),
      ...values.map(at).map(([x, y], j) => label(x, y + off2(y), brief(tokens[j]))),
      label(wx, wy + (off2(wy) < 0 ? -15 : 26), "wanted", "soft"),
      label(width / 2, height - 4, `${brief(names[0])} →`, "soft"),
      label(14, height / 2, `${brief(names[1])} →`, "soft",
            {transform: `rotate(-90 14 ${height / 2})`}));
    view.status.title = [...out, off, least].map(exact).join(" ");
    const [who, it] = heads === 1 ? ["One head makes", "It"] : ["Two heads make", "They"];
    return `${who} (${out.map(x => written(x)).join(", ")}), `
      + (off < 0.005 * Math.hypot(spanX, spanY) ? "what is wanted."
        : `${two(off)} away from what is wanted. ` + (least < 1e-9 ? `${it} can reach it.`
          : `${it} cannot come nearer than ${two(least)}.`));
  }
  view.draw();
};
