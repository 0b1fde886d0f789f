"""A new page of the book, and what it lacks: lesson.py 18_window (of the library, kernels/blocks).

Writes the notebook with all the cells that a page must have, and the picture of a lesson's card;
what is there stays. Then it says what is still missing, here and elsewhere.
"""
import re, sys
from pathlib import Path
import nbformat
import cells, overview, rules

root = Path(__file__).resolve().parents[2]
CARD = '''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 120">
<desc>{title}</desc>
<circle cx="70" cy="60" r="26" fill="#0072b2"/><circle cx="170" cy="60" r="26" fill="#d55e00"/>
<path d="M96 60h48" stroke="#6b4fa0" stroke-width="8"/>
</svg>
'''
LATER = 'TO WRITE'

def page(name, title):
    "(kind, source) of each cell"
    own,up = cells.alias(name).split('/')[-1],'../'*name.count('/')
    module = f'simple.{own}' if cells.kind(name) == 'lesson' else name.replace('/', '.')
    first = (f'{LATER}: what the reader can do at the end.' if cells.kind(name) == 'lesson' else
             f'{LATER}: what one imports from here, and what for; then what [a lesson]'
             f'({up}NN_name.ipynb) says of it.')
    proof = '#| code-fold: true\n#| code-summary: "{} gives the rows back"\n'
    return [
        ('markdown', f'# {title}\n\n> {LATER}: one line that says what the page gives'),
        ('code', "#| hide\n# In Colab, install what this notebook needs\n"
         "if 'google.colab' in str(get_ipython()):\n    %pip install -q attention_nb"),
        ('code', f'#| default_exp {module}'),
        ('code', '#| export\nimport torch\nfrom torch import Tensor'),
        ('code', '#| hide\nfrom fastcore.test import *\nfrom torch.testing import assert_close'),
        ('code', '#| hide\ntorch.manual_seed(0);'),
        ('markdown', first),
        ('markdown', f'## The idea\n\n{LATER}: why; then the formula.\n\n'
         f'$$ y = x $$ {{#eq-{own}}}'),
        ('code', f'#| export\ndef {own}_step(\n    x:Tensor # Rows, (L, D)\n'
         f')->Tensor: # The same rows, (L, D)\n    "{LATER}: verb first"\n    return x.clone()'),
        ('markdown', f'#| explain "return x.clone()"\n\n{LATER}: the why of this line.'),
        ('code', f'print(*{own}_step(torch.arange(3.)).tolist())'),
        ('code', proof.format(f'`{own}_step`') + 'x = torch.randn(3, 4)\n'
         f'assert_close({own}_step(x), x)'),
        ('markdown', f'## Summary\n\n- {LATER}: five lines at most'),
        ('markdown', f'## Exercises\n\n**1.** {LATER}: three to six, with hint and answer.\n\n'
         '<details><summary>Hint</summary>Begin with two rows.</details>'),
        ('code', '#| code-fold: true\n#| code-summary: "Answer 1"\n'
         f'two = torch.randn(2, 4)\nassert_close({own}_step(two), two)'),
        ('code', "#| hide\nfrom pathlib import Path\n"
         "# inside the repository, write the modules from the notebooks\n"
         f"if Path('{up}../attention_nb/_modidx.py').exists():\n"
         "    import nbdev; nbdev.nbdev_export()")]

def write(path, name):
    kernel = dict(name='python3', display_name='python3', language='python')
    nb,makers = nbformat.v4.new_notebook(metadata=dict(kernelspec=kernel)),dict(
        markdown=nbformat.v4.new_markdown_cell, code=nbformat.v4.new_code_cell)
    title = cells.alias(name).split('/')[-1].replace('_', ' ').capitalize()
    nb.cells = [makers[kind](text) for kind,text in page(name, title)]
    path.parent.mkdir(exist_ok=True)
    nbformat.write(nb, path)

def linked(name, nbs):
    "Where the page `name` should be linked and is not, in words"
    lesson,by = cells.kind(name) == 'lesson',cells.home(name)
    pages = {n: cells.load(nbs/f'{n}.ipynb') for n in (by, 'glossary')
             if (nbs/f'{n}.ipynb').exists()}
    def has(page):
        return name in cells.linked('\n'.join(map(cells.source, pages.get(page, ()))), page)
    title = cells.title(cells.load(nbs/f'{name}.ipynb'))
    own = f'[{cells.number(name)[0]}. {title}]({name}.ipynb)' if lesson else (
        f'[{title.lower()}]({cells.link_to(name, by)}.ipynb)')
    if not has(by):
        yield f'nbs/{by}.ipynb does not link it: a row of its table, | {own} | what for |'
    if lesson and not has('glossary'):
        yield 'nbs/glossary.ipynb: a line for each term that the page explains'
    if lesson and cells.alias(name) not in overview.WAY | overview.AROUND:
        yield 'nbs/_sphinx/overview.py has no box for it on the map of a model'

def missing(path, folder=root):
    "What the page still lacks, in words"
    name = cells.name_of(path, folder/'nbs')
    names = [cells.name_of(p, folder/'nbs') for p in cells.notebooks(folder/'nbs')]
    here,text = cells.load(path),path.read_text(encoding='utf-8')
    if n := text.count(LATER): yield f'{n} places in {path.name} say {LATER}'
    module = next((m[1] for c in here if (m := re.match(r'#\|\s*default_exp ([\w.]+)',
                                                        cells.source(c)))), None)
    file = folder/'attention_nb'/f'{str(module).replace(".", "/")}.py'
    for _,problem in rules.budget_problems(here, name, names): yield problem
    if module and not file.exists(): yield f'{file.name} is not exported: make tidy'
    yield from linked(name, folder/'nbs')
    title = cells.title(here)
    card = folder/'nbs'/'_sphinx'/'_static'/'cards'/f'{name[:2]}.svg'
    if card.exists() and card.read_text() == CARD.format(title=title):
        yield f'{card.name}, the picture of its card, is the one of every new lesson: draw its own'
    prints = any(re.search(r'^print\(', cells.source(c), re.M) for c in here
                 if c['cell_type'] == 'code')
    if not any(c.get('outputs') for c in here):
        if prints: yield f'no stored outputs: make outputs ARGS=nbs/{name}.ipynb'
        elif cells.kind(name) == 'lesson': yield 'no cell prints a number or draws a picture'

def main(name, folder=root):
    kind,nbs = cells.kind(name),folder/'nbs'
    if kind not in ('lesson', 'library'):
        sys.exit(f'{name!r} is no name of a page: NN_name for a lesson, ROOM/name for a page of '
                 f'the library, as in make lesson NAME=18_window; the rooms are '
                 f'{", ".join(cells.ROOMS)}')
    same = next((n for n in map(lambda p: cells.name_of(p, nbs), cells.notebooks(nbs))
                 if n != name and cells.alias(n) == cells.alias(name)), None)
    if same: sys.exit(f'{same} already answers to the name {cells.alias(name)}')
    path,card = nbs/f'{name}.ipynb',nbs/'_sphinx'/'_static'/'cards'/f'{name[:2]}.svg'
    if not path.exists(): write(path, name)
    if kind == 'lesson' and not card.exists():
        card.write_text(CARD.format(title=cells.title(cells.load(path))), encoding='utf-8')
    lacks = list(missing(path, folder))
    if lacks: print(f'nbs/{name}.ipynb is there. Missing:', *lacks, sep='\n- ')
    else: print(f'nbs/{name}.ipynb is there, and nothing is missing: '
                f'make check NB=nbs/{name}.ipynb')

if __name__ == '__main__': main(*sys.argv[1:2] or [''])
