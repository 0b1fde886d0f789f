// Where the numbers of the encoder come from, and whom it answers: joined to encoder.js, this makes
// the worker of a page.

// ---- weights, as safetensors files hold them: a header in JSON, then the numbers

// float16: a sign, five bits of exponent, ten of fraction
function half(bits) {
  const sign = bits >> 15 ? -1 : 1, power = bits >> 10 & 31, rest = bits & 1023;
  return sign * (power ? 2 ** (power - 15) * (1 + rest / 1024) : 2 ** -24 * rest);
}
const readers = {
  F32: part => new Float32Array(part), I8: part => new Int8Array(part),
  F16: part => Float32Array.from(new Uint16Array(part), half),
  BF16: part => {
    const bits = Uint32Array.from(new Uint16Array(part), upper => upper << 16);
    return new Float32Array(bits.buffer);
  },
};

// The tensors of a file by name; one of int8 has a step for each piece of a row
function tensors(buffer) {
  const size = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  const {__metadata__: about, ...entries} = header;
  const stored = name => {
    const entry = entries[name] ?? entries[`bert.${name}`];
    if (!entry) throw new Error(`The weights have no ${name}: not a BERT`);
    const {dtype, data_offsets: [from, to]} = entry;
    if (!readers[dtype]) throw new Error(`${name} is ${dtype}, not ${Object.keys(readers)}`);
    return {data: readers[dtype](buffer.slice(8 + size + from, 8 + size + to)), shape: entry.shape};
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
  return {about, rows, array};
}

// A model of a config.json, a vocabulary (a token a line) and a file of weights
function build(config, vocabulary, buffer) {
  const {rows, array} = tensors(buffer), ids = new Map(vocabulary.map((token, id) => [token, id]));
  const {hidden_act: act = "gelu", hidden_size: width, intermediate_size: inner} = config;
  if (act !== "gelu") throw new Error(`hidden_act is ${act}, not gelu`);
  if (width % 4 || inner % 4 || width % config.num_attention_heads)
    throw new Error(`widths ${width} and ${inner} must be multiples of 4, and of the heads`);
  const capitals = vocabulary.some(t => !/^\[.*\]$/.test(t) && t !== t.toLowerCase());
  const layer = name => ({weight: array(`${name}.weight`), bias: array(`${name}.bias`)});
  const block = l => {
    const part = name => layer(`encoder.layer.${l}.${name}`);
    return {q: part("attention.self.query"), k: part("attention.self.key"),
            v: part("attention.self.value"), out: part("attention.output.dense"),
            attentionNorm: part("attention.output.LayerNorm"), up: part("intermediate.dense"),
            down: part("output.dense"), norm: part("output.LayerNorm")};
  };
  return {ids, lower: !capitals, heads: config.num_attention_heads,
          width, eps: config.layer_norm_eps,
          longest: Math.min(128, config.max_position_embeddings),
          words: rows("embeddings.word_embeddings.weight").at,
          places: array("embeddings.position_embeddings.weight"),
          types: array("embeddings.token_type_embeddings.weight"),
          norm: layer("embeddings.LayerNorm"),
          blocks: Array.from({length: config.num_hidden_layers}, (_, l) => block(l))};
}

// ---- as a worker: {id, name, values} comes, {id, result} or {id, error} goes

let model = null;
const answers = {
  open(buffer, config, vocabulary) {
    if (!config) ({config, vocabulary} = JSON.parse(tensors(buffer).about.model));
    model = build(config, vocabulary, buffer);
    return {heads: model.heads, layers: model.blocks.length, width: model.width};
  },
  run(text, options) { return run(model, text, options); },
};
addEventListener("message", ({data: {id, name, values}}) => {
  try { postMessage({id, result: answers[name](...values)}); }
  catch (error) { postMessage({id, error: error.message}); }
});
