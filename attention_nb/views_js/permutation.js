// ---- attention of words in two orders: does the output of a word follow it to its new place?

// Outputs, one array for each place, of words that stand in `order`
function ordered(words, places, order, {positions, causal}) {
  const x = order.map((n, place) =>
    Float64Array.from(words[n], (value, e) => value + (positions ? places[place][e] : 0)));
  const dot = (a, b) => a.reduce((s, value, e) => s + value * b[e], 0);
  return x.map((query, i) => {
    const seen = causal ? x.slice(0, i + 1) : x;
    const scores = seen.map(key => dot(query, key) / Math.sqrt(query.length));
    const top = Math.max(...scores), exps = scores.map(s => Math.exp(s - top));
    const total = sum(exps);
    return query.map((_, e) => sum(seen.map((value, j) => exps[j] / total * value[e])));
  });
}
const apart = (a, b) => Math.hypot(...a.map((x, e) => x - b[e]));

views.permutation = async (root, d) => {
  const rows = async packed => {
    const all = new Float32Array(await inflate(packed));
    return d.tokens.map((_, n) => all.subarray(n * d.width, (n + 1) * d.width));
  };
  const words = await rows(d.xdata), places = await rows(d.pdata), rowHeight = 28;
  const plain = [...d.tokens.keys()], state = {...d.start, order: [...d.start.order], held: null};
  const bar = make("div.bar"), status = make("div.status", {role: "status", ariaLive: "polite"});
  const left = make("ol.words", {ariaLabel: "the words as they were"});
  const right = make("ol.words", {ariaLabel: "the words in their new order; choose two to swap "
    + "them, or move one with the arrow keys"});
  const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  lines.ariaHidden = "true";
  lines.setAttribute("preserveAspectRatio", "none");
  lines.setAttribute("viewBox", `0 0 100 ${rowHeight * plain.length}`);
  lines.style.height = `${rowHeight * plain.length}px`;
  const note = make("div.note", {}, "On the right, press two words and they change places; or move "
    + "one with the arrow keys.");
  root.append(bar, status, make("div.orders", {}, left, lines, right), note);

  const check = (name, label) => {
    const box = make("input", {type: "checkbox", checked: state[name],
      onchange: () => { state[name] = box.checked; show(); }});
    bar.append(make("label", {}, box, label));
  };
  const order = (label, change) =>
    bar.append(make("button", {onclick: () => { change(); state.held = null; show(); }}, label));
  check("positions", "add positions");
  check("causal", "causal mask");
  order("shuffle", () => {
    for (let n = plain.length - 1; n > 0; n--) swap(n, Math.floor(Math.random() * (n + 1)));
  });
  order("reverse", () => state.order.reverse());
  order("reset", () => { state.order = [...plain]; });

  function swap(a, b) { [state.order[a], state.order[b]] = [state.order[b], state.order[a]]; }
  function hold(place) {
    if (state.held === null) state.held = place;
    else { swap(state.held, place); state.held = null; }
    show(place);
  }
  function move(place, by) {
    const to = place + by;
    if (to < 0 || to >= plain.length) return;
    swap(place, to);
    state.held = null;
    show(to);
  }
  // an output as a strip of colours: green above zero, grey below
  function strip(out, limit) {
    const part = 100 / out.length, colour = x =>
      `rgba(var(--${x < 0 ? "grey" : "v"}), ${(Math.abs(x) / limit).toFixed(3)})`;
    const stops = Array.from(out, (x, e) => `${colour(x)} ${e * part}% ${(e + 1) * part}%`);
    return make("span.strip", {ariaHidden: "true",
                               style: `background: linear-gradient(90deg, ${stops.join()})`});
  }

  function show(focus = null) {
    const before = ordered(words, places, plain, state);
    const after = ordered(words, places, state.order, state);
    const limit = Math.max(...before.map(most), ...after.map(most));
    const moved = state.order.map((n, place) => apart(after[place], before[n]));
    const changed = x => x > 1e-6;
    left.replaceChildren(...plain.map(n => make("li", {}, make("span.word", {}, d.tokens[n]),
                                                strip(before[n], limit))));
    right.replaceChildren(...state.order.map((n, place) => {
      const says = changed(moved[place]) ? `moved by ${two(moved[place])}` : "the same";
      const word = make("button.word", {ariaPressed: String(state.held === place),
        ariaLabel: `${d.tokens[n]}, place ${place}, was at ${n}, output ${says}`,
        onclick: () => hold(place)}, d.tokens[n]);
      const text = changed(moved[place]) ? two(moved[place]) : "same";
      const number = make(changed(moved[place]) ? "span.moved" : "span.same",
                          {title: exact(moved[place])}, text);
      const row = make("li", {}, strip(after[place], limit), word, number);
      row.dataset.word = n;
      return row;
    }));
    const far = Math.max(...moved);
    lines.replaceChildren(...state.order.map((n, place) => {
      const path = document.createElementNS(lines.namespaceURI, "path");
      const [y, to] = [n, place].map(row => (row + 0.5) * rowHeight);
      path.setAttribute("d", `M0 ${y}C40 ${y} 60 ${to} 100 ${to}`);
      path.setAttribute("class", changed(moved[place]) ? "moved" : "same");
      path.style.strokeWidth = changed(moved[place]) ? 1 + 3 * moved[place] / far : 1.5;
      return path;
    }));
    const others = moved.filter(changed).length, worst = largest(moved);
    status.textContent = others === 0
      ? "The output of every word follows it: the same numbers at another place."
      : `${others} of ${plain.length} words have another output; that of `
        + `${d.tokens[state.order[worst]]} moved most, by ${two(far)}.`;
    if (focus !== null) right.children[focus].querySelector("button").focus();
    root.dataset.ready = "yes";
  }
  right.addEventListener("keydown", e => {
    const by = {ArrowUp: -1, ArrowDown: 1}[e.key], row = e.target.closest("li");
    if (by && row) { e.preventDefault(); move([...right.children].indexOf(row), by); }
    if (e.key === "Escape" && row) { state.held = null; show([...right.children].indexOf(row)); }
  });
  show();
};
