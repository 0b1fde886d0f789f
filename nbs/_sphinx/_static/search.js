// The search of the site: sections, found by their words and by the names that the glossary knows them by.
// sections.js is written by search.py, MiniSearch ranks, Sphinx's stemmer makes words of one stem equal.
(() => {
  const root = document.currentScript.getAttribute('src').replace(/_static\/.*/, '')
  const boost = {title: 4, terms: 5, path: 1, text: 1, code: .3}
  let ready, turn = 0

  const script = name => new Promise((done, failed) => document.head.append(
    Object.assign(document.createElement('script'), {src: root + name, onload: done, onerror: failed})))
  // a name with underscores as a whole and in parts
  const words = text => text.split(/[^\p{L}\p{N}_]+/u).flatMap(w => w.includes('_') ? [w, ...w.split('_')] : w).filter(Boolean)

  async function load() {
    await Promise.all(['_static/vendor/minisearch.js', '_static/language_data.js', 'sections.js'].map(script))
    const stemmer = new Stemmer(), stems = new Map()
    const stem = word => {
      word = word.toLowerCase()
      if (!stems.has(word)) stems.set(word, stopwords.has(word) ? null : stemmer.stemWord(word))
      return stems.get(word)
    }
    const index = new MiniSearch({
      fields: Object.keys(boost), storeFields: ['title', 'path', 'text', 'weight'], tokenize: words, processTerm: stem})
    index.addAll(sections)
    return {index, stem}
  }

  const loaded = () => ready ??= load().catch(problem => { ready = undefined; throw problem })

  // The sections that fit `query`, best first
  window.searchSections = async query => {
    const {index} = await loaded()
    return index.search(query, {boost, prefix: term => term.length > 2, fuzzy: term => term.length > 5 && .15,
                                boostDocument: (id, term, record) => record.weight})
  }

  function element(tag, name, ...children) {
    const e = document.createElement(tag)
    e.className = name
    e.append(...children)
    return e
  }

  // About 30 words of `text` around the first one that was found, with those found marked
  function excerpt(text, found, stem) {
    const pieces = text.split(/(?<=\s)/), hit = piece => words(piece).some(w => found.has(stem(w)))
    const first = Math.max(0, pieces.findIndex(hit) - 8), part = pieces.slice(first, first + 30)
    const p = element('p', 'context', first ? '… ' : '')
    p.append(...part.map(piece => hit(piece) ? element('mark', '', piece.trimEnd()) : piece)
      .flatMap((node, i) => typeof node === 'string' ? [node] : [node, /\s$/.test(part[i]) ? ' ' : '']))
    if (first + 30 < pieces.length) p.append('…')
    return p
  }

  async function show(query, place, most) {
    const mine = ++turn, {stem} = await loaded(), results = query.trim() ? await searchSections(query) : []
    if (mine !== turn) return                                   // a later question has been asked meanwhile
    const say = !query.trim() ? '' : !results.length ? 'Your search did not match any documents.' :
      `${results.length} section${results.length > 1 ? 's' : ''} found, best first`
    const list = element('ul', 'search', ...results.slice(0, most).map(r => {
      const link = element('a', '', r.title)
      link.href = root + r.id
      return element('li', '', link, element('span', 'path', r.path), excerpt(r.text, new Set(r.terms), stem))
    }))
    const status = element('p', 'search-summary', say)
    status.setAttribute('role', 'status')
    place.replaceChildren(status, ...(results.length ? [list] : []))
  }

  // Answers in `place`, as one types
  function live(input, place, most) {
    const ask = () => show(input.value, place, most).catch(() => place.replaceChildren('The search could not be loaded.'))
    input.addEventListener('input', ask)
    if (input.value) ask()
  }

  addEventListener('DOMContentLoaded', () => {
    const dialog = document.querySelector('#pst-search-dialog'), page = document.querySelector('#search-results')
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
