// The box in which a sentence meets the model: type, and the views follow. What is typed stays in
// the page. Arcs are drawn by the stored picture above the box, if there is one, in which the
// sentence is edited; other views in a frame, view.html, by the same scripts as stored ones. The
// markup says which views it has (data-views: arcs alone, or all, with a field for the sentence)
// and which sentences are to be pressed (data-examples, one a line).
(() => {
const box = document.querySelector('.live')
if (!box) return
const {ask, load, kept, open} = attentionNb.inside
const {folder, bytes, views, examples = ''} = box.dataset
const kinds = {arcs: 'arcs', head: 'lines', model: 'all heads', neuron: 'arithmetic',
               tokens: 'tokens'}
// A sentence opens with what one of these takes
const pronouns = new Set(('it its itself he him his himself she her hers herself they them their '
  + 'theirs themselves').split(' '))
const example = 'The chicken crossed the road because it wanted to get to the other side.'
// heads of MiniLM that the arcs begin with
const three = [[3, 1, 'who is it'], [1, 8, 'next word'], [4, 5, 'parking place']]

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(properties))
    name in element ? element[name] = value : element.setAttribute(name, value)
  element.append(...children)
  return element
}
const button = (text, onclick, more) => make('button', {type: 'button', onclick, ...more}, text)

// ---- the parts of the box

const text = make('textarea', {rows: 1, value: example})
const read = make('button', {type: 'submit', className: 'btn btn-primary'}, 'Show attention')
const progress = make('progress', {max: +bytes, value: 0, hidden: true, ariaLabel: 'fetched'})
const status = make('p', {className: 'live-status', role: 'status'}, 'MiniLM runs in your browser: '
  + `${Math.round(bytes/1e6)} MB, fetched when you change something. What you type stays here.`)
const form = make('form', {}, make('label', {}, 'Change the sentence, or write your own', text),
                  read, progress)
const presses = make('div', {className: 'live-examples', role: 'group', ariaLabel: 'examples'},
  ...examples.split('\n').filter(Boolean).map(sentence => button(sentence, () => {
    text.value = sentence
    state.hidden.clear()
    attempt(readNow)
  })))
const frame = make('iframe', {title: 'attention of your sentence', hidden: true})
const view = make('select', {ariaLabel: 'view'}, ...Object.entries(kinds).map(([value, name]) =>
  make('option', {value}, name)))
const out = button('', () => afterReading(takeOut), {className: 'live-out'})
const hide = button('hide a word', () => afterReading(() => openWords(words.hidden)),
                    {ariaExpanded: 'false'})
const link = button('copy link', copyLink)
const tools = make('div', {className: 'live-tools', role: 'group', ariaLabel: 'what to change'},
  ...views === 'all' ? [make('label', {}, 'view ', view)] : [], out, hide, link)
const words = make('div', {className: 'live-tokens', role: 'group', ariaLabel: 'hide a word',
                           hidden: true})
const invitation = 'Remove a head or hide a word: here stands what that changes most.'
const result = make('p', {className: 'live-result', role: 'status'}, invitation)
const under = make('div', {hidden: true}, tools, words, result)
const second = make('textarea', {rows: 1})
const similar = make('p', {className: 'live-similar', role: 'status'})
const own = make('input', {type: 'file', multiple: true, ariaLabel: 'files of a model'})
const more = make('details', {className: 'live-more'},
  make('summary', {}, 'A second sentence, or weights of your own'),
  make('label', {}, 'How similar is another sentence?', second), similar,
  make('p', {}, 'A BERT of your own: choose config.json, vocab.txt and model.safetensors, at most '
    + '200 MB, or drop them here, or the folder that holds them. They stay in this page.'), own)
const picture = box.closest('section').querySelector('.cell_output iframe[title^="Arcs"]')
const above = picture?.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING
const stage = above ? picture : null
under.hidden = !stage
box.replaceChildren(...views === 'all' ? stage ? [frame, under, form, presses, status, more]
  : [form, presses, status, frame, under, more] : [frame, under, status, progress])

const state = {hidden: new Set(), without: new Map(), ready: false, turn: 0, shown: null,
               tokens: '', was: null, given: null, framed: null, did: '', jump: false,
               linked: false, chosen: {layer: 3, heads: [1], token: null, dim: true}}
const say = text => { status.textContent = text }
const name = ([layer, head]) => `head ${layer}.${head}`
const cent = w => `${Math.round(100*w)}\u00a0%`
const quoted = token => `“${token}”`
const largest = list => list.indexOf(Math.max(...list))
const cosine = (a, b) => a.reduce((sum, x, c) => sum + x*b[c], 0)
// The first of some pairs [at least, words] whose bound a cosine reaches
const inWords = (c, ...pairs) => pairs.find(([least]) => c >= least)[1]

// ---- reading

async function show() {
  clearTimeout(pause)                                     // what was typed meanwhile is read now
  const turn = ++state.turn, sentence = text.value, start = performance.now()
  const options = {hidden: [...state.hidden], without: [...state.without.values()]}
  const found = await ask('run', sentence, options)
  const taken = (performance.now() - start)/1000
  const other = second.value.trim() && (await ask('run', second.value)).vector
  if (turn !== state.turn) return                                  // more was typed meanwhile
  if (!state.linked) keepChosen()
  state.linked = false
  keepWhatIs(found)
  const tokens = String(found.tokens), before = state.tokens === tokens ? state.shown : null
  Object.assign(state, {shown: {...found, text: sentence}, was: state.did ? before : null})
  say(`${found.tokens.length} tokens, read in ${taken.toFixed(2)} s`
    + (found.cut ? `; the text is cut after ${found.tokens.length} tokens` : ''))
  if (!before) state.chosen.token = state.given ?? opening()
  sayChange(before)
  saySimilar(other)
  Object.assign(state, {tokens, given: null, did: '', jump: false})
  under.hidden = false
  showTokens(found.tokens)
  await showView()
}

// What a sentence opens with: a pronoun, best one that has words before it; of several, and where
// there is none, the word with the clearest picture, a large weight on a word far away
function opening() {
  const {tokens, layers, heads} = state.shown, n = tokens.length, places = innerTokens(tokens)
  const {layer, heads: [head]} = state.chosen
  const said = places.filter(i => pronouns.has(tokens[i].toLowerCase()))
  const [words = []] = [said.filter(i => i > 1), said, places].filter(list => list.length)
  const clear = i => Math.max(...places.map(j =>
    layers[layer].weights[(head*n + i)*n + j]*Math.sqrt(Math.abs(i - j))))
  return words.length ? words[largest(words.map(clear))] : null
}

// A link, or another model, may name tokens and heads that are not there
function keepWhatIs({tokens, layers, heads}) {
  for (const n of state.hidden) if (n >= tokens.length) state.hidden.delete(n)
  for (const [at, [layer, head]] of state.without)
    if (layer >= layers.length || head >= heads) state.without.delete(at)
  if (state.given >= tokens.length) state.given = null
  const {chosen} = state
  chosen.layer = Math.min(chosen.layer, layers.length - 1)
  chosen.heads = chosen.heads.filter(h => h < heads)
  if (!chosen.heads.length) chosen.heads = [0]
}

// What the last change did, in words: which weight between words it moved most, hidden ones left
// out, and how far the sentence's vector. A head that was removed gives its place to the one that
// moved; a press shows that head, or leads back
function sayChange(was) {
  const {tokens, vector} = state.shown, {hidden, without, did, chosen} = state
  const gone = [hidden.size && `Hidden: ${[...hidden].map(i => quoted(tokens[i])).join(', ')}.`,
                without.size && `Switched off: ${[...without.values()].map(name).join(', ')}.`]
  const list = !was || !did || hidden.size + without.size > 1 ? gone.filter(Boolean) : []
  if (!was || !did) return result.replaceChildren(list.join(' ') || invitation)
  const c = cosine(vector, was.vector), much = inWords(c, [0.995, 'barely changes'],
    [0.95, 'changes a little'], [0.8, 'changes clearly'], [-2, 'changes much'])
  const {by, layer, head, i, j, from, to} = mostMoved(was), clear = by >= 0.005
  if (clear) list.unshift(`${did}, ${quoted(tokens[i])} takes ${cent(to)} from `
    + `${quoted(tokens[j])} in ${name([layer, head])}, before ${cent(from)}.`)
  const shortly = c.toFixed(2) === '1.00' ? '' : `: cosine ${c.toFixed(2)}`
  list.splice(clear, 0, `${clear ? 'The' : `${did} the`} sentence's vector ${much}${shortly}.`)
  result.replaceChildren(list.join(' '), ' ')
  if (!clear) return
  let shows = {layer, heads: [head], token: i}
  if (state.jump && view.value === 'arcs') {
    const back = {...chosen}
    Object.assign(chosen, shows)
    shows = back
  }
  result.append(button(`show ${name([shows.layer, shows.heads[0]])}`, () => {
    Object.assign(chosen, shows)
    if (!['arcs', 'head', 'neuron'].includes(view.value)) view.value = 'head'
    attempt(showView)
  }))
}
function mostMoved(was) {
  const {tokens, layers} = state.shown, n = tokens.length
  const asked = new Set(innerTokens(tokens).filter(i => !state.hidden.has(i)))
  let best = {by: 0}
  for (const [layer, {weights}] of layers.entries()) {
    const before = was.layers[layer].weights
    weights.forEach((w, at) => {
      const j = at % n, i = Math.floor(at/n) % n, by = Math.abs(w - before[at])
      if (by > best.by && i !== j && asked.has(i) && asked.has(j))
        best = {by, layer, head: Math.floor(at/n/n), i, j, from: before[at], to: w}
    })
  }
  return best
}
function saySimilar(other) {
  const c = other ? cosine(state.shown.vector, other) : 0
  similar.textContent = other ? inWords(c, [0.8, 'Very similar'], [0.5, 'Similar'],
    [0.25, 'Somewhat similar'], [-2, 'Not similar']) + `: cosine ${c.toFixed(2)}` : ''
}

function openWords(on) {
  words.hidden = !on
  hide.ariaExpanded = String(on)
}
function showTokens(tokens) {
  const focused = [...words.children].indexOf(document.activeElement)
  if (state.hidden.size) openWords(true)
  words.replaceChildren(...tokens.map((token, n) => button(token, () => {
    const back = state.hidden.delete(n)
    if (!back && state.hidden.size < tokens.length - 1) state.hidden.add(n)
    state.did = back ? `With ${quoted(token)} back` : `Without ${quoted(token)}`
    attempt(show)
  }, {ariaPressed: String(state.hidden.has(n))})))
  words.children[focused]?.focus()
}

// ---- the views

// In a picture of arcs the sentence is edited, and the model reads what is typed, after a pause;
// with null it reads nothing
function takeWords({contentWindow}) {
  if (!contentWindow) return
  contentWindow.onsentence = (sentence, wait) => {
    text.value = sentence
    clearTimeout(pause)
    if (wait === null) return void state.turn++           // what is being read is wanted no more
    state.hidden.clear()
    pause = setTimeout(() => attempt(readNow), wait)
  }
  contentWindow.onchosen = chosen
  contentWindow.dispatchEvent(new Event('redraw'))
}
const inside = () => (stage && view.value === 'arcs' ? stage : frame).contentWindow
// What the reader has chosen in the frame stays chosen
function keepChosen() {
  const now = inside()?.state
  if (now) Object.assign(state.chosen, now.picked())
}
function framed() {
  return state.framed ??= new Promise(done => {
    frame.onload = () => { inside().onchosen = chosen; done() }
    frame.src = `${folder}view.html`
  })
}
async function showView() {
  const inner = innerTokens(state.shown.tokens)
  const few = inner.length > 1 && inner.length <= 40
  view.options[0].disabled = !few
  if (view.value === 'arcs' && !few) {
    if (stage) return say('Arcs join 2 to 40 words.')
    view.value = 'head'
  }
  const arcs = view.value === 'arcs', staged = arcs && stage
  if (stage) stage.closest('.cell').hidden = !staged
  frame.hidden = !!staged
  if (!staged) await framed()
  const found = shown(view.value), now = inside()
  arcs && now.state?.take ? await now.state.take(found) : now.show(found)
  if (arcs) takeWords(staged || frame)
  label()
}
// All tokens but the first and last, [CLS] and [SEP]
const innerTokens = tokens => tokens.map((_, n) => n).slice(1, -1)

// What a view shows, as Python would give it, with the numbers ready instead of packed
function shown(kind) {
  const {tokens, layers, heads, width} = state.shown, n = tokens.length, {chosen} = state
  const hidden = [...state.hidden], taken = [...state.without.values()]
  if (kind === 'tokens') return {kind, tokens, special: [0, n - 1]}
  if (kind === 'arcs') return arcs()
  if (kind !== 'neuron') return {kind, start: {...chosen, group: 0, hidden, out: taken},
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
                 'value', 'weighted', 'output'], {layer, heads: [head]} = chosen
  const query = chosen.token ?? 1, from = (head*n + query)*n
  return {kind, q: tokens, k: tokens, layers: layers.map((_, at) => String(at)), heads,
          kvHeads: heads, width: E, valueWidth: E, layer, head, query,
          key: largest(layers[layer].weights.subarray(from, from + n)), window: [null, null],
          stage: 'softmax', stages: layers.map(() => steps),
          bias: null, mask, scale: layers.map(() => 1/Math.sqrt(E)),
          softcap: layers.map(() => 0), sinks: layers.map(() => null),
          qdata: byHead('q'), kdata: byHead('k'), vdata: byHead('v')}
}
// Three heads, and the one that was chosen elsewhere
function arcs() {
  const {tokens, layers, heads, text} = state.shown, n = tokens.length, {was} = state
  const {layer, heads: [head], token} = state.chosen, places = innerTokens(tokens)
  const all = three.filter(([l, h]) => l < layers.length && h < heads)
  if (!all.some(([l, h]) => l === layer && h === head)) all.push([layer, head])
  const weight = of => (l, h, i, j) => of.layers[l].weights[(h*n + places[i])*n + places[j]]
  return {kind: 'arcs', text, tokens: places.map(n => tokens[n]), words: places,
          heads: all.map(([layer, head, name]) => ({layer, head, name})),
          head: all.findIndex(([l, h]) => l === layer && h === head),
          query: Math.max(places.indexOf(token), 0), at: weight(state.shown),
          old: was && weight(was),
          hidden: places.flatMap((n, at) => state.hidden.has(n) ? [at] : []),
          out: [...state.without.values()], marks: [tokens[0], tokens.at(-1)]}
}

// ---- a head is removed, or put back

function label() {
  const now = inside()?.state?.picked()
  out.disabled = !now
  const all = now ? now.heads.map(h => [now.layer, h]) : []
  const gone = all.length && all.every(at => state.without.has(String(at)))
  const which = all.length === 1 ? name(all[0]) : `${all.length} heads`
  out.textContent = !all.length ? 'open a head to remove it'
    : gone ? `put ${which} back` : `remove ${which}`
  return {all, gone, which}
}
function chosen() {
  label()
  box.dispatchEvent(new Event('chosen'))
}
// What a picture of arcs shows up to the chosen word; undefined if there is none
attentionNb.inside.reading = () => inside()?.state?.before?.()
attentionNb.inside.hold = () => inside()?.state?.touch?.()             // it takes no more turns
function takeOut() {
  const {all, gone, which} = label()
  for (const at of all) gone ? state.without.delete(String(at)) : state.without.set(String(at), at)
  Object.assign(state, {did: gone ? `With ${which} back` : `Without ${which}`, jump: !gone})
  attempt(show)
}

// ---- a link holds the sentence and what is chosen

function address() {
  const {layer, heads, token} = state.chosen, list = set => [...set].join('_')
  const said = {text: text.value, second: second.value, view: view.value,
                head: `${layer}.${heads[0]}`, token: token ?? '', hide: list(state.hidden),
                out: [...state.without.values()].map(at => at.join('.')).join('_')}
  return '#' + Object.entries(said).filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
}
async function copyLink() {
  keepChosen()
  history.replaceState(null, '', address())
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false)
  link.textContent = copied ? 'copied' : 'see the address bar'
  setTimeout(() => { link.textContent = 'copy link' }, 2000)
}
function openLink() {
  const said = Object.fromEntries(new URLSearchParams(location.hash.slice(1)))
  if (said.text === undefined) return
  state.linked = true                                     // its choice stays, not the picture's
  const numbers = name => (said[name] ?? '').match(/\d+/g)?.map(Number) ?? []
  text.value = said.text
  second.value = said.second ?? ''
  more.open = !!second.value
  if (views === 'all' && Object.hasOwn(kinds, said.view)) view.value = said.view
  const [layer, head] = numbers('head'), [token = null] = numbers('token'), gone = numbers('out')
  if (head !== undefined) Object.assign(state.chosen, {layer, heads: [head]})
  state.given = token
  for (const n of numbers('hide')) state.hidden.add(n)
  for (let at = 1; at < gone.length; at += 2)
    state.without.set(`${gone[at - 1]},${gone[at]}`, [gone[at - 1], gone[at]])
  box.scrollIntoView({block: 'center'})
  kept().then(here => here && attempt(readNow))                  // fetched before: read at once
}

// ---- what the reader does

async function attempt(what) {
  try { await what() }
  catch (error) { state.did = ''; say(`That did not work: ${error.message}`) }
}
async function readNow() {
  read.disabled = true
  progress.hidden = state.ready
  if (!state.ready) say(`MiniLM is fetched, ${Math.round(bytes/1e6)} MB, and then it reads.`)
  try { await load(got => { progress.value = got }) }
  finally { read.disabled = false; progress.hidden = true }
  state.ready = true
  await show()
}
const afterReading = act => attempt(async () => {
  if (!state.shown) {
    text.value = stage?.contentWindow.state?.text || text.value
    await readNow()
  }
  act()
})
form.onsubmit = event => {
  event.preventDefault()
  attempt(async () => { await readNow(); bringIn() })
}
// Whoever asks for the picture sees it, once the frame has its height
function bringIn() {
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const seen = frame.hidden ? stage : frame, {top, bottom} = seen.getBoundingClientRect()
    const behavior = matchMedia('(prefers-reduced-motion)').matches ? 'auto' : 'smooth'
    if (top < 80 || bottom > innerHeight) seen.scrollIntoView({behavior})
  }))
}
let pause = 0
const typed = () => {
  clearTimeout(pause)
  if (state.ready) pause = setTimeout(() => attempt(show), 300)
}
text.oninput = () => { state.hidden.clear(); typed() }
second.oninput = typed
text.onkeydown = event => {
  if (event.key !== 'Enter' || event.shiftKey) return
  event.preventDefault()
  form.requestSubmit()
}
view.onchange = () => { keepChosen(); attempt(showView) }

// ---- a model of the reader's own

async function openOwn(files) {
  const named = Object.fromEntries(Array.from(files, f => [f.name, f])), most = 200e6
  for (const name of ['config.json', 'vocab.txt', 'model.safetensors'])
    if (!named[name]) throw new Error(`${name} is missing`)
  if (named['model.safetensors'].size > most) throw new Error('model.safetensors has over 200 MB')
  let config
  try { config = JSON.parse(await named['config.json'].text()) }
  catch { throw new Error('config.json is no JSON') }
  const vocabulary = (await named['vocab.txt'].text()).replace(/\r?\n$/, '').split(/\r?\n/)
  await open(await named['model.safetensors'].arrayBuffer(), config, vocabulary)
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
if (stage) {
  takeWords(stage)                                        // it may be there already, or come
  stage.addEventListener('load', () => takeWords(stage))
}
try { openLink() } catch { /* not an address of ours */ }
})()
