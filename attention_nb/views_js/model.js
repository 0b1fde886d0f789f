// Model view: all layers and heads as thumbnails, one of them large

function modelView(root, groups, start) {
  const waiting = new Map();
  const seen = new IntersectionObserver(entries => {
    for (const e of entries) if (e.isIntersecting) {
      seen.unobserve(e.target);
      thumbnails(...waiting.get(e.target));
    }
  });
  for (const [at, g] of groups.entries()) {
    const most = Math.max(...g.layers.map(l => l.heads));
    const side = Math.max(28, Math.min(72, Math.floor(640 / most)));
    const style = `--side: ${side}px; grid-template-columns: auto repeat(${most}, auto)`;
    const grid = make("div.grid", {style}, make("span"));
    for (let h = 0; h < most; h++) grid.append(make("span", {}, String(h)));
    if (groups.length > 1) root.append(make("h2", {}, g.name));
    root.append(grid);
    for (const [l, layer] of g.layers.entries()) {
      const label = make("span", {}, layer.label), row = [];
      grid.append(label);
      for (let h = 0; h < layer.heads; h++) {
        const canvas = make("canvas"), name = `layer ${layer.label}, head ${h}`;
        row.push(canvas);
        const button = make("button", {title: name, ariaLabel: name, ariaPressed: "false",
                                       onclick: () => open(button, at, l, h)}, canvas);
        grid.append(button);
      }
      for (let h = layer.heads; h < most; h++) grid.append(make("span"));
      waiting.set(label, [g, l, row]);
      seen.observe(label);
    }
  }
  const place = make("div.large"), large = make("div");
  root.append(place);
  let view = null;
  function open(button, at, l, h) {
    for (const b of root.querySelectorAll(".grid button")) b.ariaPressed = String(b === button);
    if (view) view.choose(at, l, h);
    else {
      place.append(large);
      view = headView(large, groups, {...start, group: at, layer: l, heads: [h]});
    }
    place.scrollIntoView({block: "nearest"});
  }

  // a thumbnail shows the largest weight that falls into each of its pixels, as its square root so
  // that small ones are seen
  async function thumbnails(g, l, row) {
    const w = await unpack(g, l), L = g.q.length, S = g.k.length;
    const tall = Math.min(L, 48), wide = Math.min(S, 48);
    for (const [h, canvas] of row.entries()) {
      canvas.width = wide; canvas.height = tall;
      const pixels = new Float32Array(tall * wide);
      for (let i = 0; i < L; i++) for (let j = 0; j < S; j++) {
        const p = Math.floor(i * tall / L) * wide + Math.floor(j * wide / S);
        pixels[p] = Math.max(pixels[p], w.at(h, i, j));
      }
      const paint = () => {
        const pen = canvas.getContext("2d"), image = pen.createImageData(wide, tall);
        const style = getComputedStyle(document.documentElement);
        const rgb = style.getPropertyValue("--weight").split(",").map(Number);
        pixels.forEach((x, p) => image.data.set([...rgb, 255 * Math.sqrt(x)], 4 * p));
        pen.putImageData(image, 0, 0);
      };
      paint(); addEventListener("redraw", paint);
    }
    root.dataset.ready = "yes";
  }
}

views.model = (root, {groups, start}) => modelView(root, groups, start);
