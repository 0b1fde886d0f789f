// ---- heads that form: what they look at after so many steps, under the loss of the whole run

views.forming = async (root, d) => {
  const maps = await rowsOf(d.weights, d.length * d.length), {steps, losses, names} = d;
  const view = explorable(d.start, show), {state} = view;
  const wide = 400, high = 110, last = steps.at(-1), top = Math.max(...losses);
  const x = step => 4 + (wide - 8) * step / last, y = loss => high - 6 - (high - 12) * loss / top;
  const line = steps.map((step, n) => `${n ? "L" : "M"}${x(step)} ${y(losses[n])}`).join("");
  const dot = svg("circle", {r: 5});
  const curve = svg("svg", {viewBox: `0 0 ${wide} ${high}`, class: "curve", "aria-hidden": "true"},
                    svg("path", {d: `M4 ${high - 6}H${wide - 4}`, class: "axis"}),
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
