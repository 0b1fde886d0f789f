// ---- the arithmetic of one head: what `attention` computes for one query, every step kept

// The stored numbers, each as one long array: (layers, heads, length, width) of q, k and v
async function readHeads(d) {
  const bytes = async packed => packed && await inflate(packed);
  const floats = async packed => packed && new Float32Array(await bytes(packed));
  const bias = await floats(d.bias?.data), mask = await bytes(d.mask?.data);
  return {q: await floats(d.qdata), k: await floats(d.kdata), v: await floats(d.vdata),
          bias, mask: mask && new Uint8Array(mask)};
}

// An element of a tensor whose dimensions of size 1 stand for any place
function broadcast(shape, place) {
  return shape.reduce((at, n, axis) => at * n + (n > 1 ? place[axis] : 0), 0);
}

// Where keys stand that query `i` sees, [first, last]; the last query stands at the last key
function seenPlaces(d, i) {
  const at = i + d.k.length - d.q.length, [left, right] = d.window;
  return [left === null ? -Infinity : at - left, right === null ? Infinity : at + right];
}

// All steps for query `i` of a head: for each key its score after each step, its weight, and what
// the values add up to
function oneQuery(d, numbers, layer, head, i) {
  const L = d.q.length, S = d.k.length, E = d.width, N = d.valueWidth;
  const shared = layer * d.kvHeads + Math.floor(head * d.kvHeads / d.heads);
  const slice = (array, n, row) => array.subarray(row * n, (row + 1) * n);
  const query = slice(numbers.q, E, (layer * d.heads + head) * L + i);
  const key = j => slice(numbers.k, E, shared * S + j);
  const value = j => slice(numbers.v, N, shared * S + j);
  const [first, last] = seenPlaces(d, i), cap = d.softcap[layer], scale = d.scale[layer];
  const steps = {};
  for (const name of ["sum", "scale", "cap", "bias", "mask", "exp", "softmax"])
    steps[name] = new Float64Array(S);
  const at = (name, place) => broadcast(d[name].shape, place);
  for (let j = 0; j < S; j++) {
    const y = key(j), place = [layer, head, i, j];
    let s = 0;
    for (let e = 0; e < E; e++) s += query[e] * y[e];
    steps.sum[j] = s;
    steps.scale[j] = s *= scale;
    steps.cap[j] = s = cap ? cap * Math.tanh(s / cap) : s;
    steps.bias[j] = s += d.bias ? numbers.bias[at("bias", place)] : 0;
    const hidden = j < first || j > last || d.mask && !numbers.mask[at("mask", place)];
    steps.mask[j] = hidden ? -Infinity : s;
  }
  const sink = d.sinks[layer]?.[head] ?? -Infinity;
  const top = steps.mask.reduce((m, s) => Math.max(m, s), sink);
  const exp = s => s === -Infinity ? 0 : Math.exp(s - top);
  steps.exp = steps.mask.map(exp);
  const total = sum(steps.exp) + exp(sink);
  steps.softmax = steps.exp.map(x => total ? x / total : 0);
  const out = new Float64Array(N);
  for (let j = 0; j < S; j++) {
    const w = steps.softmax[j];
    if (w && N) value(j).forEach((x, n) => { out[n] += w * x; });
  }
  return {query, key, value, steps, top, total, out, scale, cap,
          sink: {score: sink, exp: exp(sink), weight: total ? exp(sink) / total : 0},
          product: (j, e) => query[e] * key(j)[e],
          weighted: (j, n) => steps.softmax[j] * value(j)[n]};
}

// The largest numbers of each kind, which the colours are measured by
function limitsOf(d, found) {
  const limits = {query: 0, key: 0, product: 0, value: 0, weighted: 0};
  const see = (name, x) => { limits[name] = Math.max(limits[name], Math.abs(x)); };
  for (let j = 0; j < d.k.length; j++) {
    const y = found.key(j);
    for (let e = 0; e < d.width; e++) {
      see("key", y[e]);
      see("product", found.query[e] * y[e]);
    }
    if (d.vdata) for (const x of found.value(j)) {
      see("value", x);
      see("weighted", found.steps.softmax[j] * x);
    }
  }
  limits.query = most(found.query);
  limits.sum = most(found.steps.sum);
  limits.score = Math.max(...["scale", "cap", "bias"].map(name => most(found.steps[name])));
  limits.output = most(found.out);
  return limits;
}
