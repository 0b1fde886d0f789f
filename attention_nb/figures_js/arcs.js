// Arcs: words on a line, arcs above them; where they have no room, on several lines; weight that is
// parked on the marks around the sentence leads straight up. Stored sentences, else heads, take
// turns until somebody touches the page. A host that computes (live.js) gives `at`, for any head,
// `old`, the weights before a change, and what is `hidden` or `out`, and hands over what it finds
// next by `state.take`. If it sets `onsentence`, the sentence is edited where it stands.
views.arcs = async (root, first) => {
  let d, tokens, heads, rows, words = [], buttons = [], share, scene = 0;
  const clip = i => tokens[i].slice(0, 40);
  const sharesOf = (h, i) => rows.map(j => share(h, i, j));
  const others = (h, i) => rows.map(j => j === i ? 0 : share(h, i, j));
  const goes = (h, i) => largest(others(h, i));        // the word that a query takes most from
  const asks = h => heads[h].query ?? largest(rows.map(i => Math.max(...others(h, i))));
  const state = {head: 0, query: 0, pinned: null, touched: false, off: false, shown: null, take};
  state.picked = () => ({layer: heads[state.head].layer, heads: [heads[state.head].head],
                         token: d.words?.[state.query] ?? state.query});
  const still = matchMedia("(prefers-reduced-motion)");
  const stored = [first, ...first.more ?? []];         // sentences that take turns

  // ---- the parts of the page
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  const row = make("div.words", {role: "listbox", ariaLabel: "words; arrow keys move"});
  const field = make("div.words.field", {contenteditable: "plaintext-only", role: "textbox",
    ariaLabel: "the sentence", spellcheck: false, hidden: true, enterkeyhint: "done"});
  const status = make("p.says", {role: "status", ariaLive: "polite"});
  const line = make("div.sentence", {}, svg, row, field), hint = make("span.hint");
  const change = make("button", {hidden: true, onclick: () => edit()}, "change the sentence");
  const turns = make("div.turns", {role: "group", ariaLabel: "heads"},
    make("div.below", {}, change, hint));
  root.append(line, status, turns);

  // What is shown from now on; words that are the same stay chosen
  async function take(next) {
    const same = String(next.tokens) === String(tokens);
    if (!next.at) {
      const group = {q: next.tokens, k: next.tokens,
                     layers: [{heads: next.heads.length, data: next.weights}]};
      const {at} = await unpack(group, 0);
      share = at;
    } else share = (h, i, j) => d.at(heads[h].layer, heads[h].head, i, j);
    d = next;
    ({tokens, heads} = d);
    if (d.at) touch();
    globalThis.state = Object.assign(state, {tokens, text: d.text});     // for a host that computes
    rows = tokens.map((_, i) => i);
    if (!same) { state.shown = state.pinned = null; makeWords(); }
    state.head = d.head ?? Math.min(state.head, heads.length - 1);
    const at = field.hidden ? -1 : atCaret();
    state.query = at >= 0 ? at : d.query ?? asks(state.head);
    if (state.pinned !== state.query) state.pinned = null;
    makeButtons();
    for (const i of rows) words[i].classList.toggle("hidden", !!d.hidden?.includes(i));
    if (!field.hidden && document.activeElement !== field) edit(false);
    fit();
    draw();
  }
  function makeWords() {
    words = tokens.map((token, i) => make("button.word", {
      role: "option",
      // a page that scrolls below a resting mouse does not point
      onpointermove: e => e.pointerType === "mouse" && point(i),
      onfocus: () => point(i),
      onclick: () => state.pinned === i && globalThis.onsentence ? edit(true, i) : pin(i)},
      make("span.t", {}, token), make("span.n", {ariaHidden: "true"})));
    row.replaceChildren(...words);
  }
  function makeButtons() {
    for (const button of buttons) button.remove();
    buttons = heads.map(({layer, head, name}, n) => make("button", {
      title: name ? `layer ${layer}, head ${head}` : "",
      onclick: () => { touch(); choose(n, n === state.head && !state.off); }},
      make("span", {}, name || `layer ${layer}, head ${head}`), make("span.of")));
    for (const [n, {layer, head}] of heads.entries())
      buttons[n].classList.toggle("out", !!d.out?.some(([l, h]) => l === layer && h === head));
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
  row.addEventListener("keydown", e => {
    const letter = e.key.length === 1 && e.key.trim() && !e.ctrlKey && !e.metaKey && !e.altKey;
    const at = words.indexOf(e.target.closest(".word"));
    if (letter && globalThis.onsentence) return edit(true, at);    // the letter lands in it
    const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
    if (e.key === "Escape") { state.pinned = null; draw(); }
    if (!by || !words[at + by]) return;
    e.preventDefault();
    words[at + by].focus();
  });

  // ---- the sentence is edited where it stands: text alone, in one paragraph

  const typed = () => field.textContent.replace(/\s+/g, " ");
  // Where each token stands in the text: looked for behind the one before; null if it is not there
  function spots() {
    const plain = typed().toLowerCase();
    let end = 0;
    return tokens.map(token => {
      const piece = token.replace(/^##/, "").toLowerCase(), from = plain.indexOf(piece, end);
      if (from < 0) return null;
      end = from + piece.length;
      return [from, end];
    });
  }
  function atCaret() {
    const {anchorNode, anchorOffset: at} = getSelection();
    return field.contains(anchorNode) ? spots().findLastIndex((spot, i) =>
      spot && spot[0] <= at && at <= spot[1] && /[\p{L}\p{N}]/u.test(tokens[i])) : -1;
  }
  // Begin, with word `i` selected, or end
  let before = "", back = false;                       // what Escape brings back; focus a word
  function edit(on = true, i = null) {
    touch();
    row.hidden = on;
    field.hidden = !on;
    if (on) {
      field.textContent = before = d.text;
      field.focus();
      const spot = i === null ? [d.text.length, d.text.length] : spots()[i];
      const text = field.firstChild;
      if (spot) getSelection().setBaseAndExtent(text, spot[0], text, spot[1]);
    }
    fit();
    draw();
    if (!on && back) words[state.query].focus();
    back = false;
  }
  const whatIsNew = () => typed().trim() !== d.text.trim() && typed().trim();
  field.addEventListener("input", () => {
    fit();
    draw();
    if (whatIsNew()) globalThis.onsentence(typed().trim(), 300);
  });
  field.addEventListener("keydown", e => {
    if (e.key !== "Enter" && e.key !== "Escape") return;
    e.preventDefault();
    back = true;
    if (e.key === "Escape") field.textContent = before;
    field.blur();
  });
  // What was not read yet stands there until it is
  field.addEventListener("blur", () => {
    if (whatIsNew()) return globalThis.onsentence(typed().trim(), 0);
    globalThis.onsentence(d.text, null);               // nothing is to be read
    edit(false);
  });
  field.addEventListener("beforeinput", e => {         // a paste is text, Enter breaks nothing
    if (/^insert(Paragraph|LineBreak)/.test(e.inputType)) e.preventDefault();
    if (!/^insertFrom(Paste|Drop)/.test(e.inputType)) return;
    e.preventDefault();
    const text = e.dataTransfer?.getData("text/plain") ?? e.data ?? "";
    document.execCommand("insertText", false, text.replace(/\s+/g, " ").slice(0, 600));
  });
  lasting(document, "selectionchange", () => {
    const at = field.hidden ? -1 : atCaret();
    if (at >= 0 && at !== state.query) point(at);
  });

  // ---- the picture

  // Large words on one line if there is room for them, else on several
  let wrapped = false;
  function fit() {
    const letters = field.hidden ? sum(rows.map(i => clip(i).length + 1.3)) : typed().length + 4;
    const size = root.clientWidth / (0.52 * letters);
    wrapped = root.clientWidth <= 640 || size < 13;
    root.classList.toggle("wrapped", wrapped);
    line.style.fontSize = wrapped ? "" : Math.min(26, size) + "px";
  }
  // Where a word meets its arcs: in its middle, above and, from another line, below
  function place(i) {
    const outer = svg.getBoundingClientRect(), spot = field.hidden || spots()[i];
    let of = words[i];
    if (!field.hidden && field.firstChild) {
      of = document.createRange();
      of.setStart(field.firstChild, spot?.[0] ?? 0);
      of.setEnd(field.firstChild, spot?.[1] ?? 0);
    }
    const box = of.getBoundingClientRect();
    return [(box.left + box.right) / 2 - outer.left,
            box.top - outer.top + (wrapped && field.hidden ? 12 : -2), box.bottom - outer.top + 2];
  }
  function element(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }
  // From a place to a word: on a line an arc, the farther, the higher, and the farthest two use all
  // room; between lines a curve through the room between them
  function arc([x, top, foot], to, w, old) {
    const [u, above, below] = place(to), beside = Math.abs(above - top) < 5;
    const high = ((wrapped ? 38 : top) - 8) / 0.75 * (old ? 0.86 : 1);     // it rises 3/4 as far
    const bow = beside ? high * Math.min(1, Math.sqrt(Math.abs(u - x) / line.clientWidth)) : 16;
    const [y, v, turn] = beside ? [top, above, -bow] : above < top ? [top, below, bow]
                                                                   : [foot, above, -bow];
    const first = beside ? turn : -turn;
    return element("path", {
      d: `M${x} ${y} C${x} ${y + first} ${u} ${v + turn} ${u} ${v}`, class: old ? "old" : "",
      "stroke-width": old ? 2 : 1.5 + 8.5 * w, "stroke-opacity": 0.35 + 0.65 * Math.sqrt(w)});
  }
  // Straight up, for what the marks around the sentence take
  function parked([x, top], w) {
    const said = element("text", {x: Math.max(70, Math.min(line.clientWidth - 70, x)), y: 74});
    said.textContent = `${percent(w)} on ${d.marks.join(" and ")}`;
    return [element("path", {d: `M${x} ${top} V82`, "stroke-width": 1.5 + 8.5 * w,
                             "stroke-opacity": 0.35 + 0.65 * Math.sqrt(w)}), said];
  }
  const wasShare = j => state.off ? 0
    : d.old?.(heads[state.head].layer, heads[state.head].head, state.query, j) ?? null;
  function paint(from, shares) {
    if (!line.clientWidth) return;                       // nobody sees the frame
    if (!field.hidden && spots().includes(null)) return svg.replaceChildren();   // not read yet
    const order = rows.filter(j => shares[j] >= 0.03 && j !== state.query)
      .sort((a, b) => shares[a] - shares[b]);
    const moved = rows.filter(j => j !== state.query && wasShare(j) >= 0.03
      && Math.abs(wasShare(j) - share(state.head, state.query, j)) >= 0.01);
    const rest = 1 - sum(shares), up = rest >= 0.5 && d.marks?.length && !wrapped && !state.off;
    svg.replaceChildren(...up ? parked(from, rest) : [],
      ...order.map(j => arc(from, j, shares[j])),
      ...moved.map(j => arc(from, j, wasShare(j), true)));
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
    const {head, query} = state, shares = state.off ? rows.map(() => 0) : sharesOf(head, query);
    state.shown ??= {query, shares};
    move(shares);
    for (const [n, button] of buttons.entries()) {
      const i = state.touched ? query : asks(n);
      button.ariaPressed = String(n === head && !state.off);
      button.lastChild.textContent = `${clip(i)} ← ${clip(goes(n, i))}`;
    }
    const point = matchMedia("(hover: none)").matches ? "Tap any word" : "Point at any word";
    change.hidden = !globalThis.onsentence || !field.hidden;
    hint.textContent = !field.hidden ? "Type; Enter is done." : point
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
    if (state.off) return status.replaceChildren("This head is switched off: its arcs are gone.");
    const bold = i => make("b", {}, clip(i)), was = wasShare(best);
    status.replaceChildren(bold(query), ` takes ${percent(shares[best])} from `, bold(best),
      was !== null && Math.abs(was - shares[best]) >= 0.01 ? `, before ${percent(was)}` : "",
      shares[query] >= 0.03 ? `, ${percent(shares[query])} from itself` : "",
      rest >= 0.03 && d.marks?.length ? `, ${percent(rest)} from ${d.marks.join(" and ")}` : "",
      root.classList.contains("gone") ? "; this head is switched off" : "");
  }

  const turn = setInterval(() => {
    if (!root.isConnected) clearInterval(turn);
    else if (still.matches || document.hidden) return;
    else if (stored.length > 1) {
      line.style.minHeight = line.offsetHeight + "px";           // what stands below does not move
      take(stored[scene = (scene + 1) % stored.length]);
    }
    else choose((state.head + 1) % heads.length);
  }, 4000);
  function touch() { state.touched = true; clearInterval(turn); }
  for (const event of ["pointerdown", "pointermove", "keydown"])
    root.addEventListener(event, touch);
  await take(first);
  new ResizeObserver(() => { fit(); draw(); }).observe(root);
  lasting(window, "redraw", draw);
};
