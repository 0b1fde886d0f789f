"""Sphinx extension: the notebooks of the book as its pages.

notebooks.py lets nbdev process them, quarto.py translates their markdown; here cells become those
of MyST-NB, and pages get their place in the sidebar: lessons, the library room by room, notes.
What rules.py finds wrong with the folds of a page fails the build.
"""
import functools, html, importlib, json, re
from pathlib import Path
import nbformat
from nbdev.config import get_config
from sphinx.util import logging
import api, cells, overview, package, place, plain, rooms, rules
from notebooks import process
from quarto import described, front_matter, myst
from tidy import VIEW

_log = logging.getLogger(__name__)
MODULES,ALL,MAP = '<!-- modules -->','<!-- rooms -->','<!-- map -->'
markdown,code = nbformat.v4.new_markdown_cell,nbformat.v4.new_code_cell

# %% cells
@functools.cache
def import_figures():
    "Import the modules of the figures, which register what draws them"
    for name in package.modules_in(get_config().lib_path):
        if name.startswith('figures.'): importlib.import_module(f'attention_nb.{name}')

def live_view(data, frame):
    """The output of a view as the site shows it: its page, from the stored data and still; the
    frame has a height, on a wide and a narrow screen and on a phone, before its page runs"""
    from attention_nb import View
    import_figures()
    view = json.loads(json.dumps(data[VIEW]))
    still = data.get('image/svg+xml')
    text = View(view['data'], view['summary'], still)._repr_html_()
    if frame:
        wide,narrow,touch = (int(n) for n in frame.split(','))
        heights = f'--wide:{wide}px;--narrow:{narrow}px;--touch:{touch}px;'
        text = text.replace('height:480px;', heights, 1)
    return {'text/html': text}

def inlined(svg):
    "A drawing whose parts symbols.js lights: it stands in the page, its styles hold for it alone"
    own = re.sub('<style>(.*?)</style>', r'<style>.scheme { \1 }</style>', svg, flags=re.S)
    return {'text/html': own.replace('<svg ', '<svg class="scheme" ', 1)}

def title_cell(cell, mark, number):
    fm = front_matter(cell)
    lead = re.sub(r'^(.+?\.) ', r'[\1]{.claim} ', fm.get('description', ''))    # the first sentence
    if lead: lead = f'{{.lead}}\n{lead}'
    title = '\u2002'.join([*number, fm.get('title', '')])
    return [markdown(myst(f'# {title}\n\n{mark}{lead}'))] if 'title' in fm else []

def code_cell(cell, module):
    o,text = cells.split_options(cell.source)
    for out in cell.outputs:
        if VIEW in (data := out.get('data', {})): out['data'] = live_view(data, o.get('frame'))
        if 'text/markdown' in data: data['text/markdown'] = myst(data['text/markdown'])
    fold = cells.folded(o)
    answer = fold and str(o.get('code-summary', '')).startswith('Answer')   # its output tells
    tags = [tag for tag,on in {'remove-input': o.get('echo') is False, 'hide-cell': answer,
                               'hide-input': fold and not answer}.items() if on]
    meta,label = {},cells.fold_label(o, text)
    if fold: meta |= dict(code_prompt_show=label, code_prompt_hide=label)
    if 'fig-cap' in o: meta['figure'] = dict(caption=myst(o['fig-cap']))
    if alt := described(cell.outputs): meta['image'] = dict(alt=alt, classes='scheme')
    for out in cell.outputs:
        svg = ''.join(out.get('data', {}).get('image/svg+xml', ''))
        if 'data-role=' in svg: out['data'] = inlined(svg)
    if 'fig-alt' in o: meta['image'] = meta.get('image', {}) | dict(alt=o['fig-alt'])
    made = api.places(text, module) if 'exports' in o else ''
    return [*map(markdown, filter(None, [myst(made)])),
            code(text, outputs=cell.outputs, metadata=dict(tags=tags, mystnb=meta))]

def page_cells(cell, name='', mark=''):
    "The MyST-NB cells, none or more, for one processed cell; `mark` stands below the title"
    if cell.cell_type == 'raw': return title_cell(cell, mark, cells.number(name))
    if cell.cell_type == 'code': return code_cell(cell, cells.module(name))
    return [markdown(myst(cell.source))] if cell.source.strip() else []

# %% the sidebars
def toctree(docs, caption=''):
    return '\n'.join(['```{toctree}', ':hidden:', f':caption: {caption}'*bool(caption), '', *docs,
                      '```'])

def contents(app, doc):
    "Captions and the pages below the page `doc`, as the top bar or the sidebar shows them"
    def own(*kinds): return [d for d in app.book if cells.kind(d) in kinds]
    if doc == app.config.root_doc:
        bar = [f'{title} </{d}>' for d,title in cells.PARTS.items() if d in app.book]
        alone = (contents(app, d) for d in ('learn', 'library') if d not in app.book)
        return {k: [d for d in v if d != doc] for found in ({'': bar}, *alone)
                for k,v in found.items()}
    if doc == 'learn':
        found = {name: [d for d in own('lesson') if int(cells.number(d)[0]) in numbers]
                 for name,numbers in app.config.book_parts.items()}
        notes = [d for d in own('notes') if d.endswith('/index')]
        beside = [d for d in own(None) if cells.part(d) == 'learn' != d]
        return found | {'Beside the lessons': beside + notes}
    if doc == 'library':
        alone = [r for r in own('library') if f'{cells.room(r)}/index' not in app.book]
        rooms = [d for d in app.book if cells.kind(d) == 'room' or d in alone]
        return {'Use it': own('guide'), 'Room by room': rooms}
    if doc == 'api': return api.contents(app)
    if not doc.endswith('/index'): return {}
    below = [d for d in own('library', 'notes') if d.startswith(doc.removesuffix('index'))
             and d != doc]
    return {'': below}

# %% pages
def page_kind(name, page):
    "The first line of a lesson, a page of the library, or of notes"
    said = dict(lesson=f'Lesson {"".join(cells.number(name))} · {cells.minutes(page)} minutes',
                library='Library', room='Library', notes='Notes', guide='Library')
    if cells.kind(name) == 'library' and name != cells.room(name):
        said['library'] = f'Library · [{cells.room(name)}](/{cells.room(name)}/index.ipynb)'
    if name in cells.FOR_IMPLEMENTERS:
        said['library'] += ' · [for implementers]{.for-implementers}'
    return f'{{.page-kind}}\n{said[kind]}\n\n' if (kind := cells.kind(name)) else ''

def draw_maps(cell, name, book):
    "The pictures of rooms.py and overview.py where a cell asks for them"
    if cell.cell_type != 'markdown': return
    if MAP in cell.source: cell.source = cell.source.replace(MAP, overview.drawn(book))
    if MODULES in cell.source:
        cell.source = cell.source.replace(MODULES, rooms.of_room(cells.room(name)))
    if ALL in cell.source: cell.source = cell.source.replace(ALL, rooms.of_all())

class Reader:
    "What MyST-NB calls, by the name in `nb_custom_formats`, with the text of a notebook alone"
    def __init__(self, app): self.app,self.problems = app,[]

    def __call__(self, text):
        env = self.app.env
        for _,problem in rules.fold_problems(json.loads(text)['cells'], env.docname):
            self.problems.append(problem)
            _log.error(problem)
        nb = process(text, env.doc2path(env.docname))
        plain.keep(env, nb)
        for c in nb.cells: draw_maps(c, env.docname, self.app.book)
        if cells.kind(env.docname) == 'lesson':        # below its title
            nb.cells.insert(1, markdown(overview.drawn(self.app.book, env.docname)))
        mark = page_kind(env.docname, json.loads(text)['cells'])
        nb.cells = [out for cell in nb.cells for out in page_cells(cell, env.docname, mark)]
        if any('{footcite:' in c.source for c in nb.cells):
            nb.cells.append(markdown('## References\n\n```{footbibliography}\n```'))
        place.keep(env, nb.cells)
        for caption,docs in contents(self.app, env.docname).items():
            below = [d if d.endswith('>') else f'/{d}' for d in docs]
            if below: nb.cells.append(markdown(toctree(below, caption)))
        return nb

def number_figures(app, env):
    """Figure 3.2 is the second of 03_attention; Sphinx counts through the whole book. Done when its
    own numbers are kept for the next build, and before links read them"""
    for doc,kinds in env.toc_fignumbers.items():
        for ids in kinds.values():
            ids.update({i: (*cells.number(doc), n) for n,i in enumerate(ids, 1)})

def in_reading_order(app, pagename, templatename, context, doctree):
    "Next leads through the lessons, notes or library; below a lesson the pages that link it"
    context |= dict(prev=None, next=None)
    if pagename not in (pages := app.book):            # of a name: it is no notebook
        context['page_source_suffix'] = ''
        return
    def line(d): return cells.kind(d) == 'notes' or cells.part(d)
    own = [d for d in pages if line(d) == line(pagename)]
    def link(doc):
        return dict(link=app.builder.get_relative_uri(pagename, doc),
                    title=html.escape(app.env.titles[doc].astext()))
    claim = re.search(r'class="claim">([^<]+?)\.?<', context['body'])
    if pagename == app.config.root_doc and claim:      # its title would say the book's name twice
        context['title'] = claim[1]
    n = own.index(pagename)
    context['prev'] = link(own[n-1]) if n else None
    context['next'] = link(own[n+1]) if n+1 < len(own) else None
    if cells.kind(pagename) == 'lesson':
        context['library'] = [link(d) for d,page in pages.items()
                              if cells.kind(d) in ('library', 'notes')
                              and cells.lesson_of(d, page) == pagename]

def load_all(app, env, docs):
    "All pages in the order of the book: name -> cells"
    paths = {d: Path(env.doc2path(d)) for d in env.found_docs}
    pages = {d: cells.load(p) for d,p in paths.items() if p.suffix == '.ipynb'}
    app.book = {d: pages[d] for d in cells.in_order(pages)}

# a caption of the sidebar and the pages below it
GROUP = re.compile(r'<p [^>]*class="caption"[^>]*><span class="caption-text">([^<]*)</span></p>\n'
                   r'(<ul class="(current )?nav.*?</ul>)', re.S)

def fold(group):
    "The names of a group of the API, open where the page is one of them"
    title,names,current = group.groups()
    return (f'<details class="group"{" open" * bool(current)}><summary>{title}</summary>{names}'
            '</details>')

def name_toggles(app, pagename, templatename, context, doctree):
    """For those who hear the page: what opens a branch of the sidebar says which one, the
    parameters of a signature are no list of definitions, and an empty corner of a table heads
    nothing"""
    draw = context.get('generate_toctree_html')
    def named(*args, **options):
        listed = re.sub(r'(<a [^>]*>)([^<]*)(</a><details[^>]*>)<summary>',
                        r'\1\2\3<summary aria-label="Pages of \2">', str(draw(*args, **options)))
        return GROUP.sub(fold, listed) if pagename.split('/')[0] == 'api' else listed
    if draw: context['generate_toctree_html'] = named
    def in_a_row(m):
        text = m[0].replace('<dd>', '<span class="sig-line">').replace('</dd>', '</span>')
        return re.sub(r'<(/?)dl>', r'<\1span>', text)
    body = re.sub(r'<dt class="sig.*?</dt>', in_a_row, context.get('body') or '', flags=re.S)
    context['body'] = re.sub(r'<th class="head[^"]*">(<p></p>)?</th>', '<td></td>', body)

def setup(app):
    global read                         # noqa: PLW0603, MyST-NB asks for it by its name
    read = Reader(app)
    def fail(app, exception):
        "Also a build that does not take warnings for errors fails"
        if read.problems and not exception: app.statuscode = 1
    app.setup_extension('myst_nb')
    app.add_config_value('book_parts', {}, 'env')
    app.connect('env-before-read-docs', load_all)
    app.connect('env-check-consistency', number_figures)
    app.connect('html-page-context', in_reading_order)
    app.connect('html-page-context', name_toggles, priority=900)      # after the theme
    app.connect('build-finished', fail)
    return dict(parallel_read_safe=False, parallel_write_safe=True)
