// One colour, one thing: pointing at q, k, v or the weights in a formula or in code lights them all
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
    article.addEventListener('pointerover', e => {
      article.dataset.lit = e.target.closest('[data-role]')?.dataset.role ?? ''
    })
    article.addEventListener('pointerleave', () => { article.dataset.lit = '' })
  })
})
