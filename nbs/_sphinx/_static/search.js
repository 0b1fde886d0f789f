// The search of the site: sections, found by their words and by the names the glossary gives them.
// sections.js is written by search.py, MiniSearch ranks, Sphinx's stemmer finds words of one stem
(() => {
  const root = document.currentScript.getAttribute('src').replace(/_static\/.*/, '')
  const boost = {title: 4, terms: 5, path: 1, text: 1, code: .3}
  let ready, turn = 0
  const script = name => new Promise((onload, onerror) => document.head.append(
    Object.assign(document.createElement('script'), {src: root + name, onload, onerror})))
  // a name with underscores or capitals inside as a whole and in parts
  const inside = /_+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})/
  const words = text => text.split(/[^\p{L}\p{N}_]+/u).filter(Boolean).flatMap(
    w => inside.test(w) ? [w, ...w.split(inside).filter(Boolean)] : w)

  // `kv cache`, `kv_cache` and `KVCache` alike
  const joined = text => text.toLowerCase().replace(/[\s_.]+/g, '')

  async function load() {
    const files = ['_static/vendor/minisearch.js', '_static/language_data.js', 'sections.js']
    await Promise.all(files.map(script))
    const stemmer = new Stemmer(), stems = new Map()
    const stem = word => {
      word = word.toLowerCase()
      if (!stems.has(word)) stems.set(word, stopwords.has(word) ? null : stemmer.stemWord(word))
      return stems.get(word)
    }
    const index = new MiniSearch({
      fields: Object.keys(boost), storeFields: ['title', 'path', 'text', 'weight', 'badge'],
      tokenize: words, processTerm: stem})
    index.addAll(sections)
    const names = sections.filter(s => s.badge === 'API').map(s => [joined(s.title), s])
    return {index, stem, names}
  }
  const loaded = () => ready ??= load().catch(problem => { ready = undefined; throw problem })

  // The sections that fit `query`, best first
  window.searchSections = async query => {
    // of `anb.MultiHeadAttention.forward` the class has a page
    const asked = query.trim().toLowerCase().split('.')
    const {index, names} = await loaded(), whole = joined(query)
    const found = index.search(query, {
      boost, prefix: term => term.length > 2, fuzzy: term => term.length > 5 && .15,
      boostDocument: (id, term, {title, weight, badge}) => {
        const name = title.toLowerCase().replace(/^\d+\s/, ''), same = asked.includes(name)
        if (same && inside.test(title)) return 4                           // a name in code
        if (name.includes('_') && name.replaceAll('_', ' ') === asked[0]) return .6
        const page = id.includes('#') || badge === 'API' ? 1 : 1.6
        return weight * page * (same ? 1.5 : 1)
      }})
    // names that begin or end with all that was asked stand behind the first answer
    const called = whole.length < 4 || !/[\s_]/.test(query.trim()) ? [] : names
      .filter(([name]) => name.startsWith(whole) || name.endsWith(whole))
      .sort(([a], [b]) => a.length - b.length).slice(0, 2).map(([, section]) => section.id)
    const [first, ...rest] = found, here = id => rest.find(r => r.id === id)
    return first ? [first, ...called.map(here).filter(Boolean),
                    ...rest.filter(r => !called.includes(r.id))] : found
  }

  const element = (tag, className, ...children) => {
    const e = Object.assign(document.createElement(tag), {className})
    e.append(...children)
    return e
  }

  // About 30 words of `text` around the first one that was found, with those found marked
  function excerpt(text, found, stem) {
    const pieces = text.split(/(?<=\s)/), hit = piece => words(piece).some(w => found.has(stem(w)))
    const first = Math.max(0, pieces.findIndex(hit) - 8), last = first + 30
    const marked = pieces.slice(first, last).map(p => hit(p) ? element('mark', '', p) : p)
    const more = last < pieces.length ? '…' : ''
    return element('p', 'context', first ? '… ' : '', ...marked, more)
  }

  // Kinds of pages among the answers, to be pressed
  const kinds = ['Lesson', 'Guide', 'Library', 'API']
  function chips(results, chosen, choose) {
    const counts = kinds.map(kind => [kind, results.filter(r => r.badge === kind).length])
    const some = counts.filter(([, n]) => n)
    if (some.length < 2) return ''
    return element('div', 'search-chips', ...some.map(([kind, n]) => {
      const chip = element('button', '', `${kind} ${n}`)
      chip.type = 'button'
      chip.setAttribute('aria-pressed', kind === chosen)
      chip.onclick = () => choose(kind === chosen ? null : kind)
      return chip
    }))
  }

  async function show(query, place, most, chosen = null) {
    const mine = ++turn, {stem} = await loaded()
    const results = query.trim() ? await searchSections(query) : [], n = results.length
    if (mine !== turn) return                             // a later question has been asked
    const say = !query.trim() ? '' : !n ? 'Your search did not match any documents.' :
      `${n} answer${n > 1 ? 's' : ''}, best first; arrow keys lead through them`
    const status = element('p', n ? 'search-summary sr-only' : 'search-summary', say)
    status.setAttribute('role', 'status')
    const kept = chosen ? results.filter(r => r.badge === chosen) : results
    const items = kept.slice(0, most).map(r => {
      const link = Object.assign(element('a', '', r.title), {href: root + r.id})
      const text = excerpt(r.text, new Set(r.terms), stem)
      const badge = element('span', 'search-badge', r.badge)
      return element('li', '', badge, ' ', link, element('span', 'path', r.path), text)
    })
    const choose = async kind => {
      await show(query, place, most, kind)
      place.querySelector('[aria-pressed=true], .search-chips button')?.focus()
    }
    place.replaceChildren(status, ...(n ? [chips(results, chosen, choose),
                                           element('ul', 'search', ...items)] : []))
  }

  // Answers in `place`, as one types
  function live(input, place, most) {
    const failed = () => place.replaceChildren('The search could not be loaded.')
    let asked = Promise.resolve()
    const ask = () => asked = show(input.value, place, most).catch(failed)
    input.addEventListener('input', ask)
    if (input.value) ask()
    // Enter opens the first; arrows lead from the box through the answers and back
    const links = () => [...place.querySelectorAll('li > a')]
    input.closest('form').addEventListener('submit', async event => {
      event.preventDefault()
      await asked
      links()[0]?.click()
    })
    const step = event => {
      const way = {ArrowDown: 1, ArrowUp: -1}[event.key], stops = [input, ...links()]
      const next = stops[stops.indexOf(document.activeElement) + way]
      if (way && next) { event.preventDefault(); next.focus() }
    }
    for (const part of [input, place]) part.addEventListener('keydown', step)
  }

  addEventListener('DOMContentLoaded', () => {
    const [dialog, page] = ['pst-search-dialog', 'search-results'].map(
      id => document.getElementById(id))
    if (page) {
      const input = document.querySelector('.bd-search-container input[type=search]')
      input.value = new URLSearchParams(location.search).get('q') ?? ''
      live(input, page, 40)
    } else if (dialog) {
      const place = element('div', 'search-hits')
      dialog.append(place)
      live(dialog.querySelector('input'), place, 12)
      place.addEventListener('click', e => e.target.closest('a') && dialog.close())
    }
  })
})()
