"The machinery of the site on small books: what a page may hold, what is named, what is built anew"
import html, re, shutil, subprocess, sys
import api, nbformat, notebooks, package, plain, pytest, quarto, rules, stale, tidy
from helpers import root
from helpers.book import following, labels, proofs, sidebar, top_bar

svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
picture = {'image/svg+xml': svg, 'text/plain': 'two'}

def notebook(cells):
    kernel = dict(name='python3', display_name='python3', language='python')
    nb,new = nbformat.v4.new_notebook(metadata=dict(kernelspec=kernel)),nbformat.v4
    makers = dict(raw=new.new_raw_cell, code=new.new_code_cell, markdown=new.new_markdown_cell)
    for kind,source,*outputs in cells:
        cell = makers[kind](source)
        if outputs: cell.outputs = [new.new_output('display_data', data=o) for o in outputs]
        nb.cells.append(cell)
    return nb

def write(folder, **pages):
    "A book of these pages, with the project's own machinery and package"
    for d in ('nbs/_sphinx', 'attention_nb'):
        if not (folder/d).exists():
            shutil.copytree(root/d, folder/d, ignore=shutil.ignore_patterns('__pycache__'))
    for f in ('pyproject.toml', 'settings.ini', 'constraints.txt', 'nbs/references.bib'):
        shutil.copy(root/f, folder/f)
    for name,cells in pages.items():
        (path := folder/'nbs'/f'{name}.ipynb').parent.mkdir(exist_ok=True)
        nbformat.write(notebook(cells), path)

def build(folder, strict=True):
    "Whether the build succeeds, and what it says"
    strictly = ['-W', '--keep-going'] if strict else []
    command = [sys.executable, '-m', 'sphinx', '-q', *strictly, '-d', 'trees', '-c', 'nbs/_sphinx',
               'nbs', 'html']
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode == 0, done.stderr

def page(title, *cells): return [('markdown', f'# {title}\n\n> A page of {title}'), *cells]

# ---- one book that has everything

stand_in = '''
class View:
    @classmethod
    def from_data(cls, data, summary, svg=None):
        self = cls(); self.text = f"<p>live {summary} {data} {svg}</p>"; return self
    def _repr_html_(self): return self.text
'''
view = {tidy.VIEW: dict(summary='A view', data=dict(n=[1, 2])), **picture}
old = {'text/html': '<p>stored page</p>', **picture}
everything = [('raw', '---\ntitle: Sample\ndescription: All that a page may hold\n---'),
    ('code', '#| hide\nsecret_of_the_cell = 1'),
    ('markdown', 'A note.[^n] A citation [@vaswani2017], an equation @eq-one, code `@eq-one`, '
     '<b>html</b>. A link: [`attention`](https://example.org).\n\n[^n]: The text of the note.'),
    ('markdown', '$$a^2 + b^2$$ {#eq-one}'),
    ('markdown', '::: {.callout-warning title="Mind"}\nThe gap, $x$.\n:::\n\n'
     '::: {.callout-note title="Shut" collapse="true"}\n\nInside.\n:::'),
    ('markdown', '<details><summary>Hint</summary>Count *all*.</details>'),
    ('code', 'for r in range(3):\n    total = r + 1\nprint(total)'),
    ('markdown', '#| explain "total = r + 1"\n\nAdds **one**.'),
    ('markdown', '#| explain "for r in range(3):" to "print(total)"\n\nAll of it.'),
    ('code', '#| code-fold: true\n#| code-summary: "What `x < y` means"\nfolded = 1'),
    ('code', '#| code-fold: true\n#| code-summary: "One is one: \\"always\\""\n'
     + 'assert folded == 1\n'*6),
    ('code', '#| echo: false\n#| fig-alt: >-\n#|   Two, said in\n#|   two lines\nshown_only = 2',
     picture),
    ('code', '#| code-fold: true\n#| code-summary: "Answer 1"\nx', {'text/plain': 'given away'}),
    ('code', '#| code-fold: true\n#| code-summary: "How it is drawn"\ny', {'text/plain': 'shown'}),
    ('code', 'v', view), ('code', 'w', old)]

def drawn(i):
    return ('code', f'#| fig-cap: "Caption {i}"\n#| fig-alt: "Text {i}"\ndraw({i})', picture)

hidden = [('code', '#| hide\nimport math\nonly_known_when_the_notebook_runs'),
          ('code', '#| export\ndef shown(): return 1')]         # the build executes the second only

@pytest.fixture(scope='module')
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp('book')
    write(folder, index=everything, **{
        '01_first': page('First', ('markdown', '## Part'), drawn(1), drawn(2), *hidden),
        'kernels/index': page('Kernels', ('markdown', '[More](more.ipynb)\n\n<!-- modules -->')),
        'kernels/fast': page('Fast', ('markdown', 'Of [First](../01_first.ipynb).\n\n## Part'),
                             drawn(1)),
        'kernels/more': page('More'), '02_second': page('Second', drawn(1), drawn(2)),
        'notes/last': page('Last'), 'notes/index': page('Notes'), 'learn': page('Learn'),
        'library': page('Library', ('markdown', '[Two](guide/two.ipynb), '
                                    '[one](guide/one.ipynb)')),
        'guide/one': page('One'), 'guide/two': page('Two'), 'speed': page('Speed')})
    with (folder/'attention_nb'/'views'/'page.py').open('a') as page_of_views:
        page_of_views.write(stand_in)
    good,said = build(folder)
    assert good, said
    return {p.relative_to(folder/'html').as_posix(): p.read_text(encoding='utf-8')
            for p in (folder/'html').rglob('*.*')
            if p.suffix in ('.html', '.md', '.txt', '.xml', '.js')}

def test_a_page_may_hold_all_this(book):
    text = book['index.html']
    words = ' '.join(html.unescape(re.sub(r'<[^>]*>', ' ', text)).split())
    assert 'secret_of_the_cell' not in text and 'shown_only' not in text
    assert re.search(r'<p class="lead">\s*All that a page may hold', text)
    assert '<meta name="description" content="All that a page may hold' in text
    for piece in ('The text of the note', 'arXiv:1706.03762', 'Mind', 'The gap', 'Shut', 'Inside',
                  'Adds one', 'All of it', '@eq-one'): assert piece in words, piece
    assert text.count('class="code-note') >= 2 and 'id="equation-eq-one"' in text
    assert re.search(r'admonition dropdown note|note dropdown', text)
    assert re.search(r'<details class="hint">.*?Count <em>all</em>', text, re.S)
    assert 'alt="Two, said in two lines"' in text
    link = r'href="https://example.org"><code[^>]*><span class="pre">attention</span></code></a>\.'
    assert re.search(link, text), 'one link, not two'
    assert labels(text) == ['What x < y means', 'Answer', 'How it is drawn']
    assert proofs(text) == [(6, ['One is one: "always"'])] and '<code>x &lt; y</code>' in text
    body = book['index.html.md']
    assert '*Picture: Two, said in two lines*' in body and 'folded = 1' in body
    assert '✓' not in body and '#|' not in body.replace('#| explain', '')

def test_a_stored_view_comes_to_life_when_the_site_is_built(book):
    "From its data; what has no data is shown as it is stored; the plain text has neither"
    text,body = book['index.html'],book['index.html.md']
    assert "<p>live A view {'n': [1, 2]} <svg" in text and '<p>stored page</p>' in text
    assert 'live' not in body.replace('All that', '') and 'stored page' not in body

def test_an_answer_hides_its_output_until_it_is_opened(book):
    folds = ''.join(re.findall(r'<details.*?</details>', book['index.html'], re.S))
    assert 'given away' in folds and 'shown' in book['index.html']
    assert 'shown' not in re.sub(r'<[^>]*>', '', folds)

def test_each_part_has_its_sidebar_and_its_own_next(book):
    assert [(words, page) for words,page,_ in top_bar(book['index.html'])] == [
        ('Learn', 'learn.html'), ('Library', 'library.html'), ('Speed', 'speed.html')]
    assert sidebar(book['01_first.html']) == {
        'Foundations': [('#', []), ('02_second.html', [])],
        'Beside the lessons': [('notes/index.html', ['notes/last.html'])]}
    assert sidebar(book['library.html']) == {
        'Use it': [('guide/two.html', []), ('guide/one.html', [])],
        'Room by room': [('kernels/index.html', ['kernels/more.html', 'kernels/fast.html'])]}
    for order in (['learn', '01_first', '02_second'], ['notes/index', 'notes/last'], ['speed'],
                  ['library', 'guide/two', 'guide/one', 'kernels/index', 'kernels/more',
                   'kernels/fast']):
        after = [following(book[f'{p}.html']) for p in order]
        assert after == [[f'{rules.link_to(n, p)}.html'] for p,n in zip(order, order[1:])] + [[]]
    assert re.search(r'page-kind">Lesson 1 · \d minutes<', book['01_first.html'])
    assert re.search(r'page-kind">Library · <a [^>]*href="index.html"', book['kernels/more.html'])
    below = re.search(r'<nav class="beyond".*?</nav>', book['01_first.html'], re.S)[0]
    assert re.findall(r'href="([^"]+)"', below) == ['kernels/fast.html']
    assert '<nav class="beyond"' not in book['02_second.html']
    drawn = re.findall(r'<a href="([^"]+)"><rect', book['kernels/index.html'])
    assert 'reference.html' in drawn and 'flash.html' in drawn

def test_figures_are_numbered_within_their_chapter(book):
    for name,numbers in (('01_first', ['1.1', '1.2']), ('kernels/fast', ['1']),
                         ('02_second', ['2.1', '2.2'])):
        found = re.findall(r'caption-number">Figure (.*?)\s*<', book[f'{name}.html'])
        assert found == numbers

def test_other_names_lead_to_a_page_and_lists_have_every_page(book):
    assert '01_first.html' in book['first.html'] and 'location.hash' in book['first.html']
    for name in ('01_first', 'notes/last', 'kernels/fast'):
        assert f'{name}.html.md): A page of' in book['llms.txt']
        assert f'{name}.html</loc>' in book['sitemap.xml']
        assert f'"{name}.html' in book['sections.js']

# ---- what is wrong is named

def test_what_is_wrong_fails_the_build_and_is_named_with_its_place(tmp_path):
    proof = '\n'.join(f'assert {i} == {i}' for i in range(6))
    shut = '#| code-fold: true\n#| code-summary: "A function"\n'
    sums = 'for r in range(3):\n    total = r + 1\nprint(total)'
    write(tmp_path, index=page('Home', ('markdown', '## Here\n\nA reference @eq-nowhere.\n\n'
              'A [link](nowhere.ipynb).\n\nA citation [@nobody1900].')), **{
        '01_page': page('Page', ('markdown', '## Here'), ('code', '#| code-fold: true\nx = 1'),
            ('markdown', '### There'), ('code', proof),
            ('code', f'#| export\n{shut}def f(): return 1'), ('code', f'#| hide\n{proof}'),
            ('code', '\n'.join(proof.splitlines()[:5])), ('markdown', '## Sums'), ('code', sums),
            ('markdown', '#| explain "total = r + 2"\n\nNo.'),
                        ('markdown', '#| explain\n\nOf what?')),
        'kernels/page': page('Shop', ('code', f'#| export\n{shut}def f(): return 1'),
            ('code', '#| code-fold: true\n#| code-summary: ""\ny = 2'))})
    good,said = build(tmp_path, strict=False)
    found = sorted(set(re.findall(r'ERROR: ([\w/]+\.ipynb, under .*)', said)))
    wanted = [r"01_page.ipynb, under 'Here', cell 2 \(\w+: 'x = 1'\): folded without a summary",
        r"01_page.ipynb, under 'Sums', cell 10 \(\w+\), line 1: .*: \"total = r \+ 2\"; "
        r"there is 'total = r \+ 1'",
        r"01_page.ipynb, under 'Sums', cell 11 .*: nothing",
        r"01_page.ipynb, under 'There', cell 4 .*: 6 lines that only assert stand open",
        r"01_page.ipynb, under 'There', cell 5 .*def f\(\).*: a lesson shows all the code it "
        r"exports",
        r"kernels/page.ipynb, under 'Shop', cell 2 .*: folded without a summary"]
    assert not good and len(found) == len(wanted), said
    for line in found: assert any(re.match(w, line) for w in wanted), line
    for name in ('eq-nowhere', 'nowhere.ipynb', 'nobody1900'): assert name in said, said
    place = r"index\.ipynb, under 'Here', cell \w+, line 5: 'A \[link\]\(nowhere.ipynb\).':"
    assert re.search(place, said), said

# ---- a second build

def test_a_second_build_does_again_what_a_change_concerns_and_nothing_else(tmp_path):
    def second(link='part', text='Old words.'):
        return page('Second', ('markdown', f'## Own\n\n{text} See [it](01_first.ipynb#{link}).'))
    def first(section='Part'): return page('First', ('markdown', f'## {section}\n\nText.'))
    def third(text, code='1', out='1'):
        return page('Third', ('markdown', f'`brand_new` is {text}.'),
                    ('code', code, {'text/plain': out}))
    glossary = page('Glossary',
                    ('markdown', '- **thing**: A thing. → [Second](02_second.ipynb#own)'))
    write(tmp_path, index=page('Home'), glossary=glossary, api=page('API', ('markdown', api.MARK)),
          **{'01_first': first(), '02_second': second(), '03_third': third('coming'),
             'notes/index': page('Notes'), 'notes/more': page('More'), 'checks': page('Checks')})
    out = tmp_path/'html'
    def text(name): return (out/name).read_text(encoding='utf-8')
    checks = tmp_path/'attention_nb'/'checks.py'        # of which this book shows no entry
    checks.write_text(re.sub(r'^__all__ = .*', '__all__ = []', checks.read_text(), flags=re.M))
    def times(): return {p.stem: p.stat().st_mtime_ns for p in out.glob('0*.html')}
    good,said = build(tmp_path)
    assert good, said
    before = times()
    # a section is renamed: the page that links it is named, and again when only another one changed
    write(tmp_path, **{'01_first': first('Piece')})
    good,said = build(tmp_path)
    assert not good and "02_second.ipynb, under 'Own'" in said, said
    assert {p for p,t in times().items() if t != before[p]} == {'01_first', '02_second'}
    before = times()
    write(tmp_path, **{'03_third': third('coming soon', '1 + 1')})
    good,said = build(tmp_path)
    assert not good and "02_second.ipynb, under 'Own'" in said, said
    assert '03_third: its outputs are older than its code' in said and '01_first:' not in said
    assert '01_first' not in {p for p,t in times().items() if t != before[p]}
    # mended; a new public name, a new term of the glossary, another title, a page that has gone
    before = times()
    write(tmp_path, glossary=page('Glossary', ('markdown', '- **gadget**: A thing. → '
          '[Second](02_second.ipynb#own)')), **{'02_second': second('piece', 'New words.'),
                                                '03_third': third('coming', '1 + 1', '2')})
    lib = tmp_path/'attention_nb'
    module,index = lib/'checks.py',lib/'_modidx.py'
    module.write_text(re.sub(r'^__all__ = \[', "__all__ = ['brand_new'", module.read_text(),
                             count=1, flags=re.M) + '\ndef brand_new():\n    "News"\n')
    address = (
        "'attention_nb.checks.brand_new': ('checks.html#brand_new', 'attention_nb/checks.py'),")
    known = re.sub(r"('attention_nb\.checks': \{)", rf'\1 {address}', index.read_text())
    index.write_text(known)
    assert 'brand_new' in known
    good,said = build(tmp_path)
    assert 'brand_new' in text('api.html') and 'News' in text('api.html'), said
    assert 'older than its code' not in said
    assert 'New words' in text('02_second.html') and 'New words' in text('02_second.html.md')
    assert 'gadget' in text('sections.js') and '"terms": "thing ' not in text('sections.js')
    assert before['03_third'] != times()['03_third'] and before['01_first'] == times()['01_first']
    style = tmp_path/'nbs'/'_sphinx'/'_static'/'custom.css'
    def version(name): return re.search(r'custom\.css\?v=(\w+)', text(name))[1]
    used = version('01_first.html')
    style.write_text(style.read_text() + '/* another style */\n')
    write(tmp_path, **{'02_second': page('Another title', ('markdown', '## Own'))})
    (tmp_path/'nbs'/'notes'/'more.ipynb').unlink()
    build(tmp_path)
    for name in ('index.html', '01_first.html', '03_third.html'):
        assert 'Another title' in text(name) and version(name) != used, name
    for name in ('notes/more.html', 'notes/more.html.md'):
        assert not (out/name).exists(), name

# ---- the pieces

def test_outputs_that_are_older_than_their_code_are_named_until_they_are_run(tmp_path):
    path = tmp_path/'nbs'/'01_a.ipynb'
    path.parent.mkdir()
    def older(code, out):
        nbformat.write(notebook([('markdown', '# A'), ('code', code, {'text/plain': out})]), path)
        return stale.older(tmp_path, [path])
    assert older('1', '1') == [] and older('1', '1') == []
    assert older('2', '1') == ['01_a'] == older('2', '1'), 'until it is mended'
    assert older('1', '1') == [] and older('2', '2') == []
    assert older('1 + 1', '2') == ['01_a']
    stale.ran(tmp_path, [path])                             # it was run, and prints the same
    assert older('1 + 1', '2') == []

def test_cards_are_made_of_the_marked_table_alone():
    table = ('| Part | Lesson | For |\n|---|---|---|\n'
             '| **First** | [1. Tokenizer](01_tokenizer.ipynb) | Count |\n'
             '| | [2. Embedding](02_embedding.ipynb) | Add `a` |\n')
    assert quarto.myst(f'Before\n\n{table}\nafter') == f'Before\n\n{table}\nafter'
    made = quarto.myst(f'Before\n\n<!-- cards -->\n\n{table}\nafter')
    assert made.startswith('Before\n\n:::::{grid}') and made.endswith(':::::\n\nafter')
    one,two = made.split('{grid-item-card} ')[1:]
    assert one.startswith('[1. Tokenizer](01_tokenizer.ipynb)\n') and '\n\nCount\n' in one
    assert '|' not in made
    assert re.search(r'\n\d+ minutes\n\nAdd `a`\n', two)
    lack = 'a card needs a picture, _static/cards/99.svg'
    with pytest.raises(ValueError, match=lack):
        quarto.myst(f'<!-- cards -->\n\n{table}'.replace('01_tokenizer', '99_one'))

def test_quotes_of_notes():
    code = 'for r in range(3):\n    total = r + 1\nprint(total)'
    assert rules.quoted_lines(code, '"total=r + 1"') == 'total = r + 1'
    assert rules.quoted_lines(code, '"for r" to "print(total)"') == code
    for quote in ('"total = r + 2"', '"print(total)" to "for r in range(3):"', '""'):
        assert rules.quoted_lines(code, quote) is None

def test_a_private_name_is_no_link_to_one_that_is_called_alike(tmp_path):
    cell = 'markdown','`_asked` counts, `attention` computes; [`_first`](05_mask.ipynb)'
    path = tmp_path/'x.ipynb'
    nbformat.write(notebook([cell]), path)
    body = plain.markdown_of(notebooks.process(path.read_text('utf-8'), path), 'x')[0]
    assert body.startswith('`_asked` counts, [`attention`](https://')
    assert '; [`_first`](05_mask.ipynb)\n' in body       # who writes a link gets it

def test_a_plain_text_is_for_readers_without_the_site():
    class Paper:
        def __init__(self, title, number): self.fields = dict(title=title, eprint=number)
    papers = dict(su2021=Paper('{RoFormer}: Rotary', '2104.09864'), old=Paper('A report', None))
    known = {'05_mask': {'causal'}, '03_attention': {'hide'}}
    def text(body): return plain.plain(body, 'https://b.org/', papers, known)
    assert text('[a](05_mask.ipynb#causal), [a](05_mask.ipynb#gone)') == (
        '[a](05_mask.html.md#causal), [a](05_mask.html.md)')
    inside = plain.plain('[a](../05_mask.ipynb#causal), [b](flash.ipynb)', 'https://b.org/',
                         papers, known, 'kernels/x')
    assert inside == '[a](../05_mask.html.md#causal), [b](flash.html.md)'
    assert text('[b](https://x.org/y.html), [c](https://b.org/attention.html#hide)') == (
        '[b](https://x.org/y.html), [c](03_attention.html.md#hide)')
    assert text('So [@su2021; @old].') == (
        'So ([RoFormer: Rotary](https://arxiv.org/abs/2104.09864); A report).')
    assert text('$x$ {#eq-one}, see @eq-one and `@eq-one`') == '$x$ (one), see (one) and `@eq-one`'
    assert text('::: {.callout-note}\ntext\n:::\n') == 'text\n'
    assert text(r'${\color{#0072B2}{q_{i}}}$') == '$q_{i}$'
    assert text('![A ship](page_files/page_1_0.svg)') == '*Picture: A ship*'
