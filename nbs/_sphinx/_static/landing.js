// A link lands on its section although pictures and formulas above it are still growing, unless the reader scrolls first
addEventListener('DOMContentLoaded', () => {
  let name = ''
  try { name = decodeURIComponent(location.hash.slice(1)) } catch {}                           // #100% names nothing
  const target = name && document.getElementById(name)
  if (!target || performance.getEntriesByType('navigation')[0]?.type !== 'navigate') return     // back and reload keep their place
  const growth = new ResizeObserver(() => target.scrollIntoView({behavior: 'instant'}))
  const stop = () => growth.disconnect()
  growth.observe(document.body)
  for (const event of ['wheel', 'touchstart', 'mousedown', 'keydown', 'hashchange']) addEventListener(event, stop, {once: true, passive: true})
  addEventListener('load', async () => {
    await window.MathJax?.startup?.promise
    setTimeout(stop, 3000)
  })
})
