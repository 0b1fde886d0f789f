// A worker that answers from what it kept when there is no network. Only pages on which a reader
// has opened the model are kept, with what they load; the network always goes first.
const shelf = 'attention_nb pages'
const lists = `${location.href}?needs=`               // what a page loads is kept under these names
addEventListener('install', () => skipWaiting())
addEventListener('activate', event => event.waitUntil(clients.claim()))

// A page tells its address and what it loaded: all is kept as it is now. What no kept page needs
// any more, such as scripts from before an update, goes
async function keep([page, ...loaded]) {
  const place = await caches.open(shelf), whole = url => new URL(url).href
  const needs = [page, ...loaded].filter(url => new URL(url).origin === location.origin &&
    !/bert-[^/]*$/.test(url)).map(whole)
  await Promise.all(needs.map(url =>
    place.add(new Request(url, {cache: 'no-cache'})).catch(() => {})))
  await place.put(lists + encodeURIComponent(page), new Response(JSON.stringify(needs)))
  const kept = await place.keys(), needed = new Set()
  for (const {url} of kept) if (url.startsWith(lists)) {
    needed.add(url)
    for (const one of await (await place.match(url)).json()) needed.add(one)
  }
  for (const {url} of kept) if (!needed.has(url)) await place.delete(url)
}
let last = Promise.resolve()                          // two pages, one after the other
addEventListener('message', event => event.waitUntil(
  last = last.then(() => keep(event.data)).catch(() => {})))

// Exactly what is asked for; only of a page, what stands behind the ? does not matter
addEventListener('fetch', event => {
  if (event.request.method !== 'GET') return
  event.respondWith(fetch(event.request).catch(async problem => {
    const place = await caches.open(shelf), page = event.request.mode === 'navigate'
    const found = await place.match(event.request, {ignoreSearch: page})
    if (found) return found
    throw problem
  }))
})
