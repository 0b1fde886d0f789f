// ---- byte pair encoding of a word that a reader types: each step applies one merge

// The pieces of a word after each merge: of all that fit the first learned, and where it fits first
function mergeSteps(word, ranks) {
  const steps = [{rank: null, pieces: [...word]}];
  for (;;) {
    const {pieces} = steps.at(-1);
    const fits = pieces.slice(1).map((right, i) => ranks.get(`${pieces[i]}\n${right}`) ?? Infinity);
    const rank = Math.min(...fits), at = fits.indexOf(rank);
    if (rank === Infinity) return steps;
    steps.push({rank, at, pieces: [...pieces.slice(0, at), pieces[at] + pieces[at + 1],
                                   ...pieces.slice(at + 2)]});
  }
}

views.merge_steps = (root, d) => {
  const ranks = new Map(d.merges.map(([left, right], rank) => [`${left}\n${right}`, rank]));
  const view = explorable(d.start, show), {state} = view;
  const steps = () => mergeSteps(state.word, ranks);
  const field = view.field({label: "word", maxLength: 24, get: () => state.word,
    set: word => Object.assign(state, {word, step: 0})});
  const rows = make("ol.merges");
  const arrows = view.steps({most: () => steps().length - 1, next: "next merge ›"});
  root.append(make("div.bar", {}, field, ...arrows, view.reset), rows, view.status);
  const shown = piece => piece.replaceAll(" ", "·");

  function show() {
    const all = steps(), next = all[state.step + 1], {pieces} = all[state.step];
    rows.replaceChildren(...all.slice(0, state.step + 1).map(({rank, at, pieces}) =>
      make("li", {}, make("span.rule", {}, rank === null ? "letters" : `merge ${many(rank + 1)}`),
           ...pieces.map((piece, i) => make(i === at ? "span.piece.new" : "span.piece", {},
                                            shown(piece))))));
    view.status.title = all.map(({rank}) => rank ?? "").join(" ");
    const now = `${many(pieces.length)} ${pieces.length === 1 ? "piece" : "pieces"}. `;
    if (!next) return now + "No merge fits.";
    const [left, right] = d.merges[next.rank].map(shown);
    return now + `The next is merge ${many(next.rank + 1)} of ${many(d.merges.length)}: `
      + `${left} + ${right}.`;
  }
  view.draw();
};
