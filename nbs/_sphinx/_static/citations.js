// What a citation or a footnote says, beside the pointer or the focused link
addEventListener('DOMContentLoaded', () => {
  for (const link of document.querySelectorAll('a[role="doc-noteref"]')) {
    const note = document.getElementById(decodeURIComponent(link.hash.slice(1)))?.querySelector('p')
    if (note) new bootstrap.Tooltip(link, {title: note.textContent, customClass: 'citation'})
  }
})
