// ---- words are read one at a time: which keys and values a step makes, which it only reads

// What step `t` makes, what all steps so far have made, and bytes kept and read in it
function counted(t, bytes, keeps) {
  return keeps ? [1, t, t * bytes, (t - 1) * bytes] : [t, t * (t + 1) / 2, 0, 0];
}

views.cache_steps = (root, d) => {
  const view = explorable(d.start, show), {state} = view, {tokens} = d;
  // a row for each step: in each column the key and the value of a word
  const rows = tokens.map(() => make("tr", {}, ...tokens.map(() => make("td"))));
  const {heads, element} = tableOf("cells", tokens, ...rows);
  heads.forEach((head, j) => head.replaceChildren(make("span", {}, tokens[j])));
  const table = counts(["keys and values made", "made so far", "bytes kept",
                        "bytes read from the cache"], ["step", "with", "without"]);
  view.picture = make("div.grid", {role: "img"}, element);
  root.append(make("div.bar", {},
    ...view.steps({least: 1, most: () => tokens.length, next: "next word ›", label: "step",
                   text: () => `${state.step}, ${tokens[state.step - 1]}`}),
    view.check("keeps", "with a cache")), view.status,
    make("div.stepping", {}, view.picture, table.element));

  function show() {
    const {step: t, keeps} = state, both = [true, false].map(on => counted(t, d.bytes, on));
    rows.forEach((row, i) => [...row.cells].forEach((cell, j) => {
      const kind = i >= t || j > i ? "" : keeps && j < i ? "read" : "made";
      cell.className = kind + (i === t - 1 ? " now" : "");
    }));
    heads.forEach((head, j) => {
      head.className = j >= t ? "later" : keeps && j < t - 1 ? "read" : "made";
    });
    table.put(both);
    table.heads[0].textContent = `step ${t}`;
    table.heads.slice(1).forEach((head, n) => head.classList.toggle("on", keeps === !n));
    return `Step ${t}, ${tokens[t - 1]}: ` + (keeps
      ? `its key and value are made, those of ${t - 1} before are read, ${many(both[0][3])} bytes.`
      : `keys and values of all ${both[1][0]} are made again, nothing is kept.`);
  }
  view.draw();
};
