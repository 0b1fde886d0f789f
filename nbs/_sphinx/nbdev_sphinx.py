"""Sphinx extension: nbdev notebooks as pages; as a script, README.md from the index notebook.

A notebook goes through nbdev's own documentation processors, so `#| hide`, `#| export`, `show_doc` and backticked names mean here
what they mean in nbdev. The markdown it is written in, shared by nbdev and Quarto, is then translated to what MyST-NB reads.

    Quarto                             becomes
    #| explain "code" in a markdown cell   that line of the cell above, and the note beside it
    ::: {.callout-note title="T"}      an admonition; `collapse="true"` folds it
    ::: {.panel-tabset}                tabs
    $$ ... $$ {#eq-name}, @eq-name     a numbered equation and a link to it; @fig-, @tbl- and {#sec-} likewise
    [@key]                             a footnote-like citation from references.bib
    #| code-fold, code-summary         a fold whose label is the summary, for a proof with the number of its checks
    #| fig-cap, echo ...               MyST-NB's tags and metadata; a figure is numbered within its chapter
    <!-- cards --> above the table of lessons   a card for each row, with its picture from _static/cards
    <details><summary>Hint</summary>...   the same fold, its text read as markdown
    <!-- api -->                       the list of all public names, made by api.py

Pages NNa_name, workshops, stand in the sidebar under their lesson NN_name. A stored view is put together from its data. What
rules.py finds wrong with the folds of a page fails the build.
"""
import ast, contextlib, copy, html, inspect, io, itertools, json, logging as pylogging, os, pydoc, re
from pathlib import Path
import nbformat, yaml
from docutils import nodes
from docutils.nodes import make_id
from fastcore.nbio import dict2nb, nb2str, read_nb
from nbdev.config import get_config, nbpath2html
from nbdev.doclinks import NbdevLookup
from nbdev.process import Processor
from nbdev.processors import FilterDefaults, exec_show_docs
from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
import api, figures, rules
from rules import folded, split_options
from tidy import VIEW

_app = None    # the Sphinx application, for the reader that MyST-NB calls with the text alone
CARDS = Path(__file__).parent/'_static'/'cards'
_log = logging.getLogger(__name__)
_problems = []
_cells = {}    # page -> its cells as MyST-NB reads them

class Place(pylogging.Filter):
    "A warning about a notebook names heading, cell and line; MyST-NB counts 10,000 lines for each cell"
    def filter(self, record):
        path,_,line = str(getattr(record, 'location', None) or '').rpartition(':')
        cells,n = _cells.get(Path(path).stem, []),int(line) if line.isdigit() else 0
        if 0 < n//10_000 <= len(cells):
            cell = cells[n//10_000 - 1]
            heading = [h for _,h,_ in rules.places(cells[:n//10_000], ('code', 'markdown'))][-1]
            line = max(1, n%10_000 - 1)
            text = rules.source(cell).splitlines()[line-1:line]
            record.location = f'{path}, under {heading!r}, cell {cell.get("id", "of the site")}, line {line}: {"".join(text).strip()[:60]!r}'
        return True

# %% `#| explain`
class Explain(Processor):
    "Replace each `#| explain` cell by the code it quotes, with its text beside it"
    def begin(self):
        self.quotes,code = {},''
        for c in read_nb(self.nb.path_).cells:
            if c.cell_type == 'code': code = c.source
            elif m := rules.EXPLAIN.match(c.source): self.quotes[c.id] = rules.quoted_lines(code, m[1]) or m[1]    # rules.py names a wrong quote
    def cell(self, cell):
        if (code := self.quotes.get(cell.get('id'))) is None: return
        text = rules.EXPLAIN.sub('', cell.source).strip()
        cell.source = f'::::{{div}} code-note\n```python\n{code}\n```\n:::{{div}} code-note-text\n{text}\n:::\n::::'

# %% Quarto's markdown to MyST's
def callout(m):
    colons,kind,attrs,body = m.groups()
    title = re.search(r'title="([^"]*)"', attrs)
    heading = None if title else re.match(r'\s*#{1,6}\s+(.*)\n', body)
    if heading: body = body[heading.end():]
    title = title[1] if title else heading[1] if heading else kind.title()
    return f'{colons}{{admonition}} {title}\n:class: {kind}{" dropdown" if "collapse=" in attrs else ""}\n{body}{colons}'

def tabset(m):
    colons,body = m.groups()
    names_and_bodies = re.split(r'^#{1,6}\s+(.*)$', body, flags=re.M)[1:]
    tabs = [f'{colons}{{tab-item}} {name}\n{text.strip()}\n{colons}\n' for name,text in zip(names_and_bodies[::2], names_and_bodies[1::2])]
    return f'{colons}:{{tab-set}}\n{"".join(tabs)}{colons}:'

def cite(m): return '{footcite:p}`' + re.sub(r'[@\s]', '', m[1]).replace(';', ',') + '`'

def fenced_div(name): return rf'^(:{{3,}})[ \t]*\{{{name}\}}[ \t]*\n(.*?)^\1[ \t]*$'

def cards(m):
    "A grid of cards for the table of lessons: rows | part | [1. Title](01_title.ipynb) | what for | workshops |; an empty part is that of the row above"
    rows = [[cell.strip() for cell in line.strip()[1:-1].split('|')] for line in m[1].strip().splitlines()[2:]]
    grid,part = [],''
    for name,lesson,what,workshops in rows:
        part = name.strip('*') or part
        number = re.search(r'\]\((\d+)_', lesson)
        picture = CARDS/f'{number[1] if number else ""}.svg'
        if not picture.exists(): raise ValueError(f'the row {lesson} of the front page needs a picture, _static/cards/{picture.name}')
        alt = re.search(r'<desc>(.*?)</desc>', picture.read_text(encoding='utf-8'), re.S)[1]
        footer = f':::{{card-footer}}\n{workshops}\n:::\n' if workshops else ''
        grid.append(f'::::{{grid-item-card}} {lesson}\n:shadow: none\n:img-top: /_sphinx/_static/cards/{picture.name}\n:img-alt: {alt}\n:class-img-top: dark-light\n'
                    f'\n{{.card-part}}\n{part}\n\n{what[:1].upper()}{what[1:]}\n\n{footer}::::\n')
    return ':::::{grid} 1 2 3 3\n:gutter: 3\n:class-container: lesson-cards\n\n' + '\n'.join(grid) + ':::::\n'

_blocks = [(r'^<!-- cards -->\s*\n((?:\|[^\n]*(?:\n|\Z))+)', cards), (fenced_div(r'\.callout-(\w+)([^}\n]*)'), callout), (fenced_div(r'\.panel-tabset[^}\n]*'), tabset),
           (r'^<details><summary>([^<\n]*)</summary>[ \t]*(.*?)\s*</details>', r'<details class="hint"><summary>\1</summary>\n\n\2\n\n</details>'),
           (r'\$\$[ \t]*\{#(eq-[\w-]+)\}', r'$$ (\1)'), (r'^(#{1,6} .*?)[ \t]*\{#(sec-[\w-]+)[^}\n]*\}', r'(\2)=\n\1')]
_inline = [(r'\[(@[\w:-]+(?:\s*;\s*@[\w:-]+)*)\]', cite), (r'(?<![\w/])@(eq-[\w-]+)', r'{eq}`\1`'),
           (r'(?<![\w/])@((?:fig|tbl)-[\w-]+)', r'{numref}`\1`'), (r'(?<![\w/])@(sec-[\w-]+)', r'{ref}`\1`')]

def own_names():
    "Address in the docs -> qualified name, for the names of this project"
    prefix = get_config().lib_path.name + '.'
    return {v[0]:k for k,v in NbdevLookup().syms.items() if isinstance(v, tuple) and k.startswith(prefix)}

def myst(text):
    "MyST for Quarto's `text`; code is left alone, and links to names of the project become links inside the site"
    for pattern,new in _blocks: text = re.sub(pattern, new, text, flags=re.M|re.S)
    parts = re.split(r'(^```.*?^```|`[^`\n]+`)', text, flags=re.M|re.S)
    for i in range(0, len(parts), 2):
        for pattern,new in _inline: parts[i] = re.sub(pattern, new, parts[i])
    names = own_names()
    def link(m):
        name = names.get(m[2])
        return m[0] if name is None else m[1] if name.split('.')[-1].startswith('_') else f'[{m[1]}](#{name})'   # private names have no entry
    return re.sub(r'\[([^\[\]]+)\]\((https?://[^)\s]+)\)', link, ''.join(parts))

class MethodsOfClasses(SphinxPostTransform):
    "A link to a method that has no entry of its own leads to its class"
    default_priority = 8                                                                     # before MyST resolves its links
    def run(self, **kwargs):
        entries = self.env.domains.python_domain.objects
        for node in self.document.findall(pending_xref):
            owner = node.get('reftarget', '').rpartition('.')[0]
            if node.get('reftype') == 'myst' and node['reftarget'] not in entries and owner in entries: node['reftarget'] = owner

# %% figures
class FiguresForBothThemes(SphinxTransform):
    "Each figure of a cell twice, of which the theme shows one; a wide one is marked, so that a phone lets it scroll and keeps its letters legible"
    default_priority = 870                                                                   # before Sphinx collects images, at 880
    def apply(self, **kwargs):
        for light in list(self.document.findall(nodes.image)):
            path = Path(self.env.srcdir, light['uri'].lstrip('/')).resolve()
            if path.suffix not in ('.svg', '.png') or not path.exists() or path.is_relative_to(self.env.srcdir): continue      # outputs only
            if figures.width(path) > 395: light['classes'].append('wide')
            dark = light.deepcopy()
            for node,file in zip((light,dark), figures.for_both(path)):
                node['uri'] = Path(node['uri']).with_name(file.name).as_posix()
                node['classes'].append('for' + Path(file.stem).suffix.replace('.', '-'))         # the theme's own only-light hides the caption too
            light.parent.insert(light.parent.index(light)+1, dark)

def number_figures(app, env):
    "Figure 3.2 is the second of 03_attention, Figure 3a.1 the first of 03a_fast; Sphinx counts through the whole book"
    for doc,kinds in env.toc_fignumbers.items():
        for kind,ids in kinds.items():
            kinds[kind] = {i: (*rules.number(doc), n) for n,i in enumerate(ids, 1)}
    return []

# %% API entries
def api_entry(md, code_follows=False):
    "A `show_doc` entry: registered in Sphinx's Python domain, so that search and other projects find it; its signature only if the code does not follow"
    md = re.sub(r"\*<class '(?:\w+\.)*(\w+)'>", r'Unpack[\1]', md).replace('__main__.', '')     # types as Python prints them
    head = re.search(r'^#+ (\S+)$', md, re.M)
    entry = head and NbdevLookup()[head[1].replace('\\', '')]
    if not isinstance(entry, tuple): return md
    name,anchor = own_names()[entry[0]],entry[0].split('#')[-1]
    kind = 'class' if inspect.isclass(pydoc.locate(name)) else 'method' if '.' in head[1] else 'function'
    target = f'<a id="{anchor}"></a>\n\n' if make_id(anchor) != anchor else ''            # the anchor of nbdev's own links
    return (f':::{{py:{kind}}} {name}\n:no-typesetting:\n:::\n\n{target}{head[0]}\n\n'
            f'[source]({NbdevLookup().code(head[1])}){{.api-source}}\n\n{"" if code_follows else md[head.end():].strip()}')

# %% notebooks
def show_source(cell):
    "A book shows its code: `#| export` becomes `#| exports`, unless the cell only imports"
    if cell.cell_type != 'code' or not re.search(r'^#\|\s*export\s*$', cell.source, re.M): return
    if all(isinstance(n, (ast.Import, ast.ImportFrom)) for n in ast.parse(cell.source).body): return
    cell.source = re.sub(r'^#\|\s*export\s*$', '#| exports', cell.source, flags=re.M)

class ExecEntries(exec_show_docs):
    "Execute what the API entries need and nothing else: exported cells and the entries, not every cell that imports something"
    def __call__(self, cell):
        if not ({'export', 'exports', 'exporti'} & set(cell.directives_) or re.search(r'^show_doc\(', cell.source, re.M)): return
        for n in imports_for_types(cell.source): self.k.run_cell(n)
        super().__call__(cell)

def imports_for_types(code):
    "The imports under `if TYPE_CHECKING:`, which an entry needs to read the annotations"
    for guard in rules.syntax(code).body:
        if not (isinstance(guard, ast.If) and ast.unparse(guard.test) == 'TYPE_CHECKING'): continue
        for n in guard.body:
            if isinstance(n, ast.ImportFrom) and n.level: n.level,n.module = 0,f'{get_config().lib_path.name}.{n.module}'
            if isinstance(n, (ast.Import, ast.ImportFrom)): yield ast.unparse(n)

def process(text, path):
    "The notebook `text` after nbdev's documentation processors and `Explain`"
    nb,filters = json.loads(text),FilterDefaults()
    for c in nb['cells']:
        if c['cell_type'] == 'code': c['source'] = rules.join_options(''.join(c['source']))
    nb = dict2nb(nb)
    for c in nb.cells: show_source(c)
    for c in nb.cells:
        if c.cell_type == 'markdown' and api.MARK in c.source: c.source = c.source.replace(api.MARK, api.listing())
    nb.path_ = Path(path)
    procs = [ExecEntries if p is exec_show_docs else p for p in filters.procs() if p.__name__ not in ('mv_exports', 'add_fold')] + [Explain]
    filters.procs = lambda: procs
    os.environ['IN_TEST'] = '1'
    try:
        with contextlib.redirect_stdout(io.StringIO()): filters(nb)
    finally: del os.environ['IN_TEST']
    for c in nb.cells:
        if c.pop('has_sd', None): c.metadata['entry'] = True
        c.metadata.pop('execution', None)          # nbformat refuses it
        if c.cell_type == 'markdown': c.source = re.sub(r'\[\[(`[^`\n]+`)\]\([^)\s]*\)\](?=\()', r'[\1]', c.source)     # nbdev links names inside a link too
    nb.metadata.pop('widgets', None)               # an empty widget state, for which MyST-NB would load scripts from elsewhere
    return nbformat.reads(nb2str(nb), 4)

def front_matter(cell): return yaml.safe_load(cell.source.strip().strip('-')) if cell.cell_type == 'raw' and cell.source.startswith('---') else None

def code_of_entries(cell, names):
    "A cell that defines several of `names`, as a cell for each; the outputs stay with the last"
    at = [min([n.lineno, *(d.lineno for d in n.decorator_list)])-1 for n in rules.definitions(cell) if n.name in names]
    if len(at) < 2: return [cell]
    lines,found = cell.source.splitlines(),[]
    for start,end in zip([0, *at[1:]], [*at[1:], len(lines)]):
        found.append(copy.deepcopy(cell))
        found[-1].source = '\n'.join(lines[start:end]).strip('\n')
        if end < len(lines): found[-1].outputs = []
    return found

def entries_first(cells):
    "Pairs (cell, does its code follow?), each API entry directly above the code that it is for"
    for i,c in enumerate(cells):
        if c.metadata.get('entry'): continue
        entries = list(itertools.takewhile(lambda o: o.metadata.get('entry'), cells[i+1:]))[::-1]      # nbdev adds them last name first
        shut = folded(split_options(c.source)[0])
        names = re.findall(r'^show_doc\((\w+)\)', '\n'.join(e.source for e in entries), re.M)
        parts = [c] if shut else code_of_entries(c, names)
        if len(parts) != len(entries): entries,parts = [*entries, c],[]
        for e,part in itertools.zip_longest(entries, parts):
            yield e, not shut and e is not c
            if part: yield part, False

def described(outputs):
    "What a drawn figure says of itself, in the `<desc>` of its SVG"
    svgs = (''.join(out.get('data', {}).get('image/svg+xml', '')) for out in outputs)
    return next((html.unescape(m[1]).strip() for svg in svgs if (m := re.search(r'<desc[^>]*>(.*?)</desc>', svg, re.S))), None)

def live_view(data):
    "The output of a view as the site shows it: its page, put together from the stored data and still"
    from attention_nb.views import View
    stored = json.loads(json.dumps(data[VIEW]))
    return {'text/html': View.from_data(stored['data'], stored['summary'], data.get('image/svg+xml'))._repr_html_()}

def page_cells(cell, code_follows=False, mark=''):
    "The MyST-NB cells, none or more, for one processed cell; `mark` stands below the title"
    markdown,code = nbformat.v4.new_markdown_cell,nbformat.v4.new_code_cell
    if cell.cell_type == 'raw':
        fm = front_matter(cell) or {}
        lead = f"{{.lead}}\n{fm['description']}" if 'description' in fm else ''
        return [markdown(myst(f"# {fm['title']}\n\n{mark}{lead}"))] if 'title' in fm else []
    if cell.cell_type == 'markdown': return [markdown(myst(cell.source), attachments=cell.get('attachments', {}))] if cell.source.strip() else []
    o,cell.source = split_options(cell.source)
    if o.get('include') is False: return []
    if o.get('warning') is False: cell.outputs = [out for out in cell.outputs if out.get('name') != 'stderr']
    for out in cell.outputs:
        if VIEW in out.get('data', {}): out['data'] = live_view(out.data)
        if 'text/markdown' in out.get('data', {}): out.data['text/markdown'] = myst(out.data['text/markdown'])
    if o.get('output') == 'asis':
        texts = [out.get('text') or out.data.get('text/markdown') or out.data.get('text/html', '') for out in cell.outputs]
        return ([] if o.get('echo') is False else [code(cell.source)]) + [markdown(api_entry(t, code_follows)) for t in texts]
    answer = folded(o) and str(o.get('code-summary', '')).startswith('Answer')                   # its output would give it away
    tags = [tag for tag,on in {'remove-input': o.get('echo') is False, 'remove-output': o.get('output') is False,
                               'hide-cell': answer, 'hide-input': folded(o) and not answer}.items() if on]
    meta = {}
    if folded(o): meta |= dict.fromkeys(['code_prompt_show', 'code_prompt_hide'], rules.fold_label(o, cell.source))
    if 'fig-cap' in o: meta['figure'] = dict(caption=myst(o['fig-cap'])) | (dict(name=o['label']) if 'label' in o else {})
    if text := described(cell.outputs): meta['image'] = dict(alt=text, classes='scheme')
    if 'fig-alt' in o: meta['image'] = meta.get('image', {}) | dict(alt=o['fig-alt'])
    return [code(cell.source, outputs=cell.outputs, metadata=dict(tags=tags, mystnb=meta))]

def title(doc):
    "The title of a page with the number of its chapter, for the sidebar"
    cells = json.loads(Path(_app.env.doc2path(doc)).read_text(encoding='utf-8'))['cells']
    head = next((m[1] or m[2] for c in cells if (m := re.search(r'^# (.+)|^title: (.+)', rules.source(c), re.M))), None)
    return doc if head is None or not rules.number(doc) else f'{rules.number(doc)[0]}\u2002{head.replace("`", "")} <{doc}>'

def toctree(docs, *options): return '\n'.join(['```{toctree}', ':hidden:', *options, '', *map(title, docs), '```'])

def contents(app):
    "A table of contents for each part of the book that has lessons, then the pages that are neither lesson nor workshop"
    lessons = [doc for doc in sorted(app.env.found_docs) if rules.kind(doc) == 'lesson']
    parts = {name: [doc for doc in lessons if int(doc.split('_')[0]) in numbers] for name,numbers in app.config.book_parts.items()}
    parts['Reference'] = [doc for doc in sorted(app.env.found_docs) if rules.kind(doc) is None and doc != app.config.root_doc]
    return '\n\n'.join(toctree(docs, f':caption: {name}') for name,docs in parts.items() if docs)

def read_for_sphinx(text):
    "The reader that `nb_custom_formats` names"
    docname,markdown = _app.env.docname,nbformat.v4.new_markdown_cell
    for problem in rules.fold_problems(json.loads(text)['cells'], docname):
        _problems.append(problem)
        _log.error(problem)
    nb = process(text, _app.env.doc2path(docname))
    mark = '{.page-kind}\nWorkshop\n\n' if rules.kind(docname) == 'workshop' else ''
    nb.cells = [o for c,code_follows in entries_first(nb.cells) for o in page_cells(c, code_follows, mark)]
    _cells[docname] = nb.cells
    if any('{footcite:' in c.source for c in nb.cells): nb.cells.append(markdown('## References\n\n```{footbibliography}\n```'))
    if docname == _app.config.root_doc and len(_app.env.found_docs) > 1: nb.cells.append(markdown(contents(_app)))
    if workshops := rules.workshops_of(docname, _app.env.found_docs): nb.cells.append(markdown(toctree(workshops)))
    return nb

# %% markdown: README.md, and for publish.py the plain text of each page
def markdown_of(path):
    "(markdown, files) of the notebook at `path`, as nbdev's readers see it: `#| hide` cells left out, API entries in"
    from nbconvert import MarkdownExporter
    nb = process(path.read_text(encoding='utf-8'), path)
    cells = []
    for c in nb.cells:
        if fm := front_matter(c): c = nbformat.v4.new_markdown_cell(f"# {fm['title']}\n\n" + (f"> {fm['description']}" if 'description' in fm else ''))
        if c.cell_type == 'code':
            o,c.source = split_options(c.source)
            if o.get('include') is False: continue
            if o.get('echo') is False: c.source = ''
            for data in (out.get('data', {}) for out in c.outputs):                # a live view's picture, not its page
                data.pop(VIEW, None)
                if any(k.startswith('image/') for k in data): data.pop('text/plain', None); data.pop('text/html', None)
            c.metadata['alt'] = o.get('fig-alt') or described(c.outputs) or ''
        cells.append(c)
    nb.cells,nb.metadata['language_info'] = cells,dict(name='python')
    body,resources = MarkdownExporter().from_notebook_node(nb, resources=dict(output_files_dir=f'{path.stem}_files'))
    alts = iter([c.metadata['alt'] for c in cells for out in c.get('outputs', []) if any(k.startswith('image/') for k in out.get('data', {}))])
    body = re.sub(r'!\[\w+\]\((\w+_files/)', lambda m: f'![{next(alts, "")}]({m[1]}', body)
    return re.sub(r'\n{3,}', '\n\n', re.sub(r'^```python\n\n```\n', '', body, flags=re.M)).strip()+'\n', resources['outputs']

def write_if_changed(path, data):
    if path.exists() and path.read_bytes() == data: return
    path.parent.mkdir(parents=True, exist_ok=True)
    tmp = path.with_name(path.name+'.tmp')
    tmp.write_bytes(data)
    tmp.replace(path)

def write_readme():
    "README.md from nbdev's `readme_nb`; links to notebooks become links to the site"
    cfg = get_config()
    body,files = markdown_of(cfg.nbs_path/cfg.readme_nb)
    def link(m): return f']({cfg.doc_host}{cfg.doc_baseurl}/{nbpath2html(Path(m[1])).as_posix()}'
    body = re.sub(r'\]\((?!https?:|#|index_files/)([^)\s#]+?\.ipynb)', link, body)
    write_if_changed(cfg.config_path/'README.md', body.encode())
    for name,data in files.items(): write_if_changed(cfg.config_path/name, data)

def label_fold(self, node):
    "The summary of a fold; MyST-NB's own has two texts, and for screen readers a name that hides both"
    label = re.sub(r'`([^`]+)`', r'<code>\1</code>', html.escape(node['prompt_show']))
    proof = re.fullmatch(r'✓ (.*) · (\d+ checks?)', label)
    if proof: label = f'<span class="fold-tick">✓</span> {proof[1]} <span class="fold-count">· {proof[2]}</span>'
    kind = ' answer' if re.match('(✓ )?Answer', node['prompt_show']) else ''
    self.body.append(f'<details class="admonition hide{kind} {" ".join(node["classes"])}">\n<summary><p class="admonition-title">{label}</p></summary>\n')

def fail_on_problems(app, exception):
    "Also a build that does not take warnings for errors fails"
    if _problems and not exception: app.statuscode = 1

def for_readers(app, pagename, templatename, context, doctree):
    "Headers of tables say what they head; a page with exercises can be printed with its answers"
    if 'body' in context: context['body'] = context['body'].replace('<th class="head', '<th scope="col" class="head')
    for group in context.get('header_buttons', []):
        if group.get('label') == 'download-buttons' and 'class="admonition hide answer' in context.get('body', ''):
            group['buttons'].append(dict(type='javascript', javascript='printWithAnswers()', text='.pdf, with answers', tooltip='Print with hints and answers',
                                         icon='fas fa-file-pdf', label='print-answers-button'))

def aliases(app, exception):
    "For the chapter 03_attention.html: attention.html, where nbdev's links point"
    if exception or app.builder.name != 'html': return
    for doc in app.env.found_docs:
        page = Path(app.outdir)/f'{doc}.html'
        alias = page.with_name(nbpath2html(Path(page.name)).name)
        if alias == page: continue
        name = html.escape(page.name)
        alias.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title><link rel="canonical" href="{name}">'
                         f'<script>location.replace("{name}"+location.hash)</script><a href="{name}">{name}</a></html>', encoding='utf-8')

def setup(app):
    global _app
    _app = app
    _problems.clear()
    for handler in pylogging.getLogger('sphinx').handlers: handler.addFilter(Place())
    app.setup_extension('myst_nb')
    app.add_node(HideCodeCellNode, override=True, html=(label_fold, depart_HideCellInput))
    app.add_config_value('book_parts', {}, 'env')
    app.add_transform(FiguresForBothThemes)
    app.add_post_transform(MethodsOfClasses)
    app.connect('env-get-updated', number_figures, priority=900)                                  # after Sphinx has numbered them
    app.connect('html-page-context', for_readers, priority=900)                                   # after the theme has made its buttons
    app.connect('build-finished', aliases)
    app.connect('build-finished', fail_on_problems)
    return dict(parallel_read_safe=False, parallel_write_safe=True)

if __name__ == '__main__': write_readme()
