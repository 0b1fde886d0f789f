// What a BERT must be, and what Python refuses of it, in a line that names the field and what came.
// `family` stands below in the worker of a page: the published fields as Python's table has them.

function said(value) {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 120 ? `${text.slice(0, 100)} ...` : text;
}
function refuse(config, name, why) {
  throw new Error(`config.json: ${name} = ${said(config[name])} ${why}`);
}

const whole = (x, least, most = 2 ** 31 - 1) => Number.isInteger(x) && x >= least && x <= most;
const fits = {
  flag: x => typeof x === "boolean", text: x => typeof x === "string",
  size: x => whole(x, 1), layers: x => whole(x, 1, 2 ** 16), token: x => whole(x, 0),
  tokens: x => [x].flat().every(id => whole(id, 0)),
  probability: x => Number.isFinite(x) && x >= 0 && x <= 1,
  positive: x => Number.isFinite(x) && x > 0,
};

// The settings, with BERT's own where they say nothing
function settings(config, vocabulary) {
  if (!config || typeof config !== "object" || Array.isArray(config))
    throw new Error(`config.json must be an object, got ${said(config)}`);
  if (config.model_type !== "bert")
    throw new Error(`config.json says ${said(config.model_type)}, not "bert"`);
  const {fields, neutral, ignored} = family, has = Object.hasOwn;
  for (const [name, value] of Object.entries(config)) {
    if (ignored.includes(name)) continue;
    if (has(neutral, name)) {
      if (!neutral[name].some(one => said(one) === said(value)))
        refuse(config, name, `is not supported, only ${neutral[name].map(said).join(" or ")}`);
      continue;
    }
    if (!has(fields, name)) refuse(config, name, "is a field that BERT is not known to have");
    const {kind, words, nullable} = fields[name];
    if (!(nullable && value === null || fits[kind](value)))
      refuse(config, name, `must be ${words}`);
  }
  const usual = Object.entries(fields).map(([name, field]) => [name, field.usual]);
  const c = {...Object.fromEntries(usual), ...config};
  checkSizes(c);
  checkWords(c, vocabulary);
  return c;
}

function checkSizes(c) {
  if (!family.gelu.includes(c.hidden_act)) refuse(c, "hidden_act", "is not gelu");
  if (c.hidden_size % c.num_attention_heads)
    refuse(c, "hidden_size", `is no multiple of num_attention_heads = ${c.num_attention_heads}`);
  for (const name of ["hidden_size", "intermediate_size"])      // `linear` takes four rows of W
    if (c[name] % 4) refuse(c, name, "must be a multiple of 4 here");
  if (c.max_position_embeddings < 2)
    refuse(c, "max_position_embeddings", "leaves no place for [CLS] and [SEP]");
  if (c.pad_token_id !== null && c.pad_token_id >= c.vocab_size)
    refuse(c, "pad_token_id", `is beyond the vocabulary of ${c.vocab_size} tokens`);
}
function checkWords({vocab_size: n}, vocabulary) {
  if (vocabulary.length > n)
    throw new Error(`vocab.txt has ${vocabulary.length} tokens, and vocab_size is ${n}`);
  for (const token of ["[UNK]", "[CLS]", "[SEP]"])
    if (!vocabulary.includes(token)) throw new Error(`vocab.txt has no ${token}`);
}

// ---- tensors: each is there, as the settings want it, and no other

const block = "encoder.layer.";

// The name of a tensor without what models with a head or old files add; others are not read
function short(name) {
  const own = name.replace(/^bert\./, "")
    .replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias");
  const ids = /^embeddings\.(position|token_type)_ids$/;
  return /^(embeddings|encoder)\./.test(own) && !ids.test(own) ? own : null;
}
function checkBlocks({num_hidden_layers: n}, names) {
  const numbers = names.filter(name => name.startsWith(block))
    .map(name => name.slice(block.length).split(".")[0]), found = new Set(numbers).size;
  if (n !== found)
    throw new Error(`config.json: num_hidden_layers = ${n}, but the weights have ${found} blocks`);
}
function checkShape(c, name, shape, sizes) {
  const want = sizes.map(size => c[size]);
  if (said(shape) !== said(want))
    throw new Error(`${name} is ${shape.join(" × ") || "one number"}, but ` +
      `${sizes.join(" × ")} = ${want.join(" × ")}`);
}
