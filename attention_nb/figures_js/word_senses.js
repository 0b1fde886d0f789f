// ---- one word in two sentences: a slider over the softness of its weights moves its new vector

// The weights of word `at` over the words of its sentence, and its new vector
function newVector(rows, at, temperature) {
  const size = Math.sqrt(rows[at].length) * temperature;
  const scores = rows.map(row => dot(row, rows[at]) / size), top = Math.max(...scores);
  const exps = scores.map(s => Math.exp(s - top)), total = sum(exps);
  const weights = exps.map(e => e / total);
  return {weights, vector: rows[at].map((_, e) => sum(rows.map((row, j) => weights[j] * row[e])))};
}
const cosine = (a, b) => dot(a, b) / (Math.sqrt(dot(a, a) * dot(b, b)) || 1);
// A place for each label beside its point where it covers none before it: [dx, dy] in pixels
function freePlaces(points, texts, width) {
  const taken = [];
  return points.map(([x, y], n) => {
    const long = 7.2 * texts[n].length + 4;
    const boxes = [0, -13, 13, -26, 26, -39, 39].flatMap(dy =>
      [[6, dy], [-6 - long, dy]].map(([dx, dy]) => [x + dx, y + dy, dx, dy]));
    const free = ([left, top]) => left >= 0 && left + long <= width && !taken.some(
      ([l, t, w]) => left < l + w && l < left + long && Math.abs(top - t) < 13);
    const [left, top, dx, dy] = boxes.find(free) ?? boxes[0];
    taken.push([left, top, long]);
    return [dx < 0 ? -6 : 6, dy, dx < 0 ? "end" : "start"];
  });
}

views.word_senses = async (root, d) => {
  const texts = await Promise.all(d.sentences.map(async s =>
    ({...s, rows: await rowsOf(s.xdata, d.width)})));
  const others = await rowsOf(d.odata, d.width), axes = await rowsOf(d.axes, d.width);
  const word = texts[0].rows[texts[0].at], name = texts[0].tokens[texts[0].at];
  const view = explorable(d.start, show), {state} = view, roles = ["plus", "minus"];
  // where a vector stands on the map, seen from the word
  const point = x => axes.map(axis => dot(axis, x) - dot(axis, word));
  const marks = others.map(point), steps = Array.from({length: 33}, (_, n) => 2 ** (n / 4 - 4));
  const path = texts.map(t =>
    [[0, 0], ...steps.map(T => point(newVector(t.rows, t.at, T).vector))]);
  const slider = view.slider({label: "temperature", min: -4, max: 4, step: 0.25,
    get: () => Math.log2(state.temperature), text: () => two(state.temperature),
    set: x => { state.temperature = 2 ** x; }});
  slider.children[1].before(make("span.end", {}, "itself alone"));
  slider.lastChild.before(make("span.end", {}, "all alike"));
  const boxes = texts.map(({tokens}, n) => {
    const shares = tokens.map(() => make("span.share")), near = make("span.near");
    const chips = tokens.map((token, j) =>
      make("span.chip", {}, make("span.token", {}, token), shares[j]));
    const box = make(`div.sentence.${roles[n]}`, {}, make("div.chips", {}, ...chips),
                     make("div.neighbours", {}, "near it: ", near));
    return {chips, shares, near, box};
  });
  const map = svg("svg", {class: "map", role: "img"});
  root.append(make("div.temper", {}, slider, view.reset),
              make("div.sentences", {}, ...boxes.map(b => b.box)), map, view.status);

  const all = [[0, 0], ...marks, ...path.flat()];
  const [least, greatest] = [Math.min, Math.max].map(f =>
    [0, 1].map(i => f(...all.map(p => p[i]))));
  function draw(found) {
    const W = map.clientWidth || 600, H = map.clientHeight || 280, edge = [58, 16];
    const fit = (p, i, size) => edge[i]
      + (p[i] - least[i]) / (greatest[i] - least[i] || 1) * (size - 2 * edge[i]);
    const place = p => [fit(p, 0, W), H - fit(p, 1, H)];
    const line = points => points.map((p, n) => (n ? "L" : "M") + place(p).join(" ")).join("");
    const places = [[0, 0], ...marks].map(place);
    const names = [name, ...d.others].map(text => cut(text, 16));
    const beside = freePlaces(places, names, W), near = found.map(f => new Set(f.near));
    map.replaceChildren(
      ...path.map((p, n) => svg("path", {class: `way ${roles[n]}`, d: line(p)})),
      ...places.flatMap(([x, y], n) => {
        const [dx, dy, anchor] = beside[n], mine = near.findIndex(set => set.has(n - 1));
        const kind = n === 0 ? "word" : mine < 0 ? "" : `close ${roles[mine]}`;
        return [svg("circle", {class: kind, cx: x, cy: y, r: 3}),
                svg("text", {class: kind, x: x + dx, y: y + dy + 4, "text-anchor": anchor},
                    names[n])];
      }),
      ...found.flatMap(({vector}, n) => {
        const [[x0, y0], [x, y]] = [[0, 0], point(vector)].map(place);
        const far = Math.hypot(x - x0, y - y0) || 1, [a, b] = [(x - x0) / far, (y - y0) / far];
        const visibility = far < 14 ? "hidden" : "visible";              // one that is all tip
        const tip = [[x, y], [x - 10 * a - 4 * b, y - 10 * b + 4 * a],
                     [x - 10 * a + 4 * b, y - 10 * b - 4 * a]];
        return [svg("line", {class: `arrow ${roles[n]}`, x1: x0, y1: y0, x2: x - 8 * a,
                             y2: y - 8 * b, visibility}),
                svg("polygon", {class: `tip ${roles[n]}`, points: tip.join(" "), visibility})];
      }));
  }
  function show() {
    const found = texts.map(t => {
      const {weights, vector} = newVector(t.rows, t.at, state.temperature);
      const like = others.map(y => cosine(vector, y));
      const near = [...like.keys()].sort((a, b) => like[b] - like[a]).slice(0, d.shown);
      return {weights, vector, like, near};
    });
    for (const [n, {weights, like, near}] of found.entries()) {
      for (const [j, w] of weights.entries()) {
        boxes[n].chips[j].style.setProperty("--w", w.toFixed(3));
        Object.assign(boxes[n].shares[j], {textContent: percent(w), title: exact(w)});
      }
      boxes[n].near.replaceChildren(...near.flatMap((m, k) =>
        [...k ? [", "] : [], make("b", {title: exact(like[m])}, d.others[m])]));
    }
    const [first, second] = found.map(f => f.near.slice(0, 3).map(m => d.others[m]).join(", "));
    const alike = cosine(found[0].vector, found[1].vector);
    view.status.dataset.cosine = exact(alike);
    map.ariaLabel = `A map of words; the arrow of ${name} ends near ${first} in the first `
      + `sentence, near ${second} in the second.`;
    draw(found);
    return `The cosine of the two vectors of ${name} is ${two(alike)}.`;
  }
  new ResizeObserver(view.draw).observe(root);
  view.draw();
};
