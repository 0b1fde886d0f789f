"""The markdown of the notebooks, which nbdev and Quarto share, as MyST-NB reads it.

    ::: {.callout-note title="T"}      an admonition; `collapse="true"` folds it
    $$ ... $$ {#eq-name}, @eq-name     a numbered equation and a link to it
    [@key]                             a footnote-like citation from references.bib
    <details><summary>Hint</summary>...   a fold, its text read as markdown
    <!-- doors --> above a table        a large card for each row | for whom | [Link](page) | what |
    <!-- live: all                      a box in which the reader's sentence meets a model, with
    One sentence.                       all views, or arcs alone (<!-- live -->); each line below
    -->                                 is a sentence to press
    <!-- readme -->...<!-- /readme -->  for the README alone
    <!-- rooms -->, <!-- modules -->    what imports what, see rooms.py
    <!-- cards --> above a table        a card for each row | [Link](page) | what |, its picture in
                                       _static/cards: that of the lesson, or as `cards: a b` says
    <!-- stills --> above a table       the same for views, their pictures from the outputs of a
                                       page: | [kind](page) | [Link](lesson) | what |
"""
import base64, functools, html, re
from pathlib import Path
import yaml
import nbdev.config
from nbdev.doclinks import NbdevLookup
import cells, package
from tidy import VIEW

config = functools.cache(nbdev.config.get_config)      # else its file is read for each cell
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
    prefix = config().lib_path.name + '.'
    return {v[0]:k for k,v in NbdevLookup().syms.items()
            if isinstance(v, tuple) and k.startswith(prefix)}

def callout(m):
    colons,kind,attrs,body = m.groups()
    title = re.search(r'title="([^"]*)"', attrs)
    title = title[1] if title else kind.title()
    classes = f'{kind}{" dropdown" if "collapse=" in attrs else ""}'
    return f'{colons}{{admonition}} {title}\n:class: {classes}\n{body}{colons}'

def drawn(name):
    "A picture of _static/cards, for a card, and what it shows"
    if not (path := CARDS/f'{name}.svg').exists():
        raise ValueError(f'a card needs a picture, _static/cards/{path.name}')
    said = re.search(r'<desc>(.*?)</desc>', path.read_text(encoding='utf-8'), re.S)
    return f'/_sphinx/_static/cards/{path.name}', said[1]

def still(link):
    "The picture of a view, `[kind](page.ipynb)`, from the outputs of its page, and what it shows"
    kind,page = re.match(r'\[(\w+)\]\(([\w/]+)\.ipynb\)', link).groups()
    for c in cells.load(cells.nbs/f'{page}.ipynb'):
        for data in (out.get('data', {}) for out in c.get('outputs', [])):
            if VIEW not in data or data[VIEW]['data'].get('kind') != kind: continue
            svg = base64.b64encode(''.join(data['image/svg+xml']).encode()).decode()
            said = cells.split_options(cells.source(c))[0].get('fig-alt', page)
            return f'data:image/svg+xml;base64,{svg}', said
    raise ValueError(f'{page}.ipynb has no output of a view {kind!r}')

COLUMNS = dict(cards='1 2 3 3', doors='1 2 2 2', stills='1 2 2 2')
def cards(m):
    "A grid for the rows of a table, see above"
    kind,names = m[1],iter((m[2] or '').split())
    grid = []
    for line in m[3].strip().splitlines()[2:]:
        *tag,link,what = (cell.strip() for cell in line.strip()[1:-1].split('|'))
        lesson = re.search(r'\]\((\d+_\w+)\.ipynb\)', link)
        if kind == 'stills': picture,tag = still(tag[0]),[]
        elif kind == 'doors': picture = None
        else: picture = drawn(next(names, lesson and lesson[1][:2]))
        if kind == 'cards' and not m[2]:
            tag = [f'{cells.minutes(cells.load(cells.nbs/f"{lesson[1]}.ipynb"))} minutes']
        grid += [f'::::{{grid-item-card}} {link}', ':shadow: none',
                 *(f':img-{name}: {value}' for name,value in zip(('top', 'alt'), picture or ())),
                 '', *(f'{{.card-part}}\n{t}\n' for t in tag), f'{what}\n', '::::\n']
    columns = '1 2 2 4' if m[2] else COLUMNS[kind]
    head = f':::::{{grid}} {columns}\n:gutter: 3\n:class-container: page-cards {kind}\n\n'
    return head + '\n'.join(grid) + ':::::\n'

def live(m):
    views,examples = m[1] or 'arcs', html.escape(m[2].strip())
    return (f'<div class="live" id="your-own-sentence" data-views="{views}" data-examples="'
            + examples.replace('\n', '&#10;') + '">\n'
            '<noscript>A sentence of yours needs JavaScript.</noscript>\n</div>')

def cite(m): return '{footcite:p}`' + re.sub(r'[@\s]', '', m[1]).replace(';', ',') + '`'

_blocks = [(r'^<!-- (cards|doors|stills)(?:: ([\w ]+))? -->\s*\n((?:\|[^\n]*(?:\n|\Z))+)', cards),
           (r'^(:{3,})[ \t]*\{\.callout-(\w+)([^}\n]*)\}[ \t]*\n(.*?)^\1[ \t]*$', callout),
           (r'^<details><summary>([^<\n]*)</summary>[ \t]*(.*?)\s*</details>',
            r'<details class="hint"><summary>\1</summary>\n\n\2\n\n</details>'),
           (r'^<!-- readme -->\n.*?^<!-- /readme -->$', ''),
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
    cfg,owner = config(),name.rpartition('.')[0]
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
    site = config().doc_host + config().doc_baseurl
    return re.sub(rf'\]\({re.escape(site)}/api/[\w.]+\.html#', '](#', to_api(prose(text, inline)))
