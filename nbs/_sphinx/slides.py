"""Slides of lessons, from the notebooks as they stand: slides.py nbs/03_attention.ipynb ...

Each becomes _build/slides/NAME.html, which needs no network. A slide holds one step: of each
paragraph a line or two, and the code or picture below; whole paragraphs are in the speaker's notes
(key S). Proofs, answers and hints are left out; what is longer than a slide
scrolls. Links to other pages lead to the site.
"""
import argparse, os, re, sys
from pathlib import Path
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace
from sphinx.writers.html5 import HTML5Translator
from sphinx_revealjs.nodes import revealjs_break
from sphinx_revealjs.writers import RevealjsSlideTranslator
import quarto

# of an output's forms, the first that it has
MIMES = ['text/html', 'image/svg+xml', 'image/png', 'text/markdown', 'text/latex', 'text/plain']
LINES,WIDTH,PICTURE = 19,100,13     # of a slide below its heading; letters in a line; of a picture

def lines(node):
    "About how many lines of a slide `node` takes"
    texts = nodes.paragraph, nodes.caption, nodes.title
    if isinstance(node, nodes.image): return PICTURE
    if isinstance(node, nodes.literal_block): return .8*(node.astext().count('\n') + 1) + 1
    if isinstance(node, nodes.math_block): return 2 + 1.5*node.astext().count(r'\\')
    if isinstance(node, texts): return 1.5 + len(node.astext())//WIDTH
    if isinstance(node, nodes.raw): return PICTURE if '<iframe' in node.astext() else 0
    parts = [lines(c) for c in node.children if isinstance(c, nodes.Element)]
    beside = isinstance(node, nodes.row) or 'code-note' in node.get('classes', ())
    return max(parts, default=1) if beside else sum(parts)

def unwanted(node):
    if not isinstance(node, nodes.Element): return False
    classes = set(node.get('classes', ()))
    return (isinstance(node, (HideCodeCellNode, nodes.comment))
            or bool(classes & {'tag_hide-cell', 'page-kind', 'made'})
            or 'cell' in classes and not any(map(keeps, node.children)))

def keeps(node):
    inside = not isinstance(node, nodes.container) or any(map(keeps, node.children))
    return inside and not unwanted(node)

def without_hints(children):
    "What stands between raw <details> and </details> goes"
    inside = False
    for node in children:
        raw = node.astext() if isinstance(node, nodes.raw) else ''
        inside = inside or raw.startswith('<details')
        if not inside: yield node
        inside = inside and '</details>' not in raw

def sentences(paragraph):
    "The children of `paragraph` in lists, one for each sentence"
    found = [[]]
    for node in paragraph.children:
        if not isinstance(node, nodes.Text): found[-1].append(node); continue
        first,*later = re.split(r'(?<=[.?!])\s+', node.astext())
        found[-1].append(nodes.Text(first))
        found += [[nodes.Text(text)] for text in later]
    return [part for part in found if ''.join(n.astext() for n in part)]

def shorten(paragraph):
    """Keep what fits in a line or two, what leads to the code below, and a question to the class;
    true where something went"""
    if len(paragraph.astext()) <= 2*WIDTH: return False
    kept,length = [],0
    for part in sentences(paragraph):
        text = ''.join(node.astext() for node in part)
        if length < WIDTH or text.endswith(':') or text.startswith('Predict:'): kept.append(part)
        length += len(text)
    parts = [[*part, nodes.Text(' ')] for part in kept]
    short = nodes.paragraph('', '', *sum(parts, [])[:-1])
    went = len(short.astext()) < len(paragraph.astext())
    paragraph.children = []
    paragraph += short.children
    return went

def make_slides(section):
    "A slide for each step of `section`: words, then code or a picture; and the notes for each"
    filled,shown,told,made = 0,False,[],[]
    def close():
        if told: made.append(nodes.comment('', '', *told))
    inner = [n for n in section.children if isinstance(n, nodes.section)]
    own = [n for n in section.children if n not in inner]
    last = max((n for n,node in enumerate(own) if 'cell' in node.get('classes', ())), default=0)
    for place,node in enumerate(own):
        if isinstance(node, nodes.title): made.append(node); continue
        words = [p for p in node.findall(nodes.paragraph)
                 if isinstance(p.parent, (nodes.section, nodes.list_item))]
        whole = [p.deepcopy() for p in words]
        went = [shorten(p) for p in words] if 'exercises' not in section['ids'] else [False]
        size = lines(node)
        if filled and (filled + size > LINES or shown and words and place < last):
            close()
            made.append(revealjs_break())
            filled,shown,told = 0,False,[]
        filled,shown = filled + size, shown or 'cell' in node.get('classes', ())
        if any(went): told += whole
        made.append(node)
    close()
    section.children = []
    section += made + inner

def prepare(app, doctree, docname):
    "Leave out what belongs to a page and not to a slide"
    for node in doctree.findall(nodes.Element):
        node.children = list(without_hints(c for c in node.children if not unwanted(c)))
    for section in list(doctree.findall(nodes.section)): make_slides(section)

def lead_to_the_site(app, doctree):
    "Links to what is not among the slides"
    for ref in list(doctree.findall(addnodes.pending_xref)):
        name = ref.get('reftarget')
        if ref.get('refdomain') == 'doc' and name not in app.env.found_docs:
            section = f'#{ref["reftargetid"]}' if ref.get('reftargetid') else ''
            address = f'{app.config.html_baseurl}{name.lstrip("/")}.html{section}'
        elif there := quarto.address(str(name)): address = there
        else: continue
        link = nodes.reference('', '', *ref.children, refuri=address, internal=False)
        ref.replace_self(link)

class Translator(RevealjsSlideTranslator):
    "Code coloured when the slides are built, as on the site"
    visit_literal_block = HTML5Translator.visit_literal_block
    depart_literal_block = HTML5Translator.depart_literal_block

def setup(app):
    app.set_translator('revealjs', Translator)
    app.connect('doctree-read', lead_to_the_site)
    app.connect('doctree-resolved', prepare)
    return dict(parallel_read_safe=True)

# of the themes' folders, what slides need: four megabytes of thirty
KEPT = ('mathjax/tex-chtml.js', 'mathjax/input/tex/extensions/',
        'mathjax/output/chtml/fonts/woff-v2/', 'revealjs/dist/reveal.css',
        'revealjs/dist/reveal.js', 'revealjs/dist/theme/white.css',
        'revealjs/dist/theme/fonts/source-sans-pro/', 'revealjs/plugin/notes/notes.js')

def trim(static):
    "Leave out what no slide loads, so that the folder can be sent to a class"
    for folder in (f for f in static.iterdir() if f.is_dir()):
        for file in [f for f in folder.rglob('*') if f.is_file()]:
            kept = file.relative_to(static).as_posix().startswith(KEPT)
            if not kept or file.suffix in ('.eot', '.ttf'): file.unlink()
        for empty in sorted(folder.rglob('*'), reverse=True):
            if empty.is_dir() and not any(empty.iterdir()): empty.rmdir()

def build(path, out):
    "The slides of the notebook at `path`, in the folder `out`"
    here = Path(__file__).resolve().parent
    script = dict(hash=True, slideNumber='c/t', width=1200, height=675, margin=.04, center=False,
                  transition='none')
    options = dict(
        root_doc=path.stem, default_role=None, include_patterns=[path.name], pygments_style='tango',
        revealjs_static_path=[str(here/'_static')], revealjs_style_theme='white',
        revealjs_css_files=['pygments.css', 'slides.css'], revealjs_script_conf=script,
        revealjs_use_section_ids=True, revealjs_notes_from_comments=True,
        revealjs_script_plugins=[dict(name="RevealNotes", src="revealjs/plugin/notes/notes.js")],
        html_copy_source=False,
        nb_mime_priority_overrides=[('revealjs', m, n) for n,m in enumerate(MIMES)],
        extensions=['place', 'plain', 'pages', 'myst_nb', 'sphinxcontrib.bibtex', 'sphinx_design',
                    'sphinx-mathjax-offline', 'sphinx_revealjs', 'slides', 'fresh'])
    with docutils_namespace():                          # extensions register anew for each lesson
        app = Sphinx(path.parent, here, out, out.parent/'.slides', 'revealjs',
                     confoverrides=options, status=None, freshenv=True, warningiserror=True)
        app.build(force_all=True)
    trim(out/'_static')
    return app.statuscode

if __name__ == '__main__':
    parser = argparse.ArgumentParser(description='Slides of lessons')
    root = Path(__file__).resolve().parents[2]
    def path(text): return Path(text).resolve()
    parser.add_argument('notebooks', nargs='*', type=path)
    parser.add_argument('--out', type=path, default=root/'_build'/'slides')
    args = parser.parse_args()
    if not args.notebooks:
        parser.error('which lesson? For example: make slides ARGS=nbs/03_attention.ipynb')
    os.chdir(root)                                      # nbdev looks for its settings here
    if any([build(p, args.out) for p in args.notebooks]): sys.exit(1)
    print('Slides:', *(os.path.relpath(args.out/f'{p.stem}.html') for p in args.notebooks))
