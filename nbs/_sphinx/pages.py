"""Sphinx extension: the notebooks of the book as its pages.

notebooks.py lets nbdev process them, quarto.py translates their markdown; here cells become those
of MyST-NB, and pages get their place in the sidebar: workshops, NNa_name, under lesson NN_name.
What rules.py finds wrong with the folds of a page fails the build.
"""
import html, json, re
from pathlib import Path
import nbformat
from sphinx.util import logging
import api, cells, place, plain, rules
from notebooks import entries_first, process
from quarto import described, front_matter, myst
from tidy import VIEW

_log = logging.getLogger(__name__)
markdown,code = nbformat.v4.new_markdown_cell,nbformat.v4.new_code_cell

# %% cells
def live_view(data, frame):
    """The output of a view as the site shows it: its page, from the stored data and still; the
    frame has a height, on a wide and a narrow screen and on a phone, before its page runs"""
    from attention_nb.views.page import View
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
def sidebar_title(env, doc):
    "The title of a page with the number of its chapter"
    number,name = cells.number(doc),cells.title(cells.load(Path(env.doc2path(doc))))
    return f'{number[0]}\u2002{name} <{doc}>' if number else doc

def toctree(env, docs, *options):
    titles = (sidebar_title(env, doc) for doc in docs)
    return '\n'.join(['```{toctree}', ':hidden:', *options, '', *titles, '```'])

def contents(env):
    "The parts of the book that have lessons, then the pages that are neither lesson nor workshop"
    docs = sorted(env.found_docs)
    lessons = [(int(cells.number(doc)[0]), doc) for doc in docs if cells.kind(doc) == 'lesson']
    parts = {name: [doc for n,doc in lessons if n in numbers]
             for name,numbers in env.config.book_parts.items()}
    parts['Reference'] = [d for d in docs if not cells.kind(d) and d != env.config.root_doc]
    return '\n\n'.join(toctree(env, docs, f':caption: {name}')
                       for name,docs in parts.items() if docs)

# %% pages
def page_kind(name, page):
    "The first line of a lesson or workshop"
    if not (kind := cells.kind(name)): return ''
    minutes = f' · {cells.minutes(page)} minutes' if kind == 'lesson' else ''
    return f'{{.page-kind}}\n{kind.capitalize()} {cells.number(name)[0]}{minutes}\n\n'

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
        mark = page_kind(env.docname, json.loads(text)['cells'])
        nb.cells = [out for cell,follows in entries_first(nb.cells)
                    for out in page_cells(cell, follows, mark)]
        if any('{footcite:' in c.source for c in nb.cells):
            nb.cells.append(markdown('## References\n\n```{footbibliography}\n```'))
        place.keep(env, nb.cells)
        workshops = cells.workshops_of(env.docname, env.found_docs)
        if env.docname == env.config.root_doc and len(env.found_docs) > 1:
            nb.cells.append(markdown(contents(env)))
        elif workshops: nb.cells.append(markdown(toctree(env, workshops)))
        return nb

def number_figures(app, env):
    """Figure 3.2 is the second of 03_attention; Sphinx counts through the whole book. Done when its
    own numbers are kept for the next build, and before links read them"""
    for doc,kinds in env.toc_fignumbers.items():
        for ids in kinds.values():
            ids.update({i: (*cells.number(doc), n) for n,i in enumerate(ids, 1)})

def in_reading_order(app, pagename, templatename, context, doctree):
    "Next leads from lesson to lesson; a lesson's workshops stand below, and lead to each other"
    docs = sorted(app.env.found_docs)
    others = [d for d in docs if not cells.kind(d) and d != app.config.root_doc]
    line = [app.config.root_doc, *(d for d in docs if cells.kind(d) == 'lesson'), *others]
    def link(doc):
        title = ' '.join([*cells.number(doc), app.env.titles[doc].astext()])
        return dict(link=app.builder.get_relative_uri(pagename, doc), title=html.escape(title))
    lesson = cells.kind(pagename) == 'workshop' and cells.lesson_of(pagename, docs)
    if lesson:
        after = line[line.index(lesson)+1:][:1]
        line = [lesson, *cells.workshops_of(lesson, docs), *after]
    if pagename not in line: return
    n = line.index(pagename)
    context['prev'] = link(line[n-1]) if n else None
    context['next'] = link(line[n+1]) if n+1 < len(line) else None
    context['workshops'] = [link(d) for d in cells.workshops_of(pagename, docs)]

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
                      r'\1\2\3<summary aria-label="Workshops of \2">', str(draw(*args, **options)))
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
    app.connect('env-check-consistency', number_figures)
    app.connect('html-page-context', in_reading_order)
    app.connect('html-page-context', print_with_answers, priority=900)   # after the theme
    app.connect('html-page-context', name_toggles, priority=900)
    app.connect('build-finished', fail)
    return dict(parallel_read_safe=False, parallel_write_safe=True)
