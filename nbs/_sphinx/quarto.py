"""The markdown of the notebooks, which nbdev and Quarto share, as MyST-NB reads it.

    ::: {.callout-note title="T"}      an admonition; `collapse="true"` folds it
    $$ ... $$ {#eq-name}, @eq-name     a numbered equation and a link to it
    [@key]                             a footnote-like citation from references.bib
    <details><summary>Hint</summary>...   a fold, its text read as markdown
    <!-- buttons --> above links        large links in a row
    <!-- live: all                      a box in which the reader's sentence meets a model, with
    One sentence.                       all views, or arcs alone (<!-- live -->); each line below
    -->                                 is a sentence to press
    <!-- readme --> above a paragraph   for the README alone
    <!-- rooms -->, <!-- modules -->    what imports what, see rooms.py
    <!-- cards --> above the table of lessons   a card for each row, its picture in _static/cards
"""
import functools, html, re
from pathlib import Path
import yaml
from nbdev.config import get_config
from nbdev.doclinks import NbdevLookup
import package

CARDS = Path(__file__).parent/'_static'/'cards'

def front_matter(cell):
    if cell.cell_type != 'raw' or not cell.source.startswith('---'): return {}
    return yaml.safe_load(cell.source.strip().strip('-'))

def described(outputs):
    "What a drawn figure says of itself, in the `<desc>` of its SVG"
    svgs = (''.join(out.get('data', {}).get('image/svg+xml', '')) for out in outputs)
    found = (re.search(r'<desc[^>]*>(.*?)</desc>', svg, re.S) for svg in svgs)
    return next((html.unescape(m[1]).strip() for m in found if m), None)

@functools.cache
def own_names():
    "Address in the docs -> qualified name, for the names of this project"
    prefix = get_config().lib_path.name + '.'
    return {v[0]:k for k,v in NbdevLookup().syms.items()
            if isinstance(v, tuple) and k.startswith(prefix)}

def callout(m):
    colons,kind,attrs,body = m.groups()
    title = re.search(r'title="([^"]*)"', attrs)
    title = title[1] if title else kind.title()
    classes = f'{kind}{" dropdown" if "collapse=" in attrs else ""}'
    return f'{colons}{{admonition}} {title}\n:class: {classes}\n{body}{colons}'

def cards(m):
    "A grid for rows | part | [1. Title](01_title.ipynb) | what for |"
    rows = [[cell.strip() for cell in line.strip()[1:-1].split('|')]
            for line in m[1].strip().splitlines()[2:]]
    grid,part = [],''
    for name,lesson,what in rows:
        part = name.strip('*') or part                  # an empty one is that of the row above
        number = re.search(r'\]\((\d+)_', lesson)
        picture = CARDS/f'{number[1] if number else ""}.svg'
        if not picture.exists():
            raise ValueError(f'the row {lesson} of the front page needs a picture, '
                             f'_static/cards/{picture.name}')
        alt = re.search(r'<desc>(.*?)</desc>', picture.read_text(encoding='utf-8'), re.S)[1]
        grid += [f'::::{{grid-item-card}} {lesson}', ':shadow: none',
                 f':img-top: /_sphinx/_static/cards/{picture.name}', f':img-alt: {alt}', '',
                 f'{{.card-part}}\n{part}\n\n{what[:1].upper()}{what[1:]}\n', '::::\n']
    head = ':::::{grid} 1 2 3 3\n:gutter: 3\n:class-container: lesson-cards\n\n'
    return head + '\n'.join(grid) + ':::::\n'

def live(m):
    views,examples = m[1] or 'arcs', html.escape(m[2].strip())
    return (f'<div class="live" id="your-own-sentence" data-views="{views}" data-examples="'
            + examples.replace('\n', '&#10;') + '">\n'
            '<noscript>A sentence of yours needs JavaScript.</noscript>\n</div>')

def cite(m): return '{footcite:p}`' + re.sub(r'[@\s]', '', m[1]).replace(';', ',') + '`'

_blocks = [(r'^<!-- cards -->\s*\n((?:\|[^\n]*(?:\n|\Z))+)', cards),
           (r'^(:{3,})[ \t]*\{\.callout-(\w+)([^}\n]*)\}[ \t]*\n(.*?)^\1[ \t]*$', callout),
           (r'^<details><summary>([^<\n]*)</summary>[ \t]*(.*?)\s*</details>',
            r'<details class="hint"><summary>\1</summary>\n\n\2\n\n</details>'),
           (r'^<!-- buttons -->$', '{.buttons}'),
           (r'^<!-- readme -->\n.*?\n\n', ''),
           (r'^<!-- live(?:: (\w+))?((?:\n[^\n]+)*?)\s*-->$', live),
           (r'\$\$[ \t]*\{#(eq-[\w-]+)\}', r'$$ (\1)')]
_inline = [(r'\[(@[\w:-]+(?:\s*;\s*@[\w:-]+)*)\]', cite),
           (r'(?<![\w/])@(eq-[\w-]+)', r'{eq}`\1`'),
           (r'(?<=\d) %', '\u00a0%'), ('→ (?=\\[)', '→\u00a0')]      # on one line

def prose(text, change):
    "`text` with `change` applied to all that is not code"
    parts = re.split(r'(^```.*?^```|`[^`\n]+`)', text, flags=re.M|re.S)
    return ''.join(part if i % 2 else change(part) for i,part in enumerate(parts))

_link = r'\[([^\[\]]+)\]\((https?://[^)\s]+)\)'
def address(name):
    "Of a public name, `attention_nb.checks.words`, or of its method, in the API"
    cfg,owner = get_config(),name.rpartition('.')[0]
    public = package.all_names(cfg.lib_path)
    own = next((n.split('.')[-1] for n in (name, owner) if n in public), None)
    site = f'{cfg.doc_host}{cfg.doc_baseurl}'
    return own and f'{site}/{package.page(cfg.lib_path, own)}.html#{name}'

def to_api(text):
    """What nbdev links leads to the API; names that no module exports are as they are: they have no
    page, and may be those of another"""
    def link(m):
        if (name := own_names().get(m[2])) is None: return m[0]
        return f'[{m[1]}]({there})' if (there := address(name)) else m[1]
    return re.sub(_link, link, text)

def myst(text):
    "MyST for Quarto's `text`; links to names of the project become links inside the site"
    for pattern,new in _blocks: text = re.sub(pattern, new, text, flags=re.M|re.S)
    def inline(part):
        for pattern,new in _inline: part = re.sub(pattern, new, part)
        return part
    site = get_config().doc_host + get_config().doc_baseurl
    return re.sub(rf'\]\({re.escape(site)}/api/[\w.]+\.html#', '](#', to_api(prose(text, inline)))
