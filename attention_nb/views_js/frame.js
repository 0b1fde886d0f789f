// The frame around us: theme and height

function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let host = null;
  try { host = window.parent !== window && window.parent.document; }
  catch { /* another origin: the system's theme */ }
  const apply = () => {
    let theme = dark.matches ? "dark" : "light";
    if (host) {
      const html = host.documentElement, body = host.body, shade = body.dataset.jpThemeLight;
      if (html.dataset.theme) theme = html.dataset.theme;                             // the docs
      else if (shade) theme = shade === "true" ? "light" : "dark";                    // Jupyter
      else if (html.getAttribute("theme")) theme = html.getAttribute("theme");        // Colab
      else if (body.className.includes("vscode"))
        theme = body.className.includes("vscode-light") ? "light" : "dark";
    }
    document.documentElement.dataset.theme = theme === "dark" ? "dark" : "light";
    dispatchEvent(new Event("redraw"));
  };
  dark.addEventListener("change", apply);
  if (host) for (const element of [host.documentElement, host.body])
    new MutationObserver(apply).observe(element, {attributes: true});
  apply();
}

function followHeight() {
  let frame = null;
  try { frame = window.frameElement; } catch { return; }
  if (!frame) return;
  frame.style.display = "block";
  const still = frame.previousElementSibling;               // the picture for those without scripts
  if (still && still.dataset.still !== undefined) still.style.display = "none";
  const fit = () => {
    frame.style.height = Math.ceil(document.body.getBoundingClientRect().height) + 2 + "px";
  };
  new ResizeObserver(fit).observe(document.body);
  fit();
}
