// ---- a mask to click: each row of weights is shared out among the keys that it may see

// The softmax of a row over the keys that are visible; 0 where none is
function sharesOf(scores, mask) {
  const top = Math.max(...scores.filter((_, j) => mask[j]));
  const parts = scores.map((s, j) => mask[j] ? Math.exp(s - top) : 0), all = sum(parts);
  return parts.map(p => all ? p / all : 0);
}

views.mask_rows = (root, d) => {
  const {tokens, scores} = d, view = explorable(d.start, show), {state} = view;
  const flip = (i, j) => {
    state.mask[i][j] = 1 - state.mask[i][j];
    state.row = i;
    view.draw();
  };
  const cells = scores.map((row, i) => row.map((_, j) =>
    make("button", {onclick: () => flip(i, j), tabIndex: i + j ? -1 : 0})));
  const table = tableOf("mask", ["", ...tokens], ...cells.map((row, i) =>
    make("tr", {}, make("th", {scope: "row", title: tokens[i]}, tokens[i]),
         ...row.map(cell => make("td", {}, cell)))));
  const all = rule => () => scores.forEach((row, i) => {
    state.mask[i] = row.map((_, j) => Number(rule(i, j)));
  });
  root.append(make("div.bar", {}, view.button("all visible", all(() => true)),
                   view.button("causal", all((i, j) => j <= i)), view.reset),
              make("div.scroll", {}, table.element), view.status);
  // one stop of the tab key; arrows go from cell to cell
  table.element.addEventListener("keydown", e => {
    const [down, right] = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1],
                           ArrowRight: [0, 1]}[e.key] ?? [];
    const i = cells.findIndex(row => row.includes(e.target)), j = cells[i]?.indexOf(e.target);
    const next = cells[i + down]?.[j + right];
    if (!next) return;
    e.preventDefault();
    e.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });

  function show() {
    const rows = scores.map((row, i) => sharesOf(row, state.mask[i]));
    cells.forEach((line, i) => line.forEach((cell, j) => {
      const w = rows[i][j], seen = state.mask[i][j] === 1;
      cell.textContent = seen ? percent(w) : "";
      cell.className = seen ? "" : "hidden";
      cell.style.setProperty("--share", w);
      cell.ariaPressed = String(seen);
      cell.ariaLabel = `${tokens[i]}, key ${tokens[j]}: ${seen ? percent(w) : "hidden"}`;
    }));
    const at = state.row, seen = tokens.filter((_, j) => state.mask[at][j]);
    view.status.title = rows[at].map(exact).join(" ");
    if (!seen.length) return `${tokens[at]} may see no key: its weights are 0.`;
    return `${tokens[at]} may see ${seen.length} of ${tokens.length} keys: `
      + tokens.map((t, j) => [t, j]).filter(([, j]) => state.mask[at][j])
        .map(([t, j]) => `${t} ${percent(rows[at][j])}`).join(", ") + ".";
  }
  view.draw();
};
