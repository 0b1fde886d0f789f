"""Each name that the package offers has one example, a cell marked with `#| example: NAME`, and so
may another public name; it runs when it is pasted into an empty prompt and gives what is stored
of it"""
import ast, contextlib, io, re
import package, pytest
from IPython.lib.pretty import pretty
import cells
from helpers import root
from helpers.book import code_cells, names
from outputs import same

offered = {n for found in package.offered.values() for n in found.split()}
WIDTH,LINES = 84,10

def title(cell): return str(cells.split_options(cells.source(cell))[0]['example'])
def code(cell): return cells.split_options(cells.source(cell))[1]
def told(cell): return re.split(r',\s*', title(cell))

examples = [c for page in names for c in code_cells(page) if cells.directive(c, 'example')]

def given(text):
    "What a text prints and gives in a fresh namespace"
    body,out = ast.parse(text),io.StringIO()
    last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
    made = {'__name__': '__main__'}
    with contextlib.redirect_stdout(out):
        exec(compile(body, '<example>', 'exec'), made)
        value = last and eval(compile(ast.Expression(last.value), '<example>', 'eval'), made)
    return out.getvalue() + (pretty(value) if value is not None else '')

def problems(cell):
    text = code(cell)
    nodes = [*ast.walk(ast.parse(text))]
    called = {n.attr for n in nodes if isinstance(n, ast.Attribute)
              and isinstance(n.value, ast.Name) and n.value.id == 'anb'}
    imported = {n.name for n in nodes if isinstance(n, ast.alias)} - offered
    called |= imported & {n.id for n in nodes if isinstance(n, ast.Name)}
    if missing := {*told(cell)} - called: yield f'does not use {missing}'
    if len(text.splitlines()) > LINES: yield f'more than {LINES} lines'
    if any(len(l) > WIDTH for l in text.splitlines()): yield f'a line of more than {WIDTH}'
    if not cells.printed(cell).strip(): yield 'shows nothing'

def test_each_offered_name_has_one_example():
    shown = [n for c in examples for n in told(c)]
    assert len(shown) == len({*shown})
    assert offered <= {*shown} <= package.homes(root/'attention_nb').keys()

@pytest.mark.parametrize('cell', examples, ids=title)
def test_an_example_runs_alone_and_gives_what_is_stored(cell, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('MPLBACKEND', 'agg')
    assert not [*problems(cell)]
    assert same(cells.printed(cell), given(code(cell)))
    assert not [*tmp_path.iterdir()], 'it leaves files'
