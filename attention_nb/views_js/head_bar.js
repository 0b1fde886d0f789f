// The controls of a head view: which attention, layer, heads, how small a weight is still drawn

// Which attention is asked once; the other controls are made anew for each, in `v.rest`
function showBar(v) {
  if (!v.rest) {
    v.rest = make("span.rest");
    const another = n => {
      choose(v, {group: n, layer: 0, heads: null, focus: null, pinned: null, part: 0});
      showLayer(v);
    };
    if (v.groups.length > 1)
      v.bar.append(select("attention ", v.groups.map(g => g.name), v.state.group, another));
    v.bar.append(v.rest);
  } else if (v.groups.length > 1) v.bar.firstChild.lastChild.value = v.state.group;
  v.bar.dataset.group = v.state.group;
  v.rest.replaceChildren(...layerControls(v), threshold(v), ...wordControls(v), v.swatches);
}

function layerControls(v) {
  const {layers} = group(v), n = layers.length;
  const go = l => { choose(v, {layer: (l + n) % n}); showLayer(v); };
  const step = (text, by, label) => make("button",
    {onclick: () => go(v.state.layer + by), ariaLabel: `${label} layer`}, text);
  v.layerBox = n > 1 ? select("layer ", layers.map(l => l.label), v.state.layer, go) : null;
  if (n < 2) return [];
  const back = step("‹", -1, "previous"), on = step("›", 1, "next");
  return [make("span", {}, back, " ", v.layerBox, " ", on)];
}

function threshold(v) {
  const level = () => `${+(100 * v.state.threshold).toPrecision(3)}\u00a0%`;
  const reading = make("span", {}, level());
  const slider = make("input", {type: "range", min: 0, max: 1, step: 0.005,
    value: v.state.threshold, oninput: () => {
      choose(v, {threshold: +slider.value});
      reading.textContent = level();
      draw(v);
    }});
  return make("label", {}, "at least ", slider, reading);
}

function wordControls(v) {
  const found = [], pair = part => { choose(v, {part}); draw(v); };
  if (group(v).split !== null) found.push(select("texts ", parts, v.state.part, pair));
  if (v.marks.q.size + v.marks.k.size) {
    const box = make("input", {type: "checkbox", checked: v.state.dim,
                               onchange: () => { choose(v, {dim: box.checked}); draw(v); }});
    found.push(make("label", {}, box, "dim special tokens"));
  }
  return found;
}

// Has a host that computes taken this head out?
const isOut = (v, h) => !!v.start.out?.some(([l, n]) => l === v.state.layer && n === h);

// A button for each head; they stay when one is pressed, so that the keyboard's focus stays too
function showHeads(v) {
  const n = v.weights.heads, buttons = v.swatches;
  buttons.classList.toggle("one", v.state.heads.size === 1);
  const use = heads => { choose(v, {heads: new Set(heads)}); showHeads(v); draw(v); };
  const all = () => use(v.state.heads.size === n ? [] : Array(n).keys());
  const toggle = h => use(v.state.heads.has(h) ? chosen(v).filter(x => x !== h)
                                               : [...v.state.heads, h]);
  if (buttons.children.length !== (n < 2 ? 0 : n + 1)) {
    buttons.replaceChildren();
    if (n > 1) buttons.append(make("button", {style: "--c: var(--line)", onclick: all}));
    if (n > 1) for (let h = 0; h < n; h++) buttons.append(make("button", {
      style: `--c: var(${colourName(h)}); border-style: ${["solid", "dashed", "dotted"][round(h)]}`,
      title: `head ${h}; double-click: only this one`,
      onclick: () => toggle(h), ondblclick: () => use([h])}, String(h)));
  }
  for (const [at, button] of [...buttons.children].entries()) {
    if (at) button.ariaPressed = String(v.state.heads.has(at - 1));
    if (at) button.classList.toggle("out", isOut(v, at - 1));
    else button.textContent = v.state.heads.size === n ? "none" : "all";
  }
}
