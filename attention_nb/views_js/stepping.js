// ---- words are read one at a time: which keys and values a step makes, which it only reads

// What step `t` makes, what all steps so far have made, and bytes kept and read in it
function counted(t, bytes, keeps) {
  return keeps ? {made: 1, total: t, kept: t * bytes, read: (t - 1) * bytes}
               : {made: t, total: t * (t + 1) / 2, kept: 0, read: 0};
}

views.stepping = (root, d) => {
  const state = {...d.start}, L = d.tokens.length, many = x => x.toLocaleString("en");
  const bar = make("div.bar"), status = make("div.status", {role: "status", ariaLive: "polite"});
  const button = (label, by) => {
    const b = make("button", {onclick: () => go(state.step + by)}, label);
    bar.append(b);
    return b;
  };
  const back = button("‹ back", -1), next = button("next word ›", 1);
  const slider = make("input", {type: "range", min: 1, max: L, step: 1,
                                oninput: () => go(+slider.value)});
  const keeps = make("input", {type: "checkbox",
    onchange: () => { state.keeps = keeps.checked; show(); }});
  bar.append(make("label", {}, "step", slider), make("label", {}, keeps, "with a cache"));

  // a row for each step: in each column the key and the value of a word
  const heads = d.tokens.map(token =>
    make("th", {scope: "col", title: token}, make("span", {}, token)));
  const rows = d.tokens.map(() => make("tr", {}, ...d.tokens.map(() => make("td"))));
  const grid = make("table.cells", {}, make("thead", {}, make("tr", {}, ...heads)),
                    make("tbody", {}, ...rows));
  const names = {made: "keys and values made", total: "made so far", kept: "bytes kept",
                 read: "bytes read from the cache"};
  const cells = {};
  const lines = Object.entries(names).map(([name, text]) => {
    cells[name] = [make("td"), make("td")];
    return make("tr", {}, make("th", {scope: "row"}, text), ...cells[name]);
  });
  const titles = ["step", "with", "without"].map(text => make("th", {scope: "col"}, text));
  const table = make("table.counts", {}, make("thead", {}, make("tr", {}, ...titles)),
                     make("tbody", {}, ...lines));
  root.append(bar, status, make("div.stepping", {}, make("div.grid", {role: "img"}, grid), table));

  function go(step) { state.step = Math.min(Math.max(step, 1), L); show(); }
  function show() {
    const t = state.step, word = d.tokens[t - 1];
    slider.value = t;
    slider.ariaValueText = `${t}, ${word}`;
    keeps.checked = state.keeps;
    back.disabled = t === 1;
    next.disabled = t === L;
    rows.forEach((row, i) => [...row.cells].forEach((cell, j) => {
      const kind = i >= t || j > i ? "" : state.keeps && j < i ? "read" : "made";
      cell.className = kind + (i === t - 1 ? " now" : "");
    }));
    heads.forEach((head, j) => {
      head.className = j >= t ? "later" : state.keeps && j < t - 1 ? "read" : "made";
    });
    const both = [true, false].map(on => counted(t, d.bytes, on));
    for (const name in cells)
      both.forEach((numbers, n) => { cells[name][n].textContent = many(numbers[name]); });
    titles[0].textContent = `step ${t}`;
    titles[1].className = state.keeps ? "on" : "";
    titles[2].className = state.keeps ? "" : "on";
    const {made, read} = both[state.keeps ? 0 : 1];
    status.textContent = state.keeps
      ? `Step ${t}, ${word}: its key and value are made, those of ${t - 1} before are read, `
        + `${many(read)} bytes.`
      : `Step ${t}, ${word}: keys and values of all ${made} are made again, nothing is kept.`;
    grid.parentNode.ariaLabel = status.textContent;
    root.dataset.ready = "yes";
  }
  root.addEventListener("keydown", e => {
    const by = {ArrowRight: 1, ArrowLeft: -1}[e.key];
    if (by && e.target !== slider) { e.preventDefault(); go(state.step + by); }
  });
  show();
};
