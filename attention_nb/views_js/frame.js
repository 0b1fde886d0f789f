// The frame around us: its theme, its height, and paper

function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)"), paper = matchMedia("print");
  let host = null;
  try { host = window.parent !== window && window.parent.document; }
  catch { /* another origin: the system's theme */ }
  const {dataset} = document.documentElement;
  const theme = () => {
    const said = paper.matches ? "light" : host && themeOf(host);
    return (said || (dark.matches ? "dark" : "light")) === "dark" ? "dark" : "light";
  };
  const apply = () => { dataset.theme = theme(); dispatchEvent(new Event("redraw")); };
  const follow = () => { if (dataset.theme !== theme()) apply(); };  // hosts change much else
  for (const query of [dark, paper]) query.addEventListener("change", apply);
  if (host) for (const element of [host.documentElement, host.body])
    new MutationObserver(follow).observe(element, {attributes: true});
  apply();
}

// What each host says about its theme, or nothing
function themeOf({documentElement, body}) {
  const shade = body.dataset.jpThemeLight;
  if (documentElement.dataset.theme) return documentElement.dataset.theme;             // the docs
  if (shade) return shade === "true" ? "light" : "dark";                               // Jupyter
  if (documentElement.getAttribute("theme")) return documentElement.getAttribute("theme"); // Colab
  if (body.className.includes("vscode"))
    return body.className.includes("vscode-light") ? "light" : "dark";
}

function followHeight() {
  let frame = null;
  try { frame = window.frameElement; } catch { return; }
  document.documentElement.classList.toggle("alone", window.parent === window);
  if (!frame) return;
  const still = frame.previousElementSibling;               // the picture for those without scripts
  const paper = window.parent.matchMedia("print"), hasStill = still?.dataset.still !== undefined;
  const swap = () => {                                      // paper gets the picture
    const print = hasStill && paper.matches;
    if (hasStill) still.style.display = print ? "" : "none";
    frame.style.display = print ? "none" : "block";
  };
  let later;
  const fit = () => {
    const height = Math.ceil(document.body.getBoundingClientRect().height) + 2;
    clearTimeout(later);
    // a view that is being drawn has not its height yet: nothing below it shall jump
    const drawn = document.querySelector("[data-ready=yes]") || performance.now() > 10_000;
    if (height < frame.clientHeight && !drawn) later = setTimeout(fit, 100);
    else if (height > 2) frame.style.height = height + "px";
  };
  paper.addEventListener("change", swap);
  new ResizeObserver(fit).observe(document.body);
  swap(); fit();
}
