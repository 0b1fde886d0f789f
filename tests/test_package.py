"Packaging: one version everywhere, wheel and sdist that install alone, light imports, the documented names"
import ast, configparser, json, os, re, subprocess, sys, tarfile, tomllib, venv, zipfile
from pathlib import Path
import pytest
from conftest import root

ini = configparser.ConfigParser(delimiters=['='])
ini.read(root/'settings.ini', encoding='utf-8')
settings = ini['DEFAULT']
modules = sorted(p.stem for p in (root/'attention_nb').glob('*.py') if not p.stem.startswith('_'))
documented = dict(
    tokenizer={'WordTokenizer', 'BPETokenizer'},
    embedding={'load_glove', 'WordVectors', 'cosine_similarity', 'sinusoidal_positions', 'Embeddings'},
    mask={'causal_mask', 'padding_mask', 'window_mask', 'document_mask', 'prefix_mask', 'show_mask'},
    visualize={'show_attention', 'View', 'head_view', 'model_view', 'neuron_view', 'attention_rollout', 'Recorded', 'Recording', 'record', 'load_hf', 'Seen', 'look', 'previous_token', 'next_token',
               'same_token', 'attention_entropy', 'separator_mass', 'main'},
    multihead={'MultiHeadAttention', 'MultiHeadAttentionLoop', 'split_heads', 'merge_heads'},
    attention={'attention', 'scaled_dot_product_attention', 'allowed', 'SelfAttention'})

def run(*command, **kw):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **kw)
    assert done.returncode == 0, f'{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}'
    return done.stdout

def test_one_version_and_one_set_of_addresses():
    project = tomllib.loads((root/'pyproject.toml').read_text())
    version = ast.literal_eval(re.search(r'__version__ = (.+)', (root/'attention_nb'/'__init__.py').read_text())[1])
    assert version == settings['version']
    assert f"## {version}" in (root/'CHANGELOG.md').read_text()
    assert project['project']['name'] == settings['lib_name']
    assert project['project']['requires-python'] == '>=' + settings['min_python']
    assert project['project']['urls'] == dict(Repository=settings['git_url'], Documentation=settings['doc_host']+settings['doc_baseurl']+'/')
    nbdev = project['tool']['nbdev']
    for name in ('lib_path', 'nbs_path', 'doc_path', 'title', 'tst_flags'): assert nbdev[name] == settings[name]

def test_every_extra_is_constrained():
    "Each requirement of settings.ini has an exact version in constraints.txt"
    def canon(name): return re.sub(r'[-_.]+', '-', re.match(r'[\w.-]+', name)[0]).lower()
    pinned = {canon(l) for l in (root/'constraints.txt').read_text().splitlines() if '==' in l}
    asked = {canon(r) for key,value in settings.items() if key.endswith('requirements') for r in value.split()}
    assert asked <= pinned, asked - pinned

def test_links_in_docstrings_lead_to_pages(site):
    pages = settings['doc_host']+settings['doc_baseurl']+'/'
    for m in modules:
        links = re.findall(re.escape(pages)+r'([^\s"\')]+)', ast.get_docstring(ast.parse((root/'attention_nb'/f'{m}.py').read_text())))
        assert links, f'{m} does not name its page'
        for link in links: assert (site/link).exists(), f'{m} names {link}, which the site has not'

def test_importing_the_package_imports_nothing_heavy():
    loaded = json.loads(run(sys.executable, '-c', 'import sys, json, attention_nb; print(json.dumps(sorted(sys.modules)))'))
    assert not {'torch', 'numpy', 'matplotlib', 'fastcore', 'regex'} & set(loaded)

@pytest.mark.parametrize('module', modules)
def test_a_module_exports_the_documented_names_and_imports_what_is_slow_when_used(module):
    out = run(sys.executable, '-c', f'import torch, sys, json; before = set(sys.modules)\nns = {{}}; exec("from attention_nb.{module} import *", ns)\n'
              'print(json.dumps([sorted(n for n in ns if n != "__builtins__"), sorted(set(sys.modules) - before)]))')
    names,loaded = json.loads(out)
    assert set(names) == documented[module]
    assert not {'matplotlib', 'pyarrow', 'IPython', 'nbdev', 'tqdm', 'safetensors'} & {m.split('.')[0] for m in loaded}

@pytest.fixture(scope='session')
def built(tmp_path_factory):
    "Wheel and sdist, the wheel made from the sdist as an installer would"
    dist = tmp_path_factory.mktemp('dist')
    run(sys.executable, '-m', 'build', '--outdir', dist, root)
    return next(dist.glob('*.whl')), next(dist.glob('*.tar.gz'))

def test_wheel_and_sdist_hold_what_they_must(built):
    wheel,sdist = built
    names = zipfile.ZipFile(wheel).namelist()
    assert {'attention_nb/__init__.py', 'attention_nb/py.typed', 'attention_nb/views.css', 'attention_nb/views.js', *(f'attention_nb/{m}.py' for m in modules)} <= set(names)
    assert not [n for n in names if n.startswith(('nbs', 'tests', 'benchmarks'))]
    meta = zipfile.ZipFile(wheel).read(next(n for n in names if n.endswith('METADATA'))).decode()
    assert f"Version: {settings['version']}" in meta and 'License-Expression: Apache-2.0' in meta
    for requirement in settings['requirements'].split(): assert f'Requires-Dist: {requirement}' in meta
    for extra in ('glove', 'models', 'dev', 'docs', 'bench'): assert f'Provides-Extra: {extra}' in meta
    assert not re.search(r'\]\((?!https?:|#)', meta), 'a relative link, which the package index cannot follow'
    assert any(n.endswith('/py.typed') for n in tarfile.open(sdist).getnames())

def test_wheel_works_alone_in_an_empty_environment(built, tmp_path):
    "Only the runtime dependencies: every module imports and works, and what needs an extra says which"
    venv.create(tmp_path/'env', with_pip=True)
    python = tmp_path/'env'/('Scripts' if os.name == 'nt' else 'bin')/'python'
    run(python, '-m', 'pip', 'install', '-q', '-c', root/'constraints.txt', built[0])
    script = '''
import importlib, pkgutil, attention_nb, torch
for m in pkgutil.iter_modules(attention_nb.__path__): importlib.import_module("attention_nb." + m.name)
from attention_nb.core import SelfAttention
from attention_nb.embedding import Embeddings, load_glove
from attention_nb.tokenizer import BPETokenizer, WordTokenizer
tok = WordTokenizer.train(["a ship and a crew"])
ids,mask = tok.batch(["a ship", "a crew and a ship"], bos=True, eos=True)
out = SelfAttention(8, 4)(Embeddings(len(tok), 8, 16)(ids), mask=mask[:,None])
assert out.shape == (2,7,4) and not out.isnan().any()
assert BPETokenizer.train(["low lower lowest"], 270).decode([0]) == "!"
open("v.txt", "w").write("a 1 2\\n")
for path in (None, "v.txt"):
    try: load_glove(path)
    except ImportError as e: assert "attention_nb[glove]" in str(e)
    else: raise AssertionError("load_glove worked without its extra")
from attention_nb.recording import load_hf
from attention_nb.views import head_view
view = head_view(torch.eye(3)[None], ["a", "b", "c"])
for name in ("x.html", "x.svg", "x.png"): assert view.save(name).stat().st_size > 1000
try: load_hf("minilm")
except ImportError as e: assert "attention_nb[models]" in str(e)
else: raise AssertionError("load_hf worked without its extra")
print("fine", attention_nb.__version__)
'''
    assert f"fine {settings['version']}" in run(python, '-c', script, cwd=tmp_path)
    command = subprocess.run([python.with_name('attention-view'), 'some text', '--no-open'], cwd=tmp_path, capture_output=True, text=True)
    assert command.returncode == 1 and 'attention_nb[models]' in command.stderr and command.stderr.count('\n') == 1
    run(python, '-m', 'pip', 'install', '-q', '-c', root/'constraints.txt', f'{built[0]}[glove]')
    assert 'crew' in run(python, '-c', 'from attention_nb.embedding import load_glove; wv = load_glove(); print(wv, wv.nearest("ship", 3), "crew" if "crew" in wv else "")', cwd=tmp_path)
