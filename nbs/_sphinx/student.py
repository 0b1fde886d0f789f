"""The lessons without their answers: student.py [FOLDER]

Each becomes _build/student/NAME.ipynb: where an answer stood, a cell waits for the student's. What
cells printed and drew goes too, for it answers each *Predict* above it; schemes drawn by hand stay.
Links to pages that are no lessons lead to the site.
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

def without_answers(notebook):
    "The cells of a notebook without outputs; an answer gives way to an empty cell"
    for cell in notebook['cells']:
        summary = str(cells.split_options(cells.source(cell))[0].get('code-summary', '')) \
            if cells.directive(cell, 'code-summary') else ''
        if cell['cell_type'] == 'code' and summary.startswith('Answer'):
            yield dict(cell_type='code', id=cell['id'], execution_count=None, metadata={},
                       outputs=[], source=['# your answer\n'])
        elif cell['cell_type'] == 'code' and 'SVG(filename=' not in cells.source(cell):
            yield cell | dict(outputs=[])
        else: yield cell

def main(folder='_build/student'):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(Path('nbs').glob('*.ipynb')):
        if cells.kind(path.stem) != 'lesson': continue
        notebook = json.loads(path.read_text(encoding='utf-8'))
        notebook['cells'] = list(without_answers(notebook))
        for cell in notebook['cells']:
            if cell['cell_type'] == 'markdown':
                cell['source'] = to_the_site(cells.source(cell)).splitlines(True)
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + '\n'
        (new := folder/f'{path.name}.tmp').write_text(text, encoding='utf-8')
        new.replace(folder/path.name)
    print(f'The lessons without answers are in {folder}')

if __name__ == '__main__': main(*sys.argv[1:])
