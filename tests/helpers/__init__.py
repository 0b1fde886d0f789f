"What several tests need: folders, environments, a server for files"
import configparser, contextlib, functools, http.server, itertools, os, shutil, subprocess
import threading
from pathlib import Path
import pytest

root = Path(__file__).resolve().parents[2]

full = pytest.mark.full            # runs with `make test-all` alone

def short(kept, cases):
    "Parameters of a test: all `cases`, of which only those that are `kept` run in `make test`"
    return [c if c in kept else pytest.param(*c if isinstance(c, tuple) else [c], marks=full)
            for c in cases]

def spread(*axes):
    "Parameters: all combinations of axes; `make test` runs so many that no value is missing"
    axes = [[*axis] for axis in axes]
    n = max(map(len, axes))
    kept = [tuple(axis[i % len(axis)] for axis in axes) for i in range(n)]
    return short(kept, itertools.product(*axes))

def clean_env(**extra):
    "This process's environment without what points to the repository or to its own environment"
    out = 'PYTHON', 'IN_TEST', 'VIRTUAL_ENV', 'JUPYTER', 'MPL'
    kept = {k: v for k,v in os.environ.items() if not k.startswith(out) or k == 'PYTHONUTF8'}
    return kept | extra

def run(*command, **kw):
    "What a command prints; a failure shows the end of it"
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **kw)
    said = f'{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}'
    if done.returncode: raise RuntimeError(said)
    return done.stdout

def python_of(folder): return folder/('Scripts' if os.name == 'nt' else 'bin')/'python'

def pip_of(python):
    "The beginning of a command that installs into the environment of `python`"
    options = '-q', '--no-compile', '--disable-pip-version-check', '-c', root/'constraints.txt'
    return [python, '-m', 'pip', 'install', *options]

def copied(plain, folder):
    "A copy of an environment; its files are links: pip replaces files and never writes into one"
    shutil.copytree(plain, folder, symlinks=True, copy_function=os.link)
    return python_of(folder)

@contextlib.contextmanager
def serve(folder):
    "Address of a server for the files of `folder`"
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args): pass
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try: yield f'http://127.0.0.1:{server.server_port}'
        finally: server.shutdown()

def read_settings():
    ini = configparser.ConfigParser(delimiters=['='])
    ini.read(root/'settings.ini', encoding='utf-8')
    return ini['DEFAULT']

settings = read_settings()
base = f'{settings["doc_host"]}{settings["doc_baseurl"]}/'         # address of the published site
