"The machinery of the site on small books: what is named, and what a second build does again"
import re, shutil, subprocess, sys
import api, nbformat, notebooks, plain
from helpers import full, root

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
            ('code', '#| code-fold: true\n#| code-summary: ""\ny = 2'),
            ('code', '#| fig-cap: "Ticks"\nprint(2)', {'text/plain': '[]'}))})
    good,said = build(tmp_path, strict=False)
    found = sorted(set(re.findall(r'ERROR: ([\w/]+\.ipynb, under .*)', said)))
    wanted = [r"01_page.ipynb, under 'Here', cell 2 \(\w+: 'x = 1'\): folded without a summary",
        r"01_page.ipynb, under 'Sums', cell 10 \(\w+\), line 1: .*: \"total = r \+ 2\"; "
        r"there is 'total = r \+ 1'",
        r"01_page.ipynb, under 'Sums', cell 11 .*: nothing",
        r"01_page.ipynb, under 'There', cell 4 .*: 6 lines that only assert stand open",
        r"01_page.ipynb, under 'There', cell 5 .*def f\(\).*: a lesson shows all the code it "
        r"exports",
        r"kernels/page.ipynb, under 'Shop', cell 2 .*: folded without a summary",
        r"kernels/page.ipynb, under 'Shop', cell 3 .*: its caption stands below a text"]
    assert not good and len(found) == len(wanted), said
    for line in found: assert any(re.match(w, line) for w in wanted), line
    for name in ('eq-nowhere', 'nowhere.ipynb', 'nobody1900'): assert name in said, said
    place = r"index\.ipynb, under 'Here', cell \w+, line 5: 'A \[link\]\(nowhere.ipynb\).':"
    assert re.search(place, said), said

# ---- a second build

@full
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

# ---- links

def test_a_private_name_is_no_link_to_one_that_is_called_alike(tmp_path):
    cell = 'markdown','`_asked` counts, `attention` computes; [`_first`](04_mask.ipynb)'
    path = tmp_path/'x.ipynb'
    nbformat.write(notebook([cell]), path)
    body = plain.markdown_of(notebooks.process(path.read_text('utf-8'), path), 'x')[0]
    assert body.startswith('`_asked` counts, [`attention`](https://')
    assert '; [`_first`](04_mask.ipynb)\n' in body       # who writes a link gets it
