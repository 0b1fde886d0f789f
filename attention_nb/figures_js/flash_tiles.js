// ---- tiles of a table of scores go by: what is at hand, what is moved, what is left out

// The tiles that are computed, in order: [block of queries, block of keys]
function tileOrder(kinds) {
  return kinds.flatMap((row, i) => [...row].flatMap((kind, j) => kind === "0" ? [] : [[i, j]]));
}

// Scores computed and numbers moved after `step` tiles
function passed(order, {L, S}, n, E, step) {
  const high = i => Math.min(n, L - i * n), wide = j => Math.min(n, S - j * n);
  const done = order.slice(0, step), behind = new Set(order.slice(step).map(([i]) => i));
  const begun = [...new Set(done.map(([i]) => i))];
  const fetched = sum(begun.map(i => high(i) * E)) + sum(done.map(([, j]) => 2 * wide(j) * E));
  const written = sum(begun.filter(i => !behind.has(i)).map(i => high(i) * E));
  return [sum(done.map(([i, j]) => high(i) * wide(j))), fetched + written];
}

views.flash_tiles = (root, d) => {
  const view = explorable({rule: 0, side: 0, step: d.step}, show), {state} = view;
  let kinds, order, cells, tops, sides;
  // all of it is shown, then back as you like
  const choose = (label, names, what) => names.length < 2 ? "" : select(label, names, 0, x => {
    Object.assign(state, {[what]: x, step: Infinity});
    build();
  });
  const grid = view.picture = make("div.tiles", {role: "img"});
  const table = counts(["tiles computed", "tiles left out", "scores computed", "numbers moved",
                        "moved with the whole table", "numbers at hand"], [], 1);
  const legend = make("div.legend", {}, ...[["q", "queries"], ["k", "keys"], ["v", "values"],
    ["all", "tile"], ["some", "tile with a mask"]].map(([name, text]) =>
    make("span", {}, make(`i.${name}`), text)));
  const of = () => `${state.step} of ${order.length}`;
  root.append(make("div.bar", {}, choose("rule ", d.rules.map(r => r.name), "rule"),
    choose("tiles of ", d.sides.map(n => `${n} × ${n}`), "side"),
    ...view.steps({most: () => order.length, next: "next tile ›", label: "tiles", text: of})),
    view.status, make("div.going", {}, make("div.place", {}, grid, legend), table.element));

  function build() {
    kinds = d.rules[state.rule].kinds[state.side];
    order = tileOrder(kinds);
    tops = [...kinds[0]].map(() => make("i.top"));
    sides = kinds.map(() => make("i.side"));
    cells = kinds.map(row => [...row].map(kind => make(`i.${["none", "some", "all"][kind]}`)));
    grid.style.setProperty("--n", kinds[0].length + 1);
    grid.replaceChildren(make("i"), ...tops, ...cells.flatMap((row, i) => [sides[i], ...row]));
    view.draw();
  }
  function show() {
    const t = state.step, rule = d.rules[state.rule], n = d.sides[state.side], E = d.width;
    const {L, S} = rule, [row, column] = t ? order[t - 1] : [-1, -1];
    order.forEach(([i, j], at) => {
      cells[i][j].classList.toggle("done", at < t);
      cells[i][j].classList.toggle("now", at === t - 1);
    });
    tops.forEach((top, j) => top.classList.toggle("on", j === column));
    sides.forEach((side, i) => side.classList.toggle("on", i === row));
    table.put([[of(), kinds.length * kinds[0].length - order.length,
                ...passed(order, rule, n, E, t), 2 * E * (L + S) + 4 * L * S,
                4 * n * E + n * n + 2 * n]]);
    if (!t) return "Nothing is computed yet.";
    const places = (i, end) => `${i * n} to ${Math.min((i + 1) * n, end) - 1}`;
    return `Queries ${places(row, L)} meet keys ${places(column, S)}`
      + (kinds[row][column] === "1" ? ", some of them hidden" : "")
      + (order[t]?.[0] === row ? "." : ". Their output is written.");
  }
  build();
};
