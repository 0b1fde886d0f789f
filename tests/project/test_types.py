"""pyright, strict, passes on the package and on a program that uses all of it, and finds every
wrong call. What is relaxed stands in pyproject.toml, with its reason. It looks at everything once.
"""
import ast, json, os, re, subprocess, sys
from pathlib import Path
import attention_nb, package, pytest
from helpers import root

typing = root/'tests'/'typing'
everything,wrong = typing/'use_everything.py',typing/'wrong_calls.py'
pytest.importorskip('pyright', reason='NO PYRIGHT: install the extra dev')

def pyright(*command):
    """What pyright says; it asks the first `python` of PATH where packages are. Found errors are no
    failure, a crash is."""
    activated = os.environ | dict(PATH=os.pathsep.join([str(Path(sys.executable).parent),
                                                        os.environ['PATH']]))
    done = subprocess.run([sys.executable, '-m', 'pyright', '--outputjson', *map(str, command)],
                          cwd=root, capture_output=True, text=True, env=activated, timeout=600)
    assert done.returncode in (0, 1), (done.stdout + done.stderr)[-3000:]
    return json.loads(done.stdout[done.stdout.index('{'):])    # before it may stand news

def errors(*paths):
    "(path below the repository, line, message)"
    return [(os.path.relpath(d['file'], root), d['range']['start']['line']+1, d['message'])
            for d in pyright(*paths)['generalDiagnostics'] if d['severity'] == 'error']

@pytest.fixture(scope='module')
def found(): return errors('attention_nb', typing)

def test_no_error_in_the_package_and_in_a_program_that_uses_it(found):
    ours = [e for e in found if e[0] != str(wrong.relative_to(root))]
    assert not ours, '\n'.join(f'{f}:{n}: {m}' for f,n,m in ours[:50])

def test_every_wrong_call_is_an_error_and_no_other(found):
    lines = wrong.read_text().splitlines()
    marked = {n for n,line in enumerate(lines, 1) if line.endswith('# error')}
    reported = {n for f,n,_ in found if f == str(wrong.relative_to(root))}
    assert len(marked) > 40
    assert reported == marked, '\n'.join(lines[n-1] for n in sorted(reported ^ marked))

def test_the_module_of_a_page(pytestconfig):
    "What `make check` asks: one module, in seconds"
    from conftest import page_of
    from helpers.book import module_of, path_of
    if not (module := module_of(page_of(pytestconfig))): pytest.skip('a page without a module')
    assert not errors(path_of(module))

def test_the_program_uses_every_public_name():
    "None by hand: the package's own table says what there is"
    used = {n.attr for n in ast.walk(ast.parse(everything.read_text()))
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
            and n.value.id == 'nb'}
    missing,unknown = set(attention_nb.__all__) - used,used - {*attention_nb.__all__,
        *attention_nb._rooms, '__version__'}
    assert not missing, f'use in tests/typing/use_everything.py: {sorted(missing)}'
    assert not unknown, (
        f'no longer public, and used in tests/typing/use_everything.py: {sorted(unknown)}')

def test_the_program_runs():
    done = subprocess.run([sys.executable, everything], cwd=typing, capture_output=True, text=True,
                          env=os.environ | dict(PYTHONPATH=str(root), MPLBACKEND='agg'))
    assert done.returncode == 0, done.stderr[-3000:]

def test_nothing_is_silenced():
    "No comment tells a checker to look away without saying what from"
    for path in (*package.modules_in(root/'attention_nb').values(), *typing.glob('*.py')):
        for line in path.read_text().splitlines():
            assert not re.search(r'#\s*(type|pyright):\s*(ignore(?!\[[\w-]+\]\s+#)|basic|strict=)',
                                 line), f'{path.name}: {line}'

def test_others_know_the_types_of_what_they_import():
    """pyright's measure of a typed package, of what the modules offer and of its parameters and
    attributes; short forms of the book leave types to their lessons"""
    report = pyright('--verifytypes', 'attention_nb', '--ignoreexternal')['typeCompleteness']
    public = package.all_names(root/'attention_nb')
    def offered(name):
        return {name, name.rpartition('.')[0]} & public and '.simple.' not in name
    asked = [s for s in report['symbols'] if s['isExported'] and offered(s['name'])]
    unknown = [s['name'] for s in asked if not s['isTypeKnown']]
    assert len(asked) > 800 and len(unknown) < .02*len(asked), (len(asked), unknown)

def test_editors_complete_names_that_are_imported_lazily():
    import jedi
    code = 'import attention_nb\nattention_nb.load_g'
    found = jedi.Script(code, project=jedi.Project(root)).complete()
    assert [(c.name, c.type) for c in found] == [('load_glove', 'function')]
