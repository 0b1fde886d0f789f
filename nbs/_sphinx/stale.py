"""Sphinx extension: says which pages show outputs older than their code.

_build/ran.json keeps, for every notebook, a digest of its code and one of its outputs: as they were
when it was first seen, when its outputs last changed, or when `make outputs` last ran it. Code that
changed since without its outputs is said at each build; whether outputs are true only a run tells.
"""
import json, os, sys
from pathlib import Path
import cells

RAN = Path('_build/ran.json')

def now(path):
    "Digests of the code and of the outputs of the notebook at `path`"
    from fresh import digest
    code = [c for c in cells.load(path) if c['cell_type'] == 'code']
    texts = [str(cells.split_options(cells.source(c))[1]) for c in code]      # without captions
    return [digest(texts), digest([c.get('outputs') for c in code])]

def read(record): return json.loads(record.read_text('utf-8')) if record.exists() else {}

def write(record, known):
    record.parent.mkdir(parents=True, exist_ok=True)
    (new := record.with_name(f'{record.name}.tmp')).write_text(json.dumps(known), 'utf-8')
    os.replace(new, record)

def ran(root, paths):
    "Their outputs are those of their code"
    record = root/RAN
    write(record, read(record) | {cells.name_of(p, root/'nbs'): now(p) for p in paths})

def older(root, paths):
    "Notebooks whose code changed and whose outputs did not"
    record = root/RAN
    before,here = read(record),{cells.name_of(p, root/'nbs'): now(p) for p in paths}
    found = [n for n,(code,shown) in here.items()
             if n in before and before[n][0] != code and before[n][1] == shown]
    write(record, before | {n: d for n,d in here.items() if n not in found})
    return found

def say(app):
    if app.builder.format != 'html': return
    folder = Path(app.srcdir)
    for name in older(folder.parent, cells.notebooks(folder)):
        print(f'{name}: its outputs are older than its code; make outputs ARGS=nbs/{name}.ipynb '
              'runs it', file=sys.stderr)

def setup(app):
    app.connect('builder-inited', say)
    return dict(parallel_read_safe=True, parallel_write_safe=True)
