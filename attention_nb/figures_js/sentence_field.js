// A sentence that is edited where it stands: text alone, in one paragraph. The view says what its
// tokens and its text are, hears by `change` that the field opens, shuts or has another text, by
// `point` which word the cursor is in, and by `leave` that the keyboard goes back to the words.
// What is typed goes to the host of the page, `onsentence`: the text, and how many milliseconds to
// wait for more, or null if nothing is to be read
function sentenceField({tokens, text, change, point, leave}) {
  const field = make("div.words.field", {contenteditable: "plaintext-only", role: "textbox",
    ariaLabel: "the sentence", spellcheck: false, hidden: true, enterkeyhint: "done"});
  const typed = () => field.textContent.replace(/\s+/g, " ");
  const whatIsNew = () => typed().trim() !== text().trim() && typed().trim();
  let before = "", back = false;                         // what Escape brings back; focus a word

  // Where each token stands in the text: looked for behind the one before; null if it is not there
  function spots() {
    const plain = typed().toLowerCase();
    let end = 0;
    return tokens().map(token => {
      const piece = token.replace(/^##/, "").toLowerCase(), from = plain.indexOf(piece, end);
      if (from < 0) return null;
      end = from + piece.length;
      return [from, end];
    });
  }
  // The part of the page that holds token `i`
  function part(i) {
    const range = document.createRange(), [from, to] = spots()[i] ?? [0, 0];
    range.setStart(field.firstChild ?? field, from);
    range.setEnd(field.firstChild ?? field, to);
    return range;
  }
  // The word with the cursor in it or behind it, else -1
  function atCaret() {
    const {anchorNode, anchorOffset: at} = getSelection();
    if (field.hidden || !field.contains(anchorNode)) return -1;
    return spots().findLastIndex((spot, i) =>
      spot && spot[0] <= at && at <= spot[1] && /[\p{L}\p{N}]/u.test(tokens()[i]));
  }
  // Begin, with token `i` selected or the cursor at the end
  function open(i = null) {
    field.hidden = false;
    field.textContent = before = text();
    change();
    field.focus();
    const [from, to] = i === null ? [before.length, before.length] : spots()[i] ?? [0, 0];
    getSelection().setBaseAndExtent(field.firstChild, from, field.firstChild, to);
  }
  function shut() {
    field.hidden = true;
    change();
    if (back) leave();
    back = false;
  }

  field.addEventListener("input", () => {
    change();
    if (whatIsNew()) globalThis.onsentence(typed().trim(), 300);
  });
  field.addEventListener("keydown", e => {
    if (e.key !== "Enter" && e.key !== "Escape") return;
    e.preventDefault();
    back = true;
    if (e.key === "Escape") field.textContent = before;
    field.blur();
  });
  field.addEventListener("beforeinput", e => {           // a paste is text, Enter breaks nothing
    if (/^insert(Paragraph|LineBreak)/.test(e.inputType)) e.preventDefault();
    if (!/^insertFrom(Paste|Drop)/.test(e.inputType)) return;
    e.preventDefault();
    const text = e.dataTransfer?.getData("text/plain") ?? e.data ?? "";
    document.execCommand("insertText", false, text.replace(/\s+/g, " ").slice(0, 600));
  });
  // What was not read yet stands there until it is
  field.addEventListener("blur", () => {
    if (whatIsNew()) return globalThis.onsentence(typed().trim(), 0);
    globalThis.onsentence(text(), null);
    shut();
  });
  lasting(document, "selectionchange", () => { if (atCaret() >= 0) point(atCaret()); });
  return {field, typed, part, atCaret, open, shut,
          isOpen: () => !field.hidden, isRead: () => field.hidden || !spots().includes(null),
          isDone: () => !field.hidden && document.activeElement !== field};
}
// The words up to token `i`, and a space
const textUpTo = (tokens, i) => tokens.slice(0, i + 1).join(" ").replaceAll(" ##", "") + " ";
