"Every page keeps its budgets (CONTRIBUTING.md, Budgets), and every one of these checks can fail"
import pytest
import rules
from helpers.book import cells, name_of, names, notebooks

@pytest.mark.parametrize('path', notebooks, ids=name_of)
def test_a_page_keeps_within_its_budgets(path):
    found = rules.budget_problems(cells(name_of(path)), name_of(path), names)
    over = [f'{which}: {text}' for which,text in found]
    assert not over, '\n'.join(['', *over])

# ---- each check fails on a bad page, and only there

def code(text, outputs=()):
    return dict(cell_type='code', source=text, outputs=list(outputs), id='0')
def prose(text): return dict(cell_type='markdown', source=text)

title = prose('# A page\n\n> What it promises')
plain = code('\n'.join(f'x{i} = {i}' for i in range(30)))
lesson = [title, prose('## Here'), plain, *[prose('#| explain "x1 = 1"\n\nWhy.')]*3]
library = [title, prose('It makes [Page](../01_page.ipynb) fast.'), plain]
book = ['01_page', 'kernels/page', 'notes/runs', 'kernels/index', '02_other', 'index']

def problems(cells, name='01_page'):
    return [text for _,text in rules.budget_problems(cells, name, book)]
def fold(text, summary='A claim'):
    return f'#| code-fold: true\n#| code-summary: "{summary}"\n{text}'

def test_a_good_lesson_and_a_good_page_of_the_library_have_no_problem():
    assert problems(lesson) == problems(library, 'kernels/page') == []

six = '\n'.join(f'assert {i} == {i}' for i in range(6))
bad = dict(
    wide=('a line of 85 characters', '01_page', code('x = ' + '1'*81)),
    wide_in_a_fold=('a line of 85 characters', '01_page', code(fold('x = ' + '1'*81))),
    wide_and_hidden=('a line of 101 characters', '01_page', code('#| hide\nx = ' + '1'*97)),
    wide_in_a_library=('a line of 101 characters', 'kernels/page', code('x = ' + '1'*97)),
    wide_directive=('a line of 130 characters', '01_page',
                    code('#| code-fold: true\n#| code-summary: "' + 'w'*111 + '"\nx = 1')),
    exported_code_folded=('a lesson shows all the code it exports', '01_page',
                          code(fold('#| export\ndef f(): return 1'))),
    no_summary=('folded without a summary', '01_page', code('#| code-fold: true\nx = 1')),
    empty_summary=('folded without a summary', 'kernels/page', code(fold('x = 1', ' '))),
    open_proof=('6 lines that only assert stand open', '01_page', code(six)),
    option_like_a_directive=("begins with 'hide'", '01_page',
                             code('#| fig-alt: >-\n#|   hide: and seek\nx = 1')),
    summary_that_is_not_yaml=('is not YAML', '01_page',
                              code('#| code-fold: true\n#| code-summary: a: b: c\nx = 1')))

@pytest.mark.parametrize('why', bad)
def test_a_bad_cell_is_found_where_it_stands(why):
    message,name,cell = bad[why]
    good = lesson if name == '01_page' else library
    found = [p for p in problems([*good, prose('## There'), cell], name) if message in p]
    assert len(found) == 1, problems([*good, cell], name)
    assert f"{name}.ipynb, under 'There', cell {len(good)+1}" in found[0]

def test_pages_as_a_whole():
    def words(n, name='01_page'):
        return problems([*lesson, prose('word ' * (n - 27))], name)     # the lesson has 27
    assert not words(2800) and words(2801) == ['01_page.ipynb: 2801 words, 2800 at most']
    assert not words(700, 'guide/page') and len(words(701, 'guide/page')) == 1
    lost = ['kernels/page.ipynb: its first prose does not link a lesson']
    first = prose('Of [Page](../01_page.ipynb).')
    assert not problems([title, first], 'kernels/page') and not problems([title], 'kernels/index')
    for cells in ([title, prose('Nothing.'), first], [title, prose('[Page](01_page.ipynb)')],
                  [prose('# [Page](../01_page.ipynb)\n\n> [Page](../01_page.ipynb)'),
                   prose('Nothing.')], [title, prose('[No](../05_page.ipynb)')]):
        assert problems(cells, 'kernels/page') == lost

def test_a_picture_has_a_caption_and_a_text():
    """Not asked of hidden cells, of outputs that are not shown; what a drawn scheme says of
    itself is its text"""
    def picture(options, svg='<svg/>'):
        return code(f'{options}draw()', [dict(data={'image/svg+xml': svg})])
    cap,alt = '#| fig-cap: "C"\n','#| fig-alt: "A"\n'
    assert not problems([*lesson, picture(cap+alt), picture(cap, '<svg><desc>A</desc></svg>'),
                         picture('#| hide\n'), picture('#| output: false\n')])
    assert [f.split(';')[0].split(': ')[1] for f in problems([*library, picture('')],
        'kernels/page')] == ['a picture without a caption', 'a picture without a text']
    for options,missing in (('', ['caption', 'text']), (cap, ['text']), (alt, ['caption']),
                            ('#| echo: false\n'+alt, ['caption'])):
        found = problems([*lesson, prose('## There'), picture(options)])
        assert len(found) == len(missing)
        assert all(f"under 'There', cell {len(lesson)+1}: a picture without a {m}" in f
                   for f,m in zip(found, missing)), found

def test_code_that_a_lesson_shows_is_narrower_than_other_code():
    "84 characters may stand in it; its captions, hidden cells and the library have 100"
    wide = 'x = ' + '1'*96
    assert not problems([*lesson, code('x = ' + '1'*80), code(fold('x = ' + '1'*80))])
    assert not problems([*lesson, code(f'#| hide\n{wide}'), code(f'#| echo: false\n{wide}'),
                         code(f'#| fig-cap: "{"w"*86}"\nx = 1')])
    assert not problems([*library, code(wide)], 'kernels/page')

def test_what_does_not_count():
    "Folded, hidden and unshown cells, and cells with outputs"
    for top in ('#| hide', '#| echo: false', '#| code-fold: true\n#| code-summary: "Five claims"'):
        assert not problems([*lesson, code(f'{top}\n{six}')]), top
    assert not problems([*lesson,
                         code(six, [dict(output_type='stream', name='stdout', text='seen')])])

def test_checks_are_counted_as_claims():
    for n,text in {0: 'x = 1', 1: 'assert x',
                   2: 'for x in range(9):\n    assert x\n    test_eq(x, x)',
                   3: 'assert_close(a, b)\ntorch.testing.assert_close(a, b)\nassert gradcheck',
                   4: 'with expect_fail(ValueError, "no"): f()\ntest_eq(1, 1); '
                      'test_fail(f)\nassert gradcheck(f, x)'}.items():
        assert rules.checks(text) == n + (n == 4), text
    assert rules.checks('%matplotlib inline\nassert x\n!ls') == 1
    assert rules.checks('a = 7 \\\n% 5\nassert a') == 1
    assert rules.checks('not python at all') == 0
    assert rules.fold_label({'code-summary': 'A claim'}, 'assert x') == '✓ A claim · 1 check'
    assert rules.fold_label({'code-summary': 'A claim'}, six) == '✓ A claim · 6 checks'
    assert rules.fold_label({'code-summary': 'What it is', 'exports': True},
                            'def f(): assert x') == 'What it is'
    assert rules.fold_label({'code-summary': 'What it is'}, 'x = 1') == 'What it is'

def test_options_of_several_lines():
    text = (
        '#| echo: false\n#| fig-alt: >-\n#|   Lines from "it" to the\n#|   words: of its '
        'sentence\n#| fig-cap: short\nview')
    assert rules.split_options(text) == ({'echo': False,
                                          'fig-alt': 'Lines from "it" to the words: of its '
                                                     'sentence', 'fig-cap': 'short'}, 'view')
    assert rules.join_options('x = 1\n#| y') == 'x = 1\n#| y'

def test_kinds_of_pages():
    kinds = ['lesson', 'library', 'notes', 'room', 'lesson', None]
    assert [rules.kind(n) for n in book] == kinds
    assert rules.kind('checks') == 'library' and rules.kind('checkpoints/families/x') == 'library'
    assert rules.room('kernels/page') == 'kernels' and rules.room('notes/runs') is None
    assert rules.lesson_of('kernels/page', library) == '01_page'
    assert rules.link_to('01_page', 'kernels/page') == '../01_page'
    assert rules.target('../01_page', 'kernels/page') == '01_page'

def test_the_order_of_pages_is_that_of_the_rooms_and_of_their_first_pages():
    home = [prose('[b](b.ipynb) [a](a.ipynb) [f](families/f.ipynb)')]
    pages = {n: [] for n in ('views/x', 'notes/n', 'checkpoints/a', 'checkpoints/families/f',
                             'index', '02_b', '10_c', 'glossary', 'checkpoints/b', 'checks')}
    pages |= {'checkpoints/index': home, 'views/index': []}
    assert rules.in_order(pages) == [
        'index', '02_b', '10_c', 'glossary', 'notes/n', 'checks', 'checkpoints/index',
        'checkpoints/b', 'checkpoints/a', 'checkpoints/families/f', 'views/index', 'views/x']
