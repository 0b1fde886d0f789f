// ---- heads that form: what they look at after so many steps, under the loss of the whole run

views.forming = async (root, d) => {
  const maps = await rowsOf(d.weights, d.length * d.length), {steps, losses, names} = d;
  const view = explorable(d.start, show), {state} = view;
  const wide = 400, high = 130, left = 24, low = 112, last = steps.at(-1);
  const top = Math.max(...losses), x = step => left + (wide - left - 12) * step / last;
  const y = loss => low - (low - 10) * loss / top;
  const line = steps.map((step, n) => `${n ? "L" : "M"}${x(step)} ${y(losses[n])}`).join("");
  const dot = svg("circle", {r: 5});
  const mark = (x, y, text, place) => svg("text", {x, y, class: place}, text);
  const levels = Array.from({length: Math.floor(top) + 1}, (_, n) => n);
  const curve = svg("svg", {viewBox: `0 0 ${wide} ${high}`, class: "curve", "aria-hidden": "true"},
                    svg("path", {d: `M${left} 6V${low}H${wide - 4}`, class: "axis"}),
                    ...levels.map(n => mark(left - 4, y(n) + 3, n, "beside")),
                    ...[0, last / 2, last].map(n => mark(x(n), high - 6, n, "below")),
                    mark(left + 6, 14, "loss"), mark(x(.75 * last), high - 6, "steps", "below"),
                    svg("path", {d: line}), dot);
  const sheets = names.map(() => make("canvas", {width: d.length, height: d.length}));
  const figures = names.map((name, n) =>
    make("figure", {}, make("figcaption", {}, name), sheets[n]));
  view.picture = make("div.heads", {role: "img"}, ...figures);
  root.append(make("div.bar", {},
    ...view.steps({most: () => steps.length - 1, next: "later ›", label: "moment",
                   text: () => `step ${steps[state.step]}`})), view.status,
    curve, view.picture);

  function draw(sheet, weights) {
    const pen = sheet.getContext("2d"), image = pen.createImageData(d.length, d.length);
    const ink = cssValue("--weight").split(",").map(Number);
    weights.forEach((w, n) => image.data.set([...ink, 255 * w], 4 * n));
    pen.putImageData(image, 0, 0);
  }
  function show() {
    const n = state.step;
    dot.setAttribute("cx", x(steps[n]));
    dot.setAttribute("cy", y(losses[n]));
    sheets.forEach((sheet, m) => draw(sheet, maps[n * names.length + m]));
    return `After ${many(steps[n])} steps the loss is ${two(losses[n])}.`;
  }
  lasting(window, "redraw", view.draw);
  view.draw();
};
