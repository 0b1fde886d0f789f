// A field over a word, as wide as what is typed, at most `most`; `draw` follows each letter. Enter
// and leaving are done, Escape is not
function typeOver(word, line, {key, was, most, draw, done}) {
  const size = parseFloat(getComputedStyle(word).fontSize);
  const field = make("input.over", {ariaLabel: `instead of ${was}`, value: key ?? was,
    autocapitalize: "off", autocomplete: "off", spellcheck: false, enterKeyHint: "done"});
  function room() {
    word.style.minWidth = Math.min(0.54 * field.value.length * size + 14, most) + "px";
    const box = word.getBoundingClientRect(), outer = line.getBoundingClientRect();
    Object.assign(field.style, {fontSize: size + "px", left: box.left - outer.left + "px",
      top: box.top - outer.top + "px", width: box.width + "px", height: box.height + "px"});
    draw();
  }
  let open = true;
  function end(take, stay) {
    if (!open) return;                                 // a field that goes is left once more
    open = false;
    const typed = field.value.trim();
    field.remove();
    word.style.minWidth = "";
    if (stay) word.focus();
    draw();
    if (take && typed !== was) done(typed);
  }
  field.oninput = room;
  field.onblur = () => end(true);
  field.onkeydown = e => {
    if (e.key !== "Enter" && e.key !== "Escape") return;
    e.preventDefault();
    end(e.key === "Enter", true);
  };
  line.append(field);
  room();
  field.focus();
  if (!key) field.select();
}
