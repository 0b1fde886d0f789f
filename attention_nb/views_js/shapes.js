// ---- what runs through a decoder: the shape of each step, from sizes that the reader sets

// Steps of one pass: letters of the shape, parameters, multiplications, of sizes as the sliders say
function shapesOf(steps, sizes) {
  const value = letter => sizes[letter];
  const product = list => list.reduce((a, b) => a * b, 1);
  return steps.map(({shape, weights, times, each}) => {
    const parameters = product([...weights].map(value)) * (weights ? 1 : 0) * each;
    const here = shape.map(value);
    return {shape: here, count: product(here), parameters,
            work: times ? product([...times].map(value)) * each : 0};
  });
}

views.shapes = async (root, d) => {
  const state = {...d.start}, controls = [];
  let at = d.step;
  const panel = make("div.sliders"), bar = make("div.bar"), list = make("ol.steps");
  const status = make("div.status", {role: "status", ariaLive: "polite"});
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  drawing.ariaHidden = "true";
  drawing.setAttribute("viewBox", "0 0 300 150");
  root.append(panel, bar, make("div.shapes", {}, list, make("div.seen", {}, drawing, status)));

  // Heads are cut from D; of the key heads that were asked for, as many as divide the heads
  let asked = state.G;
  function change(letter, value) {
    state[letter] = value;
    if (letter === "G") asked = value;
    const choices = d.sliders.find(([name]) => name === "G")[2];
    state.G = Math.max(...choices.filter(g => state.H % g === 0 && g <= asked));
    state.D = state.H * state.E;
  }
  for (const [letter, label, values] of d.sliders) {
    const input = make("input", {type: "range", min: 0, max: values.length - 1, step: 1});
    const reading = make("output");
    const allowed = () => letter === "G" ? values.filter(g => state.H % g === 0) : values;
    input.addEventListener("input", () => {
      change(letter, allowed()[+input.value]);
      show();
    });
    panel.append(make("label", {}, make("span", {}, `${label} ${letter}`), input, reading));
    controls.push(() => {
      input.max = allowed().length - 1;
      input.value = allowed().indexOf(state[letter]);
      input.ariaValueText = reading.textContent = String(state[letter]);
    });
  }
  const go = by => { at = Math.max(0, Math.min(d.steps.length - 1, at + by)); show(); };
  const before = make("button", {onclick: () => go(-1)}, "‹ back");
  const after = make("button", {onclick: () => go(1)}, "next step ›");
  const back = () => { Object.assign(state, d.start); asked = state.G; at = d.step; show(); };
  bar.append(before, after, make("button", {onclick: back}, "reset"));

  const rows = d.steps.map(({name}, n) => {
    const shape = make("span.shape"), button = make("button.step",
      {onclick: () => { at = n; show(); }}, make("span", {}, name), shape);
    list.append(make("li", {}, button));
    return {button, shape};
  });
  list.addEventListener("keydown", e => {
    const by = {ArrowUp: -1, ArrowDown: 1}[e.key];
    if (!by) return;
    e.preventDefault();
    go(by);
    rows[at].button.focus();
  });

  const roles = {queries: "q", keys: "k", values: "v", scores: "weight", weights: "weight"};
  // A sheet for each head: rows are tokens, columns the numbers of each, both drawn to the root
  function sheets(letters, shape) {
    const [columns, tokens] = [shape.at(-1), shape.length > 1 ? shape.at(-2) : 1];
    const heads = shape.length === 4 ? shape[1] : 1, shown = Math.min(heads, 8);
    const most = Math.max(...d.steps.map(s => state[s.shape.at(-1)]));
    const wide = s => 4 + 190 * Math.sqrt(s / most), high = 8 + 82 * Math.sqrt(tokens / d.longest);
    const w = letters.length === 2 ? 12 : wide(columns);
    const parts = [];
    const part = (name, values, text) => {
      const element = document.createElementNS(drawing.namespaceURI, name);
      for (const [key, x] of Object.entries(values)) element.setAttribute(key, x);
      if (text) element.textContent = text;
      parts.push(element);
    };
    for (let n = shown - 1; n >= 0; n--)
      part("rect", {x: 34 + 7 * n, y: 26 + 5 * (shown - 1 - n), width: w, height: high, rx: 2});
    const low = 26 + 5 * (shown - 1) + high;
    const row = letters.length === 2 ? letters[1] : letters.at(-2);
    part("text", {x: 28, y: low - high / 2 + 4, "text-anchor": "end"}, row);
    if (letters.length > 2)
      part("text", {x: 34 + w / 2, y: low + 15, "text-anchor": "middle"}, letters.at(-1));
    if (heads > 1) part("text", {x: 40 + 7 * shown + w, y: 24}, `${letters[1]} sheets`);
    drawing.replaceChildren(...parts);
  }

  const whole = x => x.toLocaleString("en-US");
  function show() {
    for (const set of controls) set();
    const found = shapesOf(d.steps, state);
    for (const [n, {button, shape}] of rows.entries()) {
      shape.textContent = `(${found[n].shape.join(", ")})`;
      shape.title = `(${d.steps[n].shape.join(", ")})`;
      button.setAttribute("aria-current", n === at ? "step" : "false");
    }
    const {name, says, shape} = d.steps[at], {count, parameters, work} = found[at];
    sheets(shape, found[at].shape);
    drawing.setAttribute("style", `--role: var(--${roles[name] ?? "grey"})`);
    before.disabled = at === 0;
    after.disabled = at === d.steps.length - 1;
    status.replaceChildren(make("b", {}, `${name}: (${shape.join(", ")})`),
      make("code", {}, says), make("span", {}, `${whole(count)} numbers, ${whole(parameters)} `
        + `parameters, ${whole(work)} multiplications`));
    Object.assign(root.dataset, {step: at, parameters, work, count, ready: "yes"});
  }
  show();
};
