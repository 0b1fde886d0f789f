"""Code as a reader pastes it: the README and the recipes run in a fresh process from top to bottom,
and a chapter shows all that its code needs"""
import ast, os, sys
import pytest, rules
from helpers import root, run, short
from helpers.book import chapters, code_cells, lessons
from helpers.pasted import blocks, lacking

# what they show is not for one process, or stands among code that only the module has
apart = ('checks', 'distributed/context', 'distributed/tensor_parallel',
         '22_several_machines')

def plain_text(name):
    from notebooks import process
    from plain import markdown_of
    path = root/'nbs'/f'{name}.ipynb'
    return markdown_of(process(path.read_text(encoding='utf-8'), path), name)[0]

@pytest.mark.parametrize('name', short(['README'], ['README', 'guide/recipes']))
def test_a_page_runs_as_it_stands(name, tmp_path):
    text = (root/'README.md').read_text('utf-8') if name == 'README' else plain_text(name)
    code = blocks(text)
    (tmp_path/'page.py').write_text('\n'.join(code), encoding='utf-8')
    said = run(sys.executable, 'page.py', cwd=tmp_path, env=os.environ | dict(MPLBACKEND='agg'))
    assert len(code) > 4 and ('Paris' if name == 'README' else 'loss') in said

def test_a_chapter_shows_all_that_its_code_needs(site):
    "In its plain text, which has the code of the page; the fold at its top has the imports"
    for page in chapters:
        text = (site/f'{page}.html.md').read_text(encoding='utf-8')
        if page not in apart: assert not lacking(blocks(text)), page
    assert len(chapters) > 50

def in_sight(page):
    "The code of a page without magics, and the numbers of the cells that it does not show"
    found,hidden,begun = [],set(),False
    codes = code_cells(page)[1:-1]                      # the first one installs, the last exports
    while rules.directive(codes[-1], 'example'): codes.pop()     # below all, for the API's page
    for c in codes:
        options,text = rules.split_options(rules.source(c))
        begun = begun or not rules.hidden(options) and 'export' not in options
        if begun and rules.hidden(options): hidden.add(len(found))
        found.append(ast.unparse(rules.syntax(text)))
    return found, hidden

def test_a_lesson_shows_what_its_code_was_given():
    "And a name does not mean something else since a cell that nobody sees"
    assert {page: found for page in lessons if (found := lacking(*in_sight(page)))} == {}

def test_the_program_of_parallel_is_a_file_to_copy(site):
    text = (site/'distributed/tensor_parallel.html.md').read_text(encoding='utf-8')
    shown, = (b for b in blocks(text) if 'WORLD_SIZE' in b)
    cell, = (c for c in code_cells('distributed/tensor_parallel') if rules.directive(c, 'file'))
    made = {}
    exec(rules.source(cell), made)
    assert shown.strip() == made['program'].strip() and ast.parse(shown)
