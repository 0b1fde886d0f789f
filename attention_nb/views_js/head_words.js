// The words of a head view: two columns, a line that says what is seen, a table of the numbers

// Put the rows that should be elements into the columns, with room for the others
function fillColumns(v) { for (const side of ["q", "k"]) fillColumn(v, side); }

function fillColumn(v, side) {
  const column = v.columns[side], names = group(v)[side], n = names.length;
  const [begin, end] = near(n, v.stage, rowHeight), rows = `${v.state.group}: ${begin}`;
  if (column.dataset.rows === rows) return;
  const held = v.first[side] + [...column.children].indexOf(document.activeElement);
  const holds = column.contains(document.activeElement);
  column.dataset.rows = rows;
  column.style.paddingTop = padding + begin * rowHeight + "px";
  column.style.paddingBottom = padding + (n - end) * rowHeight + "px";
  column.style.width = n > whole ? "180px" : "";
  column.replaceChildren();
  for (let i = begin; i < end; i++) column.append(wordRow(v, side, i, i === begin));
  v.first[side] = begin;
  if (holds && held >= begin && held < end)
    column.children[held - begin].focus({preventScroll: true});
}

function wordRow(v, side, i, reachable) {
  const names = group(v)[side], split = group(v).split === i && i ? ".split" : "";
  const element = make(`div.token${split}`, {
    role: "option", tabIndex: reachable ? 0 : -1, title: names[i],
    onfocus: () => pointAt(v, side, i), onclick: () => pin(v, side, i),
    // a page that scrolls below a resting mouse does not point
    onpointermove: e => { if (e.pointerType !== "touch") pointAt(v, side, i); },
  }, make("span.t", {}, names[i]), make("span.n"));
  if (names.length > whole)
    Object.assign(element, {ariaSetSize: String(names.length), ariaPosInSet: String(i + 1)});
  return element;
}

// The weights between the token in focus and the tokens of the other side
function beside(v) {
  const {side, i} = v.state.focus;
  return side === "q" ? n => mean(v, i, n) : n => mean(v, n, i);
}

function markWords(v) {
  const f = v.state.focus, weight = f && beside(v);
  for (const side of ["q", "k"]) {
    for (const [at, element] of [...v.columns[side].children].entries()) {
      const n = v.first[side] + at, on = isFocus(v, side, n);
      const w = f && f.side !== side ? weight(n) : 0;
      element.classList.toggle("on", on);
      element.classList.toggle("dim", v.state.dim && isSpecial(v, side, n));
      element.classList.toggle("hidden", !!v.start.hidden?.includes(n));
      element.ariaSelected = String(on);
      element.style.background = w > 0 ? `rgba(var(--weight), calc(${w} * var(--most)))` : "";
      element.lastChild.textContent = w >= 0.005 ? percent(w) : "";
    }
  }
}

// ---- in words, for those who listen and for those who look

// The five strongest, of the token in focus or of all lines
function say(v, lines) {
  v.status.textContent = v.state.focus ? sayToken(v) : sayLines(v, lines);
}

function sayToken(v) {
  const {side, i} = v.state.focus, names = group(v)[other[side]], weight = beside(v);
  const dim = n => v.state.dim && isSpecial(v, other[side], n);
  const found = names.map((name, n) => [weight(n), name, n])
                     .filter(([w, , n]) => w >= 0.005 && !dim(n))
                     .sort((a, b) => b[0] - a[0]).slice(0, 5);
  const heads = chosen(v), mine = group(v)[side][i];
  const which = heads.length === 1 ? `head ${heads[0]}` : `mean of ${heads.length} heads`;
  const list = found.map(([w, name]) => `${name} ${percent(w)}`).join(", ");
  return `${mine} ${side === "q" ? "takes from" : "gives to"} ${list || "nothing"} (${which})`
    + (isAt(v.state.pinned, side, i) ? "; kept" : "");
}

function sayLines(v, lines) {
  const g = group(v), heads = chosen(v), found = [];
  const which = heads.length === 1 ? () => "" : h => ` (head ${h})`;
  for (let n = lines.length - 1; n >= 0 && found.length < 5; n--) {
    const [w, h, i, j] = lines[n];
    if (!isDim(v, i, j)) found.push(`${g.q[i]} from ${g.k[j]} ${percent(w)}${which(h)}`);
  }
  const of = heads.length === 1 ? ` of head ${heads[0]}` : "";
  return found.length ? `Strongest${of}: ${found.join(", ")}` : "No weight is this large.";
}

// The numbers of one query; of a long text the 1,000 largest
function fillTable(v) {
  const g = group(v), f = v.state.focus, i = f?.side === "q" ? f.i : 0, heads = chosen(v);
  let shown = [...g.k.keys()], caption = `weights of query ${i}, ${g.q[i]}`;
  if (shown.length > whole) {
    const w = shown.map(j => mean(v, i, j));
    shown = shown.sort((a, b) => w[b] - w[a]).slice(0, 1000);
    caption += `: the 1,000 largest of ${g.k.length.toLocaleString("en")}`;
  }
  const head = make("tr", {}, make("th", {scope: "col"}, "key"));
  for (const h of heads) head.append(make("th", {scope: "col"}, `head ${h}`));
  const body = make("tbody");
  for (const j of shown) {
    const row = make("tr", {}, make("th", {scope: "row"}, g.k[j]));
    for (const h of heads) row.append(make("td", {}, percent(v.weights.at(h, i, j), 1)));
    body.append(row);
  }
  v.table.lastChild.replaceChildren(
    make("table", {}, make("caption", {}, caption), make("thead", {}, head), body));
}
