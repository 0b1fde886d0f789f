// The decoder of lesson 12: how likely each letter is to come next. The chapter Next letter tells
// how. Joined to encoder.js and weights.js, whose linear layer and reader of files it uses.

// The weights of a file that `write_letters` made
function decoder(buffer) {
  const {about, entries, from} = header(buffer), sizes = JSON.parse(about.decoder);
  const array = name => {
    const {dtype, data_offsets: [start, end]} = entries[name];
    return readers[dtype](buffer.slice(from + start, from + end));
  };
  const matrix = name => ({weight: array(`${name}.weight`),
                           bias: new Float32Array(entries[`${name}.weight`].shape[0])});
  const block = l => {
    const part = name => matrix(`blocks.${l}.${name}`);
    const norm = n => array(`blocks.${l}.norm${n}.weight`);
    return {norm1: norm(1), norm2: norm(2), q: part("heads.q_proj"), k: part("heads.k_proj"),
            v: part("heads.v_proj"), out: part("heads.out_proj"), gate: part("feed.gate"),
            up: part("feed.up"), down: part("feed.down")};
  };
  return {...sizes, table: matrix("token"), norm: array("norm.weight"), speeds: array("speeds"),
          blocks: Array.from({length: sizes.n_blocks}, (_, l) => block(l))};
}

// The letters of a text that the model reads: small, without accents; a space for what it lacks
function letterIds({letters, context}, text) {
  const small = text.normalize("NFD").replace(/\p{Mn}/gu, "").toLowerCase();
  const known = Array.from(small, c => letters.includes(c) ? c : " ").join("").replace(/ +/g, " ");
  return Array.from((known || "\n").slice(-context), c => letters.indexOf(c));
}

// Each row: divided by the root of the mean of its squares, times g
function rmsNorm(x, n, g, eps) {
  const d = g.length, y = new Float32Array(n * d);
  for (let i = 0; i < n; i++) {
    let square = 0;
    for (let c = 0; c < d; c++) square += x[i * d + c] ** 2 / d;
    const by = 1 / Math.sqrt(square + eps);
    for (let c = 0; c < d; c++) y[i * d + c] = x[i * d + c] * by * g[c];
  }
  return y;
}

// Queries or keys of all heads: pair m, the numbers m and m + E/2, turned by place times speed
function turned(x, n, speeds) {
  const half = speeds.length, E = 2 * half, y = new Float32Array(x.length), d = x.length / n;
  for (let i = 0; i < n; i++) for (let h = i * d; h < (i + 1) * d; h += E)
    for (let m = h; m < h + half; m++) {
      const angle = i * speeds[m - h], cos = Math.cos(angle), sin = Math.sin(angle);
      y[m] = x[m] * cos - x[m + half] * sin;
      y[m + half] = x[m + half] * cos + x[m] * sin;
    }
  return y;
}

// What each query takes from the keys up to its own place; several heads share keys and values.
// `last` gets the weights of the last query, for each head; a head in `out` takes nothing
function causalHeads(q, k, v, n, E, {last, out}) {
  const D = q.length / n, shared = k.length / n, group = D / shared, y = new Float32Array(n * D);
  for (let h = 0; h < D / E; h++) for (let i = 0; i < n; i++) {
    const w = new Float32Array(i + 1), from = Math.floor(h / group) * E;
    for (let j = 0; j <= i; j++) {
      let score = 0;
      for (let e = 0; e < E; e++) score += q[i * D + h * E + e] * k[j * shared + from + e];
      w[j] = score / Math.sqrt(E);
    }
    const top = w.reduce((most, s) => Math.max(most, s), -Infinity);
    let sum = 0;
    for (let j = 0; j <= i; j++) sum += w[j] = Math.exp(w[j] - top);
    for (let j = 0; j <= i; j++) w[j] /= sum;
    if (i === n - 1) last.push(w);
    if (out.has(h)) continue;
    for (let j = 0; j <= i; j++) for (let e = 0; e < E; e++)
      y[i * D + h * E + e] += w[j] * v[j * shared + from + e];
  }
  return y;
}

// The chance of each letter to come next, and what the last place takes, for each block and head.
// `without` are heads switched off, as [block, head]
function guess(model, text, {temperature = 1, without = []} = {}) {
  const ids = letterIds(model, text), n = ids.length, {table, speeds, eps} = model;
  const D = model.norm.length, E = 2 * speeds.length;
  let x = new Float32Array(n * D);
  for (const [i, id] of ids.entries()) x.set(table.weight.subarray(id * D, (id + 1) * D), i * D);
  const weights = model.blocks.map((block, l) => {
    const last = [], out = new Set(without.filter(([b]) => b === l).map(([, head]) => head));
    const normed = rmsNorm(x, n, block.norm1, eps);
    const [q, k, v] = [block.q, block.k, block.v].map(part => linear(normed, n, part));
    const taken = causalHeads(turned(q, n, speeds), turned(k, n, speeds), v, n, E, {last, out});
    x = added(x, linear(taken, n, block.out));
    const inner = rmsNorm(x, n, block.norm2, eps), up = linear(inner, n, block.up);
    const gated = linear(inner, n, block.gate).map((z, c) => z / (1 + Math.exp(-z)) * up[c]);
    x = added(x, linear(gated, n, block.down));
    return last;
  });
  const end = rmsNorm(x.subarray((n - 1) * D), 1, model.norm, eps);
  const logits = linear(end, 1, table).map(s => s / temperature), top = Math.max(...logits);
  const sizes = logits.map(s => Math.exp(s - top)), sum = sizes.reduce((a, b) => a + b);
  return {letters: model.letters, read: ids.map(id => model.letters[id]), weights,
          p: sizes.map(s => s / sum)};
}
