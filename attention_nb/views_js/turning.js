// ---- a query and a key: pairs of numbers that turn with their places, or have a place added

// The pairs of a vector as they are in `place`: turned, or with sine and cosine added
function placed(pairs, theta, place, added) {
  return pairs.map(([a, b], m) => {
    const sin = Math.sin(place * theta[m]), cos = Math.cos(place * theta[m]);
    return added ? [a + sin, b + cos] : [a * cos - b * sin, b * cos + a * sin];
  });
}
const product = (x, y) => x[0] * y[0] + x[1] * y[1];
// Degrees from arrow x to arrow y, the short way round
const between = (x, y) => Math.atan2(x[0] * y[1] - x[1] * y[0], product(x, y)) * 180 / Math.PI;

views.turning = async (root, d) => {
  const read = async packed => new Float32Array(await inflate(packed));
  const pairsOf = x => d.pairs.map(([first, second]) => [x[first], x[second]]);
  const theta = await read(d.thetadata), q = pairsOf(await read(d.qdata));
  const k = pairsOf(await read(d.kdata)), last = d.size - 1;
  const state = {...d.start, places: [...d.start.places]};
  const clamp = (x, most) => Math.min(Math.max(x, 0), most);
  const degrees = x => `${x.toFixed(0)}°`.replace("-", "−").replace("−0°", "0°");
  const longest = Math.max(...[...q, ...k].map(x => Math.hypot(...x)), 1e-9);

  function move(which, place) {
    const [i, j] = state.places;
    if (which === 0) state.places = [clamp(place, last), j];
    if (which === 1) state.places = [i, clamp(place, last)];
    if (which === 2) {                                  // both: `place` is that of the first
      const by = clamp(place, last - Math.abs(i - j)) - Math.min(i, j);
      state.places = [i + by, j + by];
    }
    show();
  }

  // a ruler of places, with two words and a bar between them to drag
  const ruler = make("div.ruler", {ariaHidden: "true"}), track = make("div.track");
  const chips = d.tokens.map((token, n) => make(`div.chip.${"qk"[n]}`, {title: token}, token));
  const bar = make("div.both", {title: "both"});
  const step = [1, 2, 5, 10, 20, 50].find(s => last / s <= 12);
  for (let place = 0; place <= last; place += step) {
    const mark = make("span.mark", {}, String(place));
    mark.style.left = `${100 * place / last}%`;
    track.append(mark);
  }
  ruler.append(track);
  track.append(bar, ...chips);
  const placeAt = e => {
    const {left, width} = track.getBoundingClientRect();
    return (e.clientX - left) / width * last;
  };
  for (const [which, handle] of [...chips, bar].entries()) {
    let held = null;                                    // how far the hand is from the place
    const at = () => which === 2 ? Math.min(...state.places) : state.places[which];
    handle.addEventListener("pointerdown", e => {
      held = placeAt(e) - at();
      handle.setPointerCapture(e.pointerId);
      e.preventDefault();
    });
    handle.addEventListener("pointermove", e => {
      if (held !== null) move(which, Math.round(placeAt(e) - held));
    });
    for (const end of ["pointerup", "pointercancel"])
      handle.addEventListener(end, () => { held = null; });
  }

  // the same by keyboard: a slider for each word and one for both
  const panel = make("div.steps");
  const sliders = [...d.tokens, "both"].map((name, which) => {
    const input = make("input", {type: "range", min: 0, max: last, step: 1,
                                 ariaLabel: which < 2 ? `place of ${name}` : "both places"});
    input.addEventListener("input", () => move(which, +input.value));
    const reading = make("output");
    panel.append(make("label", {}, make("span", {title: name}, name), input, reading));
    return {input, reading};
  });
  const adding = make("input", {type: "checkbox",
    onchange: () => { state.added = adding.checked; show(); }});
  const back = () => { Object.assign(state, {...d.start, places: [...d.start.places]}); show(); };
  panel.append(make("label.check", {}, adding, "add the place instead of turning"),
               make("button", {onclick: back}, "reset"));

  // a dial for each pair
  const drawn = (parent, tag, properties) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
    parent.append(element);
    return element;
  };
  const dials = make(q.length > 1 ? "div.dials" : "div.dials.one", {ariaHidden: "true"});
  const faces = q.map(() => drawn(dials, "svg", {viewBox: "-1.15 -1.15 2.3 2.3"}));
  function arrow(face, [x, y], reach, role) {
    const [tx, ty] = [x / reach, -y / reach], length = Math.hypot(tx, ty);
    drawn(face, "line", {class: role, x1: 0, y1: 0, x2: tx, y2: ty});
    if (role.includes("ghost") || length < 0.05) return;
    const [ux, uy] = [tx / length * 0.11, ty / length * 0.11];
    const tip = [[tx, ty], [tx - ux - uy / 2, ty - uy + ux / 2],
                 [tx - ux + uy / 2, ty - uy - ux / 2]];
    drawn(face, "polygon", {class: role, points: tip.map(p => p.join()).join(" ")});
  }
  function arc(face, x, angle) {
    const first = Math.atan2(x[1], x[0]), turn = angle * Math.PI / 180, r = 0.32;
    const points = Array.from({length: 33}, (_, n) => first + turn * n / 32)
      .map(a => `${r * Math.cos(a)},${-r * Math.sin(a)}`);
    drawn(face, "polyline", {class: "arc", points: points.join(" ")});
  }

  const status = make("div.status", {role: "status", ariaLive: "polite"}), body = make("tbody");
  const heads = ["a step", d.tokens[0], d.tokens[1], "angle", "score"];
  const table = make("table.turns", {}, make("thead", {}, make("tr", {},
    ...heads.map(text => make("th", {scope: "col", title: text}, text)))), body);
  root.append(ruler, make("div.turning", {}, dials, make("div", {}, panel, status)), table);

  function show() {
    const [i, j] = state.places, x = placed(q, theta, i, state.added);
    const y = placed(k, theta, j, state.added), scores = x.map((pair, m) => product(pair, y[m]));
    const angles = x.map((pair, m) => between(pair, y[m]));
    const total = sum(scores), reach = longest + (state.added ? 1 : 0);
    for (const [m, face] of faces.entries()) {
      face.replaceChildren();
      drawn(face, "circle", {class: "rim", r: 1.1});
      arc(face, x[m], angles[m]);
      arrow(face, q[m], reach, "q ghost");
      arrow(face, k[m], reach, "k ghost");
      arrow(face, x[m], reach, "q");
      arrow(face, y[m], reach, "k");
    }
    for (const [n, chip] of chips.entries()) chip.style.left = `${100 * state.places[n] / last}%`;
    bar.style.left = `${100 * Math.min(i, j) / last}%`;
    bar.style.width = `${100 * Math.abs(i - j) / last}%`;
    for (const [which, {input, reading}] of sliders.entries()) {
      if (which === 2) input.max = last - Math.abs(i - j);
      input.value = which === 2 ? Math.min(i, j) : state.places[which];
      reading.textContent = which === 2 ? "" : state.places[which];
    }
    adding.checked = state.added;
    const cell = (value, text) => make("td", {title: exact(value)}, text);
    const direction = v => Math.atan2(v[1], v[0]) * 180 / Math.PI;
    const rows = scores.map((score, m) => make("tr", {},
      cell(theta[m] * 180 / Math.PI, `${(theta[m] * 180 / Math.PI).toPrecision(3)}°`),
      cell(direction(x[m]), degrees(direction(x[m]))), cell(direction(y[m]),
      degrees(direction(y[m]))), cell(angles[m], degrees(angles[m])),
      cell(score, written(score, 3))));
    body.replaceChildren(...rows);
    const steps = Math.abs(j - i), apart = steps === 1 ? "1 place" : `${steps} places`;
    const side = j > i ? "after" : "before";
    status.textContent = `${d.tokens[1]} is ${j === i ? "in the place of" : `${apart} ${side}`} `
      + `${d.tokens[0]}. `
      + (scores.length > 1 ? `Score ${written(total, 3)}, the sum of ${scores.length} pairs.`
        : `Angle between the arrows ${degrees(angles[0])}, score ${written(total, 3)}.`);
    status.title = exact(total);
    root.dataset.ready = "yes";
  }
  show();
};
