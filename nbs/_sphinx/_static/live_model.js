// The model in the page: its worker, its weights, and `attentionNb`, which others may call. Nothing
// is fetched before somebody asks. live.js, the box, uses `attentionNb.ask`.
(() => {
const box = document.querySelector('.live')
if (!box) return
const {folder, file, sha256, bytes} = box.dataset
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

// ---- the weights: from the browser's store, else from the site, checked by their hash

const store = async () => await globalThis.caches?.open('attention_nb').catch(() => null)
const kept = async () => await (await store())?.match(folder + file)

async function weights(tell) {
  const here = await kept()
  if (here) return here.arrayBuffer()
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
  const place = await store()
  if (place) {
    for (const old of await place.keys()) await place.delete(old)
    await place.put(folder + file, new Response(whole)).catch(() => {})      // a full disk
  }
  return whole.buffer
}
function load(tell = () => {}) {
  if (!opened) {
    opened = weights(tell).then(buffer => ask('open', buffer))
    opened.then(offline, () => { opened = null })
  }
  return opened
}
// Another model, of the reader's own; if it cannot be opened, the old one stays
async function open(...files) { opened = Promise.resolve(await ask('open', ...files)) }

// What this page loaded is kept, so that it opens again where there is no network
function offline() {
  const {serviceWorker} = navigator
  serviceWorker?.register('offline.js').then(async () => {
    const {active} = await serviceWorker.ready
    const loaded = performance.getEntriesByType('resource').map(e => e.name)
    const frame = ['view.html', 'encoder.js'].map(name => new URL(folder + name, location).href)
    active.postMessage([location.origin + location.pathname, ...frame, ...loaded])
  }).catch(() => {})
}

globalThis.attentionNb = {
  load: () => load(),
  // Tokens, and weights as lists [layer][head][query][key]
  async run(text, options) {
    const {heads} = await load(), {tokens, cut, layers, vector} = await ask('run', text, options)
    const n = tokens.length, cube = w => Array.from({length: heads}, (_, h) =>
      Array.from({length: n}, (_, i) => Array.from(w.subarray((h*n + i)*n, (h*n + i + 1)*n))))
    return {tokens, cut, weights: layers.map(layer => cube(layer.weights)), vector: [...vector]}
  },
  inside: {ask, load, kept, open},
}
})()
