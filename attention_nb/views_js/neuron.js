// ---- neuron view: the arithmetic of one head, a row for each key, one step at a time

views.neuron = async (root, d) => {
  const numbers = await readHeads(d), rowHeight = 22, steps = () => d.stages[state.layer];
  const state = {layer: d.layer, head: d.head, i: d.query, j: d.key, step: d.stage, sorted: false};
  state.picked = () => ({layer: state.layer, heads: [state.head], token: state.i});
  globalThis.state = state;                           // for a host that computes
  const fewest = 200;                                 // so many rows are all elements
  let found = null, order = [], columns = null, timer = 0;

  // ---- the parts of the page
  const bar = make("div.bar"), buttons = make("div.steps", {role: "group", ariaLabel: "steps"});
  const place = make("div"), status = make("div.status", {role: "status", ariaLive: "polite"});
  const header = make("thead"), body = make("tbody"), footer = make("tfoot");
  const table = make("table", {}, make("caption"), header, body, footer);
  const grid = make("div.scroll.numbers", {tabIndex: 0, role: "group",
    ariaLabel: "the numbers; up and down choose a key, left and right a step"}, table);
  const note = make("div.note"), legend = make("div.legend");
  const step = (text, label, change) => make("button", {ariaLabel: label, onclick: change}, text);
  const play = make("button.play", {onclick: () => timer ? pause() : run()}, "Play");
  const sorter = make("input", {type: "checkbox",
    onchange: () => { state.sorted = sorter.checked; show(); }});
  root.append(bar, place, buttons, status, grid, note, legend);
  grid.style.minHeight = Math.min(600, (d.k.length + 2) * rowHeight + 4) + "px";

  const clip = t => t.slice(0, 40);
  const choose = (label, names, what) => names.length > 1 && bar.append(
    select(label, names, state[what], v => { state[what] = v; find(); }));
  choose("layer ", d.layers, "layer");
  choose("head ", Array.from({length: d.heads}, (_, n) => String(n)), "head");
  choose("query ", d.q.map((t, n) => `${n}: ${clip(t)}`), "i");
  bar.append(make("label", {}, sorter, "largest first"));
  const swatch = (role, text) => make("span", {},
    make("i", {style: `background: rgba(var(--${role}), .55)`, ariaHidden: "true"}), text);
  legend.append(swatch("q", "query"), swatch("k", "key"), swatch("minus", "product below 0"),
                swatch("plus", "above 0"), swatch("weight", "weight"));
  if (d.vdata) legend.append(swatch("v", "value"));
  legend.append(swatch("grey", "other numbers below 0"));

  // ---- steps
  function go(name) { state.step = name; show(); }
  function move(by) {
    const at = steps().indexOf(state.step) + by;
    if (at >= 0 && at < steps().length) go(steps()[at]);
  }
  function pause() { clearInterval(timer); timer = 0; play.textContent = "Play"; }
  function run() {
    if (state.step === steps().at(-1)) go(steps()[0]);
    timer = setInterval(() => { move(1); if (state.step === steps().at(-1)) pause(); }, 1800);
    play.textContent = "Pause";
  }
  function showSteps() {
    if (buttons.dataset.layer !== String(state.layer)) {
      buttons.dataset.layer = state.layer;
      buttons.replaceChildren(
        play, step("‹", "previous step", () => { pause(); move(-1); }),
        ...steps().map(name => {
          const title = stepNames[name];
          return step(title, title, () => { pause(); go(name); });
        }),
        step("›", "next step", () => { pause(); move(1); }));
      place.replaceChildren(formulaOf(steps(), d.sinks[state.layer]));
    }
    const at = steps().indexOf(state.step);
    for (const [n, button] of [...buttons.children].slice(2, -1).entries())
      button.ariaCurrent = n === at ? "step" : "false";
    buttons.children[1].disabled = at === 0;
    buttons.lastChild.disabled = at === steps().length - 1;
    for (const term of place.querySelectorAll(".term"))
      term.classList.toggle("lit", term.dataset.steps.split(" ").includes(state.step));
  }

  // ---- rows and columns
  function find() {
    if (!steps().includes(state.step)) state.step = "softmax";    // a layer without a cap, or so
    found = oneQuery(d, numbers, state.layer, state.head, state.i);
    found.limits = limitsOf(d, found);
    show();
  }
  function show() {
    const {mask} = found.steps, at = `${steps().indexOf(state.step) + 1} of ${steps().length}`;
    order = [...mask.keys()];
    if (state.sorted) order.sort((a, b) => mask[a] === mask[b] ? a - b : mask[b] - mask[a]);
    table.caption.textContent = `step ${at}, ${stepNames[state.step]}, of the query ${state.i}, `
      + clip(d.q[state.i]);
    let room = Math.max(3, Math.floor(grid.clientWidth / 44));
    do fill(room); while (grid.scrollWidth > grid.clientWidth && --room > 2);
    note.textContent = columns.note;
    showSteps();
    status.textContent = stepSentence(state.step, d, found, state);
    root.dataset.ready = "yes";
    globalThis.onchosen?.();
  }
  // the whole grid with so many columns of numbers
  function fill(room) {
    columns = stepColumns(state.step, d, found, state, room);
    const names = [columns.corner, ...columns.heads].map(text =>
      text ? make("th", {scope: "col"}, text) : make("td"));
    header.replaceChildren(make("tr", {}, ...names));
    if (columns.query) header.append(make("tr.query", {},
      make("th", {scope: "row"}, `${clip(d.q[state.i])} asks`), ...columns.query));
    footer.replaceChildren(...columns.feet.map(([name, cells]) =>
      make("tr", {}, make("th", {scope: "row"}, name), ...cells)));
    rows();
  }
  // the rows that should be elements, between two that keep the room of the others
  function rows() {
    const n = order.length, [from, end] = near(n, grid, rowHeight, fewest);
    const room = n => make("tr", {style: `height: ${n * rowHeight}px`, ariaHidden: "true"});
    body.replaceChildren(...from ? [room(from)] : [], ...order.slice(from, end).map(row),
                         ...end < n ? [room(n - end)] : []);
    body.dataset.from = from;
  }
  function row(j) {
    const hidden = found.steps.mask[j] === -Infinity && state.step in {mask: 1, softmax: 1};
    const name = make("th", {scope: "row", title: d.k[j]}, d.k[j]);
    const element = make(hidden ? "tr.hidden" : "tr", {onclick: () => { state.j = j; show(); }},
                         name, ...columns.row(j));
    if (j === state.j) { element.classList.add("on"); element.ariaCurrent = "true"; }
    return element;
  }
  // another key, one row up or down, brought into sight
  function another(by) {
    const at = order.indexOf(state.j) + by;
    if (at < 0 || at >= order.length) return;
    state.j = order[at];
    show();
    if (!body.querySelector("tr.on")) {
      grid.scrollTop = (at - 10) * rowHeight;
      rows();
    }
    body.querySelector("tr.on").scrollIntoView({block: "nearest"});
  }
  root.addEventListener("keydown", e => {
    if (e.target.closest("select, input") || e.ctrlKey || e.altKey || e.metaKey) return;
    const inside = grid.contains(e.target);
    const action = {ArrowLeft: () => move(-1), ArrowRight: () => move(1),
                    ArrowUp: inside && (() => another(-1)),
                    ArrowDown: inside && (() => another(1))}[e.key];
    if (action) { e.preventDefault(); pause(); action(); }
  });
  grid.addEventListener("scroll", () => {
    const [from] = near(order.length, grid, rowHeight, fewest);
    if (String(from) !== body.dataset.from) rows();
  });
  find();
  let width = grid.clientWidth;
  new ResizeObserver(() => {
    if (grid.clientWidth !== width) { width = grid.clientWidth; show(); }
  }).observe(grid);
  grid.scrollTop = (state.j - 10) * rowHeight;
};
