"""The tree: imports run down the table of rooms, in no circle, inside functions and for types too;
no module takes a private name of another; pages and modules have one place.
"""
import re
import cells, package, rooms
from helpers import root
from helpers.book import module_of, names

lib = root/'attention_nb'
modules = package.modules_in(lib)
LINES = 700

def below(room):
    "The rooms that a room may import"
    return {r for b in cells.ROOMS[room] for r in (b, *below(b))}

def upwards(graph):
    "Imports that do not run down the table"
    def room(m): return m.split('.')[0]
    return {(m, b) for m,bs in graph.items() for b in bs
            if room(b) not in {room(m), *below(room(m))}}

def circles(graph):
    "Modules that reach themselves"
    def reached(m):
        seen,new = set(),{*graph[m]}
        while new: seen,new = seen | new,{n for k in new for n in graph[k]} - seen - new
        return seen
    return {m for m in graph if m in reached(m)}

def private(texts):
    "(module, name) of what is taken from another module though it begins with an underscore"
    return {(m, name) for m,text in texts.items() for _,name,_ in rooms.imported(text, m)
            if re.match('_(?!_)', name)}

def test_imports_run_down_the_rooms_in_no_circle():
    graph = rooms.graph()
    assert upwards(graph) == set() and circles(graph) == set()
    assert {room for m in modules for room in [m.split('.')[0]]} <= cells.ROOMS.keys()

def test_the_one_import_that_runs_up_stands_in_its_method():
    for (module,above),method in rooms.UPWARDS.items():
        text = modules[module].read_text(encoding='utf-8')
        assert [w for m,_,w in rooms.imported(text, module) if m == above] == [method]

def test_no_private_name_leaves_its_module():
    assert private({m: p.read_text(encoding='utf-8') for m,p in modules.items()}) == set()

def test_no_module_is_long_and_no_script_is_wide():
    assert {m: n for m,p in modules.items()
            if (n := len(p.read_text(encoding='utf-8').splitlines())) > LINES} == {}
    scripts = {p: p.read_text(encoding='utf-8').splitlines() for p in lib.glob('*_js/*')}
    wide = {p for p,lines in scripts.items() if len(lines) > 200 or max(map(len, lines)) > 100}
    assert scripts and not wide

def test_a_page_writes_the_module_of_its_place():
    for name in names:
        wanted = {'library': name.replace('/', '.'), 'lesson': f'simple.{cells.alias(name)}'}
        assert module_of(name) in {wanted.get(cells.kind(name)), None}, name
    assert {module_of(n) for n in names} - {None} == modules.keys()

def test_pages_for_implementers_make_nothing_that_a_user_types():
    "But for two whose names are offered and seldom typed"
    offers = {m.replace('.', '/') for m in package.table(root/'attention_nb')}
    library = {n for n in names if cells.kind(n) == 'library'}
    assert cells.FOR_IMPLEMENTERS <= library
    assert cells.FOR_IMPLEMENTERS & offers == {'kernels/positions', 'views/page'}
    assert library - offers - cells.FOR_IMPLEMENTERS == {
        'kernels/patterns', 'views/command', 'training/command', 'distributed/expert_parallel',
        'models/blocks', 'models/sampling', 'models/text_stream', 'checkpoints/source',
        'figures/explorables'}
