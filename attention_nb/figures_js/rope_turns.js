// ---- a query and a key: pairs of numbers that turn with their places, or have a place added

// The pairs of a vector as they are in `place`: turned, or with sine and cosine added
function placed(pairs, theta, place, added) {
  return pairs.map(([a, b], m) => {
    const sin = Math.sin(place * theta[m]), cos = Math.cos(place * theta[m]);
    return added ? [a + sin, b + cos] : [a * cos - b * sin, b * cos + a * sin];
  });
}
// Degrees from arrow x to arrow y, the short way round
const between = (x, y) => Math.atan2(x[0] * y[1] - x[1] * y[0], dot(x, y)) * 180 / Math.PI;

views.rope_turns = async (root, d) => {
  const pairsOf = ([x]) => d.pairs.map(([first, second]) => [x[first], x[second]]);
  const width = 2 * d.pairs.length, last = d.size - 1, both = 2;
  const [theta] = await rowsOf(d.thetadata, width / 2), q = pairsOf(await rowsOf(d.qdata, width));
  const k = pairsOf(await rowsOf(d.kdata, width)), view = explorable(d.start, show), {state} = view;
  const clamp = (x, most) => Math.min(Math.max(x, 0), most);
  const degrees = x => `${x.toFixed(0)}°`.replace("-", "−").replace("−0°", "0°");
  const longest = Math.max(...[...q, ...k].map(x => Math.hypot(...x)), 1e-9);

  // Places of the two words; that of both is the first of the two
  const first = () => Math.min(...state.positions);
  const placeOf = which => which === both ? first() : state.positions[which];
  const room = which => which === both ? last - apart() : last;
  const apart = () => Math.abs(state.positions[0] - state.positions[1]);
  function move(which, place) {
    const by = clamp(place, room(which)) - placeOf(which);
    state.positions = state.positions.map((at, n) => which === both || which === n ? at + by : at);
  }

  // a ruler of places, with two words and a bar between them to drag
  const track = make("div.track"), bar = make("div.both", {title: "both"});
  const chips = d.tokens.map((token, n) => make(`div.chip.${"qk"[n]}`, {title: token}, token));
  const percentOf = place => `${100 * place / last}%`;
  const step = [1, 2, 5, 10, 20, 50].find(s => last / s <= 12);
  for (let place = 0; place <= last; place += step)
    track.append(make("span.mark", {style: `left: ${percentOf(place)}`}, String(place)));
  track.append(bar, ...chips);
  const placeAt = e => {
    const {left, width} = track.getBoundingClientRect();
    return (e.clientX - left) / width * last;
  };
  for (const [which, handle] of [...chips, bar].entries()) {
    let held = null;                                    // how far the hand is from the place
    handle.addEventListener("pointerdown", e => {
      held = placeAt(e) - placeOf(which);
      handle.setPointerCapture(e.pointerId);
      e.preventDefault();
    });
    handle.addEventListener("pointermove", e => {
      if (held === null) return;
      move(which, Math.round(placeAt(e) - held));
      view.draw();
    });
    for (const end of ["pointerup", "pointercancel"])
      handle.addEventListener(end, () => { held = null; });
  }

  // the same by keyboard: a slider for each word and one for both
  const sliders = [...d.tokens, "both"].map((label, which) => view.slider({label,
    max: () => room(which), get: () => placeOf(which), set: place => move(which, place),
    text: () => which === both ? "" : String(placeOf(which)),
    ariaLabel: which === both ? "both places" : `place of ${label}`}));

  // a dial for each pair
  const faces = q.map(() => svg("svg", {viewBox: "-1.15 -1.15 2.3 2.3"}));
  function arrow([x, y], reach, role) {
    const [x2, y2] = [x / reach, -y / reach], length = Math.hypot(x2, y2);
    const line = svg("line", {class: role, x1: 0, y1: 0, x2, y2});
    if (role.includes("ghost") || length < 0.05) return [line];
    const [ux, uy] = [x2 / length * 0.11, y2 / length * 0.11];
    const tip = [[x2, y2], [x2 - ux - uy / 2, y2 - uy + ux / 2],
                 [x2 - ux + uy / 2, y2 - uy - ux / 2]];
    return [line, svg("polygon", {class: role, points: tip.map(p => p.join()).join(" ")})];
  }
  function arc(x, angle) {
    const first = Math.atan2(x[1], x[0]), turn = angle * Math.PI / 180, r = 0.32;
    const points = Array.from({length: 33}, (_, n) => first + turn * n / 32)
      .map(a => `${r * Math.cos(a)},${-r * Math.sin(a)}`);
    return svg("polyline", {class: "arc", points: points.join(" ")});
  }
  const {element, body} = tableOf("turns", ["a step", ...d.tokens, "angle", "score"]);
  root.append(make("div.ruler", {ariaHidden: "true"}, track), make("div.turning", {},
    make(q.length > 1 ? "div.dials" : "div.dials.one", {ariaHidden: "true"}, ...faces),
    make("div", {}, make("div.sliders", {}, ...sliders,
      view.check("added", "add the place instead of turning"), view.reset), view.status)), element);

  function show() {
    const {positions: [i, j], added} = state, x = placed(q, theta, i, added);
    const y = placed(k, theta, j, added), scores = x.map((pair, m) => dot(pair, y[m]));
    const angles = x.map((pair, m) => between(pair, y[m]));
    const total = sum(scores), reach = longest + (added ? 1 : 0);
    for (const [m, face] of faces.entries())
      face.replaceChildren(svg("circle", {class: "rim", r: 1.1}), arc(x[m], angles[m]),
        ...arrow(q[m], reach, "q ghost"), ...arrow(k[m], reach, "k ghost"),
        ...arrow(x[m], reach, "q"), ...arrow(y[m], reach, "k"));
    for (const [n, chip] of chips.entries()) chip.style.left = percentOf(state.positions[n]);
    Object.assign(bar.style, {left: percentOf(first()), width: percentOf(apart())});
    const cell = (value, text) => make("td", {title: exact(value)}, text);
    const direction = v => Math.atan2(v[1], v[0]) * 180 / Math.PI;
    const turn = v => cell(v, degrees(v)), each = theta.map(t => t * 180 / Math.PI);
    body.replaceChildren(...scores.map((score, m) => make("tr", {},
      cell(each[m], `${each[m].toPrecision(3)}°`), turn(direction(x[m])), turn(direction(y[m])),
      turn(angles[m]), cell(score, written(score, 3)))));
    view.status.title = exact(total);
    const far = apart() === 1 ? "1 place" : `${apart()} places`, [one, other] = d.tokens;
    return `${other} is `
      + `${i === j ? "in the place of" : `${far} ${j > i ? "after" : "before"}`} ${one}. `
      + (scores.length > 1 ? `Score ${written(total, 3)}, the sum of ${scores.length} pairs.`
        : `Angle between the arrows ${degrees(angles[0])}, score ${written(total, 3)}.`);
  }
  view.draw();
};
