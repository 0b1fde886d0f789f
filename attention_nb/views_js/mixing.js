// ---- two tokens of two numbers are mixed: by one softmax, or by one softmax for each number

// The output: number n averages the tokens' numbers n, `weights[n]` of it from the first token
function mixture(values, weights) {
  return weights.map((a, n) => a * values[0][n] + (1 - a) * values[1][n]);
}
// The weights that come nearest to what is wanted: one for both numbers, or one for each
function nearest(values, wanted, heads) {
  const best = numbers => {
    const steps = numbers.map(n => values[0][n] - values[1][n]);
    const along = sum(numbers.map((n, i) => steps[i] * (wanted[n] - values[1][n])));
    return Math.min(1, Math.max(0, along / (sum(steps.map(d => d * d)) || 1)));
  };
  const one = best([0, 1]);
  return heads === 1 ? [one, one] : [best([0]), best([1])];
}
const distance = (a, b) => Math.hypot(...a.map((x, n) => x - b[n]));

views.mixing = (root, d) => {
  const {values, wanted, tokens, names} = d, state = {...d.start, weights: [...d.start.weights]};
  const cut = text => [...text].length > 14 ? [...text].slice(0, 13).join("") + "…" : text;
  const bar = make("div.bar.mixing", {role: "group", ariaLabel: "how many heads"});
  const panel = make("div.sliders.mixing");
  const status = make("div.status", {role: "status", ariaLive: "polite"});
  const [width, height] = [400, 232];
  const plane = draw("svg", {viewBox: `0 0 ${width} ${height}`, role: "img"});
  root.append(bar, panel, plane, status);

  function draw(tag, properties = {}, text = "") {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  }
  // one scale for both axes, so that a distance is what it looks like
  const points = [...values, wanted], ends = [0, 1].map(n => {
    const all = points.map(p => p[n]);
    return [Math.min(...all), Math.max(...all)];
  });
  const [spanX, spanY] = ends.map(([low, high]) => high - low);
  const unit = Math.min(230 / (spanX || 1), 140 / (spanY || 1));
  const at = ([x, y]) => [width / 2 + (x - (ends[0][0] + ends[0][1]) / 2) * unit,
                          height / 2 - 8 - (y - (ends[1][0] + ends[1][1]) / 2) * unit];

  const buttons = [1, 2].map(heads => {
    const button = make("button", {onclick: () => {
      state.heads = heads;
      if (heads === 1) state.weights[1] = state.weights[0];
      show();
    }}, heads === 1 ? "one head" : "two heads");
    bar.append(button);
    return button;
  });
  const first = () => { Object.assign(state, d.start, {weights: [...d.start.weights]}); show(); };
  bar.append(make("button", {onclick: first}, "reset"));
  const sliders = names.map((name, n) => {
    const input = make("input", {type: "range", min: 0, max: 1, step: 0.01});
    const reading = make("output");
    input.addEventListener("input", () => {
      state.weights[n] = +input.value;
      if (state.heads === 1) state.weights[1 - n] = state.weights[n];
      show();
    });
    const label = make("span", {title: name}, name);
    panel.append(make("label", {}, label, input, reading));
    return {input, reading};
  });
  const percent = a => `${Math.round(100 * a)} %`;

  function show() {
    const {heads, weights} = state, out = mixture(values, weights), off = distance(out, wanted);
    const best = nearest(values, wanted, heads), least = distance(mixture(values, best), wanted);
    for (const [i, button] of buttons.entries()) button.ariaPressed = String(heads === i + 1);
    for (const [n, {input, reading}] of sliders.entries()) {
      input.value = weights[n];
      reading.textContent = `${cut(tokens[0])} ${percent(weights[n])}, `
        + `${cut(tokens[1])} ${percent(1 - weights[n])}`;
      input.ariaValueText = reading.textContent;
    }
    const [[ax, ay], [bx, by]] = values.map(at), [ox, oy] = at(out), [wx, wy] = at(wanted);
    const label = (x, y, text, kind = "") =>
      draw("text", {x, y, class: kind, "text-anchor": "middle"}, text);
    const off2 = y => y < height / 2 ? -11 : 20;
    plane.replaceChildren(
      heads === 1 ? draw("line", {class: "reach", x1: ax, y1: ay, x2: bx, y2: by})
        : draw("rect", {class: "reach", x: Math.min(ax, bx), y: Math.min(ay, by),
                        width: Math.abs(ax - bx), height: Math.abs(ay - by)}),
      draw("line", {class: "off", x1: ox, y1: oy, x2: wx, y2: wy}),
      draw("circle", {class: "wanted", cx: wx, cy: wy, r: 10}),
      ...values.map(at).map(([cx, cy]) => draw("circle", {class: "token", cx, cy, r: 5})),
      draw("circle", {class: "out", cx: ox, cy: oy, r: 6}),
      ...values.map((p, j) => label(at(p)[0], at(p)[1] + off2(at(p)[1]), cut(tokens[j]))),
      label(wx, wy + (off2(wy) < 0 ? -15 : 26), "wanted", "soft"),
      label(width / 2, height - 4, `${cut(names[0])} →`, "soft"),
      draw("text", {x: 14, y: height / 2, class: "soft", "text-anchor": "middle",
                    transform: `rotate(-90 14 ${height / 2})`}, `${cut(names[1])} →`));
    const gives = `(${out.map(x => written(x)).join(", ")})`;
    const reached = off < 0.005 * Math.hypot(spanX, spanY);
    status.textContent = `${heads === 1 ? "One head gives" : "Two heads give"} ${gives}, `
      + (reached ? "what is wanted." : `${two(off)} from what is wanted. `
        + (least < 1e-9 ? "They can reach it." : `Nearer than ${two(least)} `
          + `${heads === 1 ? "it cannot" : "they cannot"} come.`));
    status.title = [...out, off, least].map(exact).join(" ");
    plane.setAttribute("aria-label", status.textContent);
    root.dataset.ready = "yes";
  }
  show();
};
