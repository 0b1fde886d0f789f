// ---- attention of words in two orders: does the output of a word follow it to its new place?

// Outputs, one array for each place, of words that stand in `order`
function ordered(words, places, order, {positions, causal}) {
  const x = order.map((n, place) =>
    words[n].map((value, e) => value + (positions ? places[place][e] : 0)));
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
  const rowHeight = matchMedia("(pointer: coarse)").matches ? 44 : 28;        // as in the style
  const words = await rowsOf(d.xdata, d.width), places = await rowsOf(d.pdata, d.width);
  const plain = [...d.tokens.keys()], high = rowHeight * plain.length;
  const view = explorable({...d.start, held: null}, show), {state} = view;
  const left = make("ol.words", {ariaLabel: "the words as they were"});
  const right = make("ol.words", {ariaLabel: "the words in their new order; choose two to swap "
    + "them, or move one with the arrow keys"});
  const lines = svg("svg", {viewBox: `0 0 100 ${high}`, preserveAspectRatio: "none",
                            "aria-hidden": "true", style: `height: ${high}px`});
  const order = (label, change) => view.button(label, () => { change(); state.held = null; });
  root.append(make("div.bar", {}, view.check("positions", "add positions"),
    view.check("causal", "causal mask"), order("shuffle", () => {
      for (let n = plain.length - 1; n > 0; n--) swap(n, Math.floor(Math.random() * (n + 1)));
    }), order("reverse", () => state.order.reverse()),
    order("reset", () => { state.order = [...plain]; })), view.status,
    make("div.orders", {}, left, lines, right), make("div.note", {}, "On the right, press two "
      + "words and they change places; or move one with the arrow keys."));

  function swap(a, b) { [state.order[a], state.order[b]] = [state.order[b], state.order[a]]; }
  function focus(place) {
    view.draw();
    right.children[place].querySelector("button").focus();
  }
  function hold(place) {
    if (state.held !== null) swap(state.held, place);
    state.held = state.held === null ? place : null;
    focus(place);
  }
  right.addEventListener("keydown", e => {
    const by = {ArrowUp: -1, ArrowDown: 1}[e.key] ?? 0, row = e.target.closest("li");
    if (!row || !by && e.key !== "Escape") return;
    const place = [...right.children].indexOf(row), to = place + by;
    if (by) e.preventDefault();
    if (!right.children[to]) return;
    swap(place, to);
    state.held = null;
    focus(to);
  });
  // an output as a strip of colours: green above zero, grey below
  function strip(out, limit) {
    const part = 100 / out.length, colour = x =>
      `rgba(var(--${x < 0 ? "grey" : "v"}), ${(Math.abs(x) / limit).toFixed(3)})`;
    const stops = Array.from(out, (x, e) => `${colour(x)} ${e * part}% ${(e + 1) * part}%`);
    return make("span.strip", {ariaHidden: "true",
                               style: `background: linear-gradient(90deg, ${stops.join()})`});
  }
  function show() {
    const before = ordered(words, places, plain, state);
    const after = ordered(words, places, state.order, state);
    const limit = Math.max(...before.map(most), ...after.map(most));
    const moved = state.order.map((n, place) => apart(after[place], before[n]));
    const kinds = moved.map(x => x > 1e-6 ? "moved" : "same"), far = Math.max(...moved);
    left.replaceChildren(...plain.map(n =>
      make("li", {}, make("span.word", {}, d.tokens[n]), strip(before[n], limit))));
    right.replaceChildren(...state.order.map((n, place) => {
      const kind = kinds[place], by = kind === "moved" ? two(moved[place]) : "same";
      const word = make("button.word", {ariaPressed: String(state.held === place),
        ariaLabel: `${d.tokens[n]}, place ${place}, was at ${n}, output `
          + (kind === "moved" ? `moved by ${by}` : "the same"),
        onclick: () => hold(place)}, d.tokens[n]);
      const row = make("li", {}, strip(after[place], limit), word,
                       make(`span.${kind}`, {title: exact(moved[place])}, by));
      row.dataset.word = n;
      return row;
    }));
    lines.replaceChildren(...state.order.map((n, place) => {
      const [y, to] = [n, place].map(row => (row + 0.5) * rowHeight), kind = kinds[place];
      const wide = kind === "moved" ? 1 + 3 * moved[place] / far : 1.5;
      return svg("path", {d: `M0 ${y}C40 ${y} 60 ${to} 100 ${to}`, class: kind,
                          style: `stroke-width: ${wide}`});
    }));
    const others = kinds.filter(kind => kind === "moved").length;
    return others === 0
      ? "The output of every word follows it: the same numbers at another place."
      : `${others} of ${plain.length} words have another output; that of `
        + `${d.tokens[state.order[largest(moved)]]} moved most, by ${two(far)}.`;
  }
  view.draw();
};
