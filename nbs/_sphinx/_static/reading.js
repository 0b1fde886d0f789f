addEventListener('DOMContentLoaded', () => {
  // What a citation or a footnote says, beside the pointer or the focused link
  for (const link of document.querySelectorAll('a[role="doc-noteref"]')) {
    const note = document.getElementById(decodeURIComponent(link.hash.slice(1)))?.querySelector('p')
    if (note) new bootstrap.Tooltip(link, {title: note.textContent, customClass: 'citation'})
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
