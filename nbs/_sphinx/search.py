"""Sphinx extension: a search that lands on sections.

Each section of a page is a record: its heading, those above it, its own prose with formulas in
plain signs, the names in its code, what kind of page it stands on, and what else people call its
subject. The last comes from the glossary: a term there, and a name in its table of other names,
leads to the sections that its line links. The page of a public name is one record. The records go
to `sections.js`; `_static/search.js` looks through them with MiniSearch.
"""
import json, re
from pathlib import Path
from docutils import nodes
from pylatexenc.latex2text import LatexNodes2Text
from sphinx import addnodes
import cells

GLOSSARY,INDEX = 'glossary','api'
LESS = .3                                               # weight of what repeats what others say
LIBRARY,ENTRY = .75,.4                                  # beside a lesson's 1
LATER = 'library', 'room', 'notes'
BADGES = dict(lesson='Lesson', guide='Guide', notes='Notes', room='Library', library='Library')
REPEATS = {'Summary', 'Exercises', 'References'}
SKIP = (nodes.section, nodes.title, nodes.literal_block, nodes.raw, nodes.comment, nodes.image,
        nodes.footnote, nodes.footnote_reference, addnodes.toctree, addnodes.desc, addnodes.index)
_latex = LatexNodes2Text()

def plain_math(latex):
    "A formula as a line of plain signs, without colours and what plain signs cannot say"
    text = re.sub(r'\\color\{[^}]*\}|\\(?:begin|end)\{[^}]*\}|&', '', latex)
    return ' '.join(re.sub(r'[{}\\$]', '', _latex.latex_to_text(text)).split())

def prose(node):
    "The text of `node` without code, notes and sections inside it"
    if isinstance(node, nodes.Text): return node.astext()
    if isinstance(node, (nodes.math, nodes.math_block)): return plain_math(node.astext())
    if isinstance(node, SKIP) or {'made', 'page-kind'} & {*node.get('classes', ())}: return ''
    if isinstance(node, addnodes.pending_xref) and node['reftype'] == 'eq': return 'the equation'
    between = '' if isinstance(node, nodes.TextElement) else ' '
    return between.join(map(prose, node.children))

def parents(node):
    while node := node.parent: yield node

def home_of(block):
    "The section that a block of code belongs to: what a page imports is the page's"
    above = [p for p in parents(block) if isinstance(p, nodes.section)]
    options = (p.get('cell_metadata', {}).get('mystnb', {}) for p in parents(block)
               if isinstance(p, nodes.container))
    imports = any(o.get('code_prompt_show') == cells.IMPORTS for o in options)
    return above[-1 if imports else 0]

def names_in_code(section):
    blocks = (b for b in section.findall(nodes.literal_block) if home_of(b) is section)
    return ' '.join(sorted({w for b in blocks for w in re.findall(r'[A-Za-z_]\w{2,}', b.astext())}))

def badge(doc):
    "What kind of page it is, in a word"
    if doc == GLOSSARY: return 'Glossary'
    return BADGES.get(cells.kind(doc)) or cells.PARTS.get(cells.part(doc), 'Front page')

def records(doctree, doc):
    "A record for each section of a page, one for the page of a public name"
    if doc.startswith(f'{INDEX}/'):
        lead = next(p for p in doctree.findall(nodes.paragraph) if 'lead' in p['classes'])
        named,theirs = ({row[0].astext() for row in doctree.findall(nodes.row)
                         if any('dropdown' in str(p.get('classes')) for p in parents(row)) == fold}
                        for fold in (False, True))
        yield dict(id=f'{doc}.html', title=doctree.next_node(nodes.title).astext(), path='',
                   terms=' '.join(sorted(theirs - {'Theirs'})), text=lead.astext(),
                   code=' '.join(sorted(named)), weight=ENTRY,
                   badge=badge(doc))
        return
    for section in doctree.findall(nodes.section):
        title = section.next_node(nodes.title).astext()
        above = [p.next_node(nodes.title).astext() for p in parents(section)
                 if isinstance(p, nodes.section)][::-1]
        text = ' '.join(' '.join(map(prose, section.children)).split())
        anchor = f'#{section["ids"][0]}' if above else ''
        weight = (LESS if title in REPEATS or doc in (GLOSSARY, INDEX, 'index') else
                  LIBRARY if cells.kind(doc) in LATER else 1)
        yield dict(id=f'{doc}.html{anchor}', title=title, path=' › '.join(above), terms='',
                   text=re.sub(r' ([.,;:])(?= |$)', r'\1', text), code=names_in_code(section),
                   weight=weight, badge=badge(doc))

def other_names(doctree):
    "(names, addresses) of each line and row of the glossary"
    for line in doctree.findall(lambda n: isinstance(n, (nodes.list_item, nodes.row))):
        links = [r['refuri'] for r in line.findall(nodes.reference) if 'refuri' in r]
        name = line.next_node(lambda n: isinstance(n, (nodes.strong, nodes.entry)))
        if links: yield name.astext(), links

def write_sections(app, exception):
    "sections.js: a script and no JSON file, so that the search works from a folder too"
    if exception or app.builder.name != 'html': return
    env = app.env
    found = {r['id']: r for doc in sorted(env.found_docs)
             for r in records(env.get_doctree(doc), doc)}
    if GLOSSARY in env.found_docs:
        glossary = env.get_and_resolve_doctree(GLOSSARY, app.builder, tags=app.tags)
        for names,links in other_names(glossary):
            # what the first link leads to explains it
            for link in found.keys() & {*links}:
                found[link]['terms'] += f'{names} '*(2 if link == links[0] else 1)
    text = f'var sections = {json.dumps(list(found.values()), ensure_ascii=False)}\n'
    Path(app.outdir, 'sections.js').write_text(text, encoding='utf-8')

def setup(app):
    app.connect('build-finished', write_sections)
    return dict(parallel_read_safe=True, parallel_write_safe=True)
