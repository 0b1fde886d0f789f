// ---- the frame of an explorable: what the reader sets, what it says of it, and the way back

const dot = (a, b) => a.reduce((s, x, e) => s + x * b[e], 0);
const many = x => x.toLocaleString("en");
const cut = (text, n) => [...text].length > n ? [...text].slice(0, n - 1).join("") + "…" : text;

// An element of a drawing
function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Rows of packed numbers, `width` of them in each
async function rowsOf(packed, width) {
  const all = new Float32Array(await inflate(packed));
  return Array.from({length: all.length / width}, (_, n) =>
    Float64Array.from(all.subarray(n * width, (n + 1) * width)));
}

// A table with a title for each column, or without titles
function tableOf(kind, titles, ...rows) {
  const heads = titles.map((text, n) =>    // the corner of a table may be empty
    text || n ? make("th", {scope: "col", title: text}, text) : make("td"));
  const body = make("tbody", {}, ...rows), head = make("thead", {}, make("tr", {}, ...heads));
  return {heads, body, element: make(`table.${kind}`, {}, ...heads.length ? [head] : [], body)};
}

// A table of what is counted: `put(columns)` writes a list of numbers or texts into each column
function counts(names, titles, columns = titles.length - 1) {
  const cells = names.map(() => Array.from({length: columns}, () => make("td")));
  const table = tableOf("counts", titles, ...names.map((name, n) =>
    make("tr", {}, make("th", {scope: "row"}, name), ...cells[n])));
  table.put = lists => lists.forEach((list, column) => list.forEach((x, n) => {
    cells[n][column].textContent = typeof x === "number" ? many(x) : x;
  }));
  return table;
}

// A cell of a table with a bar before its text: `put(share, text)`
function barCell(role) {
  const bar = make("i", {style: `background: rgb(var(--${role}))`, ariaHidden: "true"});
  const text = make("span"), cell = make("td.bar-cell", {}, bar, text);
  cell.put = (share, words) => {
    bar.style.width = `calc((100% - 60px) * ${Math.max(0, share)})`;
    text.textContent = words;
  };
  return cell;
}

// `show` draws what the state says and returns it in words: a text, or elements. The controls are
// made here; each changes the state, has all drawn, and follows the state. Words about a picture
// are its label too.
function explorable(start, show) {
  const root = document.getElementById("view"), state = structuredClone(start), controls = [];
  const status = make("div.status", {role: "status", ariaLive: "polite"});
  const view = {state, status, picture: null, draw, slider, check, field, button, steps,
                reset: button("reset", () => Object.assign(state, structuredClone(start)))};
  function draw() {
    for (const follow of controls) follow();
    status.replaceChildren(...[show()].flat());
    view.picture?.setAttribute("aria-label", status.textContent);
    root.dataset.ready = "yes";
  }
  function slider({label, min = 0, max, step = 1, get, set, text = () => "", quiet, ...more}) {
    const reading = make("output"), input = make("input", {type: "range", min, step, ...more,
      oninput: () => { set(+input.value); draw(); }});
    controls.push(() => {
      input.max = typeof max === "function" ? max() : max;
      input.value = get();
      reading.textContent = text();
      if (text()) input.ariaValueText = text();
    });
    return make("label", {}, make("span", {title: label}, label), input, quiet ? "" : reading);
  }
  function check(name, label) {
    const box = make("input", {type: "checkbox",
      onchange: () => { state[name] = box.checked; draw(); }});
    controls.push(() => { box.checked = state[name]; });
    return make("label.check", {}, box, label);
  }
  // A text to type
  function field({label, get, set, ...more}) {
    const input = make("input", {type: "text", spellcheck: false, autocomplete: "off",
      autocapitalize: "off", ...more, oninput: () => { set(input.value); draw(); }});
    controls.push(() => { if (input.value !== get()) input.value = get(); });
    return make("label", {}, label, input);
  }
  function button(label, act) {
    return make("button", {onclick: () => { act(); draw(); }}, label);
  }
  // What goes through `state.step`: two buttons, the arrow keys, and a slider if it has a label
  function steps({least = 0, most, next, label, text}) {
    const go = to => { state.step = Math.min(Math.max(to, least), most()); };
    const back = button("‹ back", () => go(state.step - 1));
    const on = button(next, () => go(state.step + 1));
    controls.push(() => {
      go(state.step);
      back.disabled = state.step === least;
      on.disabled = state.step === most();
    });
    root.addEventListener("keydown", e => {
      const by = {ArrowRight: 1, ArrowLeft: -1}[e.key];
      if (!by || ["range", "text"].includes(e.target.type) || e.target.tagName === "SELECT") return;
      e.preventDefault();
      go(state.step + by);
      draw();
    });
    return label ? [back, on, slider({label, min: least, max: most, get: () => state.step,
                                      set: go, text, quiet: true})] : [back, on];
  }
  return view;
}
