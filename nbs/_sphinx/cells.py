"""The pages of the book and the cells in them, as the build and the tests read them.

A cell is a dictionary as in a notebook's JSON; its source may be a string or a list of lines.
"""
import ast, json, posixpath, re
from pathlib import Path
from textwrap import dedent
import yaml

# %% pages
nbs = Path(__file__).resolve().parents[1]

# room -> the rooms that its modules may import, besides those which these may import
ROOMS = dict(checks=(), simple=(), text=('checks',), kernels=('checks',), layers=('kernels',),
             models=('text', 'layers'), checkpoints=('models',), recording=('checkpoints',),
             views=('recording',), figures=('views', 'simple'), distributed=('checkpoints',),
             training=('distributed', 'views'))

# the parts of the site as its top bar shows them: name of the first page -> what the bar says
PARTS = dict(learn='Learn', play='Play', library='Library', api='API', speed='Speed')

def notebooks(folder=nbs):
    "All notebooks of the book, but for what stands in folders of the machinery"
    found = (p for p in folder.rglob('*.ipynb')
             if not re.search(r'(^|/)[_.]', p.relative_to(folder).as_posix()))
    return sorted(found, key=lambda p: name_of(p, folder))

def name_of(path, folder=nbs):
    "The name of a page: its path below `folder`, `kernels/flash` of nbs/kernels/flash.ipynb"
    path,folder = Path(path).resolve(),folder.resolve()
    own = path.relative_to(folder) if path.is_relative_to(folder) else Path(path.name)
    return own.with_suffix('').as_posix()

def room(name):
    "The room of the library that the page `name` belongs to, or None"
    first = name.split('/')[0]
    return first if first in ROOMS else None

# pages of the library that make nothing a user types: parts, formats, and how the figures are made
FOR_IMPLEMENTERS = set('''checks text/vocabulary kernels/options kernels/positions kernels/flex
    layers/rope_scaling layers/few_rows layers/quantized_cache
    models/generation_options models/decoding models/compiled_step models/speculative
    models/beam_search models/batch_cache models/model_state
    checkpoints/schema checkpoints/families/common
    checkpoints/families/llama checkpoints/families/gpt checkpoints/families/bert
    checkpoints/families/t5 checkpoints/families/moe checkpoints/families/hybrid
    checkpoints/convert checkpoints/tensors checkpoints/gguf
    checkpoints/save checkpoints/chat_template recording/inputs
    recording/prepare recording/prepare_hf recording/third_party recording/steps views/page
    figures/inputs figures/word_senses figures/mixing figures/arcs
    figures/rope_turns figures/cache_steps figures/model_shapes figures/flash_tiles figures/forming
    figures/ring_steps figures/row_steps figures/merge_steps figures/near_words figures/two_words
    figures/mask_rows figures/state_steps figures/browser_model figures/next_letter
    distributed/shards training/checkpoint training/strategy training/mesh'''.split())

def kind(name):
    """'lesson' for NN_name, 'library' for ROOM/name, 'room' for ROOM/index, 'notes' for notes/name,
    'guide' for guide/name, None for any other page"""
    if re.fullmatch(r'\d+_\w+', name): return 'lesson'
    if room(name): return 'room' if name.endswith('/index') else 'library'
    folder = name.split('/')[0] if '/' in name else None
    return folder if folder in ('notes', 'guide') else None

def part(name):
    "The part of the site that the page `name` belongs to, or None: the front page has none"
    if name == 'index' or name in PARTS: return name if name in PARTS else None
    if name.startswith('api/'): return 'api'
    return 'library' if kind(name) in ('library', 'room', 'guide') else 'learn'

def module(name):
    "The module that a page writes, or None"
    return {'library': name.replace('/', '.'), 'lesson': f'simple.{alias(name)}'}.get(kind(name))

def home(name):
    "The page that links the page `name` where a reader looks for it"
    of = kind(name)
    if of == 'library' and '/' in name: return f'{room(name)}/index'
    if of in ('library', 'room', 'guide'): return 'library'
    return 'notes/index' if of == 'notes' and name != 'notes/index' else 'learn'

def number(name):
    "The number of a lesson in a tuple: ('3',) of 03_attention, () of others"
    return (str(int(name.split('_')[0])),) if kind(name) == 'lesson' else ()

def alias(name):
    "The name of a lesson without its number, under which the site answers too"
    return name.split('_', 1)[1] if kind(name) == 'lesson' else name

def target(link, name):
    "The page that `link`, a path without its suffix, leads to from the page `name`"
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), link))

def link_to(page, name):
    "The way from the page `name` to the page `page`, without a suffix"
    return posixpath.relpath(page, posixpath.dirname(name) or '.')

def linked(text, name):
    "The pages that the markdown `text` of the page `name` links, in their order"
    return [target(m, name) for m in re.findall(r'\]\(([\w./]+)\.ipynb', text)]

def first_prose(cells):
    "The first prose of a page below its title and promise"
    prose = (source(c) for c in cells if c['cell_type'] == 'markdown')
    below = (re.sub(r'\A\s*# .*\n*(^>.*\n?)*', '', text, flags=re.M).strip() for text in prose)
    return next(filter(None, below), '')

def lesson_of(name, cells):
    "The lesson that a page of the library or of notes links in its first prose, or None"
    return next((n for n in linked(first_prose(cells), name) if kind(n) == 'lesson'), None)

def in_order(pages):
    """The names of pages, `pages`: name -> cells, as they are read: part by part, lessons, then
    what stands beside them, then notes; guides, then the library room by room. The first page of
    the library and that of a room say the order of theirs"""
    def said(name):
        home = f'{room(name)}/index' if room(name) else 'library'
        order = linked('\n'.join(map(source, pages[home])), home) if home in pages else []
        return order.index(name) if name in order else len(order)
    kinds = ['lesson', None, 'notes', 'guide', 'room', 'library']
    def key(name):
        at,of = [None, *PARTS].index(part(name)),kind(name)
        own = of in ('library', 'guide') and not name.endswith('/index')
        within = [*ROOMS].index(room(name)) if room(name) else -1
        return (at, name not in PARTS, min(kinds.index(of), 4), within, of == 'library',
                not name.endswith('/index'), said(name) if own else 0, name)
    return sorted(pages, key=key)

# %% cells
def load(path): return json.loads(path.read_text(encoding='utf-8'))['cells']
def source(cell): return ''.join(cell['source'])
def words(cells):
    return sum(len(source(c).split()) for c in cells if c['cell_type'] == 'markdown')
def directive(cell, name): return re.search(rf'^#\|\s*{name}\b', source(cell), re.M) is not None
def exported(cell): return directive(cell, 'export[si]?')

def code_lines(cell):
    return [l for l in source(cell).splitlines() if l.strip() and not l.lstrip().startswith('#|')]

def printed(cell):
    "What it printed and what its last line gave, as plain text; a figure is no text"
    texts = (o.get('text') or o.get('data', {}).get('text/plain', '')
             for o in cell.get('outputs', [])
             if o['output_type'] == 'execute_result' or o.get('name') == 'stdout')
    return '\n'.join(''.join(t).rstrip() for t in texts)

def title(cells):
    "The first heading of a page, or the title in its front matter"
    found = (re.search(r'^(?:# |title: )(.+)', source(c), re.M) for c in cells)
    return next((m[1].replace('`', '') for m in found if m), '')

def promise(cells):
    "Below the title of a page, as `> promise` or in the front matter"
    text = '\n'.join(map(source, cells[:2]))
    found = re.search(r'^(?:> |description: )(.+)', text, re.M)
    return found[1].strip('"') if found else ''

def join_options(text):
    "A code cell with each option of several lines, `#| name: >-`, on one line as nbdev wants it"
    def joined(m):
        value = ' '.join(re.sub(r'^#[|]', '', m[2], flags=re.M).split())
        return f'{m[1]}: {json.dumps(value, ensure_ascii=False)}\n'
    return re.sub(r'^(#\|\s*[\w-]+):[ \t]*[>|]-?[ \t]*\n((?:#\|[ \t]{2,}.*(?:\n|\Z))+)', joined,
                  text, flags=re.M)

def split_options(text):
    "The options that begin a code cell, `#| name: value`, as a dictionary, and the rest of it"
    options,lines = {},join_options(text).splitlines()
    while lines and (m := re.match(r'#\|\s*([\w-]+):?\s*(.*)', lines[0])):
        try: options[m[1]] = yaml.safe_load(m[2]) if m[2] else True
        except yaml.YAMLError:
            raise ValueError(f'{lines[0]!r} is not YAML: put the value in double quotes') from None
        lines.pop(0)
    return options, '\n'.join(lines).strip('\n')

IMPORTS = 'Imports'                                    # on the fold that a chapter begins with

def folded(options): return options.get('code-fold') in (True, 'true')
def hidden(options):
    return bool(options.keys() & {'hide', 'default_exp'}) or options.get('echo') is False

def minutes(cells):
    """What a page takes: 150 words or 15 open lines of code each, one more for a prediction and
    eight for an exercise; readers gave 45 to 130 for a lesson"""
    text,lines = '\n'.join(source(c) for c in cells if c['cell_type'] == 'markdown'),0
    for c in cells:
        if c['cell_type'] == 'code' and not folded(o := split_options(source(c))[0]) | hidden(o):
            lines += len(code_lines(c))
    exercises = text.partition('## Exercises')[2]
    asked = len(re.findall(r'\*\*(?:Predict|Try)\b', text))
    return round(words(cells)/150 + lines/15 + asked
                 + 8*len(re.findall(r'^\*\*\d+\.\*\*', exercises, re.M)))

def syntax(text):
    "The syntax tree of a cell without its magics; an empty one if it is not Python"
    plain = '\n'.join(l for l in text.splitlines() if not re.match(r'\s*[%!?]', l))
    for code in (text, plain):
        try: return ast.parse(code)
        except SyntaxError: pass
    return ast.Module([], [])

def definitions(cell):
    kinds = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef
    return [n for n in syntax(source(cell)).body if isinstance(n, kinds)]

# %% proofs
def checks(text):
    "How many assertions stand in this code: `assert`, calls of test_..., assert_..., expect_fail"
    def name(f): return f.id if isinstance(f, ast.Name) else getattr(f, 'attr', '')
    return sum(isinstance(n, ast.Assert) or isinstance(n, ast.Call)
               and bool(re.match('test_|assert_|expect_fail|gradcheck', name(n.func)))
               for n in ast.walk(syntax(text)))

def only_asserts(cell):
    return not exported(cell) and checks(source(cell)) > 0 and not cell.get('outputs')

CHECK = 'The check'                     # the summary of a cell with which readers try their answer
def is_proof(cell, options):
    return folded(options) and only_asserts(cell) and options.get('code-summary') != CHECK

def fold_label(options, text):
    "What the site shows on a folded cell: its summary, for a proof with the number of its checks"
    summary,n = str(options.get('code-summary', '')).strip(),checks(text)
    if not n or summary == CHECK: return summary
    if options.keys() & {'export', 'exports', 'exporti'}: return summary
    return f'✓ {summary} · {n} {"check" if n == 1 else "checks"}'

# %% #| explain
EXPLAIN = re.compile(r'\A#\|\s*explain\b:?[ \t]*(.*)\n?')

def quoted_lines(code, quote):
    'The lines of `code` with `"a part"`, or from `"a part" to "another"`; None if it has none'
    def squash(s): return re.sub(r'\s', '', s)
    lines,parts = code.splitlines(),[squash(p) for p in re.split(r'"\s+to\s+"', quote.strip(' "'))]
    first = next((i for i,l in enumerate(lines) if parts[0] in squash(l)), len(lines))
    last = next((i for i in range(first, len(lines)) if parts[-1] in squash(lines[i])), None)
    return None if last is None or not all(parts) else dedent('\n'.join(lines[first:last+1]))
