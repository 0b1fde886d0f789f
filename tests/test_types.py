"""mypy and pyright, strict, pass on the package and on a program that uses all of it, and find
every wrong call. What is relaxed stands in pyproject.toml, with its reason. Both checkers look at
everything once, side by side: a minute or two.
"""
import ast, json, os, re, subprocess, sys
from pathlib import Path
import attention_nb, pytest
from helpers import root

typing = root/'tests'/'typing'
everything,wrong = typing/'use_everything.py',typing/'wrong_calls.py'
pytest.importorskip('mypy', reason='NO MYPY: install the extra dev')
pytest.importorskip('pyright', reason='NO PYRIGHT: install the extra dev')

def start(*command):
    """Begin a run of a checker in this process's environment, as if activated: pyright asks the
    first `python` of PATH where packages are"""
    activated = os.environ | dict(PATH=os.pathsep.join([str(Path(sys.executable).parent),
                                                        os.environ['PATH']]))
    return subprocess.Popen([sys.executable, '-m', *map(str, command)], cwd=root,
                            stdout=subprocess.PIPE, text=True, env=activated)

def ended(process):
    "What a checker printed; found errors are no failure, a crash is"
    printed = process.communicate(timeout=600)[0]
    assert process.returncode in (0, 1), printed[-3000:]
    return printed

def read_json(printed):
    return json.loads(printed[printed.index('{'):])    # before it may stand news of another version

@pytest.fixture(scope='module')
def found():
    "Checker -> all errors, as (path below the repository, line, message)"
    mypy,pyright = start('mypy', '--no-error-summary', '--show-absolute-path', 'attention_nb',
                         typing),start('pyright', '--outputjson', 'attention_nb', typing)
    try: mypys,pyrights = ended(mypy),read_json(ended(pyright))['generalDiagnostics']
    finally:
        for process in (mypy, pyright): process.kill()
    return dict(mypy=[(os.path.relpath(f, root), int(n), m)
                      for f,n,m in re.findall(r'^(.+?):(\d+): error: (.+)$', mypys, re.M)],
                pyright=[(os.path.relpath(d['file'], root), d['range']['start']['line']+1,
                          d['message']) for d in pyrights if d['severity'] == 'error'])

checkers = pytest.mark.parametrize('checker', ['mypy', 'pyright'])

@checkers
def test_no_error_in_the_package_and_in_a_program_that_uses_it(checker, found):
    errors = [e for e in found[checker] if e[0] != str(wrong.relative_to(root))]
    assert not errors, '\n'.join(f'{f}:{n}: {m}' for f,n,m in errors[:50])

@checkers
def test_every_wrong_call_is_an_error_and_no_other(checker, found):
    lines = wrong.read_text().splitlines()
    marked = {n for n,line in enumerate(lines, 1) if line.endswith('# error')}
    reported = {n for f,n,_ in found[checker] if f == str(wrong.relative_to(root))}
    assert len(marked) > 40
    assert reported == marked, '\n'.join(lines[n-1] for n in sorted(reported ^ marked))

def test_the_module_of_a_page(pytestconfig):
    "What `make check` asks: mypy on one module; it is quick where it has looked at the others once"
    from conftest import page_of
    from helpers.book import module_of
    if not (module := module_of(page_of(pytestconfig))): pytest.skip('a page without a module')
    printed = ended(start('mypy', '--no-error-summary', f'attention_nb/{module}.py'))
    assert not printed, printed

def test_the_program_uses_every_public_name():
    "None by hand: the package's own table says what there is"
    used = {n.attr for n in ast.walk(ast.parse(everything.read_text()))
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
            and n.value.id == 'nb'}
    missing,unknown = set(attention_nb.__all__) - used,used - {*attention_nb.__all__,
        *attention_nb._names, '__version__'}
    assert not missing, f'use in tests/typing/use_everything.py: {sorted(missing)}'
    assert not unknown, (
        f'no longer public, and used in tests/typing/use_everything.py: {sorted(unknown)}')

def test_the_program_runs():
    done = subprocess.run([sys.executable, everything], cwd=typing, capture_output=True, text=True,
                          env=os.environ | dict(PYTHONPATH=str(root), MPLBACKEND='agg'))
    assert done.returncode == 0, done.stderr[-3000:]

def test_nothing_is_silenced():
    "No comment tells a checker to look away without saying what from"
    for path in (*(root/'attention_nb').glob('[!_]*.py'), *typing.glob('*.py')):
        for line in path.read_text().splitlines():
            assert not re.search(r'#\s*(type|pyright):\s*(ignore(?!\[[\w-]+\]\s+#)|basic|strict=)',
                                 line), f'{path.name}: {line}'

def test_others_know_the_types_of_what_they_import():
    """pyright's measure of a typed package: 98 of 100 public names, parameters and attributes
    have a declared type"""
    report = read_json(ended(start('pyright', '--verifytypes', 'attention_nb', '--ignoreexternal',
                                   '--outputjson')))['typeCompleteness']
    unknown = [s['name'] for s in report['symbols'] if s['isExported'] and not s['isTypeKnown']]
    assert report['completenessScore'] >= .98, unknown

def test_editors_complete_names_that_are_imported_lazily():
    import jedi
    code = 'import attention_nb\nattention_nb.load_g'
    found = jedi.Script(code, project=jedi.Project(root)).complete()
    assert [(c.name, c.type) for c in found] == [('load_glove', 'function')]
