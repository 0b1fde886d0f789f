"""Sphinx extension: a page can be read as soon as its text has come.

Scripts wait for the text, formulas also for what else a page loads, and the theme's icon font, half
a megabyte, gives way to pictures of a line each. (_templates/static/webpack-macros.html leaves out
its script.) The first paint is light or dark as the reader's system is, where the theme would know
only after its script. A view's frame has the height that `#| frame: WIDE, NARROW, TOUCH` says
before its page runs.
"""
from pathlib import Path

ICONS = {        # name: what is drawn, by strokes, on 24 x 24
    'bars': 'M4 6h16M4 12h16M4 18h16',
    'list': 'M9 6h11M9 12h11M9 18h11M4 6h.01M4 12h.01M4 18h.01',
    'magnifying-glass': 'M15.5 15.5 20 20M4 10.5a6.5 6.5 0 1 0 13 0a6.5 6.5 0 1 0-13 0',
    'sun': 'M8 12a4 4 0 1 0 8 0a4 4 0 1 0-8 0M12 3v1M12 20v1M3 12h1M20 12h1M5.6 5.6l.7.7'
           'M17.7 17.7l.7.7M5.6 18.4l.7-.7M17.7 6.3l.7-.7',
    'moon': 'M20 14.5A8.2 8.2 0 1 1 9.5 4A6.6 6.6 0 0 0 20 14.5z',
    'circle-half-stroke': 'M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0M12 4v16M15 5v14M18 7v10',
    'square-github': 'M4 5a2 2 0 1 0 4 0a2 2 0 1 0-4 0M4 19a2 2 0 1 0 4 0a2 2 0 1 0-4 0'
                     'M16 7a2 2 0 1 0 4 0a2 2 0 1 0-4 0M6 7v10M18 9c0 4-5 4-12 6',
    'home': 'M4 11l8-7 8 7M6 10v10h12V10', 'outdent': 'M4 6h16M9 12h11M9 18h11',
    'lightbulb': 'M9 18h6M10 21h4M12 3a6 6 0 0 0-3 11v1h6v-1a6 6 0 0 0-3-11z',
    'arrow-up': 'M12 20V4M5 11l7-7 7 7',
    'angle-left': 'M15 5l-7 7 7 7', 'angle-right': 'M9 5l7 7-7 7', 'chevron-down': 'M5 9l7 7 7-7'}

WIDE = 'index', 'play'           # no menu of their own beside the text

THEME = '''{ const {dataset} = document.documentElement;
  if (dataset.mode === "auto")
    dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"; }'''

def icons():
    "A style sheet: each picture masks a square of the text's colour"
    drawn = ("data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' "
             "fill='none' stroke='black' stroke-width='2.2' stroke-linecap='round' "
             "stroke-linejoin='round'><path d='{}'/></svg>")
    rules = (f'.fa-{n} {{ --icon: url("{drawn.format(d)}"); }}' for n,d in ICONS.items())
    return '\n'.join((':is(.fa-solid, .fa-brands) { display: inline-block; width: 1em; '
                      'height: 1em; vertical-align: -.125em; background: currentcolor; '
                      'mask: var(--icon, none) center/contain no-repeat; }',
                      ':is(.fa-solid, .fa-brands)::before { content: none !important; }',
                      '.fa-lg { font-size: 1.25em; }', *rules)) + '\n'

def write_icons(app):
    if app.builder.format != 'html': return
    folder = Path(app.outdir)/'_static'
    folder.mkdir(parents=True, exist_ok=True)
    (folder/'icons.css').write_text(icons())
    app.add_css_file('icons.css')

def text_first(app, pagename, templatename, context, doctree):
    """Only what the scripts within the page ask for runs before the text, and a page without a menu
    of its own says so before its text has come"""
    files = (f'_static/fonts/{name}.woff2' for name in ('sans', 'serif', 'serif-italic'))
    head = ''.join('<link rel="preload" as="font" type="font/woff2" crossorigin '
                   f'href="{context["pathto"](file, 1)}" />\n' for file in files)
    if pagename in WIDE: head += f'<meta name="wide" content="{pagename}" />\n'
    context['metatags'] = context.get('metatags', '') + head
    for script in context['script_files']:
        name = str(getattr(script, 'filename', '') or '')
        if name and 'documentation_options' not in name: script.attributes['defer'] = 'defer'
        if 'mathjax' in name: script.attributes['fetchpriority'] = 'low'

def setup(app):
    app.add_js_file(None, body=THEME, priority=0)
    app.connect('builder-inited', write_icons)
    app.connect('html-page-context', text_first, priority=900)     # after all that add some
    return dict(parallel_read_safe=True, parallel_write_safe=True)
