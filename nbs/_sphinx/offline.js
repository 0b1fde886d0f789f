// A worker that answers from what it kept when there is no network. Only pages on which a reader
// has opened the model are kept, with what they load; the network always goes first.
const shelf = 'attention_nb pages'
addEventListener('install', () => skipWaiting())
addEventListener('activate', event => event.waitUntil(clients.claim()))
addEventListener('message', event => event.waitUntil(caches.open(shelf).then(place =>
  Promise.all(event.data.filter(url => new URL(url).origin === location.origin &&
    !url.endsWith('.safetensors')).map(url => place.add(url).catch(() => {}))))))
addEventListener('fetch', event => {
  if (event.request.method !== 'GET') return
  event.respondWith(fetch(event.request).catch(async problem => {
    const place = await caches.open(shelf)
    const found = await place.match(event.request, {ignoreSearch: true})
    if (found) return found
    throw problem
  }))
})
