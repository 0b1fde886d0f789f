addEventListener('DOMContentLoaded', () => {
  // A formula that is wider than a phone is drawn smaller there, down to three quarters of the text
  const fit = () => {
    const all = [...document.querySelectorAll('mjx-container[display="true"]')]
    for (const f of all) f.style.removeProperty('--fit')
    const room = f => f.clientWidth / f.firstElementChild.getBoundingClientRect().width
    for (const [f, share] of all.map(f => [f, room(f)]))
      if (share < 1) f.style.setProperty('--fit', `${100 * Math.max(.75, share)}%`)
  }
  window.MathJax?.startup?.promise?.then(fit)
  addEventListener('resize', fit)
  // A long name in a table breaks behind an underscore or a dot
  for (const name of document.querySelectorAll('td:not(.api-table td:first-child) code .pre'))
    name.replaceChildren(...name.textContent.split(/(?<=[_.])(?=\w)/)
      .flatMap((part, n) => n ? [document.createElement('wbr'), part] : [part]))
  // What a citation or a footnote says, beside the pointer or the focused link
  for (const link of document.querySelectorAll('a[role="doc-noteref"]')) {
    const note = document.getElementById(decodeURIComponent(link.hash.slice(1)))?.querySelector('p')
    if (note) new bootstrap.Tooltip(link, {title: note.textContent, customClass: 'citation'})
  }
  // The page's menu: a line opens all that is checked and says how much that is; a click shuts it
  const menu = document.querySelector('.page-menu'), button = menu?.querySelector('.show-checks')
  const proofs = [...document.querySelectorAll('details.proofs')]
  const n = proofs.reduce((n, p) => n + parseInt(p.querySelector('.fold-count').textContent), 0)
  const all = () => proofs.every(p => p.open)
  menu?.addEventListener('toggle', () => {
    const what = n > 1 ? `all ${n} checks` : 'the check'
    if (button) button.textContent = `${all() ? 'Hide' : 'Show'} ${what}`
  })
  button?.addEventListener('click', () => {
    const open = !all()
    for (const p of proofs) p.open = open
  })
  addEventListener('click', e => {
    if (menu?.open && !e.target.closest('.page-menu > summary')) menu.open = false
  })
  menu?.addEventListener('focusout', e => {
    if (e.relatedTarget && !menu.contains(e.relatedTarget)) menu.open = false
  })
  menu?.addEventListener('keydown', e => {
    if (e.key !== 'Escape' || !menu.open) return
    menu.open = false
    menu.querySelector('summary').focus()
  })
  // The sidebar shows where one is
  const side = document.querySelector('.bd-sidebar-primary')
  const here = side?.querySelector('a.current')
  if (here && side.scrollHeight > side.clientHeight)
    side.scrollTop += here.getBoundingClientRect().top - side.getBoundingClientRect().top - 200
  // A lesson counts as read once its summary or exercises were seen; only this browser knows
  const lesson = a => a.pathname.match(/\/(\d+_\w+)\.html$/)?.[1]
  const lessons = [...document.querySelectorAll('.bd-sidebar-primary .bd-links a')].filter(lesson)
  const progress = Object.assign(document.createElement('label'), {className: 'reading-progress'})
  const mark = (...more) => {
    let read = more
    try {
      read = JSON.parse(localStorage.getItem('lessons-read') ?? '[]').concat(more)
      if (more.length) localStorage.setItem('lessons-read', JSON.stringify([...new Set(read)]))
    } catch {}                                                  // no storage: nothing is kept
    const done = lessons.filter(a => read.includes(lesson(a))), of = lessons.length
    for (const a of done)
      if (!a.querySelector('.read')) a.insertAdjacentHTML(
        'beforeend', ' <span class="read"><span class="sr-only">read</span></span>')
    progress.innerHTML = `${done.length} of ${of} lessons read <progress max="${of}" value="${
      done.length}"></progress>`
  }
  if (lessons.length) {
    mark()
    document.querySelector('.sidebar-secondary-items')?.append(progress)
  }
  const end = new IntersectionObserver(seen => {
    if (!seen.some(e => e.isIntersecting)) return
    mark(lesson(location))
    end.disconnect()
  })
  if (lesson(location))
    for (const h of document.querySelectorAll(':is(#summary, #exercises) > h2')) end.observe(h)
  // A link lands on its section although what is above it still grows, unless the reader scrolls
  let name = ''
  try { name = decodeURIComponent(location.hash.slice(1)) } catch {}         // #100% names nothing
  const target = name && document.getElementById(name)
  // *Predict* asks first: what the next cells printed or drew, and the text that tells it, open
  // when the reader has said something, or a search in the page finds it; this browser keeps it
  const said = (change = {}) => {
    let all = change
    try {
      all = {...JSON.parse(localStorage.getItem('predicted') ?? '{}'), ...change}
      if (Object.keys(change).length) localStorage.setItem('predicted', JSON.stringify(all))
    } catch {}                                                  // no storage: nothing is kept
    return all
  }
  const asks = e => [...e.querySelectorAll(':scope > strong')]
    .some(s => s.textContent.startsWith('Predict'))
  // The outputs of the cells behind a question, the text that tells them, up to its checks or the
  // section's end if they come next, and figures behind this text whose code is not shown; where a
  // figure to move is to give the answer, nothing is shut
  const results = e => {
    const outs = []
    let told, rest = []
    for (e = e.nextElementSibling; e && !e.matches('section') && !asks(e);
         e = e.nextElementSibling) {
      if (e.matches(told ? '.cell:not(:has(.cell_input))' : '.cell'))
        outs.push(...e.querySelectorAll(':scope > .cell_output'))
      if (!told && outs.some(out => out.querySelector('iframe'))) return []
      if (told && e.matches('details.proofs')) { outs.push(...rest); rest = [] }
      if (told && e.matches('.cell:has(.cell_input)')) break
      if (!e.matches('p, ul, ol, .math') || !outs.length) continue
      told ? rest.push(e) : outs.push(told = e)
    }
    return e && !e.matches('section') ? outs : [...outs, ...rest]
  }
  const shut = [], texts = lesson(location) ? [...document.querySelectorAll('.bd-article p')] : []
  for (const [n, question] of texts.filter(asks).entries()) {
    const outs = results(question), id = `${lesson(location)} ${n}`
    if (!outs.length) continue
    const form = Object.assign(document.createElement('form'), {className: 'predict'})
    const open = text => {
      for (const out of outs) out.hidden = false
      form.replaceWith(...text ? [Object.assign(document.createElement('p'),
        {className: 'predicted', textContent: `You said: ${text}`})] : [])
    }
    outs[0].before(form)
    if (id in said()) { open(said()[id]); continue }
    form.innerHTML = '<label>What do you predict? <input autocomplete="off"></label>'
      + '<button>Show what came out</button>'
    form.onsubmit = e => {
      e.preventDefault()
      const text = form.querySelector('input').value.trim().slice(0, 200)
      if (text) said({[id]: text})
      open(text)
      outs[0].tabIndex = -1
      outs[0].focus({preventScroll: true})
    }
    for (const out of outs) {
      out.addEventListener('beforematch', () => open(''))
      out.hidden = 'until-found'
    }
    if (target && outs.some(out => out.contains(target))) open('')
    else shut.push(form)
  }
  if (shut.length && menu) {
    menu.querySelector('ul').insertAdjacentHTML('beforeend',
      '<li><button type="button">Show all results</button></li>')
    menu.querySelector('li:last-child button').onclick = () => {
      for (const form of shut) if (form.isConnected) form.requestSubmit()
    }
  }
  const [came] = performance.getEntriesByType('navigation')
  if (!target || came?.type !== 'navigate') return              // back and reload keep their place
  let at, high
  const growth = new ResizeObserver(() => {
    target.scrollIntoView({behavior: 'instant'})
    at = scrollY
    high = document.body.offsetHeight
  })
  const stop = () => growth.disconnect()
  addEventListener('scroll', () => {                 // a wheel above a frame is told to the frame
    if (document.body.offsetHeight === high && Math.abs(scrollY - at) > 50) stop()
  }, {passive: true})
  growth.observe(document.body)
  for (const event of ['wheel', 'touchstart', 'mousedown', 'keydown', 'hashchange'])
    addEventListener(event, stop, {once: true, passive: true})
  addEventListener('load', async () => {
    await window.MathJax?.startup?.promise
    setTimeout(stop, 3000)
  })
})
// Paper is light, also where the screen is dark
let onScreen
addEventListener('beforeprint', () => {
  onScreen ??= document.documentElement.dataset.theme
  document.documentElement.dataset.theme = 'light'
})
addEventListener('afterprint', () => {
  if (onScreen) document.documentElement.dataset.theme = onScreen
  onScreen = undefined
})
// Closed hints and answers stay off the paper; this opens them first. `make pdf` calls it too
function openAnswers() {
  const shut = [...document.querySelectorAll('details:is(.answer, .hint):not([open])')]
  for (const fold of shut) fold.open = true
  return shut
}
function printWithAnswers() {
  const opened = openAnswers()
  addEventListener('afterprint', () => { for (const f of opened) f.open = false }, {once: true})
  print()
}
