import contextlib, functools, http.server, os, shutil, subprocess, sys, threading, venv
from pathlib import Path
import pytest

root = Path(__file__).parent.parent
# tests run in several processes; if torch took all cores in each, they would wait for one another
if 'PYTEST_XDIST_WORKER' in os.environ: os.environ.setdefault('OMP_NUM_THREADS', '1')
sys.path[:0] = [str(root/'nbs'/'_sphinx'), str(root/'tests')]

def clean_env(**extra):
    "This process's environment without what points to the repository or to its own environment"
    out = 'PYTHON', 'IN_TEST', 'VIRTUAL_ENV', 'JUPYTER', 'MPL'
    return {k:v for k,v in os.environ.items() if not k.startswith(out) or k == 'PYTHONUTF8'} | extra

@pytest.fixture(scope='session')
def site():
    "Folder of the built site"
    folder = root/'_build'/'html'
    if not (folder/'index.html').exists(): pytest.fail('the site is not built: run `make docs` first, or the tests with `make test`')
    return folder

@pytest.fixture(scope='session')
def built(tmp_path_factory):
    "Wheel and sdist, the wheel made from the sdist as an installer would; from a copy, since two test processes may build at once"
    dist,source = tmp_path_factory.mktemp('dist'),tmp_path_factory.mktemp('source')/'project'
    shutil.copytree(root, source, ignore=shutil.ignore_patterns('.*', '_build', 'build', 'dist', '*.egg-info', '__pycache__'))
    done = subprocess.run([sys.executable, '-m', 'build', '--outdir', str(dist), str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return next(dist.glob('*.whl')), next(dist.glob('*.tar.gz'))

@pytest.fixture(scope='session')
def wheel(built): return built[0]

def python_of(folder): return folder/('Scripts' if os.name == 'nt' else 'bin')/'python'

@pytest.fixture(scope='session')
def plain(wheel, tmp_path_factory):
    "Folder of an environment with this project from its wheel, its requirements, nothing else; to be copied, not changed"
    folder = tmp_path_factory.mktemp('plain')/'env'
    venv.create(folder, with_pip=True, symlinks=os.name != 'nt')
    command = [python_of(folder), '-m', 'pip', 'install', '-q', '--no-compile', '--disable-pip-version-check', '-c', root/'constraints.txt', wheel]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=clean_env())
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder

def copied(plain, folder):
    "A copy of an environment; its files are links, and pip never writes into a file that is there, it puts a new one in its place"
    shutil.copytree(plain, folder, symlinks=True, copy_function=os.link)
    return python_of(folder)

@contextlib.contextmanager
def serve(folder):
    "Address of a server for the files of `folder`"
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args): pass
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try: yield f'http://127.0.0.1:{server.server_port}'
        finally: server.shutdown()

@pytest.fixture(scope='session')
def address(site):
    with serve(site) as url: yield url

@pytest.fixture(scope='session')
def browser():
    "A Chromium that can reach this machine only"
    from find_browser import find
    path = find()
    if not path:
        if os.environ.get('BROWSER') == 'required': pytest.fail('no browser, and BROWSER=required')
        pytest.skip('NO BROWSER: set CHROME to the path of a Chromium')
    from playwright.sync_api import sync_playwright
    args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync',
            '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1']
    with sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=path, args=args)
        yield chromium
        chromium.close()
