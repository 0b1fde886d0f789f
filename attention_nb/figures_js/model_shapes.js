// ---- what runs through a decoder: the shape of each step, from sizes that the reader sets

// Steps of one pass: letters of the shape, parameters, multiplications, of sizes as the sliders say
function shapesOf(steps, sizes) {
  const product = letters => [...letters].reduce((n, letter) => n * sizes[letter], 1);
  return steps.map(({shape, weights, times, each}) => ({
    shape: shape.map(letter => sizes[letter]), count: product(shape),
    parameters: weights ? product(weights) * each : 0, work: times ? product(times) * each : 0}));
}

views.model_shapes = async (root, d) => {
  // of the key heads that were asked for, as many as divide the heads
  const view = explorable({...d.start, step: d.step, asked: d.start.G}, show), {state} = view;
  const drawing = svg("svg", {viewBox: "0 0 300 150", "aria-hidden": "true"});
  const [list, seen] = [make("ol.steps"), make("div.seen", {}, drawing, view.status)];
  const divides = g => state.H % g === 0, most = () => d.steps.length - 1;
  const sliders = d.sliders.map(([letter, label, values]) => {
    const allowed = () => letter === "G" ? values.filter(divides) : values;
    return view.slider({label: `${label} ${letter}`, max: () => allowed().length - 1,
      get: () => allowed().indexOf(state[letter]), text: () => String(state[letter]),
      set: at => {
        state[letter] = allowed()[at];
        if (letter === "G") state.asked = state.G;
        const choices = d.sliders.find(([name]) => name === "G")[2];
        state.G = Math.max(...choices.filter(g => divides(g) && g <= state.asked));
        state.D = state.H * state.E;                     // heads are cut from D
      }});
  });
  const rows = d.steps.map(({name}, n) => {
    const shape = make("span.shape"), button = view.button("", () => { state.step = n; });
    button.className = "step";
    button.append(make("span", {}, name), shape);
    list.append(make("li", {}, button));
    return {button, shape};
  });
  list.addEventListener("keydown", e => {
    const by = {ArrowUp: -1, ArrowDown: 1}[e.key];
    if (!by) return;
    e.preventDefault();
    state.step += by;
    view.draw();
    rows[state.step].button.focus();
  });
  root.append(make("div.sliders", {}, ...sliders), make("div.bar", {},
    ...view.steps({most, next: "next step ›"}), view.reset), make("div.shapes", {}, list, seen));

  const roles = {queries: "q", keys: "k", values: "v", scores: "weight", weights: "weight"};
  // A sheet for each head: rows are tokens, columns the numbers of each, both drawn to the root
  function sheets(letters, shape) {
    const tokens = shape.length > 1 ? shape.at(-2) : 1, ids = letters.length === 2;
    const heads = shape.length === 4 ? shape[1] : 1, shown = Math.min(heads, 8);
    const widest = Math.max(...d.steps.map(s => state[s.shape.at(-1)]));
    const width = ids ? 12 : 4 + 190 * Math.sqrt(shape.at(-1) / widest);
    const height = 8 + 82 * Math.sqrt(tokens / d.longest), low = 26 + 5 * (shown - 1) + height;
    const text = (x, y, anchor, said) => svg("text", {x, y, "text-anchor": anchor}, said);
    drawing.replaceChildren(...Array.from({length: shown}, (_, n) => svg("rect",
      {x: 34 + 7 * (shown - 1 - n), y: 26 + 5 * n, width, height, rx: 2})),
      text(28, low - height / 2 + 4, "end", ids ? letters[1] : letters.at(-2)),
      ids ? "" : text(34 + width / 2, low + 15, "middle", letters.at(-1)),
      heads > 1 ? text(40 + 7 * shown + width, 24, "start", `${letters[1]} sheets`) : "");
  }
  function show() {
    const found = shapesOf(d.steps, state), at = state.step;
    for (const [n, {button, shape}] of rows.entries()) {
      shape.textContent = `(${found[n].shape.join(", ")})`;
      shape.title = `(${d.steps[n].shape.join(", ")})`;
      button.setAttribute("aria-current", n === at ? "step" : "false");
    }
    const {name, says, shape} = d.steps[at], {count, parameters, work} = found[at];
    sheets(shape, found[at].shape);
    drawing.setAttribute("style", `--role: var(--${roles[name] ?? "grey"})`);
    Object.assign(root.dataset, {step: at, parameters, work, count});
    return [make("b", {}, `${name}: (${shape.join(", ")})`), make("code", {}, says),
            make("span", {}, `${many(count)} numbers, ${many(parameters)} parameters, `
              + `${many(work)} multiplications`)];
  }
  view.draw();
};
