// One colour, one thing: pointing at q, k, v or the weights in a formula, in code or in a drawing
// lights them all; below a drawing stand buttons, for the keyboard
addEventListener('DOMContentLoaded', () => {
  const article = document.querySelector('.bd-article')
  const roles = {
    q: ['rgb(0, 114, 178)', /^(q|Q|[Ww]q|query|queries)$/],
    k: ['rgb(213, 94, 0)', /^(k|K|[Ww]k|keys?)$/],
    v: ['rgb(0, 158, 115)', /^(v|V|[Ww]v|values?)$/],
    w: ['rgb(107, 79, 160)', /^(w|weights)$/]}
  const mark = (elements, fits) => {
    for (const e of elements) {
      const role = Object.keys(roles).find(name => fits(e, ...roles[name]))
      if (role) e.dataset.role = role
    }
  }
  window.MathJax?.startup?.promise?.then(() => {
    mark(article.querySelectorAll('mjx-mstyle'), (e, colour) => e.style.color === colour)
    if (!article.querySelector('[data-role]')) return      // no formula of this page has colours
    mark(article.querySelectorAll('.highlight .n'), (e, colour, name) => name.test(e.textContent))
    for (const svg of article.querySelectorAll('svg.scheme:has([data-role])'))
      svg.insertAdjacentHTML('afterend', `<div class="roles" role="group" aria-label="light up">${
        ['queries', 'keys', 'values', 'weights'].map(name =>
          `<button type="button" data-role="${name[0]}">${name}</button>`).join(' ')}</div>`)
    for (const event of ['pointerover', 'focusin', 'click'])         // a finger only clicks
      article.addEventListener(event, e => {
        article.dataset.lit = e.target.closest('[data-role]')?.dataset.role ?? ''
      })
    article.addEventListener('pointerleave', () => { article.dataset.lit = '' })
  })
})
