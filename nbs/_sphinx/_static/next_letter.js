// What comes next: a small decoder says how likely each letter is after the word that the picture
// shows, or after what is typed in it, and writes on when asked. It is fetched when the page is at
// rest. On a page with all views its heads can be switched off, and a temperature chosen; a line in
// a bar is what it was before. Letters that the heads look at have colour.
(() => {
const box = document.querySelector('.live')
if (!box?.dataset.letters) return
const {ask, reading, hold} = attentionNb.inside
const {folder, letters: file, views} = box.dataset
const still = matchMedia('(prefers-reduced-motion)')
const room = views === 'all' ? 80 : 36                        // letters of the line that it writes
const off = new Set()                                         // heads, as 'block.head'
let text = '', written = '', turn = 0, temperature = 1, looked = null, writing = false

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties)
  element.append(...children)
  return element
}
const shown = c => ({' ': '␣', '\n': '↵'})[c] ?? c
const named = c => ({' ': 'space', '\n': 'new line'})[c] ?? c
const cent = w => `${Math.round(100*w)}\u00a0%`
// The last words of a text, in about `n` letters
const ending = (text, n) => {
  const line = text.replaceAll('\n', ' / ')
  return line.length > n ? `… ${line.slice(-n).replace(/^\S*\s+(?=\S)/, '')}` : line
}
const sum = list => list.reduce((a, b) => a + b, 0)

const after = make('q'), bars = make('ol'), line = make('p', {className: 'next-text'})
const write = make('button', {type: 'button', onclick: writeOn}, 'write on')
const read = make('p', {className: 'next-read', ariaHidden: 'true'})
const heads = make('div', {className: 'next-heads', role: 'group',
                           ariaLabel: 'heads of the decoder; pressed: switched on'})
const warm = make('input', {type: 'range', min: 0.2, max: 2, step: 0.1, value: 1})
const degree = make('output', {}, '1.0')
const panel = make('div', {className: 'next-letter', role: 'group', ariaLabel: 'what comes next'},
  make('div', {className: 'next-head'},
    make('p', {}, make('b', {}, 'What comes next'), ' after ', after), write), bars,
  ...views === 'all' ? [read, make('p', {}, 'Colour: letters that its heads look at. Switch a head '
    + 'off, and a line in each bar shows what it was.'), heads,
    make('label', {}, 'temperature ', warm, ' ', degree)] : [],
  line)
const about = make('p', {className: 'next-about'},
  make('a', {href: box.dataset.lesson}, "Lesson 12's decoder"), ' guesses: it knows Shakespeare.')
box.append(panel, about)

const options = without => ({temperature, without: without.map(at => at.split('.').map(Number))})
async function draw() {
  const now = ++turn, sentence = text + written
  const found = await ask('guess', sentence, options([...off]))
  const before = off.size ? await ask('guess', sentence, options([])) : found
  if (now === turn) show(found, before)
  return found
}
function show({letters, p, read: seen, weights}, before) {
  const best = [...p.keys()].sort((a, b) => p[b] - p[a]).slice(0, 5)
  after.textContent = ending(seen.join(''), 16).trimEnd()
  bars.replaceChildren(...best.map(i => {
    const item = make('li', {}, make('b', {ariaLabel: named(letters[i])}, shown(letters[i])),
      make('i', {className: off.size ? 'was' : ''}), make('span', {}, cent(p[i])))
    item.style.setProperty('--p', p[i])
    item.style.setProperty('--was', before.p[i])
    return item
  }))
  if (views !== 'all') return
  const all = weights.flatMap((block, l) => block.map((w, h) => [`${l}.${h}`, w]))
  const some = all.filter(([at]) => looked ? at === looked : !off.has(at)).map(([, w]) => w)
  const shares = seen.map((_, j) => sum(some.map(w => w[j]))), most = Math.max(...shares) || 1
  read.replaceChildren(...seen.map((c, j) => {
    const letter = make('span', {}, shown(c))
    letter.style.setProperty('--share', shares[j]/most)
    return letter
  }))
  if (heads.childElementCount !== all.length) heads.replaceChildren(...all.map(([at]) => {
    const look = to => { looked = to; draw() }
    return make('button', {type: 'button', onclick: () => toggle(at),
      onpointerenter: e => e.pointerType === 'mouse' && look(at), onpointerleave: () => look(null),
      onfocus: e => e.target.matches(':focus-visible') && look(at), onblur: () => look(null)},
      `head ${at}`)
  }))
  for (const [n, [at]] of all.entries()) heads.children[n].ariaPressed = String(!off.has(at))
}
function toggle(at) {
  hold()
  looked = null
  off.has(at) ? off.delete(at) : off.add(at)
  draw()
}

// Letter after letter, each drawn by its chance, until somebody stops it or chooses another word;
// without a choice of temperature it is that of the samples in the lesson
async function writeOn() {
  if (writing) return void stop()
  writing = true
  write.textContent = 'stop'
  written = ''
  hold()
  for (let n = 0; n < 60 && writing; n++) {
    const {letters, p} = await draw(), chances = p.map(w => w ** (views === 'all' ? 1 : 1/.7))
    const dice = Math.random()*sum(chances)
    let at = 0
    for (let all = chances[0]; all < dice && at < p.length - 1;) all += chances[++at]
    written += letters[at]
    const own = ending(written, room), before = room - own.length
    line.replaceChildren(before > 0 ? text.slice(-before) : '', make('b', {}, own))
    if (!still.matches) await new Promise(done => setTimeout(done, 60))
  }
  draw()
  stop()
}
function stop() {
  writing = false
  write.textContent = 'write on'
}
// A picture whose model answers late is no choice: a reader at the panel keeps what it wrote
const isHere = () => panel.matches(':hover') || panel.querySelector(':focus-visible')
function follow() {
  const now = reading()
  if (now === undefined || now === text || (writing || written) && isHere()) return
  stop()
  text = now
  written = ''
  line.replaceChildren()
  draw()
}
warm.oninput = () => {
  hold()
  temperature = +warm.value
  degree.textContent = temperature.toFixed(1)
  draw()
}

async function begin() {
  const answer = await fetch(folder + file)
  if (!answer.ok) throw new Error(`${file}: ${answer.status}`)
  await ask('openDecoder', await answer.arrayBuffer())
  box.addEventListener('chosen', follow)
  follow()
}
const rest = globalThis.requestIdleCallback ?? (f => setTimeout(f, 200))
const start = () => rest(() => begin().catch(() => { panel.hidden = about.hidden = true }))
document.readyState === 'complete' ? start() : addEventListener('load', start)
})()
