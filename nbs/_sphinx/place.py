"""Sphinx extension: a warning about a notebook names heading, cell and line; MyST-NB counts 10,000
lines for each cell. The pages with warnings are read anew by the next build, which else would pass.
"""
import json, logging
from pathlib import Path
import rules

EVERY = '*'                                             # a warning without a place

def keep(env, cells):
    "Keep what a warning about the page that is read quotes"
    env.page_cells[env.docname] = [{k: c[k] for k in ('cell_type', 'source', 'id')} for c in cells]

class Place(logging.Filter):
    def __init__(self, app):
        super().__init__()
        self.app,self.warned = app,set()

    def page(self, path): return (path and self.app.env.path2doc(path)) or EVERY

    def filter(self, record):
        path,_,line = str(getattr(record, 'location', None) or '').rpartition(':')
        if record.levelno >= logging.WARNING: self.warned.add(self.page(path))
        cells = self.app.env.page_cells.get(self.page(path), [])
        n = int(line) if line.isdigit() else 0
        if 0 < n//10_000 <= len(cells):
            *_,(_,heading,cell) = rules.places(cells[:n//10_000], ('code', 'markdown'))
            line = max(1, n%10_000 - 1)
            text = ''.join(rules.source(cell).splitlines()[line-1:line]).strip()[:60]
            record.location = (f'{path}, under {heading!r}, cell {cell["id"]}, line {line}: '
                               f'{text!r}')
        return True

def file(app): return Path(app.doctreedir)/'warned.json'
def warned(app): return json.loads(file(app).read_text()) if file(app).exists() else []

def setup(app):
    place = Place(app)
    def begin(app):
        vars(app.env).setdefault('page_cells', {})
        for handler in logging.getLogger('sphinx').handlers: handler.addFilter(place)
    def store(app, exception):
        file(app).write_text(json.dumps([*place.warned, *[EVERY]*bool(exception)]))
    app.connect('builder-inited', begin)
    app.connect('build-finished', store, priority=999)
    return dict(parallel_read_safe=False, parallel_write_safe=True)
