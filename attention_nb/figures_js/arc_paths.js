// What arcs are drawn with
function svgElement(name, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}
const inkOf = w => ({"stroke-width": 1.5 + 8.5 * w, "stroke-opacity": 0.35 + 0.65 * Math.sqrt(w)});
// From a place to another, each [x, top, foot]: on a line an arc, the farther, the higher, and the
// farthest two use all `room`; between lines a curve through the room between them. `old`: a thin,
// lower one for what was there before
function arcPath([x, top, foot], [u, above, below], w, {room, width, old}) {
  const beside = Math.abs(above - top) < 5, high = (room ?? top - 8) / 0.75;   // it rises 3/4
  const share = Math.sqrt(Math.abs(u - x) / width) * (old ? 0.86 : 1);
  const bow = beside ? high * Math.min(1, share) : 16;
  const [y, v, turn] = beside ? [top, above, -bow] : above < top ? [top, below, bow]
                                                                 : [foot, above, -bow];
  const first = beside ? turn : -turn;
  return svgElement("path", {...inkOf(w), ...old && {class: "old", "stroke-width": 2},
    d: `M${x} ${y} C${x} ${y + first} ${u} ${v + turn} ${u} ${v}`});
}
// Straight up, for what the marks around a sentence take
function parkedPath([x, top], w, marks, width) {
  return [svgElement("path", {...inkOf(w), d: `M${x} ${top} V82`}),
          svgElement("text", {x: Math.max(90, Math.min(width - 90, x)), y: 74},
                     `${percent(w)} on ${marks.join(" and ")}`)];
}
