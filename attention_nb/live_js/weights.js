// Where the numbers of the encoder come from, and whom it answers: joined to encoder.js, this makes
// the worker of a page.

// ---- weights, as safetensors files hold them: a header in JSON, then the numbers

// float16: a sign, five bits of exponent, ten of fraction
function half(bits) {
  const sign = bits >> 15 ? -1 : 1, power = bits >> 10 & 31, rest = bits & 1023;
  return sign * (power ? 2 ** (power - 15) * (1 + rest / 1024) : 2 ** -24 * rest);
}
const bytes = {F64: 8, F32: 4, F16: 2, BF16: 2, I8: 1};
const readers = {
  F32: part => new Float32Array(part), I8: part => new Int8Array(part),
  F64: part => Float32Array.from(new Float64Array(part)),
  F16: part => Float32Array.from(new Uint16Array(part), half),
  BF16: part => {
    const bits = Uint32Array.from(new Uint16Array(part), upper => upper << 16);
    return new Float32Array(bits.buffer);
  },
};

// The header of a file, and where its numbers begin
function header(buffer) {
  const bad = why => new Error(`model.safetensors ${why}: it is broken, or no such file`);
  if (buffer.byteLength < 8) throw bad("ends in its header");
  const size = Number(new DataView(buffer).getBigUint64(0, true));
  if (size > buffer.byteLength - 8) throw bad("ends in its header");
  const text = new TextDecoder().decode(new Uint8Array(buffer, 8, size));
  let found = null;
  try { found = JSON.parse(text); } catch { /* said below */ }
  if (!found || typeof found !== "object") throw bad("has no header");
  const {__metadata__: about, ...entries} = found, from = 8 + size;
  for (const [name, entry] of Object.entries(entries)) {
    const {dtype, shape, data_offsets: at} = entry ?? {};
    const lists = [shape, at].every(list => Array.isArray(list) && list.every(n => whole(n, 0)));
    const n = lists && shape.reduce((all, size) => all * size, bytes[dtype]);
    if (!lists || at[1] > buffer.byteLength - from || dtype in bytes && n !== at[1] - at[0])
      throw bad(`has no whole ${name}`);
  }
  return {about, entries, from};
}

// The tensors of a file by name; one of int8 has a step for each piece of a row
function tensors(buffer) {
  const {about, entries, from} = header(buffer), names = new Map(), used = new Set();
  for (const full of Object.keys(entries)) {
    const name = short(full);
    if (name && names.has(name))
      throw new Error(`${full} and ${names.get(name)} are the same tensor`);
    if (name) names.set(name, full);
  }
  const stored = name => {
    if (!names.has(name)) throw new Error(`The weights have no ${name}: not a BERT`);
    const {dtype, shape, data_offsets: [start, end]} = entries[names.get(name)];
    if (!Object.hasOwn(readers, dtype) || dtype === "I8" && !names.has(`${name}_step`))
      throw new Error(`${name} is ${dtype}, not F64, F32, F16 or BF16`);
    used.add(name);
    return {data: readers[dtype](buffer.slice(from + start, from + end)), shape};
  };
  const rows = name => {                                     // (row, column) => number
    const {data, shape: [n, d]} = stored(name);
    if (!(data instanceof Int8Array)) return {data, n, d, at: (r, c) => data[r * d + c]};
    const {data: step, shape: [, parts]} = stored(`${name}_step`), wide = Math.ceil(d / parts);
    const at = (r, c) => data[r * d + c] * step[r * parts + Math.floor(c / wide)];
    return {n, d, at};
  };
  const array = name => {
    if (stored(name).shape.length < 2) return stored(name).data;
    const {data, n, d, at} = rows(name);
    if (data) return data;
    const numbers = new Float32Array(n * d);
    for (let r = 0; r < n; r++) for (let c = 0; c < d; c++) numbers[r * d + c] = at(r, c);
    return numbers;
  };
  const shape = name => entries[names.get(name)]?.shape ?? stored(name).shape;
  const left = () => [...names.keys()].filter(name => !used.has(name));
  return {about, names: [...names.keys()], shape, rows, array, left};
}

// A model of a config.json, a vocabulary (a token a line) and a file of weights
function build(config, vocabulary, buffer) {
  const c = settings(config, vocabulary), file = tensors(buffer);
  checkBlocks(c, file.names);
  const of = (how, name, ...sizes) => {
    checkShape(c, name, file.shape(name), sizes);
    return file[how](name);
  };
  const layer = (name, ...sizes) => ({weight: of("array", `${name}.weight`, ...sizes),
                                      bias: of("array", `${name}.bias`, sizes[0])});
  const D = "hidden_size", inner = "intermediate_size";
  const block = l => {
    const part = (name, ...sizes) => layer(`encoder.layer.${l}.${name}`, ...sizes);
    return {q: part("attention.self.query", D, D), k: part("attention.self.key", D, D),
            v: part("attention.self.value", D, D), out: part("attention.output.dense", D, D),
            attentionNorm: part("attention.output.LayerNorm", D),
            up: part("intermediate.dense", inner, D), down: part("output.dense", D, inner),
            norm: part("output.LayerNorm", D)};
  };
  const table = (how, name, size) => of(how, `embeddings.${name}_embeddings.weight`, size, D);
  const capitals = vocabulary.some(t => !/^\[.*\]$/.test(t) && t !== t.toLowerCase());
  const model = {
    ids: new Map(vocabulary.map((token, id) => [token, id])), lower: !capitals,
    heads: c.num_attention_heads, width: c.hidden_size, eps: c.layer_norm_eps,
    longest: Math.min(128, c.max_position_embeddings),
    words: table("rows", "word", "vocab_size").at,
    places: table("array", "position", "max_position_embeddings"),
    types: table("array", "token_type", "type_vocab_size"), norm: layer("embeddings.LayerNorm", D),
    blocks: Array.from({length: c.num_hidden_layers}, (_, l) => block(l))};
  const [left] = file.left();
  if (left) throw new Error(`${left} has no place in this model`);
  return model;
}

// ---- as a worker: {id, name, values} comes, {id, result} or {id, error} goes

let model = null, writer = null;
const answers = {
  open(buffer, config, vocabulary) {
    if (!config) ({config, vocabulary} = JSON.parse(tensors(buffer).about.model));
    model = build(config, vocabulary, buffer);
    return {heads: model.heads, layers: model.blocks.length, width: model.width};
  },
  run(text, options) { return run(model, text, options); },
  openDecoder(buffer) { writer = decoder(buffer); },
  guess(text, options) { return guess(writer, text, options); },
};
addEventListener("message", ({data: {id, name, values}}) => {
  try { postMessage({id, result: answers[name](...values)}); }
  catch (error) { postMessage({id, error: error.message}); }
});
