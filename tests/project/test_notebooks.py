"""Every notebook runs, its stored text outputs are what it prints today, and it is in step with
the exported module"""
import html, json, os, re, shutil, subprocess, sys
from pathlib import Path
import nbformat, pytest, rules, tidy
from fastcore.nbio import read_nb
from outputs import execute, lighten, moved, same, same_outputs
from helpers import root
from helpers.book import loaded, name_of, notebooks, runnable

def again(path): return f'make outputs ARGS={path.relative_to(root).as_posix()}'

@pytest.mark.parametrize('path', runnable, ids=name_of)
def test_runs_and_outputs_are_true(path):
    # in the project, where nbdev finds settings
    target = root/'_build'/'fresh'/path.relative_to(root/'nbs')
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)
    error = execute(target, whole=bool(os.environ.get('WHOLE')))
    assert error is None, error
    wrong = [f'cell {i}: stored\n{old}\nfresh\n{new}'
             for i,old,new in moved(read_nb(path), read_nb(target))]
    assert not wrong, ('Stored outputs are not what the notebook prints; '
                       f'`{again(path)}` stores them anew.\n'
                       + '\n'.join(wrong))
    assert kinds(read_nb(path)) == kinds(tidy.tidy(read_nb(target))), (
        f'what is shown is stored in other formats; `{again(path)}` stores it anew')

def kinds(nb):
    "Cell id -> the formats of its outputs: text, SVG, the data of a view, ..."
    return {c.id: [sorted(o.get('data', {})) for o in c.get('outputs', [])] for c in nb.cells
            if c.cell_type == 'code'}

def test_cells_that_take_long_run_with_all_that_needs_them_or_not_at_all(tmp_path):
    cells = ['x,y = 1,2', '#| whole\nx,found = 3,{}\ndef f(): return 5', 'print(x)',
             'def g(): return f()', 'y = [g(), y]', 'print(y)', 'x = 4', 'print(x)',
             'for found in range(2): print(found)', 'assert found == 1',
             '#| whole\nz = 5\ndef h(y): return [x for x in y]\nx2 = lambda found: found',
             'print(x, found)', 'w = {z: 1 for z in "a"}', 'def h2(): return z', 'print(h2)']
    path = project(tmp_path, cells)
    nb = read_nb(path)
    lighten(nb)
    left = [c.source for c in nb.cells if not c.source.startswith('#| eval: false')]
    # what is local to a function of cells left out is missed by nobody
    assert left == [cells[i] for i in (0, 6, 7, 8, 9, 11, 12)]
    stored = nbformat.read(path, 4)
    stored.cells[2].outputs = [nbformat.v4.new_output('stream', name='stdout', text='3\n')]
    nbformat.write(stored, path)
    assert execute(path, whole=False) is None
    printed = [''.join(o['text'] for o in c.outputs) for c in read_nb(path).cells]
    assert printed == ['', '', '3\n', '', '', '', '', '4\n', '0\n1\n', '', '', '4 1\n',
                       '', '', '']
    error = execute(project(tmp_path/'all', cells[:3] + ['1/0']))
    assert 'ZeroDivisionError' in error

def test_the_check_of_outputs_can_fail():
    assert same('loss 0.1234 at 0xff', 'loss 0.12341 at 0xee')
    assert not same('loss 0.1234', 'loss 0.1334')
    assert not same('loss 0.1234', 'gain 0.1234')
    assert not same('1 2 3', '1 2')
    assert same('tensor([[1.,  2.]])', 'tensor([[1., 2.]])') is True

def shows(text, option=''):
    "A cell that printed this"
    output = nbformat.v4.new_output('stream', name='stdout', text=text)
    return nbformat.v4.new_code_cell(f'{option}\nprint(text)', outputs=[output])

def test_of_trained_numbers_the_words_are_checked():
    for option,digits,words in [('', False, False), ('#| trained', True, False),
                                ('#| timed', True, True), ('# #| trained', False, False)]:
        stored = shows('it writes crew, loss 1.21 of 2,048', option)
        assert same_outputs(stored, shows('it writes crew, loss 1.21 of 2,048'))
        assert same_outputs(stored, shows('it writes crew, loss 1.43 of 12,048')) == digits
        assert same_outputs(stored, shows('it writes house, loss 1.21 of 2,048')) == words
        assert same_outputs(stored, shows('it writes crew, loss nan of 2,048')) == words

def test_module_and_readme_are_in_step(tmp_path):
    "What `make tidy` runs changes nothing"
    kept = [*root.glob('attention_nb/**/*'), *rules.notebooks(), root/'README.md',
            *root.glob('index_files/*')]
    work = tmp_path/'project'
    for p in [*kept, *root.glob('nbs/_sphinx/*.py'), *root.glob('nbs/*.bib'),
              *(root/n for n in ('pyproject.toml', 'settings.ini', 'setup.py',
                                 'attention_nb/views_js/look.css'))]:
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
                     for p in sorted((root/'attention_nb'/'views_js').glob('*.js')))

def test_quoted_script_is_in_the_file():
    "What a page shows of the scripts of views is what they say"
    quoted = [b for c in read_nb(root/'nbs'/'views/page.ipynb').cells if c.cell_type == 'markdown'
              for b in re.findall(r'```js\n(.*?)```', c.source, re.S)]
    script = all_scripts()
    assert quoted and all(q in script for q in quoted)

def colab_cell(path): return next(c for c in read_nb(path).cells if c.cell_type == 'code')

@pytest.mark.parametrize('path', runnable, ids=name_of)
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

def project(folder, cells):
    "A project of one notebook with the machinery of this one, and the path of the notebook"
    shutil.copytree(root/'nbs'/'_sphinx', folder/'nbs'/'_sphinx',
                    ignore=shutil.ignore_patterns('__pycache__'))
    for name in ('pyproject.toml', 'settings.ini'): shutil.copy(root/name, folder/name)
    (folder/'attention_nb').mkdir()
    (folder/'attention_nb'/'__init__.py').write_text('__version__ = "0.1.0"')
    path = folder/'nbs'/'a.ipynb'
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells],
                                            metadata=dict(kernelspec=dict(name='python3',
                                            display_name='python3', language='python'))), path)
    return path

def store(*paths):
    done = subprocess.run([sys.executable, paths[0].parent/'_sphinx'/'outputs.py', *paths],
                          capture_output=True, text=True, cwd=paths[0].parent.parent)
    return done.returncode, done.stdout + done.stderr

drawn = ["import time, matplotlib.pyplot as plt\n%config InlineBackend.figure_formats = "
         "['svg']\nplt.rcParams['svg.hashsalt'] = 'attention_nb'",
         'plt.figure(figsize=(1,1)).add_subplot().plot([1,2]);', '#| timed\nprint(time.time())',
         'print("the same")']

def test_outputs_are_stored_the_same_twice(tmp_path):
    """Figures keep their format, whichever notebook ran before, and have no date; a cell that
    shows times keeps its output while only numbers differ"""
    path = project(tmp_path, drawn)
    other = path.with_name('b.ipynb')
    shutil.copy(path, other)
    assert store(path, other)[0] == 0
    first = path.read_bytes()
    nb = nbformat.reads(first, 4)
    assert list(nb.cells[1].outputs[0].data) == ['image/svg+xml', 'text/plain']
    assert 'dc:date' not in nb.cells[1].outputs[0].data['image/svg+xml']
    assert nb.cells[3].outputs[0].text == 'the same\n' and nb.cells[3].execution_count is None
    assert [list(o.data) for o in nbformat.read(other, 4).cells[1].outputs] == [['image/svg+xml',
        'text/plain']]
    assert store(path)[0] == 0 and path.read_bytes() == first
    nb.cells[2].source += '\nprint("more")'
    nbformat.write(nb, path)
    assert store(path)[0] == 0 and 'more' in nbformat.read(path, 4).cells[2].outputs[0].text

def test_a_figure_of_matplotlib_is_stored_small():
    """Less than two thirds of its size, the same picture: texts and colours stay, coordinates
    move by less than a hundredth of a point"""
    import io, re, xml.etree.ElementTree as xml, matplotlib.figure
    fig = matplotlib.figure.Figure(figsize=(3,2))
    ax = fig.subplots()
    ax.plot([.123456,2.5], color='#0072b2')
    ax.text(.5, 1., '0.46841  two')
    out = io.StringIO()
    with matplotlib.rc_context({'svg.fonttype': 'none'}): fig.savefig(out, format='svg')
    large,small = out.getvalue(),tidy.slim(out.getvalue())
    assert len(small) < len(large)*2/3 and tidy.slim(small) == small
    def texts(svg):
        return [e.text for e in xml.fromstring(svg).iter('{http://www.w3.org/2000/svg}text')]
    def line(svg):
        return [[float(n) for n in re.findall(r'-?[\d.]+', e.get('d'))]
                for e in xml.fromstring(svg).iter() if '#0072b2' in e.get('style', '')]
    assert texts(small) == texts(large) and '0.46841  two' in texts(small)
    assert len(line(small)) == 1
    assert max(abs(a-b) for a,b in zip(line(small)[0], line(large)[0], strict=True)) < .01
    drawn_by_hand = '<svg><path d="M 0.12345 1.23456"/>\n  <text x="1.23456">a</text></svg>'
    assert tidy.slim(drawn_by_hand) == drawn_by_hand

def test_a_notebook_that_fails_stays_as_it_was(tmp_path):
    path = project(tmp_path, ['print("before")', '1/0'])
    before = path.read_bytes()
    code,text = store(path)
    assert code and 'ZeroDivisionError' in text and path.read_bytes() == before

def test_a_stale_output_names_the_command_for_its_notebook(tmp_path, monkeypatch):
    path = project(tmp_path, ['print(2)'])
    nb = nbformat.read(path, 4)
    nb.cells[0].outputs = [nbformat.v4.new_output('stream', name='stdout', text='3\n')]
    nbformat.write(nb, path)
    monkeypatch.setattr(sys.modules[__name__], 'root', tmp_path)
    with pytest.raises(AssertionError, match='make outputs ARGS=nbs/a.ipynb'):
        test_runs_and_outputs_are_true(path)

def test_views_are_stored_as_data_and_picture(tmp_path):
    "The live page goes; an output without the data keeps its HTML; a second time nothing changes"
    def output(**data):
        return nbformat.v4.new_output('display_data', data={k.replace('_', '/', 1): v
                                                            for k,v in data.items()})
    view = output(text_html='<iframe></iframe>', image_svg='x', text_plain='A view')
    view.data |= {'image/svg+xml': '<svg>\n    <dc:date>2026-01-01</dc:date>\n</svg>',
                  tidy.VIEW: dict(summary='A view', data=dict(n=1))}
    cell = nbformat.v4.new_code_cell('v', outputs=[view, output(text_html='<b>kept</b>',
        text_plain='b')])
    path = tmp_path/'v.ipynb'
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    tidy.tidy_file(path)
    data = [o.data for o in nbformat.read(path, 4).cells[0].outputs]
    assert 'text/html' not in data[0]
    assert data[0][tidy.VIEW] == dict(summary='A view', data=dict(n=1))
    assert data[0]['image/svg+xml'] == '<svg>\n</svg>'
    assert data[1] == {'text/html': '<b>kept</b>', 'text/plain': 'b'}
    once = path.read_bytes(),path.stat().st_mtime_ns
    tidy.tidy_file(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == once

def not_linked(pages):
    """The pages that are not linked where a reader looks for them, `pages`: name -> cells: a lesson
    in a table of cards, a page of the library by its room; the bar at the top has the parts"""
    def text(name): return '\n'.join(map(rules.source, pages.get(name, ())))
    tables = re.findall(r'^<!-- cards -->\s*\n((?:\|.*(?:\n|\Z))+)', text('learn'), re.M)
    def places(name):
        if rules.kind(name) == 'lesson': return rules.linked('\n'.join(tables), 'learn')
        return rules.linked(text(rules.home(name)), rules.home(name))
    return [n for n in pages if n not in ('index', *rules.PARTS) and n not in places(n)]

def test_every_page_is_linked_where_a_reader_looks_for_it():
    assert not_linked(loaded) == []

def wrong_numbers(text):
    "Links to a lesson whose words say another number than its file has"
    links = re.findall(r'\[(?:[Ll]esson )?(\d\d?)\]\((?:\.\./)*(\d\d)_(\w+)\.ipynb', text)
    return [(said, f'{n}_{name}') for said,n,name in links if int(said) != int(n)]

def test_a_link_says_the_number_that_its_lesson_has():
    assert wrong_numbers('[5](../06_a.ipynb) [lesson 6](06_a.ipynb#b)') == [('5', '06_a')]
    for page,cells in loaded.items():
        assert wrong_numbers('\n'.join(map(rules.source, cells))) == [], page

def test_the_check_of_links_can_fail():
    def page(text): return [dict(cell_type='markdown', source=text)]
    good = {'learn': '[G](glossary.ipynb) [N](notes/index.ipynb)\n\n<!-- cards -->\n\n| |\n|---|\n'
                     '| [1](01_one.ipynb) | |\n', 'notes/index': '[N](n.ipynb)', 'notes/n': '',
            '01_one': '', 'glossary': '', 'library': '[K](kernels/index.ipynb) [M](guide/m.ipynb)',
            'kernels/index': '[F](flash.ipynb)', 'kernels/flash': '', 'guide/m': '', 'index': ''}
    def found(**change): return not_linked({n: page(t) for n,t in (good | change).items()})
    assert found() == []
    for name in ('glossary', '01_one', 'notes/index'):
        assert found(learn=good['learn'].replace(f'({name}.ipynb)', '')) == [name]
    assert found(learn=good['learn'].replace('<!-- cards -->', '')) == ['01_one']
    assert found(**{'kernels/index': ''}) == ['kernels/flash']
    assert found(**{'notes/index': ''}) == ['notes/n']
    assert found(library='') == ['kernels/index', 'guide/m']

def test_stored_figures_are_those_of_the_package():
    from IPython.display import SVG
    shown = [(m[1], p, c.outputs) for p in notebooks for c in read_nb(p).cells
             if c.cell_type == 'code'
             for m in re.finditer(r"/'figures'/'([^']+)'", c.source)]
    for name,path,outputs in shown:
        assert [o.data['image/svg+xml']
                for o in outputs] == [SVG(filename=root/'attention_nb'/'figures'/name).data], (
                    f'{name}: `{again(path)}` stores it anew')
    assert {name for name,*_ in shown} == {p.name
                                          for p in (root/'attention_nb'/'figures').glob('*.svg')}, (
                                              'a figure that no page shows')

@pytest.mark.parametrize('path', notebooks, ids=name_of)
def test_no_script_is_stored(path):
    script = all_scripts()
    pieces = [l.strip() for l in script.splitlines() if len(l.strip()) > 60][::10]
    assert pieces
    for c in json.loads(path.read_text(encoding='utf-8'))['cells']:
        for o in c.get('outputs', []):
            data = {k: v if isinstance(v, str) else ''.join(v) if isinstance(v, list)
                    else json.dumps(v) for k,v in o.get('data', {}).items()}
            assert not (tidy.VIEW in data and 'text/html' in data), f'{c["id"]}: run make tidy'
            for kind,text in data.items():
                text = html.unescape(text)
                assert '<script' not in text.lower()
                assert not any(p in text
                               for p in pieces), f'{c["id"]}: a script is stored in {kind}'

@pytest.mark.parametrize('path', notebooks, ids=name_of)
def test_notebook_is_small_and_clean(path):
    assert path.stat().st_size < 1_000_000
    nb = json.loads(path.read_text(encoding='utf-8'))
    assert not [c for c in nb['cells'] if c.get('execution_count')]
    assert 'widgets' not in nb['metadata']
    outputs = [o for c in nb['cells'] for o in c.get('outputs', [])]
    assert not [o['text'] for o in outputs
                if o.get('name') == 'stderr'], (
                    'warnings are stored; mend their cause or filter them')
    assert str(root) not in json.dumps(outputs), 'a path of this machine is stored'
    assert '<dc:date>' not in json.dumps(outputs), 'the date of a figure is stored: run make tidy'
