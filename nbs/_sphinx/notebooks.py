"""A notebook as nbdev's documentation processors leave it: what is hidden is gone, names are links,
each exported cell has its entries, and each `#| explain` note stands beside the code it quotes.
"""
import ast, contextlib, copy, functools, io, itertools, json, os, re
from pathlib import Path
import nbdev.processors, nbformat
from fastcore.foundation import L
from fastcore.nbio import dict2nb, nb2str, read_nb
from nbdev.config import get_config
from nbdev.process import Processor
from nbdev.processors import FilterDefaults, add_show_docs, exec_show_docs
import api, cells as c_, package, quarto
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
    """A fold with what a chapter imports and prepares out of sight before its first open code: so
    what it shows runs as it stands"""
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
    cells.insert(next(i for i,c in enumerate(cells) if c is after)+1, made)

def imports_for_types(code):
    "The imports under `if TYPE_CHECKING:`, which an entry needs to read the annotations"
    for guard in c_.syntax(code).body:
        if not isinstance(guard, ast.If) or ast.unparse(guard.test) != 'TYPE_CHECKING': continue
        for n in guard.body:
            if getattr(n, 'level', 0):
                n.level,n.module = 0,f'{get_config().lib_path.name}.{n.module}'
            if isinstance(n, (ast.Import, ast.ImportFrom)): yield ast.unparse(n)

class PublicEntries(add_show_docs):
    "Entries for what the module offers, and none for what other modules take from it"
    def begin(self):
        super().begin()
        said = (c.directives_.get('default_exp') for c in self.nb.cells if c.cell_type == 'code')
        module = next(filter(None, said), '').strip()
        path = package.modules_in(get_config().lib_path).get(module)
        if path is None: return
        names = package.public_names(path)
        def wanted(c): return not c.get('has_sd') or re.findall(r'\((\w+)', c.source)[0] in names
        self.nb.cells = L(c for c in self.nb.cells if wanted(c))

class ExecEntries(exec_show_docs):
    "Execute what the API entries need: exported cells and the entries, no other"
    def __call__(self, cell):
        needed = {'export', 'exports', 'exporti'} & set(cell.directives_)
        if not needed and not re.search(r'^show_doc\(', cell.source, re.M): return
        for n in imports_for_types(cell.source): self.k.run_cell(n)
        super().__call__(cell)

def process(text, path):
    "The notebook `text` after nbdev's documentation processors and `Explain`"
    nb,filters = dict2nb(json.loads(text)),FilterDefaults()
    if c_.kind(c_.name_of(path, get_config().nbs_path)): add_imports(nb.cells)
    for c in nb.cells:
        if c.cell_type == 'code': c.source = c_.join_options(c.source)
        elif api.MARK in c.source: c.source = c.source.replace(api.MARK, api.listing())
        show_source(c)
        show_file(c)
    nb.path_ = Path(path)
    swap = {exec_show_docs: ExecEntries, add_show_docs: PublicEntries}
    drop = 'mv_exports', 'add_fold'
    procs = [*(swap.get(p, p) for p in filters.procs() if p.__name__ not in drop), Explain]
    filters.procs = lambda: procs
    os.environ['IN_TEST'] = '1'
    try:
        with contextlib.redirect_stdout(io.StringIO()): filters(nb)
    finally: del os.environ['IN_TEST']
    for c in nb.cells:
        if c.pop('has_sd', None): c.metadata['entry'] = True
        c.metadata.pop('execution', None)              # nbformat refuses it
        if c.cell_type == 'markdown':                  # nbdev links names inside a link too
            c.source = re.sub(r'\[\[(`[^`\n]+`)\]\([^)\s]*\)\](?=\()', r'[\1]', c.source)
            c.source = quarto.unlinked(c.source)
    nb.metadata.pop('widgets', None)                   # for it MyST-NB would load scripts
    return nbformat.reads(nb2str(nb), 4)

# %% entries stand above their code
def code_of_entries(cell, names):
    "A cell that defines several of `names`, as a cell for each; the outputs stay with the last"
    at = [min([n.lineno, *(d.lineno for d in n.decorator_list)])-1
          for n in c_.definitions(cell) if n.name in names]
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
        after = itertools.takewhile(lambda o: o.metadata.get('entry'), cells[i+1:])
        entries = list(after)[::-1]                    # nbdev adds them last name first
        shut = c_.folded(c_.split_options(c.source)[0])
        names = re.findall(r'^show_doc\((\w+)\)', '\n'.join(e.source for e in entries), re.M)
        parts = [c] if shut else code_of_entries(c, names)
        if len(parts) != len(entries): entries,parts = [*entries, c],[]
        for e,part in itertools.zip_longest(entries, parts):
            yield e, not shut and e is not c
            if part: yield part, False
