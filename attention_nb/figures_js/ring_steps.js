// ---- a text divided among processes: what each computes at each step of a ring, and who waits

// For each step, how many pairs of a query and a key each process computes
function pairsOfSteps(ranks, n) {
  const found = Array.from({length: n}, () => Array(n).fill(0));
  ranks.forEach((r, i) => ranks.slice(0, i + 1).forEach(other => {
    found[(r - other + n) % n][r]++;
  }));
  return found;
}

views.ring_steps = (root, d) => {
  const view = explorable(d.start, show), {state} = view, n = d.processes;
  const L = d.orders[0].ranks.length, cell = 100 / (L + 2), wide = 300, high = 26;
  const steps = d.orders.map(o => pairsOfSteps(o.ranks, n));
  const longest = pairs => Math.max(...pairs);
  const whole = Math.max(...steps.map(all => sum(all.map(longest))));
  const square = svg("svg", {viewBox: "0 0 100 100", class: "pairs", "aria-hidden": "true"});
  const lanes = svg("svg", {viewBox: `0 0 ${wide} ${n * high}`, class: "lanes",
                            "aria-hidden": "true"});
  const words = make("div.legend", {}, ...[["now", "computed at this step"], ["done", "before"],
    ["later", "later"]].map(([name, text]) => make("span", {}, make(`i.${name}`), text)));
  view.picture = make("div.rings", {role: "img"},
    make("figure", {}, make("figcaption", {}, "queries down, keys across; who keeps them"),
         square, words),
    make("figure", {}, make("figcaption", {}, "processes and their time"), lanes));
  const choice = d.orders.length < 2 ? "" : select("order ", d.orders.map(o => o.name),
    state.order, x => { state.order = x; view.draw(); });
  root.append(make("div.bar", {}, choice, ...view.steps({most: () => n, next: "next step ›",
    label: "steps", text: () => `${state.step} of ${n}`})), view.status, view.picture);

  function number(x, y, text, size) {
    return svg("text", {x, y, "font-size": size, "text-anchor": "middle"}, text);
  }
  function show() {
    const {ranks} = d.orders[state.order], all = steps[state.order], t = state.step;
    const when = step => step === t - 1 ? "now" : step < t ? "done" : "later";
    square.replaceChildren(...ranks.flatMap((r, i) => [
      number(cell, (i + 2.75) * cell, r, cell * .8), number((i + 2.5) * cell, cell, r, cell * .8),
      ...ranks.slice(0, i + 1).map((other, j) => svg("rect", {
        x: (j + 2) * cell, y: (i + 2) * cell, width: cell * .9, height: cell * .9,
        class: when((r - other + n) % n)}))]));
    const x = pairs => 14 + (wide - 16) * pairs / whole, marks = [];
    let at = 0;
    all.slice(0, t).forEach((pairs, step) => {
      pairs.forEach((count, r) => marks.push(svg("rect", {x: x(at), y: r * high + 4,
        width: Math.max(0, x(at + count) - x(at) - .8), height: high - 8, class: when(step)})));
      at += longest(pairs);
      marks.push(svg("path", {d: `M${x(at)} 0V${n * high}`}));
    });
    lanes.replaceChildren(...all.map((_, r) => number(6, (r + .68) * high, r, 12)), ...marks);
    if (!t) return "Nothing is computed yet.";
    const done = sum(all.slice(0, t).flat()), idle = 1 - done / (at * n), last = all[t - 1];
    const waits = last.filter(count => count < longest(last)).length;
    return `Step ${t} takes as long as ${many(longest(last))} pairs, and ${waits || "no"} `
      + `${waits === 1 ? "process waits" : "processes wait"}. The steps so far take `
      + `${many(at)}; ${Math.round(100 * idle)} % of everybody's time was waiting.`;
  }
  view.draw();
};
