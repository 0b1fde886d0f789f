// ---- neuron view: the arithmetic of one query on a grid, a row for each key, step by step

const stepNames = {query: "query", key: "key", product: "product", sum: "sum", scale: "scale",
                   cap: "cap", bias: "bias", mask: "mask", softmax: "softmax", value: "value",
                   weighted: "weight × value", output: "output"};
const ofNeurons = ["query", "key", "product", "sum"], ofValues = ["value", "weighted", "output"];

// A cell of the grid: a number in the colour of its role, as strong as it is large; what is not
// above zero is grey, but for products, which have a colour on either side
function numberCell(x, role, limit, digits = digitsFor(limit)) {
  const ink = role === "product" ? (x < 0 ? "minus" : "plus") : x < 0 ? "grey" : role;
  const strength = limit && Number.isFinite(x) ? 0.55 * Math.min(1, Math.abs(x) / limit) : 0;
  const style = `background: rgba(var(--${ink}), ${strength})`;
  const text = role === "weight" ? percent(x) : written(x, digits);
  return make("td", {title: exact(x), style}, text);
}

// o = Σ softmax(cap(α Σ q k) + b + ln M) v, as far as a layer has it; each term knows its steps
function formulaOf(steps, sinks) {
  const has = name => steps.includes(name);
  const term = (of, letter, below = "") => {
    const element = make("span.term", {}, make("i", {}, letter), make("sub", {}, below));
    element.dataset.steps = of;
    return element;
  };
  const score = [has("scale") ? term("scale", "α ") : "", term("sum", "Σ", "e"), " ",
                 term("query product", "q", "ie"), " ", term("key product", "k", "je")];
  const capped = has("cap") ? [term("cap", "cap"), "(", ...score, ")"] : score;
  const added = [has("bias") ? [" + ", term("bias", "b", "ij")] : [],
                 has("mask") ? [" + ln ", term("mask", "M", "ij")] : []].flat();
  const weight = [term("softmax", "softmax", "j"), "(", ...capped, ...added,
                  sinks ? [" ; ", term("softmax", "z")] : [], ")"].flat();
  const whole = has("output") ? [term("output", "o", "i"), " = ", term("output", "Σ", "j"), " ",
                                 ...weight, " ", term("value weighted", "v", "j")]
                              : [term("softmax", "w", "ij"), " = ", ...weight];
  return make("div.formula", {role: "math", ariaLabel: "the formula of attention"}, ...whole);
}

// Which of `n` numbers are drawn: all, or the largest, in their own order unless sorted
function drawn(n, size, places, {sorted}) {
  const ranked = [...Array(n).keys()].sort((a, b) => size(b) - size(a) || a - b);
  const kept = ranked.slice(0, n <= places + 1 ? n : places);
  return {kept: sorted ? kept : kept.toSorted((a, b) => a - b), others: n - kept.length};
}

// The columns of a step: names, the query's cells, those of key j, rows at the foot, and a note on
// what is left out
function stepColumns(step, ...given) {
  if (ofNeurons.includes(step)) return neuronColumns(step, ...given);
  return ofValues.includes(step) ? valueColumns(step, ...given) : scoreColumns(step, ...given);
}

function neuronColumns(step, d, found, state, room) {
  const {steps, product} = found;
  const {kept, others} = drawn(d.width, e => Math.abs(product(state.j, e)), room - 1, state);
  const adds = step === "sum", blank = n => Array.from({length: n}, () => make("td"));
  const more = others || adds ? 1 : 0, {limits} = found;
  const last = adds ? ["q · k"] : others ? [`${others} others`] : [];
  const query = [...kept.map(e => numberCell(found.query[e], "q", limits.query)), ...blank(more)];
  const row = j => {
    if (step === "query") return blank(kept.length + more);
    if (step === "key")
      return [...kept.map(e => numberCell(found.key(j)[e], "k", limits.key)), ...blank(more)];
    let so = 0;
    const products = kept.map(e => product(j, e)), rest = steps.sum[j] - sum(products);
    const shown = adds ? [...products.map(x => so += x), steps.sum[j]]
                       : others ? [...products, rest] : products;
    return shown.map(x => numberCell(x, "product", adds ? limits.sum : limits.product));
  };
  const note = others ? `${kept.length} of ${d.width} neurons are drawn, those with the largest `
    + `products of ${d.k[state.j]}; the last column adds the ${others} others.` : "";
  return {corner: "neuron", heads: [...kept.map(String), ...last], query, row, feet: [], note};
}

function scoreColumns(step, d, found, state, room) {
  const {steps} = found;
  const titles = {sum: "q · k", scale: "scaled", cap: "capped", bias: "+ bias", mask: "masked",
                  exp: "exp", softmax: "weight"};
  const done = d.stages[state.layer].slice(0, d.stages[state.layer].indexOf(step) + 1);
  const chain = Object.keys(titles).filter(name =>
    done.includes(name) || name === "exp" && step === "softmax").slice(-room);
  const {limits} = found, one = name => ({softmax: ["weight", 1], exp: ["grey", 1],
    sum: ["product", limits.sum]})[name] ?? ["product", limits.score];
  const cells = of => chain.map(name => name in of ? numberCell(of[name], ...one(name))
                                                   : make("td"));
  const row = j => cells(Object.fromEntries(chain.map(name => [name, steps[name][j]])));
  const {sink} = found, feet = [];
  if (step === "softmax" && d.sinks[state.layer])
    feet.push(["sink", cells({[chain.at(-3)]: sink.score, exp: sink.exp, softmax: sink.weight})]);
  if (step === "softmax")
    feet.push(["sum", cells({exp: found.total, softmax: sum(steps.softmax) + sink.weight})]);
  return {corner: "", heads: chain.map(name => titles[name]), row, feet, note: ""};
}

function valueColumns(step, d, found, state, room) {
  const {steps, weighted} = found;
  const {kept, others} = drawn(d.valueWidth, n => Math.abs(found.out[n]), room - 1, state);
  const limit = found.limits[step === "value" ? "value" : "weighted"];
  const number = step === "value" ? (j, n) => found.value(j)[n] : weighted;
  const row = j => [numberCell(steps.softmax[j], "weight", 1),
                    ...kept.map(n => numberCell(number(j, n), "v", limit))];
  const sums = kept.map(n => numberCell(found.out[n], "v", found.limits.output));
  return {corner: "number", heads: ["weight", ...kept.map(String)], row,
          feet: step === "output" ? [["output", [make("td"), ...sums]]] : [],
          note: others ? `${kept.length} of ${d.valueWidth} numbers are drawn, the largest of `
                         + "the output." : ""};
}

// What a step does, in a sentence, for the key in focus
function stepSentence(step, d, found, state) {
  const {i, j} = state, {steps} = found, E = d.width;
  const [from, to] = [d.q[i], d.k[j]].map(token => `“${token}”`);
  const loudest = n => largest([...Array(n).keys()].map(e => Math.abs(found.product(j, e))));
  const x = name => written(steps[name][j]);
  const strongest = () => largest([...found.out].map(Math.abs));
  const say = {
    query: () => `${from} asks with its query, ${E} numbers.`,
    key: () => `${to} can be found by its key, also ${E} numbers.`,
    product: () => {
      const e = loudest(E), [a, b] = [found.query[e], found.key(j)[e]].map(n => written(n));
      return `Neuron by neuron: ${a} × ${b} = ${written(found.product(j, e))} in neuron ${e}, the `
        + `largest product of ${from} and ${to}.`;
    },
    sum: () => `The ${E} products of ${from} and ${to} add up to ${x("sum")}.`,
    scale: () => `${x("sum")} times ${written(found.scale, 4)} is ${x("scale")}.`,
    cap: () => `A cap of ${found.cap} makes ${x("cap")} of ${x("scale")}.`,
    bias: () => `${written(steps.cap[j])} plus ${written(steps.bias[j] - steps.cap[j])} is `
      + `${x("bias")}.`,
    mask: () => steps.mask[j] === -Infinity ? `${from} may not see ${to}: −∞.`
                                            : `${from} may see ${to}; its score stays.`,
    softmax: () => steps.mask[j] === -Infinity ? `${to} is hidden and gets the weight 0\u00a0%.`
      : `e to the power ${x("mask")} − ${written(found.top)}, the largest score, is ${x("exp")}; `
        + `divided by the sum ${written(found.total)} it is the weight `
        + `${percent(steps.softmax[j])}.`,
    value: () => `${to} gives its value, ${d.valueWidth} numbers.`,
    weighted: () => {
      const n = strongest(), v = written(found.value(j)[n]);
      return `Weight times value: number ${n} of ${to} is ${percent(steps.softmax[j])} × ${v} = `
        + `${written(found.weighted(j, n))}.`;
    },
    output: () => `All weighted values add up to what ${from} takes: its number ${strongest()} is `
      + `${written(found.out[strongest()])}.`,
  };
  return say[step]();
}
