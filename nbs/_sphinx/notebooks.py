"""A notebook as nbdev's documentation processors leave it: what is hidden is gone, names are links,
and each `#| explain` note stands beside the code it quotes.
"""
import ast, copy, functools, json, re
from pathlib import Path
import nbdev.processors, nbformat
from fastcore.nbio import dict2nb, nb2str, read_nb
from nbdev.config import get_config
from nbdev.process import Processor
from nbdev.processors import FilterDefaults
import api, cells as c_, quarto
from cells import IMPORTS

NOTE = '::::{div} code-note'
nbdev.processors.get_config = functools.cache(get_config)    # else its file is read for every cell

class Explain(Processor):
    "Replace each `#| explain` cell by the code it quotes, with its text beside it"
    def begin(self):
        self.quotes,code = {},''
        for c in read_nb(self.nb.path_).cells:
            if c.cell_type == 'code': code = c.source
            elif m := c_.EXPLAIN.match(c.source):      # rules.py names a wrong quote
                self.quotes[c.id] = c_.quoted_lines(code, m[1]) or m[1]
    def cell(self, cell):
        if (code := self.quotes.get(cell.get('id'))) is None: return
        text = c_.EXPLAIN.sub('', cell.source).strip()
        cell.source = (f'{NOTE}\n```python\n{code}\n```\n'
                       f':::{{div}} code-note-text\n{text}\n:::\n::::')

def show_file(cell):
    "`#| file: name` above `program = '''...'''`: the page shows the file itself, to copy"
    if cell.cell_type != 'code' or not c_.directive(cell, 'file'): return
    cell.source = c_.syntax(cell.source).body[0].value.value.strip()

def only_imports(cell):
    return all(isinstance(n, (ast.Import, ast.ImportFrom)) for n in c_.syntax(cell.source).body)

def show_source(cell):
    "A book shows its code: what is exported becomes `#| exports`, unless the cell only imports"
    if cell.cell_type != 'code' or not c_.directive(cell, r'exporti?\s*$'): return
    if only_imports(cell): return
    cell.source = re.sub(r'^#\|\s*exporti?\s*$', '#| exports', cell.source, flags=re.M)

def add_imports(cells):
    """A fold with what a chapter imports and prepares out of sight, above the first code that it
    shows, which so runs as it stands"""
    texts,after = [],None
    for c in cells:
        if c.cell_type != 'code' or '%pip install' in c.source: continue
        options,text = c_.split_options(c.source)
        shut = options.keys() & {'hide', 'default_exp'} or 'export' in options and only_imports(c)
        if not shut: break
        lines = [l for l in text.splitlines() if not l.startswith('%')]
        if lines: texts,after = [*texts, '\n'.join(lines)],c
    if not texts: return
    fold = f'#| code-fold: true\n#| code-summary: "{IMPORTS}"\n'
    made = copy.deepcopy(after)
    made.source,made.id,made.outputs = fold + '\n\n'.join(texts),'imports',[]
    behind = next(i for i,c in enumerate(cells) if c is after)+1
    first = next((i for i,c in enumerate(cells[behind:], behind) if c.cell_type == 'code'
                  and not c_.hidden(c_.split_options(c.source)[0])), behind)
    cells.insert(first, made)

def process(text, path):
    "The notebook `text` after nbdev's documentation processors and `Explain`"
    nb,filters = dict2nb(json.loads(text)),FilterDefaults()
    if c_.kind(c_.name_of(path, get_config().nbs_path)): add_imports(nb.cells)
    for c in nb.cells:
        if c.cell_type == 'code': c.source = c_.join_options(c.source)
        elif api.MARK in c.source: c.source = c.source.replace(api.MARK, api.listing())
        elif api.WORDS in c.source:
            c.source = c.source.replace(api.WORDS, api.words_of_others())
        show_source(c)
        show_file(c)
    nb.path_ = Path(path)
    drop = 'mv_exports', 'add_fold', 'add_show_docs', 'exec_show_docs'
    procs = [*(p for p in filters.procs() if p.__name__ not in drop), Explain]
    filters.procs = lambda: procs
    filters(nb)
    for c in nb.cells:
        c.metadata.pop('execution', None)              # nbformat refuses it
        if c.cell_type == 'markdown':                  # nbdev links names inside a link too
            c.source = re.sub(r'\[\[(`[^`\n]+`)\]\([^)\s]*\)\](?=\()', r'[\1]', c.source)
            c.source = quarto.to_api(c.source)
    nb.metadata.pop('widgets', None)                   # for it MyST-NB would load scripts
    return nbformat.reads(nb2str(nb), 4)
