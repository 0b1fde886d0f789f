import os, re, shutil, sys, time, venv
from pathlib import Path
import pytest

# tests run in several processes; if torch took all cores in each, they would wait for one another
if 'PYTEST_XDIST_WORKER' in os.environ: os.environ.setdefault('OMP_NUM_THREADS', '1')
tests = Path(__file__).parent
sys.path[:0] = [str(tests.parent/'nbs'/'_sphinx'), str(tests)]
pytest.register_assert_rewrite('helpers')
# nbformat's checks would build grammars for addresses that no notebook has: 4 s in each process
sys.modules.setdefault('rfc3987_syntax', None)
import cells                                                                  # noqa: E402
from helpers import clean_env, copied, pip_of, python_of, root, run, serve    # noqa: E402, F401
from helpers.looks import open_view, patience                                 # noqa: E402, F401

# ---- which tests run, and where

whole = 'budgets', 'docstrings', 'notebooks', 'types'         # ask something of every page
# long ones, each in whichever process is free
apart = ('test_runs_with_the_cells_that_take_long', 'test_runs_and_outputs_are_true',
         'test_a_page_in_the_browser')

def pytest_addoption(parser):
    parser.addoption('--page', help='only what concerns this notebook and its module: make check')

def page_of(config):
    page = config.getoption('page')
    return page and cells.name_of(page)

def imports(path, module):
    "Does a file import from this module where all can see it?"
    room,_,name = module.rpartition('.')
    pattern = rf'^from attention_nb\.(?:{re.escape(module)} import|{room} import (?:.*\W)?{name}\b)'
    return path.exists() and re.search(pattern, path.read_text(encoding='utf-8'), re.M)

def pytest_ignore_collect(collection_path, config):
    "With --page: files that ask nothing of every page"
    name = collection_path.stem.removeprefix('test_')
    ours = not page_of(config) or collection_path.suffix != '.py' or name in whole
    return None if ours else True

def concerns(item, page):
    params = getattr(getattr(item, 'callspec', None), 'params', {}).values()
    module = item.name == 'test_the_module_of_a_page'
    return module or page in {cells.name_of(p) for p in params if isinstance(p, Path)}

def named_after(terminalreporter, page):
    "After `make check`: what else tests the module"
    from helpers.book import module_of
    if not (module := module_of(page)): return
    if found := [str(p.relative_to(root)) for p in sorted(tests.rglob('test_*.py'))
                 if imports(p, module)]:
        terminalreporter.write_line(f'{module} is also tested by: make test '
                                    f'ARGS="{" ".join(found)}"')

def pytest_runtest_logreport(report):
    "Name what fails at once: a long run may be stopped before its summary"
    if report.failed and 'PYTEST_XDIST_WORKER' not in os.environ:
        print(f'\nFAILED {report.nodeid}', file=sys.__stderr__, flush=True)

def turn(item, late):
    """When its group's turn is: whoever builds the site first, then files that do not wait for it;
    single pages last, so that all processes end together"""
    if item.originalname in apart: return 3 + apart.index(item.originalname)
    return 0 if item.path.stem == 'test_site' else 2 if item.path in late else 1

@pytest.hookimpl(tryfirst=True)    # before xdist reads the groups
def pytest_collection_modifyitems(config, items):
    "With --page no other page, no site; each file stays in one process, but for long tests"
    page = page_of(config)
    def asked(i): return concerns(i, page) if page else i.name != 'test_the_module_of_a_page'
    kept = [i for i in items if asked(i)]
    config.hook.pytest_deselected(items=[i for i in items if not asked(i)])
    late = {i.path for i in kept if 'site' in i.fixturenames and i.originalname not in apart}
    items[:] = sorted(kept, key=lambda i: turn(i, late))
    for i in items:
        alone = i.originalname in apart
        i.add_marker(pytest.mark.xdist_group(i.name if alone else i.path.stem))

# ---- the time that the tests take, at their end

started = time.monotonic()
processor_times = []                    # of the workers, in seconds, with the processes they ran

def pytest_sessionfinish(session):
    if hasattr(session.config, 'workeroutput'):
        session.config.workeroutput['processor_time'] = sum(os.times()[:4])

@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    processor_times.append(getattr(node, 'workeroutput', {}).get('processor_time', 0))

def pytest_terminal_summary(terminalreporter, config):
    if page := page_of(config): return named_after(terminalreporter, page)
    reports = [r for of in ('passed', 'failed') for r in terminalreporter.stats.get(of, [])]
    notebooks = sorted(((seconds, r.nodeid.rpartition('[')[2].partition(']')[0]) for r in reports
                        for name,seconds in r.user_properties if name == 'notebook'), reverse=True)
    of_notebooks = sum(seconds for seconds,_ in notebooks)
    # the workers have their own; without them, the processes that this one ran
    total = sum(os.times()[:2 if processor_times else 4]) + sum(processor_times) + of_notebooks
    write = terminalreporter.write_line
    write(f'{time.monotonic()-started:.0f} s, {total:.0f} s of processor time')
    if not notebooks: return
    longest = ', '.join(f'{name} {seconds:.1f}' for seconds,name in notebooks[:5])
    write(f'{len(notebooks)} notebooks: {of_notebooks:.0f} s of processor time; {longest}')

# ---- the site, built by the first test that asks for it

@pytest.fixture(scope='session')
def site(request):
    "Folder of the site, which holds what the notebooks say now"
    from filelock import FileLock
    run_id = getattr(request.config, 'workerinput', {}).get('testrunuid', str(os.getpid()))
    folder,built = root/'_build'/'html',root/'_build'/'.built-by-tests'
    folder.parent.mkdir(exist_ok=True)
    with FileLock(folder.parent/'.lock'):               # of several processes one builds it
        if built.exists() and built.read_text() == run_id: return folder
        run(sys.executable, '-m', 'sphinx', '-q', '-W', '--keep-going', '-d', '_build/doctrees',
            '-c', 'nbs/_sphinx', 'nbs', '_build/html', cwd=root)
        built.write_text(run_id)
    return folder

@pytest.fixture(scope='session')
def address(site):
    with serve(site) as url: yield url

@pytest.fixture(scope='session')
def parsed(site):
    "Page -> its links, its anchors and what it loads"
    from helpers.book import Links
    found = (p for p in site.rglob('*.html') if p.stem != '404' and '_static' not in p.parts)
    return {p.relative_to(site).as_posix(): Links.of(p.read_text('utf-8')) for p in found}

@pytest.fixture(scope='session')
def browser():
    "A Chromium that can reach this machine only"
    from find_browser import find
    path = find()
    if not path:
        if os.environ.get('BROWSER') == 'required': pytest.fail('no browser, and BROWSER=required')
        pytest.skip('NO BROWSER: set CHROME to the path of a Chromium')
    from playwright.sync_api import sync_playwright
    args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking',
            '--disable-component-update', '--disable-sync',
            '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1']
    with sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=path, args=args)
        yield chromium
        chromium.close()

@pytest.fixture(scope='session')
def context(browser):
    "One for all pages of the site, which keeps scripts that are loaded"
    context = browser.new_context()
    yield context
    context.close()

@pytest.fixture
def page(context):
    "A page on a wide, light screen"
    page = context.new_page()
    page.set_viewport_size(dict(width=1400, height=900))
    page.emulate_media(color_scheme='light')
    page.set_default_timeout(patience)
    yield page
    page.close()

# ---- the package, as others install it

@pytest.fixture(scope='session')
def built(tmp_path_factory):
    "Wheel and sdist, the wheel made from the sdist as an installer would, from a copy"
    dist,source = tmp_path_factory.mktemp('dist'),tmp_path_factory.mktemp('source')/'project'
    shutil.copytree(root, source, ignore=shutil.ignore_patterns(
        '.*', '_build', 'build', 'dist', '*.egg-info', '__pycache__'))
    run(sys.executable, '-m', 'build', '--no-isolation', '--outdir', dist, source)
    return next(dist.glob('*.whl')), next(dist.glob('*.tar.gz'))

@pytest.fixture(scope='session')
def wheel(built): return built[0]

@pytest.fixture(scope='session')
def plain(wheel, tmp_path_factory):
    "Folder of an environment with this project from its wheel, its requirements, nothing else"
    folder = tmp_path_factory.mktemp('plain')/'env'
    venv.create(folder, with_pip=True, symlinks=os.name != 'nt')
    run(*pip_of(python_of(folder)), wheel, env=clean_env())
    return folder
