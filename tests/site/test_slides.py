"Slides of a lesson: made from the notebook, shown without a network, nothing cut off"
import ast, re, subprocess, symtable, sys
import nbformat, pytest, rules
from nbdev.config import get_config
from helpers import root, serve
from helpers.book import cells, code_cells, lessons

LESSON = '03_attention'

def make_slides(folder, *paths):
    return subprocess.run([sys.executable, root/'nbs'/'_sphinx'/'slides.py', '--out', folder,
                           *paths], capture_output=True, text=True)

@pytest.fixture(scope='module')
def slides(tmp_path_factory):
    "Folder of the slides of one lesson"
    folder = tmp_path_factory.mktemp('slides')
    done = make_slides(folder, root/'nbs'/f'{LESSON}.ipynb')
    assert done.returncode == 0 and 'WARNING' not in done.stderr, done.stderr[-3000:]
    assert (folder/f'{LESSON}.html').exists() and f'{LESSON}.html' in done.stdout
    return folder

@pytest.fixture(scope='module')
def text(slides): return (slides/f'{LESSON}.html').read_text(encoding='utf-8')

def titles(text):
    return [re.sub('<[^>]*>', '', h).strip() for h in re.findall(r'<h[23]>(.*?)</h[23]>', text,
        re.S)]

def test_every_heading_begins_a_slide(text):
    headings = [re.sub(r'[`*]', '', m) for c in cells(LESSON) if c['cell_type'] == 'markdown'
                for m in re.findall(r'^#{2,3} (.+)$', rules.source(c), re.M)]
    assert len(headings) > 7 and not set(headings) - set(titles(text))
    assert re.findall(r'<section[^>]*>\s*<h[23]>', text).__len__() >= len(headings)

def test_proofs_answers_and_hints_are_left_out(text):
    squashed = re.sub(r'<[^>]*>|\s|&\w+;|&#\w+;', '', text)
    for c in code_cells(LESSON):
        options = rules.split_options(rules.source(c))[0]
        own = re.sub(r'\s|[<>&\'"]', '', rules.code_lines(c)[-1] if rules.code_lines(c) else '')
        if rules.folded(options) and len(own) > 40:
            assert own not in re.sub(r'[\'"]', '', squashed), rules.source(c)[:80]
    assert '<details' not in text and 'Answer' not in titles(text) and 'Exercises' in titles(text)
    assert 'for-dark' not in text

def test_a_slide_holds_a_line_or_two_of_a_paragraph_and_the_notes_all(text):
    notes = re.findall('<aside class="notes">(.*?)</aside>', text, re.S)
    shown = re.sub('<aside class="notes">.*?</aside>', '', text, flags=re.S)
    shown = shown[:shown.index('<h2>Exercises')]
    plain = [re.sub('<[^>]*>', '', p) for p in re.findall('<p>(.*?)</p>', shown, re.S)]
    assert max(map(len, plain)) < 400 and any(p.startswith('A python is a snake') for p in plain)
    cut = 'reticulated'
    assert cut in ''.join(notes) and cut not in shown
    assert 'Predict:' in shown and 'A word that fits better gives a larger share:' in shown

def test_links_lead_to_the_site(text):
    links = [l for l in re.findall(r'<a[^>]*href="([^"]*)"', text) if not l.startswith('#')]
    assert len(links) > 5 and all(l.startswith('https://') for l in links), links
    assert any(l.startswith(get_config().doc_host) and '/02_embedding.html' in l for l in links)

measure = """Reveal.getSlides().map(s => {
    const at = Reveal.getIndices(s), right = e => e.getBoundingClientRect().right
    Reveal.slide(at.h, at.v || 0)
    return {title: s.querySelector('h1, h2, h3, h4')?.textContent || '', high: s.scrollHeight,
        room: s.clientHeight, scrolls: getComputedStyle(s).overflowY,
        inside: [...s.querySelectorAll('p, li, pre, img, td, mjx-math')].every(
            e => right(e) <= right(s) + 1 || e.closest('.math')),
        pictures: [...s.querySelectorAll('img:not([data-still])')].every(
            i => i.complete && i.naturalWidth > 0 && i.getBoundingClientRect().width > 200)}
})"""

def test_slides_in_the_browser(slides, text, browser):
    "No request leaves; formulas are set, pictures shown; every slide fits or scrolls"
    page,problems = browser.new_page(viewport=dict(width=1200, height=675)),[]
    with serve(slides) as address:
        page.on('request', lambda r: problems.append(r.url)
                if not r.url.startswith((address, 'data:', 'blob:')) else None)
        page.on('response', lambda r: problems.append(f'{r.status} {r.url}') if r.status >= 400
                else None)
        page.on('pageerror', lambda e: problems.append(str(e)))
        page.goto(f'{address}/{LESSON}.html')
        page.wait_for_function("window.Reveal && Reveal.isReady() && "
                               "!document.querySelector('.math:not(:has(mjx-container))')",
                               timeout=60_000)
        assert page.locator('mjx-merror').count() == 0
        measured = page.evaluate(measure)
        page.evaluate('Reveal.slide(0)')
        page.keyboard.press('ArrowRight')
        page.wait_for_function('Reveal.getIndices().h === 1')
    page.close()
    assert not problems, problems
    size = sum(p.stat().st_size for p in slides.rglob('*') if p.is_file())
    assert size < 5e6, 'a folder that can be sent to a class'
    leaves = re.findall(r'<section\b(?:(?!<section\b).)*?</section>', text, re.S)
    assert len(measured) == len(leaves) > len(titles(text)) > 15
    wrong = [m for m in measured if not (m['title'] and m['inside'] and m['pictures'])]
    assert not wrong, wrong
    high = [m for m in measured if m['high'] > m['room'] + 1]
    assert all(m['scrolls'] == 'auto' for m in high)
    assert len(high) <= len(measured)/8, 'most slides fit without scrolling'

def test_a_student_gets_no_answer_no_output_no_proof_and_all_else(tmp_path):
    done = subprocess.run([sys.executable, root/'nbs'/'_sphinx'/'student.py', tmp_path], cwd=root,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(p.stem for p in tmp_path.iterdir()) == lessons
    given = nbformat.read(tmp_path/f'{LESSON}.ipynb', 4)
    nbformat.validate(given)
    theirs = {c.id: c.source for c in given.cells}
    kinds = dict(answer=0, proof=0, note=0)
    for c in cells(LESSON):
        options,code = rules.split_options(rules.source(c))
        kind = ('answer' if 'code-summary: "Answer' in rules.source(c) else
                'proof' if rules.is_proof(c, options) else
                'note' if rules.EXPLAIN.match(rules.source(c)) else None)
        if kind: kinds[kind] += 1
        if kind == 'answer': assert theirs[c['id']] == '# your answer'
        elif kind == 'proof': assert c['id'] not in theirs
        elif kind == 'note': assert theirs[c['id']].startswith('`')
        elif c['id'] in theirs and c['cell_type'] == 'code': assert theirs[c['id']] == code
    assert min(kinds.values()) >= 1 and kinds['answer'] >= 3
    shown = [c for c in given.cells if c.get('outputs')]    # nothing that answers a question
    assert len(shown) == 1 and "'figures'/'self_attention.svg'" in shown[0].source
    for path in tmp_path.iterdir():                     # no directive, and links lead somewhere
        text = '\n'.join(c.source for c in nbformat.read(path, 4).cells)
        assert '#|' not in text, path.name
        assert {name for name in re.findall(r'\]\((\w+)\.ipynb', text)} <= {*lessons}
    assert '](https://attention-nb.github.io/attention_nb/notes/controls.html' in '\n'.join(
        c.source for c in given.cells)

def test_a_proof_of_a_downloaded_lesson_lets_a_changed_notebook_go_on(site, capsys):
    given = nbformat.read(site/'_sources'/f'{LESSON}.ipynb', 4)
    nbformat.validate(given)
    first,*rest = given.cells
    own = cells(LESSON)
    assert [c.id for c in rest] == [c['id'] for c in own]
    for theirs,c in zip(rest, own):
        proof = c['cell_type'] == 'code' and rules.is_proof(
            c, rules.split_options(rules.source(c))[0])
        assert theirs.source.startswith('%%proof') == proof, theirs.id
        if not proof: assert theirs.source == rules.source(c)
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()
    shell.run_cell(first.source).raise_error()
    shell.run_cell('%%proof\ndef f(): return 3\nkept = f()\nassert kept == 4').raise_error()
    assert capsys.readouterr().out.strip() == ('This held for the original numbers. '
                                               'Something above is changed.')
    assert shell.user_ns['kept'] == 3

def names(tree):
    "Names that a cell defines, and names that it needs from other cells"
    tables = [symtable.symtable(ast.unparse(tree), 'cell', 'exec')]
    defined = {s.get_name() for s in tables[0].get_symbols() if s.is_assigned() or s.is_imported()}
    for t in tables: tables.extend(t.get_children())
    used = {s.get_name() for t in tables for s in t.get_symbols()
            if s.is_referenced() and (t is tables[0] or s.is_global())}
    return defined, used - defined

@pytest.mark.parametrize('lesson', lessons)
def test_a_lesson_needs_no_name_of_its_proofs(lesson):
    "So the student's notebook, which has none, runs as far as its empty answers"
    proved,known = set(),set()
    for c in (c for c in cells(lesson) if c['cell_type'] == 'code'):
        options,code = rules.split_options(rules.source(c))
        tree = rules.syntax(code)
        if str(options.get('code-summary')).startswith('Answer'): continue
        defined,used = names(tree)
        if rules.is_proof(c, options): proved |= defined
        else:
            assert not used & proved - known, (c['id'], used & proved - known)
            known |= defined
