"""`make lesson` writes a page that runs and keeps the rules, and says what it lacks until it is
there"""
import shutil
import lesson, nbformat, outputs, pytest, rules
from nbdev.export import nb_export
from helpers import root
from helpers.book import chapters

@pytest.fixture
def book(tmp_path):
    for name in ('CHANGELOG.md', 'pyproject.toml', 'settings.ini', 'nbs/learn.ipynb',
                 'nbs/glossary.ipynb', 'nbs/kernels/index.ipynb',
                 'tests/typing/use_everything.py'):
        (tmp_path/name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root/name, tmp_path/name)
    (tmp_path/'nbs'/'_sphinx'/'_static'/'cards').mkdir(parents=True)
    return tmp_path

def make(name, book, capsys):
    lesson.main(name, book)
    first,*lines = capsys.readouterr().out.splitlines()
    assert first == f'nbs/{name}.ipynb is there. Missing:'
    return [line.removeprefix('- ') for line in lines]

def test_a_new_lesson_and_a_page_of_the_library(book, capsys):
    lines = make('77_routing', book, capsys)
    path,card = book/'nbs'/'77_routing.ipynb',book/'nbs'/'_sphinx'/'_static'/'cards'/'77.svg'
    assert card.exists() and len(lines) == 7, lines
    for piece in ('places in 77_routing.ipynb say TO WRITE',
                  '| [77. Routing](77_routing.ipynb) | what for |', 'glossary',
                  'card', 'routing.py is not exported', 'make outputs', 'CHANGELOG.md'):
        assert sum(piece in line for line in lines) == 1, (piece, lines)
    assert outputs.execute(path) is None
    before = path.read_bytes()
    for name in ('learn', 'glossary'):                  # the lack goes when it is there
        page = book/'nbs'/f'{name}.ipynb'
        page.write_text(page.read_text().replace('"# ', '"[77](77_routing.ipynb)\\n# ', 1))
    log = book/'CHANGELOG.md'
    log.write_text(log.read_text() + '`routing`')
    card.write_text('<svg><desc>Another</desc></svg>')
    assert len(make('77_routing', book, capsys)) == 2 and path.read_bytes() == before
    lines = make('kernels/blocks', book, capsys)
    row = 'nbs/kernels/index.ipynb does not link it: a row of its table, | [blocks](blocks.ipynb)'
    assert any(row in line for line in lines) and any('link a lesson' in line for line in lines)
    path = book/'nbs'/'kernels'/'blocks.ipynb'
    assert 'default_exp kernels.blocks' in path.read_text() and outputs.execute(path) is None
    path.write_text(path.read_text().replace('../NN_name.ipynb', '../77_routing.ipynb'))
    assert not list(rules.budget_problems(rules.load(path), 'kernels/blocks', ['77_routing']))

def test_a_page_without_a_lack_passes_its_checks(book, capsys):
    "Who does what the list says, line by line, ends on a page that runs and keeps its budgets"
    make('77_routing', book, capsys)
    path = book/'nbs'/'77_routing.ipynb'
    nb = nbformat.read(path, 4)
    for c in nb.cells: c.source = c.source.replace(lesson.LATER, 'Said')
    nbformat.write(nb, path)
    nb_export(path, lib_path=book/'attention_nb')
    for name in ('nbs/learn', 'nbs/glossary'):
        page = book/f'{name}.ipynb'
        page.write_text(page.read_text().replace('"# ', '"[77](77_routing.ipynb)\\n# ', 1))
    for name,line in (('CHANGELOG.md', '`routing`'),
                      ('tests/typing/use_everything.py', 'nb.routing_step(q)')):
        (book/name).write_text((book/name).read_text() + line)
    (book/'nbs'/'_sphinx'/'_static'/'cards'/'77.svg').write_text('<svg><desc>Two</desc></svg>')
    assert make('77_routing', book, capsys) == [
        'no stored outputs: make outputs ARGS=nbs/77_routing.ipynb']
    assert outputs.store(path) is None
    lesson.main('77_routing', book)
    said = capsys.readouterr().out
    assert said == ('nbs/77_routing.ipynb is there, and nothing is missing: '
                    'make check NB=nbs/77_routing.ipynb\n')
    assert not list(rules.budget_problems(rules.load(path), '77_routing'))

def test_what_is_asked_of_a_new_page_stands_on_those_that_are_there():
    lacks = {name: list(lesson.missing(root/'nbs'/f'{name}.ipynb')) for name in chapters}
    assert not {name: l for name,l in lacks.items() if l} and len(lacks) > 50

@pytest.mark.parametrize('name,message', [
    ('sparse', "'sparse' is no name of a page"), ('', 'is no name of a page'),
    ('78a_blocks', "'78a_blocks' is no name of a page"),
    ('cellar/blocks', 'the rooms are checks, simple, text'),
    ('79_learn', None)])
def test_a_name_that_is_none(book, name, message):
    shutil.copy(book/'nbs'/'learn.ipynb', book/'nbs'/'01_learn.ipynb')
    with pytest.raises(SystemExit, match=message or '01_learn already answers to the name learn'):
        lesson.main(name, book)
    assert not (book/'nbs'/f'{name}.ipynb').exists()
