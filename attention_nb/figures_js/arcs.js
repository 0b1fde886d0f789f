// Arcs: words on a line, arcs above them; where they have no room, on several lines; weight that is
// parked on the marks around the sentence leads straight up. Stored sentences, else heads, take
// turns until somebody touches the page. A host that computes (live.js) gives `at`, for any head,
// `old`, the weights before a change, and what is `hidden` or `out`, and hands over what it finds
// next by `state.take`. If it sets `onsentence`, the sentence is edited where it stands.
views.arcs = async (root, first) => {
  let d, tokens, heads, rows, words = [], buttons = [], share, scene = 0;
  const clip = i => tokens[i].slice(0, 40);
  const others = (h, i) => rows.map(j => j === i ? 0 : share(h, i, j));
  const goes = (h, i) => largest(others(h, i));        // the word that a query takes most from
  const asks = h => heads[h].query ?? largest(rows.map(i => Math.max(...others(h, i))));
  const state = {head: 0, query: 0, pinned: null, shown: null, take, touch};
  state.picked = () => ({layer: heads[state.head].layer, heads: [heads[state.head].head],
                         token: d.words?.[state.query] ?? state.query});
  state.before = () => editor.isOpen() ? editor.typed() : textUpTo(tokens, state.query);
  const still = matchMedia("(prefers-reduced-motion)");
  const stored = [first, ...first.more ?? []];         // sentences that take turns

  // ---- the parts of the page
  const svg = svgElement("svg", {"aria-hidden": "true"});
  const row = make("div.words", {role: "listbox", ariaLabel: "words; arrow keys move"});
  const status = make("p.says", {role: "status", ariaLive: "off"});  // until a touch
  const editor = sentenceField({tokens: () => tokens, text: () => d.text, point,
    leave: () => words[state.query].focus(),
    change: () => { touch(); row.hidden = editor.isOpen(); fit(); draw(); }});
  const line = make("div.sentence", {}, svg, row, editor.field), hint = make("span.hint");
  const change = make("button", {onclick: () => editor.open()}, "change the sentence");
  const turns = make("div.turns", {role: "group", ariaLabel: "heads"},
    make("div.below", {}, change, hint));
  root.append(line, status, turns);

  // What is shown from now on; words that are the same stay chosen
  async function take(next) {
    const same = String(next.tokens) === String(tokens);
    const layers = [{heads: next.heads.length, data: next.weights}];
    share = next.at ? (h, i, j) => d.at(heads[h].layer, heads[h].head, i, j)
                    : (await unpack({q: next.tokens, k: next.tokens, layers}, 0)).at;
    d = next;
    ({tokens, heads} = d);
    if (d.at) touch();
    globalThis.state = Object.assign(state, {tokens, text: d.text});     // for a host that computes
    rows = tokens.map((_, i) => i);
    if (!same) { state.shown = state.pinned = null; makeWords(); }
    state.head = d.head ?? Math.min(state.head, heads.length - 1);
    const at = editor.atCaret();
    state.query = at >= 0 ? at : d.query ?? asks(state.head);
    if (state.pinned !== state.query) state.pinned = null;
    makeButtons();
    for (const i of rows) words[i].classList.toggle("hidden", !!d.hidden?.includes(i));
    if (editor.isDone()) editor.shut();
    else { fit(); draw(); }
  }
  function makeWords() {
    words = tokens.map((token, i) => make("button.word", {
      role: "option",
      // a page that scrolls below a resting mouse does not point
      onpointermove: e => e.pointerType === "mouse" && point(i),
      onfocus: () => point(i),
      onclick: () => state.pinned === i && globalThis.onsentence ? editor.open(i) : pin(i)},
      make("span.t", {}, token), make("span.n", {ariaHidden: "true"})));
    row.replaceChildren(...words);
  }
  function makeButtons() {
    for (const button of buttons) button.remove();
    buttons = heads.map(({layer, head, name}, n) => make("button", {
      className: d.out?.some(([l, h]) => l === layer && h === head) ? "out" : "",
      title: name ? `layer ${layer}, head ${head}` : "",
      onclick: () => { touch(); choose(n, n === state.head && !state.off); }},
      make("span", {}, name || `layer ${layer}, head ${head}`), make("span.of")));
    turns.prepend(...buttons);
  }

  // ---- what is chosen
  function choose(n, off = false) {
    Object.assign(state, {head: n, off});
    if (!state.touched) state.query = asks(n);
    draw();
  }
  function point(i) {
    touch();
    if (state.query !== i) { state.query = i; draw(); }
  }
  function pin(i) {
    state.pinned = state.pinned === i ? null : i;
    point(i);
  }
  row.addEventListener("pointerleave", () => {
    if (state.pinned !== null) { state.query = state.pinned; draw(); }
  });
  row.addEventListener("keydown", e => {
    const letter = e.key.length === 1 && e.key.trim() && !e.ctrlKey && !e.metaKey && !e.altKey;
    const at = words.indexOf(e.target.closest(".word"));
    if (letter && globalThis.onsentence) return editor.open(at);    // the letter lands in it
    const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
    if (e.key === "Escape") { state.pinned = null; draw(); }
    if (!by || !words[at + by]) return;
    e.preventDefault();
    words[at + by].focus();
  });

  // ---- the picture
  // Large words on one line if there is room for them, else on several
  let wrapped = false;
  function fit() {
    const words = editor.isOpen() ? [editor.typed()] : rows.map(clip);
    const size = root.clientWidth / (0.52 * sum(words.map(word => word.length + 1.3)));
    wrapped = root.clientWidth <= 640 || size < 13;
    root.classList.toggle("wrapped", wrapped);
    line.style.fontSize = wrapped ? "" : Math.min(26, size) + "px";
  }
  // Where a word meets its arcs: in its middle, above and, from another line, below
  function place(i) {
    const outer = svg.getBoundingClientRect(), open = editor.isOpen();
    const box = (open ? editor.part(i) : words[i]).getBoundingClientRect();
    return [(box.left + box.right) / 2 - outer.left,
            box.top - outer.top + (wrapped && !open ? 12 : -2), box.bottom - outer.top + 2];
  }
  const wasShare = j => state.off ? null
    : d.old?.(heads[state.head].layer, heads[state.head].head, state.query, j) ?? null;
  function paint(from, shares) {
    if (!line.clientWidth) return;                       // nobody sees the frame
    if (!editor.isRead()) return svg.replaceChildren();
    const order = rows.filter(j => shares[j] >= 0.03 && j !== state.query)
      .sort((a, b) => shares[a] - shares[b]);
    const moved = rows.filter(j => j !== state.query && wasShare(j) >= 0.03
      && Math.abs(wasShare(j) - share(state.head, state.query, j)) >= 0.01);
    const rest = 1 - sum(shares), up = rest >= 0.5 && d.marks?.length && !wrapped && !state.off;
    const width = line.clientWidth, room = wrapped ? 30 : undefined;
    const arc = (j, w, old) => arcPath(from, place(j), w, {room, width, old});
    svg.replaceChildren(...up ? parkedPath(from, rest, d.marks, width) : [],
      ...order.map(j => arc(j, shares[j])), ...moved.map(j => arc(j, wasShare(j), true)));
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
    const {head, query, off} = state, shares = rows.map(j => off ? 0 : share(head, query, j));
    state.shown ??= {query, shares};
    move(shares);
    for (const [n, button] of buttons.entries()) {
      const i = state.touched ? query : asks(n);
      button.ariaPressed = String(n === head && !state.off);
      button.lastChild.textContent = editor.isRead() ? `${clip(i)} ← ${clip(goes(n, i))}` : "…";
    }
    const point = matchMedia("(hover: none)").matches ? "Tap any word" : "Point at any word";
    change.hidden = !globalThis.onsentence || editor.isOpen();
    hint.textContent = editor.isOpen() ? "Type; Enter is done." : point
      + (globalThis.onsentence ? ", or choose one and type." : ".");
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
      word.classList.toggle("gives", j === best && !state.off);
      word.style.setProperty("--share", Math.sqrt(shares[j]));
      word.lastChild.textContent = shares[j] >= 0.03 ? percent(shares[j]) : "";
    }
    if (!editor.isRead()) return status.replaceChildren("The model has not read this yet.");
    if (state.off) return status.replaceChildren("This head is switched off: its arcs are gone.");
    const bold = i => make("b", {}, clip(i)), was = wasShare(best) ?? shares[best];
    status.replaceChildren(bold(query), ` takes ${percent(shares[best])} from `, bold(best),
      Math.abs(was - shares[best]) >= 0.01 ? `, before ${percent(was)}` : "",
      shares[query] >= 0.03 ? `, ${percent(shares[query])} from itself` : "",
      rest >= 0.03 && d.marks?.length ? `, ${percent(rest)} from ${d.marks.join(" and ")}` : "",
      root.classList.contains("gone") ? "; this head is switched off" : "");
  }

  const turn = setInterval(() => {
    if (!root.isConnected) return clearInterval(turn);
    if (still.matches || document.hidden) return;
    if (stored.length < 2) return choose((state.head + 1) % heads.length);
    line.style.minHeight = line.offsetHeight + "px";             // what stands below does not move
    take(stored[scene = (scene + 1) % stored.length]);
  }, 4000);
  function touch() { state.touched = true; status.ariaLive = "polite"; clearInterval(turn); }
  for (const e of ["pointerdown", "pointermove", "keydown"]) root.addEventListener(e, touch);
  await take(first);
  new ResizeObserver(() => { fit(); draw(); }).observe(root);
  lasting(window, "redraw", draw);
};
