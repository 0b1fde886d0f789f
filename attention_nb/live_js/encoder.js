// MiniLM, and any BERT of its shape, in plain JavaScript: from text to pieces, from pieces to
// vectors, then blocks of attention and a feed-forward layer. The chapter Live explains it beside
// the same in Python. A matrix is a Float32Array, row after row; `n` counts the rows of x.
"use strict";

// ---- WordPiece

const marks = "\\p{P}$+<=>^\\x60|~";                        // punctuation and ASCII's other signs
const wordOrMark = new RegExp(`[${marks}]|[^\\s${marks}]+`, "gu");
const ideograph = new RegExp("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}" +
  "\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]", "gu");

function words(text, lower) {
  const clean = text.replace(/(?![\t\n\r])[\p{C}\ufffd]/gu, "").replace(ideograph, " $& ");
  if (!lower) return clean.match(wordOrMark) ?? [];
  const letters = clean.normalize("NFD").replace(/\p{Mn}/gu, "");           // accents go
  return Array.from(letters, c => c.toLowerCase()).join("").match(wordOrMark) ?? [];
}

// The longest pieces that the vocabulary has, from the left; all but the first begin with ##
function pieces(word, ids) {
  const letters = Array.from(word), found = [];
  if (letters.length > 100) return ["[UNK]"];
  for (let from = 0, to; from < letters.length; from = to) {
    const piece = () => (from ? "##" : "") + letters.slice(from, to).join("");
    for (to = letters.length; to > from && !ids.has(piece()); to--);
    if (to === from) return ["[UNK]"];
    found.push(piece());
  }
  return found;
}

function tokenize({ids, lower, longest}, text) {
  const enough = 40 * longest;                      // letters of a text that are looked at
  const found = words(text.slice(0, enough), lower).flatMap(word => pieces(word, ids));
  const cut = text.length > enough || found.length > longest - 2;
  return {tokens: ["[CLS]", ...found.slice(0, longest - 2), "[SEP]"], cut};
}

// ---- layers

// x Wᵀ + b, for two rows of x and four of W at a time, so that each number is read less often
function linear(x, n, {weight, bias}) {
  const out = bias.length, d = weight.length / out, y = new Float32Array(n * out);
  for (let j = 0; j < out; j += 4) {
    for (let i = 0; i < n; i += 2) {
      const two = i + 1 < n ? d : 0;
      let a0 = bias[j], a1 = bias[j + 1], a2 = bias[j + 2], a3 = bias[j + 3];
      let b0 = a0, b1 = a1, b2 = a2, b3 = a3;
      for (let c = 0, at = i * d, w = j * d; c < d; c++, at++, w++) {
        const p = x[at], q = x[at + two];
        const w0 = weight[w], w1 = weight[w + d], w2 = weight[w + 2 * d], w3 = weight[w + 3 * d];
        a0 += p * w0; a1 += p * w1; a2 += p * w2; a3 += p * w3;
        b0 += q * w0; b1 += q * w1; b2 += q * w2; b3 += q * w3;
      }
      const at = i * out + j;
      y[at] = a0; y[at + 1] = a1; y[at + 2] = a2; y[at + 3] = a3;
      if (two) {
        const next = at + out;
        y[next] = b0; y[next + 1] = b1; y[next + 2] = b2; y[next + 3] = b3;
      }
    }
  }
  return y;
}

// Each row: minus its mean, divided by its standard deviation, times g, plus b
function layerNorm(x, n, {weight, bias}, eps) {
  const d = bias.length;
  for (let i = 0; i < n; i++) {
    const row = x.subarray(i * d, (i + 1) * d);
    let mean = 0, square = 0;
    for (let c = 0; c < d; c++) mean += row[c] / d;
    for (let c = 0; c < d; c++) square += (row[c] - mean) ** 2 / d;
    const by = 1 / Math.sqrt(square + eps);
    for (let c = 0; c < d; c++) row[c] = (row[c] - mean) * by * weight[c] + bias[c];
  }
  return x;
}

// x Φ(x), with the error function by a rational approximation (Abramowitz and Stegun 7.1.26)
function gelu(x) {
  const erf = z => {
    const t = 1 / (1 + 0.3275911 * Math.abs(z));
    const sum = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 +
      t * 1.061405429))));
    return Math.sign(z) * (1 - sum * Math.exp(-z * z));
  };
  return x.map(z => z / 2 * (1 + erf(z / Math.SQRT2)));
}

function added(x, y) { return x.map((z, c) => z + y[c]); }

// Softmax of q kᵀ / √E, for each head; no query sees a key that is hidden
function attentionWeights(q, k, n, heads, hidden) {
  const D = q.length / n, E = D / heads, weights = new Float32Array(heads * n * n);
  for (let h = 0; h < heads; h++) for (let i = 0; i < n; i++) {
    const row = weights.subarray((h * n + i) * n, (h * n + i + 1) * n);
    for (let j = 0; j < n; j++) {
      let score = 0;
      for (let e = 0; e < E; e++) score += q[i * D + h * E + e] * k[j * D + h * E + e];
      row[j] = hidden.has(j) ? -Infinity : score / Math.sqrt(E);
    }
    const top = row.reduce((most, s) => Math.max(most, s), -Infinity);
    let sum = 0;
    for (let j = 0; j < n; j++) sum += row[j] = Math.exp(row[j] - top);
    for (let j = 0; j < n; j++) row[j] /= sum;
  }
  return weights;
}

// What each query takes: its weights times the values of its head; a head taken out takes nothing
function mixed(weights, v, n, heads, out) {
  const D = v.length / n, E = D / heads, y = new Float32Array(n * D);
  for (let h = 0; h < heads; h++) if (!out.has(h)) for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++) {
      const w = weights[(h * n + i) * n + j];
      for (let e = h * E; e < (h + 1) * E; e++) y[i * D + e] += w * v[j * D + e];
    }
  return y;
}

// ---- the model

// All that the views show, and `vector`, the mean of the last vectors, of length 1. `hidden` are
// places of tokens that nobody sees, `without` are heads taken out, as [layer, head].
function run(model, text, {hidden = [], without = []} = {}) {
  const {tokens, cut} = tokenize(model, text), n = tokens.length, unseen = new Set(hidden);
  const {heads, width: D, eps} = model;
  if (tokens.every((_, j) => unseen.has(j))) throw new Error("one token at least must be seen");
  let x = new Float32Array(n * D);
  for (const [i, token] of tokens.entries()) {
    const id = model.ids.get(token) ?? model.ids.get("[UNK]");
    for (let c = 0; c < D; c++) x[i * D + c] =
      model.words(id, c) + model.places[i * D + c] + model.types[c];
  }
  x = layerNorm(x, n, model.norm, eps);
  const layers = model.blocks.map((block, l) => {
    const [q, k, v] = [block.q, block.k, block.v].map(part => linear(x, n, part));
    const weights = attentionWeights(q, k, n, heads, unseen);
    const gone = new Set(without.filter(([layer]) => layer === l).map(([, head]) => head));
    const y = linear(mixed(weights, v, n, heads, gone), n, block.out);
    x = layerNorm(added(x, y), n, block.attentionNorm, eps);
    const z = linear(gelu(linear(x, n, block.up)), n, block.down);
    x = layerNorm(added(x, z), n, block.norm, eps);
    return {q, k, v, weights};
  });
  return {tokens, cut, heads, width: D, layers, vector: meanVector(x, n, D)};
}

function meanVector(x, n, D) {
  const mean = new Float32Array(D);
  for (let i = 0; i < n * D; i++) mean[i % D] += x[i];
  const length = Math.hypot(...mean);
  if (!Number.isFinite(length)) throw new Error("the weights give what is no number");
  return mean.map(c => c / length);
}
