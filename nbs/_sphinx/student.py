"""The lessons without their answers: student.py [FOLDER]

Each becomes _build/student/NAME.ipynb: where an answer stood, a cell waits for the student's. What
cells printed and drew goes too, for it answers each *Predict* above it; schemes drawn by hand stay.
Proofs go, which hold the numbers to predict and would stop whoever changes a number above them. So
do directives of nbdev; notes on a line of code become text. Links to other pages lead to the site.

The site's own notebooks, which a page offers to download, keep everything. But a proof that no
longer holds, because a reader has changed a number, says so and lets the notebook go on.
"""
import json, re, sys
from pathlib import Path
from nbdev.config import get_config
import cells

def to_the_site(text):
    "Links to notebooks that a student does not get"
    site = f'{get_config().doc_host}{get_config().doc_baseurl}'
    def link(m):
        if cells.kind(m[1]) == 'lesson': return m[0]
        return f']({site}/{m[1]}.html'
    return re.sub(r'\]\(([\w/]+)\.ipynb', link, text)

def for_students(notebook):
    "The cells of a notebook without outputs and proofs; an answer gives way to an empty cell"
    for cell in notebook['cells']:
        text = cells.source(cell)
        if cell['cell_type'] == 'markdown':
            if note := cells.EXPLAIN.match(text):
                quote = note[1].strip(' "')
                text = f'`{quote}`: {text[note.end():].strip()}'
            yield cell | dict(source=to_the_site(text).splitlines(True))
            continue
        options,code = cells.split_options(text)
        answer = str(options.get('code-summary', '')).startswith('Answer')
        if answer: code = '# your answer'
        elif 'default_exp' in options or 'example' in options or 'nbdev_export()' in code: continue
        elif cells.is_proof(cell, options): continue
        keep = 'SVG(filename=' in code
        yield cell | dict(source=code.splitlines(True), metadata={}, execution_count=None,
                          outputs=cell['outputs'] if keep else [])

MAGIC = '''from IPython.core.magic import register_cell_magic

@register_cell_magic
def proof(line, cell):
    "Run a proof; go on if it does not hold for numbers that were changed"
    shell = get_ipython()
    try: exec(shell.transform_cell(cell), shell.user_ns)
    except ImportError: raise
    except Exception: print('This held for the original numbers. Something above is changed.')'''

def to_change(notebook):
    "The cells of a notebook in which proofs do not stop whoever changes a number above them"
    yield dict(cell_type='code', id='proof', metadata={}, execution_count=None, outputs=[],
               source=MAGIC.splitlines(True))
    for cell in notebook['cells']:
        if cell['cell_type'] == 'code':
            options,code = cells.split_options(cells.source(cell))
            if cells.is_proof(cell, options):
                cell = cell | dict(source=f'%%proof\n{code}'.splitlines(True))
        yield cell

def store(app, error):
    if error or app.builder.name != 'html': return
    for path in Path(app.srcdir).glob('*.ipynb'):
        copied = Path(app.outdir, '_sources', path.name)
        if cells.kind(path.stem) != 'lesson' or not copied.exists(): continue
        notebook = json.loads(path.read_text(encoding='utf-8'))
        notebook['cells'] = list(to_change(notebook))
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + '\n'
        if copied.read_text(encoding='utf-8') != text: copied.write_text(text, encoding='utf-8')

def setup(app):
    app.connect('build-finished', store)
    return dict(parallel_read_safe=True)

def main(folder='_build/student'):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(Path('nbs').glob('*.ipynb')):
        if cells.kind(path.stem) != 'lesson': continue
        notebook = json.loads(path.read_text(encoding='utf-8'))
        notebook['cells'] = list(for_students(notebook))
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + '\n'
        (new := folder/f'{path.name}.tmp').write_text(text, encoding='utf-8')
        new.replace(folder/path.name)
    print(f'The lessons without answers are in {folder}')

if __name__ == '__main__': main(*sys.argv[1:])
