"""The house: nothing kept between calls, narrow lines; test_rooms.py asks for what imports what.
What is not so yet stands in a table here; a test fails when an entry is no longer needed.
"""
import ast, re, subprocess, sys
import package, pytest
from helpers import root

lib = root/'attention_nb'
modules = package.modules_in(lib)
WIDTH = 100

def difference(found, table):
    return sorted(set(found) - set(table)), sorted(set(table) - set(found))

# ---- state: what a module keeps between calls, and some function changes
STATE = set()

CHANGES = {'append', 'extend', 'insert', 'add', 'update', 'setdefault', 'pop', 'popitem', 'clear',
           'remove', 'discard', 'appendleft', 'popleft', 'move_to_end', 'difference_update',
           'intersection_update', 'symmetric_difference_update', 'sort', 'reverse'}
MAKERS = {'dict', 'list', 'set', 'defaultdict', 'OrderedDict', 'Counter', 'deque', 'ChainMap',
          'WeakKeyDictionary', 'WeakValueDictionary', 'WeakSet', 'local', 'count', 'cycle', 'iter'}
TABLES = ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp
BLOCKS = ast.If, ast.Try, ast.With, ast.For, ast.While

def name_of(node):
    return node.id if isinstance(node, ast.Name) else getattr(node, 'attr', '')

def top(body):
    "Statements of a module, also in blocks"
    for n in body:
        yield n
        if isinstance(n, BLOCKS):
            for part in ('body', 'orelse', 'finalbody'): yield from top(getattr(n, part, []))

def kept(text):
    "Names of a module that some function changes: global statements, tables, caches of methods"
    tree,found = ast.parse(text),set()
    made = {}                                           # name -> what the module gives it
    for n in top(tree.body):
        targets = n.targets if isinstance(n, ast.Assign) else [n.target] if isinstance(
            n, ast.AnnAssign) else []
        for t in targets:
            pairs = zip(t.elts, n.value.elts) if isinstance(t, ast.Tuple) and isinstance(
                n.value, ast.Tuple) else [(t, n.value)]
            made |= {x.id: v for x,v in pairs if isinstance(x, ast.Name) and v is not None}
    mutable = {x for x,v in made.items() if isinstance(v, TABLES)
               or isinstance(v, ast.Call) and name_of(v.func) in MAKERS}
    objects = {x for x,v in made.items() if isinstance(v, ast.Call)}
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda))]
    for f in functions:
        args = f.args.args + f.args.kwonlyargs + f.args.posonlyargs
        own = {a.arg for a in args} | {n.id for n in ast.walk(f) if isinstance(n, ast.Name)
                                       and isinstance(n.ctx, ast.Store)}
        for n in ast.walk(f):
            if isinstance(n, ast.Global): found |= set(n.names)
            method = isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
            if method and isinstance(n.func.value, ast.Name) and n.func.attr in CHANGES:
                found |= {n.func.value.id} & (mutable - own)
            stored = isinstance(n, (ast.Subscript, ast.Attribute)) and isinstance(
                n.ctx, (ast.Store, ast.Del)) and isinstance(n.value, ast.Name)
            if stored: found |= {n.value.id} & ((mutable | objects) - own)
            if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
                found |= {n.target.id} & mutable
            if method and name_of(n.func) in ('next',) or isinstance(n, ast.Call) and name_of(
                    n.func) == 'next' and n.args:
                found |= {name_of(n.args[0])} & mutable if n.args else set()
        for d in getattr(f, 'decorator_list', []):
            call = d.func if isinstance(d, ast.Call) else d
            methods = {m for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for m in c.body}
            if name_of(call) in ('cache', 'lru_cache') and f in methods: found.add(f.name)
    return found

def test_no_module_keeps_what_its_functions_change():
    found = {(m, name) for m,p in modules.items() for name in kept(p.read_text(encoding='utf-8'))}
    assert difference(found, STATE) == ([], [])

@pytest.mark.parametrize('text,names', [
    ('n = 0\ndef f():\n    global n\n    n += 1', {'n'}),
    ('seen = {}\ndef f(x): seen[x] = 1', {'seen'}), ('seen = []\ndef f(x): seen.append(x)',
                                                     {'seen'}),
    ('a,b = {},1\ndef f(x):\n    del a[x]', {'a'}), ('t:dict = dict()\ndef f(): t.update(a=1)',
                                                     {'t'}),
    ('x = C()\ndef f(): x.n = 1', {'x'}), ('ids = itertools.count()\ndef f(): return next(ids)',
                                           {'ids'}),
    ('if 1:\n    seen = set()\ndef f(): seen.add(1)', {'seen'}),
    ('class A:\n    @functools.cache\n    def f(self): return 1', {'f'}),
    ('table = {1: 2}\ndef f(x): return table[x]', set()),
    ('table = {}\ntable[1] = 2\nfor i in range(3): table[i] = i', set()),
    ('table = {}\ndef f():\n    table = {}\n    table[1] = 2', set()),
    ('@functools.cache\ndef f(x): return x', set()), ('v = ContextVar("v")\ndef f(): v.set(1)',
                                                      set())])
def test_the_check_of_state_can_fail(text, names): assert kept(text) == names

# ---- lines of code that others still have to narrow
WIDE = set()

def test_no_line_is_wide():
    "Outside the notebooks, which test_budgets.py measures, and the modules made from them"
    listed = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard'],
                            cwd=root, capture_output=True, text=True).stdout.splitlines()
    paths = listed or [p.relative_to(root).as_posix() for p in root.rglob('*')
                       if not re.search(r'(^|/)(\.|_build|build|dist)', str(p.relative_to(root)))]
    own = [p for p in paths if p.endswith(('.py', '.js', '.css', '.pyi')) and '/vendor/' not in p
           and not re.match(r'attention_nb/(\w+/)*[^/]*\.pyi?$', p) and (root/p).exists()]
    assert len(own) > 60
    wide = {p for p in own for l in (root/p).read_text(encoding='utf-8').splitlines()
            if len(l) > WIDTH}
    assert difference(wide, WIDE) == ([], [])

# ---- tests do not import one another
SHARED = set()

def test_tests_share_helpers_and_not_one_another():
    found = {(p.stem, name) for p in (root/'tests').rglob('*.py') for name in re.findall(
        r'^ *(?:from|import) (test_\w+)', p.read_text(encoding='utf-8'), re.M)}
    assert difference(found, SHARED) == ([], [])

# ---- what runs

def collected(*options):
    command = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '--setup-plan']
    done = subprocess.run([*command, *options], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout

def test_the_site_is_asked_for_by_its_tests_alone_and_make_check_looks_at_one_page():
    page = collected('--page=nbs/layers/multihead.ipynb')
    assert 'SETUP    S site' not in page and 'test_site.py' not in page
    for test in ('test_notebooks.py::test_runs_and_outputs_are_true[layers/multihead]',
                 'test_budgets.py::test_a_page_keeps_within_its_budgets[layers/multihead]',
                 'test_docstrings.py::test_every_parameter_says_what_it_is[layers/multihead]',
                 'test_types.py::test_the_module_of_a_page'): assert test in page
    assert '[05_mask]' not in page and 'test_reference_grid.py::' not in page
    command = (r'layers\.multihead is also tested by: make test '
               r'ARGS=".*tests/\S*test_reference_grid\.py')
    assert re.search(command, page)
    assert 'SETUP    S site' in collected('tests/site/test_search.py', '-k', 'sitemap')
