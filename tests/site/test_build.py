"The machinery of the site on small books: what is wrong is named with its place"
import re, shutil, subprocess, sys
import nbformat, notebooks, plain
from helpers import root

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

def test_a_private_name_is_no_link_to_one_that_is_called_alike(tmp_path):
    cell = 'markdown','`_asked` counts, `attention` computes; [`_first`](04_mask.ipynb)'
    path = tmp_path/'x.ipynb'
    nbformat.write(notebook([cell]), path)
    body = plain.markdown_of(notebooks.process(path.read_text('utf-8'), path), 'x')[0]
    assert body.startswith('`_asked` counts, [`attention`](https://')
    assert '; [`_first`](04_mask.ipynb)\n' in body       # who writes a link gets it
