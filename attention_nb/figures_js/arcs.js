// Arcs over a sentence: from the word that is pointed at to the words that it takes from. Heads
// take turns until somebody touches the page; where there is no room for one line, the sentence
// has several. Data of a host that computes (live.js) also has `at`, for any head, what is `hidden`
// or `out`, and `before`, the state from which the arcs move; if the host sets `onword`, a word can
// be typed over.
views.arcs = async (root, d) => {
  const group = {q: d.tokens, k: d.tokens, layers: [{heads: d.heads.length, data: d.weights}]};
  const stored = d.at ? null : await unpack(group, 0), {tokens, heads, before} = d;
  const share = (h, i, j) => d.at ? d.at(heads[h].layer, heads[h].head, i, j) : stored.at(h, i, j);
  const rows = tokens.map((_, i) => i), clip = i => tokens[i].slice(0, 40);
  const sharesOf = (h, i) => rows.map(j => share(h, i, j));
  const others = (h, i) => rows.map(j => j === i ? 0 : share(h, i, j));
  const goes = (h, i) => largest(others(h, i));        // the word that a query takes most from
  const asks = h => heads[h].query ?? largest(rows.map(i => Math.max(...others(h, i))));
  const state = {tokens, head: d.head ?? 0, pinned: null, touched: false, shown: null};
  const again = before ? tokens.indexOf(before.tokens[before.query]) : -1;   // the same word
  state.query = d.query ?? (again < 0 ? asks(state.head) : again);
  if (String(before?.tokens) === String(tokens)) {
    state.shown = before.shown;
    if (before.pinned === state.query) state.pinned = state.query;
  }
  state.picked = () => ({layer: heads[state.head].layer, heads: [heads[state.head].head],
                         token: d.words?.[state.query] ?? state.query});
  globalThis.state = state;                            // for a host that computes
  const still = matchMedia("(prefers-reduced-motion)");

  // ---- the parts of the page
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  const row = make("div.words", {role: "listbox", ariaLabel: "words; arrow keys move"});
  const words = tokens.map((token, i) => make("button.word", {
    role: "option",
    // a page that scrolls below a resting mouse does not point
    onpointermove: e => e.pointerType === "mouse" && point(i),
    onfocus: () => point(i),
    onclick: () => state.pinned === i && globalThis.onword ? write(i) : pin(i)},
    make("span.t", {}, token), make("span.n", {ariaHidden: "true"})));
  const buttons = heads.map(({layer, head}, n) => make("button", {
    onclick: () => { touch(); choose(n); }}, make("span", {}, `layer ${layer}, head ${head}`),
    make("span.of")));
  const status = make("p.says", {role: "status", ariaLive: "polite"});
  row.append(...words);
  const line = make("div.sentence", {}, svg, row), hint = make("span.hint");
  const turns = make("div.turns", {role: "group", ariaLabel: "heads"}, ...buttons, hint);
  root.append(line, status, turns);
  for (const i of d.hidden ?? []) words[i].classList.add("hidden");
  for (const [n, {layer, head}] of heads.entries())
    buttons[n].classList.toggle("out", !!d.out?.some(([l, h]) => l === layer && h === head));

  // ---- what is chosen
  function choose(n) {
    state.head = n;
    if (!state.touched) state.query = asks(n);
    draw();
  }
  function point(i) {
    touch();
    if (state.query === i) return;
    state.query = i;
    draw();
  }
  function pin(i) {
    touch();
    state.pinned = state.pinned === i ? null : i;
    state.query = i;
    draw();
  }
  row.addEventListener("pointerleave", () => {
    if (state.pinned !== null) { state.query = state.pinned; draw(); }
  });
  // A word is typed over where it stands; the host hears of it
  function write(i, key) {
    typeOver(words[i], line, {key, was: clip(i), most: 0.6 * row.clientWidth, draw, done: typed => {
      if (!globalThis.onword(i, typed)) return;        // the host does not find the word
      words[i].firstChild.textContent = typed;         // until the host has read it
      status.replaceChildren("reading ...");
    }});
  }
  row.addEventListener("keydown", e => {
    const letter = e.key.length === 1 && e.key.trim() && !e.ctrlKey && !e.metaKey && !e.altKey;
    if (letter && globalThis.onword) {
      e.preventDefault();
      return write(words.indexOf(e.target.closest(".word")), e.key);
    }
    const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
    const at = words.indexOf(e.target.closest(".word"));
    if (e.key === "Escape") { state.pinned = null; draw(); }
    if (!by || !words[at + by]) return;
    e.preventDefault();
    words[at + by].focus();
  });

  // ---- the picture

  // Large words on one line if there is room for them, else on several
  let wrapped = false;
  function fit() {
    const size = root.clientWidth / (0.52 * sum(rows.map(i => clip(i).length + 1.3)));
    wrapped = root.clientWidth <= 640 || size < 13;
    root.classList.toggle("wrapped", wrapped);
    row.style.fontSize = wrapped ? "" : Math.min(26, size) + "px";
  }
  // Where a word meets its arcs: in its middle, above and, from another line, below
  function place(i) {
    const box = words[i].getBoundingClientRect(), outer = svg.getBoundingClientRect();
    return [(box.left + box.right) / 2 - outer.left, box.top - outer.top + (wrapped ? 12 : -2),
            box.bottom - outer.top + 2];
  }
  // From a place to a word: on a line an arc, the farther, the higher, and the farthest two use all
  // room; between lines a curve through the room between them
  function arc([x, top, foot], to, w) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const [u, above, below] = place(to), beside = Math.abs(above - top) < 5;
    const high = ((wrapped ? 38 : top) - 8) / 0.75;                        // it rises 3/4 as far
    const bow = beside ? high * Math.min(1, Math.sqrt(Math.abs(u - x) / row.clientWidth)) : 16;
    const [y, v, turn] = beside ? [top, above, -bow] : above < top ? [top, below, bow]
                                                                   : [foot, above, -bow];
    const first = beside ? turn : -turn;
    path.setAttribute("d", `M${x} ${y} C${x} ${y + first} ${u} ${v + turn} ${u} ${v}`);
    path.setAttribute("stroke-width", 1.5 + 8.5 * w);
    path.setAttribute("stroke-opacity", 0.35 + 0.65 * Math.sqrt(w));
    return path;
  }
  function paint(from, shares) {
    if (!row.clientWidth) return;                        // nobody sees the frame
    const order = rows.filter(j => shares[j] >= 0.03 && j !== state.query)
      .sort((a, b) => shares[a] - shares[b]);
    svg.replaceChildren(...order.map(j => arc(from, j, shares[j])));
    state.shown = {query: state.query, shares};
  }
  // Arcs move from what was shown to what is to be shown, in a third of a second
  let moving = 0;
  function move(shares) {
    cancelAnimationFrame(moving);
    const was = state.shown, start = performance.now(), {query} = state;
    const step = now => {
      const p = Math.min(1, (now - start) / 350), e = p * p * (3 - 2 * p);
      const mix = (a, b) => a + (b - a) * e, old = place(was.query);
      paint(place(query).map((x, n) => mix(old[n], x)),
        shares.map((x, j) => mix(was.shares[j], x)));
      root.dataset.moving = p < 1 ? "yes" : "no";
      if (p < 1) moving = requestAnimationFrame(step);
      else state.shown = {query, shares};
    };
    step(still.matches || document.hidden || !was ? start + 350 : start);
  }
  function draw() {
    const {head, query} = state, shares = sharesOf(head, query);
    state.shown ??= {query, shares};
    move(shares);
    for (const [n, button] of buttons.entries()) {
      const i = state.touched ? query : asks(n);
      button.ariaPressed = String(n === head);
      button.lastChild.textContent = `${clip(i)} ← ${clip(goes(n, i))}`;
    }
    const point = matchMedia("(hover: none)").matches ? "Tap any word" : "Point at any word";
    hint.textContent = globalThis.onword ? `${point}. Choose one, and type another in its place.`
                                         : point + ".";
    root.classList.toggle("gone", buttons[head].classList.contains("out"));
    mark(shares);
    root.dataset.ready = "yes";
    globalThis.onchosen?.();
  }
  function mark(shares) {
    const {query} = state, best = goes(state.head, query), rest = 1 - sum(shares);
    for (const [j, word] of words.entries()) {
      word.ariaSelected = String(j === query);
      word.tabIndex = j === query ? 0 : -1;
      word.classList.toggle("asks", j === query);
      word.classList.toggle("gives", j === best);
      word.style.setProperty("--share", Math.sqrt(shares[j]));
      word.lastChild.textContent = shares[j] >= 0.03 ? percent(shares[j]) : "";
    }
    const bold = i => make("b", {}, clip(i));
    status.replaceChildren(bold(query), ` takes ${percent(shares[best])} from `, bold(best),
      shares[query] >= 0.03 ? `, ${percent(shares[query])} from itself` : "",
      rest >= 0.03 && d.marks?.length ? `, ${percent(rest)} from ${d.marks.join(" and ")}` : "",
      root.classList.contains("gone") ? "; this head is switched off" : "");
  }

  const turn = setInterval(() => {
    if (!root.isConnected) clearInterval(turn);
    else if (!still.matches && !document.hidden) choose((state.head + 1) % heads.length);
  }, 4000);
  function touch() { state.touched = true; clearInterval(turn); }
  if (d.at) touch();
  fit();
  draw();
  new ResizeObserver(() => { fit(); draw(); }).observe(root);
  lasting(window, "redraw", draw);
};
