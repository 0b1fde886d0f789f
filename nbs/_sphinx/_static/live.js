// A model in the page: type a sentence, MiniLM reads it here, and the views follow. Nothing is
// fetched before the reader asks, and nothing that is typed leaves the page. The model runs in a
// worker, encoder.js; the views in a frame, view.html; both are the files of the Python package.
(() => {
const box = document.querySelector('.live')
if (!box) return
const {folder, file, sha256, bytes} = box.dataset, megabytes = Math.round(bytes/1e6)
const kinds = {head: 'lines', model: 'all heads', neuron: 'arithmetic', tokens: 'pieces'}

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(properties))
    name in element ? element[name] = value : element.setAttribute(name, value)
  element.append(...children)
  return element
}

// ---- the model, in its worker

let worker = null, opened = null, last = 0
const waiting = new Map()
function ask(name, ...values) {
  worker ??= begin()
  return new Promise((resolve, reject) => {
    waiting.set(++last, {resolve, reject})
    worker.postMessage({id: last, name, values})
  })
}
function begin() {
  const made = new Worker(`${folder}encoder.js`)
  made.onmessage = ({data: {id, result, error}}) => {
    const {resolve, reject} = waiting.get(id)
    waiting.delete(id)
    error ? reject(new Error(error)) : resolve(result)
  }
  made.onerror = () => {
    for (const {reject} of waiting.values()) reject(new Error('the model cannot run here'))
    waiting.clear()
    worker = opened = null
  }
  return made
}

// The weights: from the browser's store, else from the site, checked by their hash
async function weights(tell) {
  const store = await globalThis.caches?.open('attention_nb').catch(() => null)
  const kept = await store?.match(folder + file)
  if (kept) return kept.arrayBuffer()
  const answer = await fetch(folder + file)
  if (!answer.ok) throw new Error(`${file}: ${answer.status} ${answer.statusText}`)
  const whole = new Uint8Array(+bytes)
  let at = 0
  for (const reader = answer.body.getReader(); ;) {
    const {done, value} = await reader.read()
    if (done) break
    if (at + value.length > whole.length) throw new Error(`${file} is longer than it should be`)
    whole.set(value, at)
    tell(at += value.length)
  }
  const digest = globalThis.crypto?.subtle && await crypto.subtle.digest('SHA-256', whole)
  const hex = digest && Array.from(new Uint8Array(digest), b => b.toString(16).padStart(2, '0'))
  if (at < whole.length || hex && hex.join('') !== sha256)
    throw new Error(`${file} did not arrive as it was made`)
  if (store) {
    for (const old of await store.keys()) await store.delete(old)
    await store.put(folder + file, new Response(whole)).catch(() => {})      // a full disk
  }
  return whole.buffer
}
function load(tell = () => {}) {
  opened ??= weights(tell).then(buffer => ask('open', buffer))
  opened.catch(() => { opened = null })
  return opened
}

// What others may call: tokens, and weights as lists [layer][head][query][key]
globalThis.attentionNb = {
  load: () => load(),
  async run(text, options) {
    const {heads} = await load(), {tokens, cut, layers, vector} = await ask('run', text, options)
    const n = tokens.length, cube = w => Array.from({length: heads}, (_, h) =>
      Array.from({length: n}, (_, i) => Array.from(w.subarray((h*n + i)*n, (h*n + i + 1)*n))))
    return {tokens, cut, weights: layers.map(layer => cube(layer.weights)), vector: [...vector]}
  }
}

// ---- the page

const text = make('textarea', {rows: 2, value: 'The animal was too tired to cross the street.'})
const second = make('textarea', {rows: 2, placeholder: 'none'})
const read = make('button', {type: 'submit', className: 'btn btn-primary'}, 'Read it')
const progress = make('progress', {max: +bytes, value: 0, hidden: true, ariaLabel: 'fetched'})
const status = make('p', {className: 'live-status', role: 'status'},
  `Reading fetches the model once, ${megabytes} MB; what you type stays in this page.`)
const view = make('select', {}, ...Object.entries(kinds).map(([value, name]) =>
  make('option', {value}, name)))
const link = make('a', {href: '#'}, 'link to this sentence')
const out = make('button', {type: 'button', className: 'btn btn-sm'}, 'Take this head out')
const hide = make('div', {className: 'live-tokens', role: 'group', ariaLabel: 'hide a token'})
const tools = make('div', {className: 'live-tools', hidden: true},
  make('label', {}, 'View ', view), out, link)
const own = make('input', {type: 'file', multiple: true, ariaLabel: 'files of a model'})
const form = make('form', {}, make('label', {}, 'Your sentence', text),
  make('label', {}, 'A second one, to compare', second), read, progress)
const drop = make('details', {className: 'live-own'}, make('summary', {}, 'Weights of your own'),
  make('p', {}, 'Choose config.json, vocab.txt and model.safetensors of a BERT, at most 200 MB, ' +
    'or drop them here, or the folder that holds them. They stay in this page.'), own)
const frame = make('iframe', {title: 'attention of your sentence', hidden: true})
box.replaceChildren(form, status, tools, hide, frame, drop)

const state = {hidden: new Set(), without: new Map(), ready: false, turn: 0, shown: null,
               chosen: {layer: 3, heads: [1]}}
const say = words => { status.textContent = words }

async function show() {
  const turn = ++state.turn
  const options = {hidden: [...state.hidden], without: [...state.without.values()]}
  const start = performance.now(), sentence = text.value
  const found = await ask('run', sentence, options)
  const taken = (performance.now() - start)/1000
  const other = second.value.trim() && (await ask('run', second.value)).vector
  if (turn !== state.turn) return                                  // more was typed meanwhile
  state.shown = found
  say([`${found.tokens.length} tokens in ${taken.toFixed(2)} s`,
       found.cut && `cut after ${found.tokens.length} tokens`,
       state.hidden.size && `hidden: ${[...state.hidden].map(n => found.tokens[n]).join(' ')}`,
       state.without.size && `taken out: layer and head ${[...state.without.keys()].join('; ')}`,
       other && `cosine of the two sentences ${cosine(found.vector, other).toFixed(2)}`
      ].filter(Boolean).join(' · '))
  link.href = `#text=${encodeURIComponent(sentence)}`
  tools.hidden = frame.hidden = false
  showTokens(found.tokens)
  showView()
}
const cosine = (a, b) => a.reduce((sum, x, c) => sum + x*b[c], 0)

function showTokens(tokens) {
  const focused = [...hide.children].indexOf(document.activeElement)
  hide.replaceChildren('Hide: ', ...tokens.map((token, n) => {
    const on = state.hidden.has(n)
    return make('button', {type: 'button', ariaPressed: String(on), onclick() {
      on ? state.hidden.delete(n) : state.hidden.size < tokens.length - 1 && state.hidden.add(n)
      attempt(show)
    }}, token)
  }))
  hide.children[focused]?.focus()
}

// A fresh frame for every sentence, which begins with the layer and heads that the last one showed
function showView() {
  const was = frame.contentWindow?.state, {layers, heads: most} = state.shown
  if (was) state.chosen = {layer: was.layer, heads: was.heads ? [...was.heads] : [was.head]}
  const layer = Math.min(state.chosen.layer, layers.length - 1)
  const heads = state.chosen.heads.filter(h => h < most)
  const start = {layer, heads: heads.length ? heads : [0]}
  frame.onload = () => frame.contentWindow.show(shown(state.shown, view.value, start))
  frame.src = `${folder}view.html`
}

// What a view shows, as Python would give it, with the numbers ready instead of packed
function shown({tokens, layers, heads, width}, kind, {layer, heads: chosen}) {
  const n = tokens.length, special = [0, n - 1]
  if (kind === 'tokens') return {kind, tokens, special}
  if (kind !== 'neuron') return {kind, start: {group: 0, layer, heads: chosen, token: null},
    groups: [{name: '', q: tokens, k: tokens, split: null, layers: layers.map((l, at) => ({
      label: String(at), heads,
      ready: {heads, at: (h, i, j) => l.weights[(h*n + i)*n + j]}}))}]}
  const E = width/heads
  const byHead = name => {
    const all = new Float32Array(layers.length*n*width)
    for (const [at, l] of layers.entries())
      for (let i = 0; i < n; i++) for (let h = 0; h < heads; h++)
        all.set(l[name].subarray(i*width + h*E, i*width + (h + 1)*E), ((at*heads + h)*n + i)*E)
    return all.buffer
  }
  const seen = Uint8Array.from(tokens, (_, j) => !state.hidden.has(j))
  const mask = state.hidden.size ? {shape: [1, 1, 1, n], data: seen.buffer} : null
  const steps = ['query', 'key', 'product', 'sum', 'scale', ...mask ? ['mask'] : [], 'softmax',
                 'value', 'weighted', 'output']
  return {kind, q: tokens, k: tokens, layers: layers.map((_, at) => String(at)), heads,
          kvHeads: heads, width: E, valueWidth: E, layer, head: chosen[0], query: 1, key: 1,
          places: [null, null], stage: 'query', stages: layers.map(() => steps), bias: null, mask,
          scale: layers.map(() => 1/Math.sqrt(E)), softcap: layers.map(() => 0),
          sinks: layers.map(() => null), qdata: byHead('q'), kdata: byHead('k'),
          vdata: byHead('v')}
}

// ---- what the reader does

async function attempt(what) {
  try { await what() }
  catch (error) { say(`That did not work: ${error.message}`) }
}
form.onsubmit = event => {
  event.preventDefault()
  attempt(async () => {
    read.disabled = true
    progress.hidden = state.ready
    try { await load(got => { progress.value = got }) }
    finally { read.disabled = false; progress.hidden = true }
    state.ready = true
    await show()
  })
}
let pause = 0
form.oninput = () => {
  state.hidden.clear()
  clearTimeout(pause)
  if (state.ready) pause = setTimeout(() => attempt(show), 300)
}
view.onchange = showView
out.onclick = () => {
  const was = frame.contentWindow.state
  if (!was) return
  for (const head of was.heads ?? [was.head]) {
    const name = `${was.layer}, ${head}`
    state.without.delete(name) || state.without.set(name, [was.layer, head])
  }
  attempt(show)
}
async function openOwn(files) {
  const named = Object.fromEntries(Array.from(files, f => [f.name, f])), most = 200e6
  for (const name of ['config.json', 'vocab.txt', 'model.safetensors'])
    if (!named[name]) throw new Error(`${name} is missing`)
  if (named['model.safetensors'].size > most) throw new Error('model.safetensors has over 200 MB')
  const config = JSON.parse(await named['config.json'].text())
  const {model_type: kind} = config
  if (kind !== 'bert') throw new Error(`config.json says ${kind}, not bert`)
  const vocabulary = (await named['vocab.txt'].text()).split(/\r?\n/)
  const buffer = await named['model.safetensors'].arrayBuffer()
  const found = await ask('open', buffer, config, vocabulary)      // if it fails, the old one stays
  opened = Promise.resolve(found)
  state.ready = true
  state.hidden.clear(); state.without.clear()
  await show()
}
own.onchange = () => {
  const files = [...own.files]
  own.value = ''                                          // the same files may be chosen again
  attempt(() => openOwn(files))
}
// The files dropped, and those of a folder, but not of folders in it
async function dropped(entries) {
  const wait = (thing, method) => new Promise((good, bad) => thing[method](good, bad)), files = []
  for (const entry of entries) {
    if (entry.isFile) { files.push(await wait(entry, 'file')); continue }
    const reader = entry.createReader()
    for (let some; (some = await wait(reader, 'readEntries')).length;)     // a hundred at a time
      for (const inner of some) if (inner.isFile) files.push(await wait(inner, 'file'))
  }
  return files
}
box.ondragover = event => event.preventDefault()
box.ondrop = event => {
  event.preventDefault()
  const entries = Array.from(event.dataTransfer.items, item => item.webkitGetAsEntry())
  attempt(async () => openOwn(await dropped(entries.filter(Boolean))))
}
const given = /^#text=(.*)$/s.exec(location.hash)
if (given) try { text.value = decodeURIComponent(given[1]) } catch { /* not an address of ours */ }
})()
