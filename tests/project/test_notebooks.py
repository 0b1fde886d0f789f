"""Every notebook runs, its stored text outputs are what it prints today, and it is in step with
the exported module"""
import html, json, os, re, shutil, subprocess, sys
from pathlib import Path
import pytest, rules, tidy
from fastcore.nbio import read_nb
from outputs import execute, marked, moved
from helpers import full, root
from helpers.book import loaded, name_of, notebooks, runnable

def again(path): return f'make outputs ARGS={path.relative_to(root).as_posix()}'

def outputs_are_true(path, folder, record, *, whole):
    "Run a copy of the notebook in `folder` of _build, where nbdev finds its settings"
    target = root/'_build'/folder/path.relative_to(root/'nbs')
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)
    run = execute(target, whole=whole)
    record('notebook', run.seconds)
    assert run.error is None, run.error
    wrong = [f'cell {i}: stored\n{old}\nfresh\n{new}'
             for i,old,new in moved(read_nb(path), read_nb(target))]
    assert not wrong, ('Stored outputs are not what the notebook prints; '
                       f'`{again(path)}` stores them anew.\n' + '\n'.join(wrong))
    assert kinds(read_nb(path)) == kinds(tidy.tidy(read_nb(target))), (
        f'what is shown is stored in other formats; `{again(path)}` stores it anew')

def kinds(nb):
    "Cell id -> the formats of its outputs: text, SVG, the data of a view, ..."
    return {c.id: [sorted(o.get('data', {})) for o in c.get('outputs', [])] for c in nb.cells
            if c.cell_type == 'code'}

@pytest.mark.parametrize('path', runnable, ids=name_of)
def test_runs_and_outputs_are_true(path, record_property):
    outputs_are_true(path, 'fresh', record_property, whole=False)

with_whole_cells = [p for p in runnable if any(marked(c, 'whole') for c in read_nb(p).cells)]

@full
@pytest.mark.parametrize('path', with_whole_cells, ids=name_of)
def test_runs_with_the_cells_that_take_long(path, record_property):
    outputs_are_true(path, 'whole', record_property, whole=True)

def test_module_and_readme_are_in_step(tmp_path):
    "What `make tidy` runs changes nothing"
    kept = [*root.glob('attention_nb/**/*'), *rules.notebooks(), root/'README.md',
            *root.glob('index_files/*')]
    work = tmp_path/'project'
    for p in [*kept, *root.glob('nbs/_sphinx/*.py'), *root.glob('nbs/*.bib'),
              *(root/n for n in ('pyproject.toml', 'settings.ini', 'setup.py'))]:
        if p.is_dir(): continue
        (work/p.relative_to(root)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(p, work/p.relative_to(root))
    before = {p: (work/p.relative_to(root)).read_bytes() for p in kept if p.is_file()}
    bin_ = Path(sys.executable).parent
    scripts = [[sys.executable, f'nbs/_sphinx/{name}.py'] for name in ('package', 'tidy', 'plain')]
    for command in ([bin_/'nbdev-export'], scripts[0], [bin_/'nbdev-clean'], *scripts[1:]):
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, env=os.environ
                              | dict(PYTHONPATH=str(work)))
        assert done.returncode == 0, done.stderr
    changed = [str(p.relative_to(root)) for p,data in before.items()
               if (work/p.relative_to(root)).read_bytes() != data]
    assert not changed, f'{changed} are not what the notebooks give: run make tidy'

def all_scripts():
    return '\n'.join(p.read_text(encoding='utf-8')
                     for folder in ('views_js', 'figures_js')
                     for p in sorted((root/'attention_nb'/folder).glob('*.js')))

def test_quoted_script_is_in_the_file():
    "What a page shows of the scripts of views is what they say"
    quoted = [b for c in read_nb(root/'nbs'/'views/page.ipynb').cells if c.cell_type == 'markdown'
              for b in re.findall(r'```js\n(.*?)```', c.source, re.S)]
    script = all_scripts()
    assert quoted and all(q in script for q in quoted)

def test_first_cell_installs_in_colab_and_only_there():
    from IPython.core.interactiveshell import InteractiveShell
    class Shell:
        def __init__(self, where): self.where,self.ran = where,[]
        def __str__(self): return f'<{self.where} object>'
        def run_line_magic(self, name, line, **kw): self.ran.append((name, line))
    transform = InteractiveShell.instance().transform_cell
    for path in runnable:
        cell = next(c for c in loaded[name_of(path)] if c['cell_type'] == 'code')
        source = transform(re.sub(r'^#\|.*\n', '', rules.source(cell), flags=re.M))
        here,colab = Shell('ipykernel.zmqshell.ZMQInteractiveShell'),Shell('google.colab._shell')
        for shell in (here, colab): exec(source, dict(get_ipython=lambda: shell))
        assert not here.ran and 'attention_nb' in colab.ran[0][1], name_of(path)
        assert {name for name,_ in colab.ran} == {'pip'}, name_of(path)

def test_every_page_is_linked_where_a_reader_looks_for_it():
    "A lesson in a table of cards, a page of the library by its room; the top bar has the parts"
    def text(name): return '\n'.join(map(rules.source, loaded[name]))
    tables = '\n'.join(re.findall(r'^<!-- cards -->\s*\n((?:\|.*(?:\n|\Z))+)', text('learn'), re.M))
    for name in loaded.keys() - {'index', *rules.PARTS}:
        home = rules.home(name)
        links = tables if rules.kind(name) == 'lesson' else text(home)
        assert name in rules.linked(links, home), f'{home} does not link {name}'

def test_a_link_says_the_number_that_its_lesson_has():
    for page,cells in loaded.items():
        text = '\n'.join(map(rules.source, cells))
        links = re.findall(r'\[(?:[Ll]esson )?(\d\d?)\]\((?:\.\./)*(\d\d)_(\w+)\.ipynb', text)
        assert [link for link in links if int(link[0]) != int(link[1])] == [], page

def test_stored_figures_are_those_of_the_package():
    from IPython.display import SVG
    figures = root/'attention_nb'/'figures'
    shown = [(m[1], p, c.outputs) for p in notebooks for c in read_nb(p).cells
             if c.cell_type == 'code'
             for m in re.finditer(r"/'figures'/'([^']+)'", c.source)]
    for name,path,outputs in shown:
        stored = [o.data['image/svg+xml'] for o in outputs]
        assert stored == [SVG(filename=figures/name).data], f'{name}: `{again(path)}` stores it'
    unused = {p.name for p in figures.glob('*.svg')} - {name for name,*_ in shown}
    assert not unused, 'figures that no page shows'

def test_notebooks_are_small_and_hold_no_script_and_no_trace_of_a_machine():
    pieces = [l.strip() for l in all_scripts().splitlines() if len(l.strip()) > 60][::10]
    for path in notebooks:
        text = path.read_text(encoding='utf-8')
        nb,name = json.loads(text),name_of(path)
        outputs = [o for c in nb['cells'] for o in c.get('outputs', [])]
        assert len(text.encode()) < 1_000_000, name
        assert not any(c.get('execution_count') for c in nb['cells']), f'{name}: run make tidy'
        assert 'widgets' not in nb['metadata'], name
        assert not [o['text'] for o in outputs if o.get('name') == 'stderr'], (
            f'{name}: warnings are stored; mend their cause or filter them')
        assert str(root) not in json.dumps(outputs), f'{name}: a path of this machine is stored'
        for data in (o.get('data', {}) for o in outputs):
            assert not (tidy.VIEW in data and 'text/html' in data), f'{name}: run make tidy'
            stored = html.unescape(json.dumps(data, ensure_ascii=False))
            assert '<dc:date>' not in stored, f'{name}: the date of a figure: run make tidy'
            assert '<script' not in stored.lower(), f'{name}: a script is stored'
            assert not any(json.dumps(p)[1:-1] in stored for p in pieces), f'{name}: a script'
