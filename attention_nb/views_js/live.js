// A frame that shows what the page around it computes; each time it is loaded anew and called once
views.live = () => {};
function show(found) { views[found.kind](root, found); }
