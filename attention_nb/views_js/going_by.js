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
  return {scores: sum(done.map(([i, j]) => high(i) * wide(j))), moved: fetched + written};
}

views.going_by = (root, d) => {
  const state = {rule: 0, side: 0, step: d.step}, many = x => x.toLocaleString("en");
  const bar = make("div.bar"), status = make("div.status", {role: "status", ariaLive: "polite"});
  const choose = (label, names, what) => {
    if (names.length > 1) bar.append(select(label, names, 0, x => {
      state[what] = x;
      state.step = Infinity;                            // all of it, then back as you like
      build();
    }));
  };
  choose("rule ", d.rules.map(r => r.name), "rule");
  choose("tiles of ", d.sides.map(n => `${n} × ${n}`), "side");
  const button = (label, by) => {
    const b = make("button", {onclick: () => go(state.step + by)}, label);
    bar.append(b);
    return b;
  };
  const back = button("‹ back", -1), next = button("next tile ›", 1);
  const slider = make("input", {type: "range", min: 0, step: 1,
                                oninput: () => go(+slider.value)});
  bar.append(make("label", {}, "tiles", slider));

  const grid = make("div.tiles", {role: "img"});
  const counts = {};
  const lines = Object.entries({computed: "tiles computed", out: "tiles left out",
    scores: "scores computed", moved: "numbers moved", once: "moved with the whole table",
    hand: "numbers at hand"}).map(([name, text]) => {
    counts[name] = make("td");
    return make("tr", {}, make("th", {scope: "row"}, text), counts[name]);
  });
  const table = make("table.counts", {}, make("tbody", {}, ...lines));
  const legend = make("div.legend", {}, ...[["q", "queries"], ["k", "keys"], ["v", "values"],
    ["all", "tile"], ["some", "tile with a mask"]].map(([name, text]) =>
    make("span", {}, make(`i.${name}`), text)));
  root.append(bar, status, make("div.going", {}, make("div.place", {}, grid, legend), table));

  let order, cells, tops, sides;
  const rule = () => d.rules[state.rule], n = () => d.sides[state.side];
  function build() {
    const kinds = rule().kinds[state.side];
    order = tileOrder(kinds);
    tops = [...kinds[0]].map(() => make("i.top"));
    sides = kinds.map(() => make("i.side"));
    cells = kinds.map(row => [...row].map(() => make("i")));
    grid.style.setProperty("--n", kinds[0].length + 1);
    grid.replaceChildren(make("i"), ...tops, ...cells.flatMap((row, i) => [sides[i], ...row]));
    go(state.step);
  }
  function go(step) { state.step = Math.min(Math.max(step, 0), order.length); show(); }
  function show() {
    const t = state.step, kinds = rule().kinds[state.side], {L, S} = rule(), E = d.width;
    const now = t ? order[t - 1] : [-1, -1];
    const last = order.findLastIndex(([i]) => i === now[0]) + 1;
    slider.max = order.length;
    slider.value = t;
    back.disabled = t === 0;
    next.disabled = t === order.length;
    cells.forEach((row, i) => row.forEach((cell, j) => {
      cell.className = ["none", "some", "all"][kinds[i][j]];
    }));
    order.slice(0, t).forEach(([i, j]) => cells[i][j].classList.add("done"));
    if (t) cells[now[0]][now[1]].classList.add("now");
    tops.forEach((top, j) => { top.className = j === now[1] ? "top on" : "top"; });
    sides.forEach((side, i) => { side.className = i === now[0] ? "side on" : "side"; });
    const {scores, moved} = passed(order, rule(), n(), E, t);
    const total = kinds.length * kinds[0].length;
    const say = {computed: `${t} of ${order.length}`, out: many(total - order.length),
                 scores: many(scores), moved: many(moved), once: many(2 * E * (L + S) + 4 * L * S),
                 hand: many(4 * n() * E + n() * n() + 2 * n())};
    for (const name in say) counts[name].textContent = say[name];
    status.textContent = !t ? "Nothing is computed yet."
      : `Queries ${now[0] * n()} to ${Math.min((now[0] + 1) * n(), L) - 1} meet keys `
        + `${now[1] * n()} to ${Math.min((now[1] + 1) * n(), S) - 1}`
        + (kinds[now[0]][now[1]] === "1" ? ", some of them hidden" : "")
        + (t === last ? ". Their output is written." : ".");
    grid.ariaLabel = status.textContent;
    slider.ariaValueText = `${t} of ${order.length}`;
    root.dataset.ready = "yes";
  }
  root.addEventListener("keydown", e => {
    const by = {ArrowRight: 1, ArrowLeft: -1}[e.key];
    if (by && e.target !== slider && e.target.tagName !== "SELECT") {
      e.preventDefault();
      go(state.step + by);
    }
  });
  build();
};
