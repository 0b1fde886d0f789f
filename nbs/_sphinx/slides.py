"""Slides of lessons, from the notebooks as they stand: python nbs/_sphinx/slides.py nbs/03_attention.ipynb ...

Each becomes _build/slides/NAME.html, which needs no network. A heading begins a slide, and so does what would no longer fit on the
last one; proofs, answers and hints are left out; what is longer than a slide scrolls. Links to other pages lead to the site.
"""
import argparse, os, sys
from pathlib import Path
from docutils import nodes
from nbdev.doclinks import NbdevLookup
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace
from sphinx.writers.html5 import HTML5Translator
from sphinx_revealjs.nodes import revealjs_break
from sphinx_revealjs.writers import RevealjsSlideTranslator

MIMES = ['text/html', 'image/svg+xml', 'image/png', 'text/markdown', 'text/latex', 'text/plain']             # of an output's forms, the first that it has
LINES,WIDTH = 19,100                                    # what fits on a slide below its heading: lines of text, letters in a line
PICTURE = 13                                            # lines

def lines(node):
    "About how many lines of a slide `node` takes"
    if isinstance(node, nodes.image): return PICTURE
    if isinstance(node, nodes.literal_block): return .8*(node.astext().count('\n') + 1) + 1
    if isinstance(node, nodes.math_block): return 2 + 1.5*node.astext().count(r'\\')
    if isinstance(node, nodes.row): return max(map(lines, node.children), default=1)
    if isinstance(node, (nodes.paragraph, nodes.caption, nodes.title)): return 1 + len(node.astext())//WIDTH + .5
    if isinstance(node, nodes.raw): return PICTURE if '<iframe' in node.astext() else 0
    if 'code-note' in node.get('classes', ()): return max(map(lines, node.children))
    return sum(lines(c) for c in node.children if isinstance(c, nodes.Element))

def unwanted(node):
    if not isinstance(node, nodes.Element): return False
    classes = set(node.get('classes', ()))
    return isinstance(node, (HideCodeCellNode, nodes.comment)) or bool(classes & {'for-dark', 'tag_hide-cell', 'page-kind'}) or is_source_link(node) \
        or 'cell' in classes and not any(map(keeps, node.children))

def keeps(node): return not unwanted(node) and (not isinstance(node, nodes.container) or any(map(keeps, node.children)))
def is_source_link(node): return isinstance(node, nodes.paragraph) and any('api-source' in r['classes'] for r in node.findall(nodes.reference))

def without_hints(children):
    "What stands between raw <details> and </details> goes"
    inside = False
    for node in children:
        raw = node.astext() if isinstance(node, nodes.raw) else ''
        inside = inside or raw.startswith('<details')
        if not inside: yield node
        inside = inside and '</details>' not in raw

def shorten(doctree):
    "Leave out what is folded, hints, the copies of figures for a dark page, and what belongs to a page and not to a slide"
    for node in doctree.findall(nodes.Element): node.children = list(without_hints(c for c in node.children if not unwanted(c)))

def break_slides(doctree):
    "A new slide where the last one is full"
    for section in list(doctree.findall(nodes.section)):
        filled = 0
        for node in list(section.children):
            if isinstance(node, (nodes.title, nodes.section)): continue
            size = lines(node)
            if filled and filled + size > LINES:
                section.insert(section.index(node), revealjs_break())
                filled = 0
            filled += size

def lead_to_the_site(app, doctree):
    "Links to what is not among the slides"
    addresses,own = {name: entry[0] for name,entry in NbdevLookup().syms.items() if isinstance(entry, tuple)},app.env.domains.python_domain.objects
    for ref in list(doctree.findall(addnodes.pending_xref)):
        page,name = ref.get('refdomain') == 'doc' and ref['reftarget'] not in app.env.found_docs, ref.get('reftarget')
        if page: address = f'{app.config.html_baseurl}{name.lstrip("/")}.html' + (f'#{ref["reftargetid"]}' if ref.get('reftargetid') else '')
        elif name in addresses and name not in own: address = addresses[name]
        else: continue
        ref.replace_self(nodes.reference('', '', *ref.children, refuri=address, internal=False))

class Translator(RevealjsSlideTranslator):
    "Code coloured when the slides are built, as on the site"
    visit_literal_block,depart_literal_block = HTML5Translator.visit_literal_block,HTML5Translator.depart_literal_block

def prepare(app, doctree, docname):
    shorten(doctree)
    break_slides(doctree)

def setup(app):
    app.set_translator('revealjs', Translator)
    app.connect('doctree-read', lead_to_the_site)
    app.connect('doctree-resolved', prepare)
    return dict(parallel_read_safe=True)

def build(path, out):
    "The slides of the notebook at `path`, in the folder `out`"
    here = Path(__file__).resolve().parent
    options = dict(root_doc=path.stem, include_patterns=[path.name], revealjs_static_path=[str(here/'_static')], revealjs_css_files=['pygments.css', 'slides.css'], revealjs_style_theme='white', pygments_style='tango',
                   nb_mime_priority_overrides=[('revealjs', m, n) for n,m in enumerate(MIMES)], revealjs_use_section_ids=True, revealjs_script_conf=dict(hash=True, slideNumber='c/t', width=1200, height=675, margin=.04, center=False, transition='none'),
                   extensions=['nbdev_sphinx', 'myst_nb', 'sphinxcontrib.bibtex', 'sphinx_design', 'sphinx-mathjax-offline', 'sphinx_revealjs', 'slides'])
    with docutils_namespace():                          # extensions register anew for each lesson
        app = Sphinx(path.parent, here, out, out/'.doctrees', 'revealjs', confoverrides=options, status=None, freshenv=True, warningiserror=True)
        app.build(force_all=True)
        return app.statuscode

if __name__ == '__main__':
    parser,root = argparse.ArgumentParser(description='Slides of lessons'),Path(__file__).resolve().parents[2]
    parser.add_argument('notebooks', nargs='*', type=lambda p: Path(p).resolve())
    parser.add_argument('--out', type=lambda p: Path(p).resolve(), default=root/'_build'/'slides')
    args = parser.parse_args()
    if not args.notebooks: parser.error('which lesson? For example: make slides ARGS=nbs/03_attention.ipynb')
    os.chdir(root)                                      # nbdev looks for its settings here
    if any([build(p, args.out) for p in args.notebooks]): sys.exit(1)
    print('Slides:', *(os.path.relpath(args.out/f'{p.stem}.html') for p in args.notebooks))
