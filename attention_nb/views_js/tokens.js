// Tokens: a box for each

views.tokens = (root, {tokens, ids, special}) => {
  const boxes = make("div.boxes"), marks = new Set(special);
  const status = make("div.status", {role: "status", ariaLive: "polite"});
  for (const [n, text] of tokens.entries()) {
    const which = `token ${n} of ${tokens.length}`;
    const more = (ids ? `, id ${ids[n]}` : "") + (marks.has(n) ? ", special" : "");
    const say = () => { status.textContent = which + more; };
    const style = `--c: var(${colourName(n)})`, kind = marks.has(n) ? "span.special" : "span";
    const box = make(kind, {style, title: `token ${n}${more}`, onpointerenter: say}, text);
    boxes.append(ids ? make("div.cut", {}, box, make("small", {}, String(ids[n]))) : box);
  }
  root.append(boxes, status);
  root.dataset.ready = "yes";
};
