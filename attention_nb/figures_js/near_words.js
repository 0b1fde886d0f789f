// ---- the words near a word that a reader types or clicks

// The rows with the largest cosines with row `at`, without itself: [[row, cosine], ...]
function nearest(rows, at, shown) {
  const length = x => Math.sqrt(dot(x, x)), own = rows[at];
  const found = rows.map((x, n) => [n, dot(own, x) / (length(own) * length(x))]);
  return found.filter(([n]) => n !== at).sort((a, b) => b[1] - a[1]).slice(0, shown);
}

views.near_words = async (root, d) => {
  const rows = await rowsOf(d.xdata, d.width), place = new Map(d.words.map((w, n) => [w, n]));
  const view = explorable(d.start, show), {state} = view;
  const field = view.field({label: "word", maxLength: 40, get: () => state.word,
    set: word => { state.word = word; }});
  field.lastChild.setAttribute("list", "words");
  const list = make("datalist", {id: "words"}, ...d.words.map(w => make("option", {}, w)));
  const cells = Array.from({length: d.shown}, () => {
    const go = view.button("", () => { state.word = go.textContent; }), cos = barCell("weight");
    return {row: make("tr", {}, make("th", {scope: "row"}, go), cos), go, cos};
  });
  const table = tableOf("bars", ["", "cosine"], ...cells.map(c => c.row)).element;
  root.append(make("div.bar", {}, field, list, view.reset), view.status, table);

  function show() {
    const at = place.get(state.word) ?? place.get(state.word.trim().toLowerCase());
    table.hidden = at === undefined;
    view.status.title = "";
    if (at === undefined) {
      return `${state.word || "An empty word"} is not among the ${many(d.words.length)} words `
        + "of this page.";
    }
    const near = nearest(rows, at, d.shown);
    for (const [i, [n, cosine]] of near.entries()) {
      const {go, cos} = cells[i];
      go.textContent = d.words[n];
      cos.put(cosine, written(cosine));
    }
    view.status.title = near.map(([, cosine]) => exact(cosine)).join(" ");
    return `Nearest to ${d.words[at]}: ${near.slice(0, 3).map(([n]) => d.words[n]).join(", ")}.`;
  }
  view.draw();
};
