"""pyright, strict, passes on the package and on a program that states what calls give, and finds
every wrong call; in the long run the example of each offered name has no error either. What is
relaxed stands in pyproject.toml, with its reason
"""
import json, os, shutil, subprocess, sys
from pathlib import Path
import cells, pytest
from helpers import full, root, run
from helpers.book import code_cells, names

typing = root/'tests'/'typing'
returns,wrong = typing/'returns.py',typing/'wrong_calls.py'
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
def found():
    "Errors in the package and in the programs of tests/typing"
    return errors('attention_nb', typing)

@full
def test_no_error_in_the_examples_of_the_notebooks():
    shutil.rmtree(folder := root/'_build'/'examples', ignore_errors=True)
    folder.mkdir(parents=True)
    for n,c in enumerate(c for page in names for c in code_cells(page)
                         if cells.directive(c, 'example')):
        options,code = cells.split_options(cells.source(c))
        path = folder/f'{n}_{options["example"].split(",")[0]}.py'
        # as somebody pastes it: a last line that is shown, functions without annotations
        off = 'UnusedExpression', 'PrivateImportUsage', 'OptionalMemberAccess'
        settings = ', '.join(['# pyright: basic', *(f'report{n}=false' for n in off)])
        path.write_text(f'{settings}\n{code}', 'utf-8')
    assert not errors(folder)

def test_no_error_in_the_package_and_in_programs_that_use_it(found):
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

def test_the_program_runs():
    run(sys.executable, returns, cwd=typing,
        env=os.environ | dict(PYTHONPATH=str(root), MPLBACKEND='agg'))
