"""Every notebook runs as a single file: alone in an empty folder, by plain nbclient, in an
environment made from its own install cell and the wheel of this project"""
import ast, json, re, shlex, shutil, sys, time
from concurrent.futures import ThreadPoolExecutor
import pytest, rules
from helpers import clean_env, copied, full, pip_of, run, settings
from helpers.book import markdown, name_of, runnable
from outputs import marked

def install_lines(path):
    "The arguments of the literal `%pip install` lines of the first code cell"
    first = next(c for c in json.loads(path.read_text(encoding='utf-8'))['cells']
                 if c['cell_type'] == 'code')
    return tuple(re.findall(r'^[ \t]*%pip install (.+)$', ''.join(first['source']), re.M))

def make_environment(folder, lines, wheel, plain):
    """The environment's Python: `plain`, what `lines` install, this project from its wheel, and
    a kernel"""
    python = copied(plain, folder)
    pip = pip_of(python)
    for line in lines:
        wanted = [re.sub(r'^attention_nb(?=\[|$)', lambda m: str(wheel), a)
                  for a in shlex.split(line)]
        run(*pip, *wanted, env=clean_env(), timeout=900)
    run(*pip, 'ipykernel', env=clean_env(), timeout=900)
    return python

def run_notebook(path, python, folder):
    "Execute a copy of the notebook at `path`, alone in `folder`"
    import nbformat
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    (folder/'home').mkdir(parents=True)
    (folder/'work').mkdir()
    shutil.copy(path, folder/'work')
    nb = nbformat.read(folder/'work'/path.name, as_version=4)
    nb.cells = [c for c in nb.cells if not marked(c, 'whole')]    # test_notebooks runs these
    class Manager(AsyncKernelManager):
        kernel_spec = KernelSpec(argv=[str(python), '-m', 'ipykernel_launcher', '-f',
                                       '{connection_file}'], display_name='standalone',
                                 language='python')
    client = NotebookClient(nb, timeout=3600, kernel_manager_class=Manager,
                            resources=dict(metadata=dict(path=str(folder/'work'))))
    client.execute(env=clean_env(IPYTHONDIR=str(folder/'home')))

@pytest.fixture(scope='session')
def results(request, wheel, plain, tmp_path_factory):
    """Notebook -> None, or what went wrong; two environments at a time, each removed when its
    notebooks have run"""
    chosen = [i.callspec.params['path'] for i in request.session.items
              if i.name.startswith('test_runs_alone[')]
    groups = {}
    for path in chosen: groups.setdefault(install_lines(path), []).append(path)
    found,kernel = {},tmp_path_factory.mktemp('kernel')/'env'
    make_environment(kernel, [], wheel, plain)
    def group(item):
        lines,paths = item
        folder = tmp_path_factory.mktemp('standalone')
        start = time.time()
        try: python = make_environment(folder/'env', lines, wheel, kernel)
        except Exception as e: return found.update(dict.fromkeys(paths, f'{lines}: {e}'))
        print(f'{" / ".join(lines)}: {time.time()-start:.0f} s', file=sys.__stderr__)
        for path in paths:
            start = time.time()
            try: found[path] = run_notebook(path, python, folder/name_of(path))
            except Exception as e: found[path] = f'{type(e).__name__}: {str(e)[-4000:]}'
            print(f'  {name_of(path)}: {time.time()-start:.0f} s', file=sys.__stderr__)
        shutil.rmtree(folder, ignore_errors=True)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(group, sorted(groups.items(), key=lambda g: -len(g[1]))))
    return found

@full
@pytest.mark.parametrize('path', runnable, ids=name_of)
def test_runs_alone(results, path):
    assert results[path] is None, results[path]

def test_a_single_file_has_all_it_needs():
    """A literal install cell, no import of nbdev that is not guarded, no image beside the
    notebook, flagged cells that say why they do nothing"""
    for path in runnable:
        cells,name = json.loads(path.read_text(encoding='utf-8'))['cells'],name_of(path)
        code,prose = (['\n'+''.join(c['source']) for c in cells if c['cell_type'] == kind]
                      for kind in ('code', 'markdown'))
        assert '\n#| hide\n' in code[0] and install_lines(path)[0].split()[-1], name
        assert re.search(r'attention_nb\b', install_lines(path)[0]), name
        assert not [c for c in code if re.search(r'\n(from|import) nbdev', c)], (
            f'{name}: nbdev is imported without a guard')
        assert not re.findall(r'\]\((?!https?:|#|attachment:)[^)\s]+\.(?:svg|png|jpe?g|gif)',
                              '\n'.join(prose)), f'{name}: a single file does not have this image'
        for c in code: assert guards_itself(c), (name, c)

def asked(lines, *, alone):
    "The packages that arguments of `pip install` name, with (`alone`) or without --no-deps"
    words = [w for line in lines if ('--no-deps' in line) == alone for w in shlex.split(line)]
    return {canonical(n) for w in words if not w.startswith('-') for n in (
        ' '.join(settings[f'{extra}_requirements'] for extra in
                 re.findall(r'\w+', w.removeprefix('attention_nb'))).split()
        if w.startswith('attention_nb') else [w])}

def canonical(requirement):
    "A package's name, with an exact version if one is asked for"
    name,exact = re.match(r'([\w.-]+)(==[\w.]+)?', requirement).groups()
    return re.sub(r'[-_.]+', '-', name).lower() + (exact or '')

def test_the_lines_of_teach_install_what_every_lesson_needs():
    "A student types two lines and no more"
    lines = re.findall(r'^ *pip install (.+)$', '\n'.join(markdown('teach')), re.M)
    for alone in (False, True):
        offered = asked(lines, alone=alone)
        for path in runnable:
            if rules.kind(name_of(path)) != 'lesson': continue
            lacking = asked(install_lines(path), alone=alone) - offered
            assert not lacking, (name_of(path), lacking)
    assert len(offered) > 2

def guards_itself(source):
    """A cell that nbdev skips, and another runner does not, ends in an `if` whose `else` prints
    why nothing is done"""
    if not re.search(r'^#\|\s*(net|slow|gpu|eval:\s*false)\b', source, re.M): return True
    body = rules.syntax(source).body
    return bool(body) and isinstance(body[-1], ast.If) and any(isinstance(n, ast.Call)
        and getattr(n.func, 'id', '') == 'print' for b in body[-1].orelse for n in ast.walk(b))
