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
  // What a citation or a footnote says, beside the pointer or the focused link
  for (const link of document.querySelectorAll('a[role="doc-noteref"]')) {
    const note = document.getElementById(decodeURIComponent(link.hash.slice(1)))?.querySelector('p')
    if (note) new bootstrap.Tooltip(link, {title: note.textContent, customClass: 'citation'})
  }
  // A switch in the first line shows what is checked
  const proofs = [...document.querySelectorAll('details.proofs')]
  const first = document.querySelector('p.page-kind')
  if (first && proofs.length) {
    const checks = proofs.map(p => parseInt(p.querySelector('.fold-count').textContent))
    const n = checks.reduce((a, b) => a + b)
    const button = document.createElement('button')
    const show = all => {
      for (const p of proofs) p.open = all
      button.textContent = `${all ? 'hide' : 'show'} ${n} check${n == 1 ? '' : 's'}`
    }
    button.onclick = () => show(!proofs.every(p => p.open))
    show(false)
    first.append(button)
  }
  // A link lands on its section although what is above it still grows, unless the reader scrolls
  let name = ''
  try { name = decodeURIComponent(location.hash.slice(1)) } catch {}         // #100% names nothing
  const target = name && document.getElementById(name)
  const [came] = performance.getEntriesByType('navigation')
  if (!target || came?.type !== 'navigate') return              // back and reload keep their place
  const growth = new ResizeObserver(() => target.scrollIntoView({behavior: 'instant'}))
  const stop = () => growth.disconnect()
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
