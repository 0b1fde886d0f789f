"Every notebook runs, its stored text outputs are what it prints today, and it is in step with the exported module"
import json, math, os, re, shutil, subprocess, sys, time
from pathlib import Path
import pytest
from fastcore.nbio import read_nb
from conftest import root

notebooks = sorted((root/'nbs').glob('*.ipynb'))
number = re.compile(r'[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?')

def outputs(nb):
    "Cell id -> text of its outputs, of the cells whose output must not change"
    def text(o):
        if o['output_type'] == 'stream': return o['name'], ''.join(o['text'])
        return o['output_type'], ''.join(o.get('data', {}).get('text/plain', ''))
    return {c.id: [text(o) for o in c.get('outputs', []) if o.get('name') != 'stderr'] for c in nb.cells
            if c.cell_type == 'code' and not re.search(r'^#\|\s*timed\s*$', c.source, re.M)}

def same(stored, fresh, rel=1e-3, abs_=2e-4):
    "Are the texts equal but for rounding, and for addresses in memory?"
    clean = [re.sub(r' at 0x[0-9a-fA-F]+', '', s) for s in (stored, fresh)]
    words,numbers = zip(*((re.split(r'\s+', number.sub('#', s).strip()), [float(n) for n in number.findall(s)]) for s in clean))
    return words[0] == words[1] and all(math.isclose(a, b, rel_tol=rel, abs_tol=abs_) for a,b in zip(*numbers))

@pytest.mark.parametrize('path', notebooks, ids=lambda p: p.stem)
def test_runs_and_outputs_are_true(path, tmp_path):
    target = root/'_build'/'fresh'/path.name                  # inside the project, where nbdev finds its settings
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)
    code = ('import sys; from nbdev.test import test_nb; from nbdev.config import get_config\n'
            'ok,seconds = test_nb(sys.argv[1], skip_flags=get_config().tst_flags.split(), basepath=get_config().config_path, save=True)\n'
            'sys.exit(not ok)')
    start = time.time()
    done = subprocess.run([sys.executable, '-c', code, str(target)], cwd=root/'nbs', capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-6000:]
    print(f'{path.name}: {time.time()-start:.0f} s')
    stored,fresh = outputs(read_nb(path)),outputs(read_nb(target))
    assert stored.keys() == fresh.keys()
    wrong = [f'cell {i}: stored\n{stored[i]}\nfresh\n{fresh[i]}' for i in stored
             if [k for k,_ in stored[i]] != [k for k,_ in fresh[i]] or not all(same(a, b) for (_,a),(_,b) in zip(stored[i], fresh[i]))]
    assert not wrong, 'Stored outputs are not what the notebook prints; `make outputs` stores them anew.\n' + '\n'.join(wrong)

def test_the_check_of_outputs_can_fail():
    assert same('loss 0.1234 at 0xff', 'loss 0.12341 at 0xee')
    assert not same('loss 0.1234', 'loss 0.1334')
    assert not same('loss 0.1234', 'gain 0.1234')
    assert not same('1 2 3', '1 2')
    assert same('tensor([[1.,  2.]])', 'tensor([[1., 2.]])') is True

def test_module_and_readme_are_in_step(tmp_path):
    "Exporting, cleaning and writing the README change nothing"
    kept = [*root.glob('attention_nb/*'), *root.glob('nbs/*.ipynb'), root/'README.md', *root.glob('index_files/*')]
    work = tmp_path/'project'
    for p in [*kept, *root.glob('nbs/_sphinx/*.py'), *root.glob('nbs/*.bib'), *(root/n for n in ('pyproject.toml', 'settings.ini', 'setup.py'))]:
        if p.is_dir(): continue
        (work/p.relative_to(root)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(p, work/p.relative_to(root))
    before = {p: (work/p.relative_to(root)).read_bytes() for p in kept if p.is_file()}
    bin_ = Path(sys.executable).parent
    for command in ([bin_/'nbdev-export'], [bin_/'nbdev-clean'], [sys.executable, 'nbs/_sphinx/nbdev_sphinx.py']):
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, env=os.environ | dict(PYTHONPATH=str(work)))
        assert done.returncode == 0, done.stderr
    changed = [str(p.relative_to(root)) for p,data in before.items() if (work/p.relative_to(root)).read_bytes() != data]
    assert not changed, f'{changed} are not what the notebooks give: run nbdev-export, nbdev-clean and nbs/_sphinx/nbdev_sphinx.py'

def test_quoted_script_is_in_the_file():
    "What chapter 06 shows of views.js is what views.js says"
    quoted = [b for c in read_nb(root/'nbs'/'06b_views.ipynb').cells if c.cell_type == 'markdown' for b in re.findall(r'```js\n(.*?)```', c.source, re.S)]
    script = (root/'attention_nb'/'views.js').read_text()
    assert quoted and all(q in script for q in quoted)

def colab_cell(path): return next(c for c in read_nb(path).cells if c.cell_type == 'code')

@pytest.mark.parametrize('path', notebooks, ids=lambda p: p.stem)
def test_first_cell_installs_in_colab_and_only_there(path):
    from IPython.core.interactiveshell import InteractiveShell
    cell = colab_cell(path)
    source = '\n'.join(l for l in cell.source.splitlines() if not l.startswith('#|'))
    ran = []
    class Shell:
        def __init__(self, where): self.where = where
        def __str__(self): return f'<{self.where} object>'
        def run_line_magic(self, name, line, **kw): ran.append((name, line))
    code = InteractiveShell.instance().transform_cell(source)
    exec(code, dict(get_ipython=lambda: Shell('ipykernel.zmqshell.ZMQInteractiveShell')))
    assert ran == []
    exec(code, dict(get_ipython=lambda: Shell('google.colab._shell.Shell')))
    assert ran and all(name == 'pip' for name,_ in ran) and 'attention_nb' in ran[0][1]

@pytest.mark.parametrize('path', notebooks, ids=lambda p: p.stem)
def test_notebook_is_small_and_clean(path):
    assert path.stat().st_size < 1_000_000
    nb = json.loads(path.read_text(encoding='utf-8'))
    assert not [c for c in nb['cells'] if c.get('execution_count')]
    assert 'widgets' not in nb['metadata']
    outputs = [o for c in nb['cells'] for o in c.get('outputs', [])]
    assert not [o['text'] for o in outputs if o.get('name') == 'stderr'], 'warnings are stored; mend their cause or filter them'
    assert str(root) not in json.dumps(outputs), 'a path of this machine is stored'
