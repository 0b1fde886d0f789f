// The box above the index of names: it narrows the list as one types, also by the words of others
addEventListener('DOMContentLoaded', () => {
  const place = document.querySelector('.api-filter'), page = place.closest('article')
  const rows = [...page.querySelectorAll('li:has(> p > a, > a), tbody tr')], said = new Map()
  const names = row => [...row.querySelectorAll('a')].map(a => a.href)
  for (const row of rows) if (row.matches('tr')) for (const name of names(row))
    said.set(name, `${said.get(name) ?? ''} ${row.cells[0].textContent}`)
  const texts = new Map(rows.map(row => [row, (row.textContent + (row.matches('tr') ? '' :
    said.get(names(row)[0]) ?? '')).toLowerCase()]))
  place.innerHTML = `<form><label for="api-filter">Filter by name, task or another library's
    word</label><input id="api-filter" type="search"><p role="status"></p></form>`
  const [input, status] = place.querySelectorAll('input, p')
  const shown = () => rows.filter(row => !row.hidden)
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
    for (const row of rows) row.hidden = !words.every(word => texts.get(row).includes(word))
    for (const fold of page.querySelectorAll('details.hint'))
      fold.open = words.length > 0 && !!fold.querySelector(':is(li, tr):not([hidden]) a')
    for (const part of page.querySelectorAll('section section, details.hint'))
      part.hidden = ![...part.querySelectorAll('li, tbody tr')].some(row => !row.hidden)
    const n = shown().filter(row => row.matches('li')).length
    status.textContent = words.length ? `${n} ${n === 1 ? 'name' : 'names'} left` : ''
  })
  place.firstChild.addEventListener('submit', event => {          // Enter opens the first
    event.preventDefault()
    if (input.value) shown()[0]?.querySelector('a')?.click()
  })
})
