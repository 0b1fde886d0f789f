// A frame that shows what the page around it computes, one view after another
views.live = () => {};
function show(found) {
  life.abort();
  life = new AbortController();
  globalThis.state = null;
  const place = make("div");
  root.replaceChildren(place);
  views[found.kind](place, found);
}
