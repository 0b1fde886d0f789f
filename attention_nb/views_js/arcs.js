// Arcs over a sentence: from the word that is pointed at to the words that it takes from. Heads
// take turns until somebody touches the page; on a narrow page the words stand below one another.
views.arcs = async (root, d) => {
  const group = {q: d.tokens, k: d.tokens, layers: [{heads: d.heads.length, data: d.weights}]};
  const {at} = await unpack(group, 0);
  const state = {head: 0, query: d.heads[0].query, pinned: null, touched: false};
  const narrow = matchMedia("(max-width: 640px)"), still = matchMedia("(prefers-reduced-motion)");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  const row = make("div.words", {role: "listbox", ariaLabel: "words; arrow keys move"});
  const words = d.tokens.map((token, i) => make("button.word", {
    role: "option", tabIndex: i ? -1 : 0,
    onpointerenter: e => e.pointerType === "mouse" && point(i), onfocus: () => point(i),
    onclick: () => pin(i)}, token));
  const heads = d.heads.map((head, n) => make("button", {onclick: () => { touch(); choose(n); }},
    `layer ${head.layer}, head ${head.head}`));
  const status = make("p.says", {role: "status", ariaLive: "polite"});
  row.append(...words);
  root.append(make("div.sentence", {}, svg, row), status,
    make("div.turns", {role: "group", ariaLabel: "heads"}, ...heads));

  const clip = i => d.tokens[i].slice(0, 40);
  function choose(n) {
    state.head = n;
    if (!state.touched) state.query = d.heads[n].query;
    draw();
  }
  function point(i) { touch(); state.query = i; draw(); }
  function pin(i) {
    touch();
    state.pinned = state.pinned === i ? null : i;
    state.query = i;
    draw();
  }
  row.addEventListener("pointerleave", () => {
    if (state.pinned !== null) { state.query = state.pinned; draw(); }
  });
  row.addEventListener("keydown", e => {
    const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
    const at = words.indexOf(e.target);
    if (e.key === "Escape") { state.pinned = null; draw(); }
    if (!by || !words[at + by]) return;
    e.preventDefault();
    words[at + by].focus();
  });

  // Where a word meets its arcs: above its middle, or at its right end where words are a column
  function place(i) {
    const box = words[i].getBoundingClientRect(), outer = svg.getBoundingClientRect();
    if (!narrow.matches)
      return [(box.left + box.right) / 2 - outer.left, box.top - outer.top - 2];
    const end = row.getBoundingClientRect().right;
    return [end - outer.left + 6, (box.top + box.bottom) / 2 - outer.top];
  }
  function arc(from, to, share) {
    const [x, y] = place(from), [u, v] = place(to);
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const wide = narrow.matches ? Math.abs(v - y) * 0.5 : Math.abs(u - x) * 0.45;
    const room = narrow.matches ? svg.clientWidth - x : y;
    const bow = Math.min(wide + 12, room / 0.75 - 8);          // an arc rises 3/4 as far
    const [dx, dy] = narrow.matches ? [bow, 0] : [0, -bow];
    path.setAttribute("d", `M${x} ${y} C${x + dx} ${y + dy} ${u + dx} ${v + dy} ${u} ${v}`);
    path.setAttribute("stroke-width", 1 + 9 * share);
    path.setAttribute("stroke-opacity", 0.15 + 0.85 * Math.sqrt(share));
    return path;
  }
  function draw() {
    const {head, query} = state, shares = d.tokens.map((_, j) => at(head, query, j));
    const order = shares.map((_, j) => j).sort((a, b) => shares[a] - shares[b]);
    const best = order.at(-1);
    svg.replaceChildren(...order.filter(j => shares[j] >= 0.03 && j !== query)
      .map(j => arc(query, j, shares[j])));
    for (const [j, word] of words.entries()) {
      word.ariaSelected = String(j === query);
      word.classList.toggle("asks", j === query);
      word.style.setProperty("--share", Math.sqrt(shares[j]));
    }
    for (const [n, button] of heads.entries()) button.ariaPressed = String(n === head);
    const source = best === query ? "itself" : clip(best);
    status.replaceChildren(make("b", {}, clip(query)),
      ` takes ${Math.round(100 * shares[best])} % from `, make("b", {}, source));
    root.dataset.ready = "yes";
  }

  const turn = setInterval(() => {
    if (!still.matches && !document.hidden) choose((state.head + 1) % d.heads.length);
  }, 4000);
  function touch() { state.touched = true; clearInterval(turn); }
  new ResizeObserver(draw).observe(root);
  addEventListener("redraw", draw);
  draw();
};
