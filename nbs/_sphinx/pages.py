"""Sphinx extension: the notebooks of the book as its pages.

notebooks.py lets nbdev process them, quarto.py translates their markdown; here cells become those
of MyST-NB, and pages get their place in the sidebar: lessons, the library room by room, notes.
What rules.py finds wrong with the folds of a page fails the build.
"""
import html, json, re
from pathlib import Path
import nbformat
from sphinx.util import logging
import api, cells, place, plain, rooms, rules
from notebooks import entries_first, process
from quarto import described, front_matter, myst
from tidy import VIEW

_log = logging.getLogger(__name__)
MODULES,ALL = '<!-- modules -->','<!-- rooms -->'
markdown,code = nbformat.v4.new_markdown_cell,nbformat.v4.new_code_cell

# %% cells
def live_view(data, frame):
    """The output of a view as the site shows it: its page, from the stored data and still; the
    frame has a height, on a wide and a narrow screen and on a phone, before its page runs"""
    from attention_nb import View
    view = json.loads(json.dumps(data[VIEW]))
    still = data.get('image/svg+xml')
    text = View.from_data(view['data'], view['summary'], still)._repr_html_()
    if frame:
        wide,narrow,touch = (int(n) for n in frame.split(','))
        heights = f'--wide:{wide}px;--narrow:{narrow}px;--touch:{touch}px;'
        text = text.replace('height:480px;', heights, 1)
    return {'text/html': text}

def title_cell(cell, mark):
    fm = front_matter(cell)
    lead = f"{{.lead}}\n{fm['description']}" if 'description' in fm else ''
    return [markdown(myst(f"# {fm['title']}\n\n{mark}{lead}"))] if 'title' in fm else []

def code_cell(cell, code_follows):
    o,text = cells.split_options(cell.source)
    for out in cell.outputs:
        if VIEW in (data := out.get('data', {})): out['data'] = live_view(data, o.get('frame'))
        if 'text/markdown' in data: data['text/markdown'] = myst(data['text/markdown'])
    if o.get('output') == 'asis':                       # an API entry
        texts = [out.get('text') or out.data.get('text/markdown', '') for out in cell.outputs]
        return [markdown(api.entry(t, code_follows)) for t in texts]
    fold = cells.folded(o)
    answer = fold and str(o.get('code-summary', '')).startswith('Answer')   # its output tells
    tags = [tag for tag,on in {'remove-input': o.get('echo') is False, 'hide-cell': answer,
                               'hide-input': fold and not answer}.items() if on]
    meta,label = {},cells.fold_label(o, text)
    if fold: meta |= dict(code_prompt_show=label, code_prompt_hide=label)
    if 'fig-cap' in o: meta['figure'] = dict(caption=myst(o['fig-cap']))
    if alt := described(cell.outputs): meta['image'] = dict(alt=alt, classes='scheme')
    if 'fig-alt' in o: meta['image'] = meta.get('image', {}) | dict(alt=o['fig-alt'])
    return [code(text, outputs=cell.outputs, metadata=dict(tags=tags, mystnb=meta))]

def page_cells(cell, code_follows=False, mark=''):
    "The MyST-NB cells, none or more, for one processed cell; `mark` stands below the title"
    if cell.cell_type == 'raw': return title_cell(cell, mark)
    if cell.cell_type == 'code': return code_cell(cell, code_follows)
    return [markdown(myst(cell.source))] if cell.source.strip() else []

# %% the sidebar
def sidebar_title(app, doc):
    "The title of a page with the number of its chapter"
    number,name = cells.number(doc),cells.title(app.book[doc])
    return f'{number[0]}\u2002{name} </{doc}>' if number else f'/{doc}'

def toctree(app, docs, *options):
    titles = (sidebar_title(app, doc) for doc in docs)
    return '\n'.join(['```{toctree}', ':hidden:', *options, '', *titles, '```'])

def contents(app):
    "The parts of the book that have lessons, the rooms of the library, notes, all other pages"
    kinds = {}
    for doc in app.book: kinds.setdefault(cells.kind(doc), []).append(doc)
    parts = {name: [d for d in kinds.get('lesson', ()) if int(cells.number(d)[0]) in numbers]
             for name,numbers in app.config.book_parts.items()}
    alone = [d for d in kinds.get('library', ()) if f'{cells.room(d)}/index' not in app.book]
    parts['Library'] = [d for d in app.book if cells.kind(d) == 'room' or d in alone]
    parts['Notes'] = kinds.get('notes', ())
    parts['Reference'] = [d for d in kinds.get(None, ()) if d != app.config.root_doc]
    return '\n\n'.join(toctree(app, docs, f':caption: {name}')
                       for name,docs in parts.items() if docs)

# %% pages
def page_kind(name, page):
    "The first line of a lesson, a page of the library, or of notes"
    said = dict(lesson=f'Lesson {"".join(cells.number(name))} · {cells.minutes(page)} minutes',
                library='Library', room='Library', notes='Notes')
    if cells.kind(name) == 'library' and name != cells.room(name):
        said['library'] = f'Library · [{cells.room(name)}](/{cells.room(name)}/index.ipynb)'
    if name in cells.FOR_IMPLEMENTERS: said['library'] += ' · [for implementers]{.for-implementers}'
    return f'{{.page-kind}}\n{said[kind]}\n\n' if (kind := cells.kind(name)) else ''

def draw_rooms(cell, name):
    "The pictures of rooms.py where a cell asks for them"
    if cell.cell_type != 'markdown': return
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
        for c in nb.cells: draw_rooms(c, env.docname)
        mark = page_kind(env.docname, json.loads(text)['cells'])
        nb.cells = [out for cell,follows in entries_first(nb.cells)
                    for out in page_cells(cell, follows, mark)]
        if any('{footcite:' in c.source for c in nb.cells):
            nb.cells.append(markdown('## References\n\n```{footbibliography}\n```'))
        place.keep(env, nb.cells)
        if env.docname == env.config.root_doc and len(env.found_docs) > 1:
            nb.cells.append(markdown(contents(self.app)))
        elif cells.kind(env.docname) == 'room' and (own := [
                d for d in self.app.book if cells.kind(d) == 'library'
                and cells.room(d) == cells.room(env.docname)]):
            nb.cells.append(markdown(toctree(self.app, own)))
        return nb

def number_figures(app, env):
    """Figure 3.2 is the second of 03_attention; Sphinx counts through the whole book. Done when its
    own numbers are kept for the next build, and before links read them"""
    for doc,kinds in env.toc_fignumbers.items():
        for ids in kinds.values():
            ids.update({i: (*cells.number(doc), n) for n,i in enumerate(ids, 1)})

def in_reading_order(app, pagename, templatename, context, doctree):
    "Next leads through lessons, or library, or notes; below a lesson stand the pages that link it"
    if pagename not in (pages := app.book): return
    kinds = dict(room='library').get
    own = kinds(cells.kind(pagename), cells.kind(pagename))
    line = [d for d in pages if kinds(cells.kind(d), cells.kind(d)) == own]
    if own in ('lesson', None):
        line = [d for d in pages if cells.kind(d) in ('lesson', None)]
    def link(doc):
        title = ' '.join([*cells.number(doc), app.env.titles[doc].astext()])
        return dict(link=app.builder.get_relative_uri(pagename, doc), title=html.escape(title))
    n = line.index(pagename)
    context['prev'] = link(line[n-1]) if n else None
    context['next'] = link(line[n+1]) if n+1 < len(line) else None
    if own == 'lesson':
        context['library'] = [link(d) for d,page in pages.items()
                              if cells.kind(d) in ('library', 'notes')
                              and cells.lesson_of(d, page) == pagename]

def load_all(app, env, docs):
    "All pages in the order of the book: name -> cells"
    pages = {d: cells.load(Path(env.doc2path(d))) for d in env.found_docs}
    app.book = {d: pages[d] for d in cells.in_order(pages)}

def print_with_answers(app, pagename, templatename, context, doctree):
    "A page with exercises can be printed with its answers"
    if 'class="hide answer' not in context.get('body', ''): return
    button = dict(type='javascript', javascript='printWithAnswers()', text='.pdf, with answers',
                  tooltip='Print with hints and answers', icon='fas fa-file-pdf',
                  label='print-answers-button')
    for group in context.get('header_buttons', []):
        if group.get('label') == 'download-buttons': group['buttons'].append(button)

def name_toggles(app, pagename, templatename, context, doctree):
    "What opens a branch of the sidebar says which one to those who hear the page"
    draw = context.get('generate_toctree_html')
    def named(*args, **options):
        return re.sub(r'(<a [^>]*>)([^<]*)(</a><details[^>]*>)<summary>',
                      r'\1\2\3<summary aria-label="Pages of \2">', str(draw(*args, **options)))
    if draw: context['generate_toctree_html'] = named

def setup(app):
    global read
    read = Reader(app)
    def fail(app, exception):
        "Also a build that does not take warnings for errors fails"
        if read.problems and not exception: app.statuscode = 1
    app.setup_extension('myst_nb')
    app.add_config_value('book_parts', {}, 'env')
    app.add_post_transform(api.MethodsOfClasses)
    app.connect('env-before-read-docs', load_all)
    app.connect('env-check-consistency', number_figures)
    app.connect('html-page-context', in_reading_order)
    app.connect('html-page-context', print_with_answers, priority=900)   # after the theme
    app.connect('html-page-context', name_toggles, priority=900)
    app.connect('build-finished', fail)
    return dict(parallel_read_safe=False, parallel_write_safe=True)
