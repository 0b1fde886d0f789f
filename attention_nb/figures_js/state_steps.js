// ---- one matrix into which pairs of a key and a value are written, and from which keys are read

const readingOf = (S, q) => S[0].map((_, n) => sum(q.map((x, e) => x * S[e][n])));

// The state after all writes, each a row of the keys and one of the values
function stateOf(k, v, writes, delta) {
  const S = k[0].map(() => v[0].map(() => 0));
  for (const [i, j] of writes) {
    const there = delta ? readingOf(S, k[i]) : v[j].map(() => 0);
    S.forEach((row, e) => row.forEach((_, n) => { row[n] += k[i][e] * (v[j][n] - there[n]); }));
  }
  return S;
}

// What key `i` reads: its numbers, the values nearest to them, what was written last, the error
function readBack(k, v, writes, S, i) {
  const read = readingOf(S, k[i]), away = v.map(x => Math.hypot(...x.map((a, n) => a - read[n])));
  const last = writes.findLast(([key]) => key === i)?.[1];
  const empty = Math.max(...read.map(Math.abs)) < 1e-6, least = Math.min(...away) + 1e-6;
  const near = empty ? [] : [...v.keys()].filter(j => away[j] <= least);
  return {read, near, last, error: last === undefined ? 0 : away[last] / Math.hypot(...v[last]),
          right: near.length === 1 && near[0] === last};
}

views.state_steps = (root, d) => {
  const {k, v} = d, view = explorable(d.start, show), {state} = view;
  const [keys, values] = [d.keys, d.values].map(words => words.map(word => cut(word, 24)));
  const listed = words => words.join(", ").replace(/, (?=[^,]*$)/, " and ");
  const write = (i, j) => { state.writes.push([i, j]); look(i, j); };
  const look = (i, j) => { state.at = i; state.value = j; };
  const fresh = () => k.findIndex((_, i) => !state.writes.some(([key]) => key === i));
  const next = view.button("write the next pair", () => write(fresh(), fresh()));
  const rules = ["sum", "delta rule"].map((name, n) =>
    view.button(name, () => { state.delta = n === 1; }));
  const cards = d.keys.map((word, i) => {
    const button = view.button("", () => look(i, i)), [read, error] = [make("i"), make("small")];
    button.append(make("b", {title: word}, word), read, error);
    return {button, read, error};
  });
  const choice = select("as", d.values, 0, j => { state.value = j; }), name = make("span.name");
  const again = view.button("write", () => write(state.at, state.value));
  const cell = () => make("td"), row = (...cells) => make("tr", {}, ...cells);
  const places = k[0].map(() => ({key: make("th", {scope: "row"}), cells: v[0].map(cell)}));
  const [got, given] = ["reads", "written"].map(text =>
    ({key: make("th", {scope: "row"}, text), cells: v[0].map(cell)}));
  const rows = [...places, got, given], table = tableOf("memory", ["", "state"],
    ...rows.map(({key, cells}) => row(key, ...cells)));
  table.heads[1].colSpan = v[0].length;
  root.append(
    make("div.bar", {}, next, make("span.rules", {role: "group", ariaLabel: "rule"}, ...rules),
         view.reset),
    make("div.board", {}, make("div.keys", {role: "group", ariaLabel: "read a key"},
                               ...cards.map(({button}) => button)),
         make("div.reading", {}, make("div.bar", {}, again, name, choice), table.element)),
    view.status);

  function show() {
    const {writes, at, delta} = state, S = stateOf(k, v, writes, delta);
    const all = k.map((_, i) => readBack(k, v, writes, S, i)), {read, last} = all[at];
    const found = all.filter(({last}) => last !== undefined);
    cards.forEach(({button, read, error}, i) => {
      const {near, last, right, error: off} = all[i];
      button.ariaPressed = String(i === at);
      button.className = last === undefined ? "new" : right ? "right" : "wrong";
      read.textContent = last === undefined ? "–"
        : `→ ${near.map(j => values[j]).join(" or ") || "zeros"}`;
      error.textContent = last === undefined ? "not written"
        : `${right ? "✓" : "✗"} error ${written(off)}`;
    });
    next.disabled = fresh() < 0;
    rules.forEach((button, n) => { button.ariaPressed = String(delta === (n === 1)); });
    name.textContent = keys[at];
    choice.querySelector("select").value = state.value;
    table.heads[0].replaceChildren(keys[at]);
    const scale = Math.max(most(S.flat()), most(v.flat()), most(read));
    const fill = ({cells}, numbers) => cells.forEach((td, n) => {
      td.textContent = numbers ? written(numbers[n]) : "";
      td.className = numbers?.[n] < 0 ? "minus" : "plus";
      td.style.setProperty("--share", numbers ? Math.abs(numbers[n]) / scale : 0);
    });
    places.forEach((place, e) => { place.key.textContent = written(k[at][e]); fill(place, S[e]); });
    fill(got, read);
    given.key.textContent = last === undefined ? "" : values[last];
    fill(given, v[last]);
    view.status.title = [...S.flat(), ...all.flatMap(x => x.read), ...all.map(x => x.error)]
      .map(exact).join(" ");
    return writes.length ? `${told(all[at])} ${found.filter(x => x.right).length} of `
      + `${many(found.length)} written keys read back right.` : "Nothing is written yet.";
  }

  // The reading of the key, and what has been mixed into it, in a sentence
  function told({near, last, right, error}) {
    const {writes, at, delta} = state, like = i => Math.abs(dot(k[i], k[at])) > 1e-6;
    const since = writes.findLastIndex(([i]) => i === at), word = keys[at];
    const words = listed(near.map(j => values[j]));
    const seen = !near.length ? "reads zeros"
      : near.length > 1 ? `reads something equally near to ${words}` : `reads back as ${words}`;
    const others = writes.filter(([i], n) => like(i) && (delta ? n > since : n !== since));
    const list = n => listed([...new Set(others.map(pair => (n ? values : keys)[pair[n]]))]);
    if (since < 0) return others.length && near.length
      ? `${word} is not written, but ${seen}: its key is like that of ${list(0)}.`
      : `${word} is not written yet and ${seen}.`;
    if (error < 1e-6) return `${word} reads back as ${values[last]}, without error.`;
    const but = right ? "" : `was written as ${values[last]}, but `;
    const why = delta ? `writing ${list(0)} has changed it`
      : `the sum has mixed ${list(1)} into it`;
    return `${word} ${but}${seen}, with an error of ${written(error)}: ${why}.`;
  }
  view.draw();
};
