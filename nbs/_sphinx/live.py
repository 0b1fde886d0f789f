"""Sphinx extension: the model that runs in the pages with a box for a sentence: `<!-- live -->` has
arcs, `<!-- live: all -->` with every view; lines within it are sentences to press, see quarto.py.

The folder of the model is written once from the installed package, and again when the module or the
scripts of the views change. live_model.js and live.js, which fill the box, are on those pages
alone; offline.js stands at the root, so that it can keep whole pages.
"""
import json, shutil
from pathlib import Path
from nbdev.config import get_config
import fresh

BOX = '<div class="live" id="your-own-sentence" '

def made(app):
    "The folder of weights, worker and views, and what a page must know of it"
    lib = get_config().lib_path
    made_by = lib/'figures'/'browser_model.py', lib/'views'/'page.py', lib/'checkpoints'
    stamp = fresh.of_files(*made_by, lib/'views_js', lib/'figures_js', lib/'live_js')
    folder = Path(app.doctreedir).parent/'live'
    known = folder/'known.json'
    found = json.loads(known.read_text()) if known.exists() else {}
    if found.get('stamp') == stamp: return folder,found
    from attention_nb.figures.browser_model import write_live
    shutil.rmtree(folder, ignore_errors=True)
    found = dict(write_live(folder/'files'), stamp=stamp)
    known.write_text(json.dumps(found))
    return folder,found

def fill(app, pagename, templatename, context, doctree):
    "Tell the box where the model is"
    if BOX not in context.get('body', ''): return
    _,found = made(app)
    said = ' '.join(f'data-{name}="{found[name]}"' for name in ('file','sha256','bytes'))
    up = '../'*pagename.count('/')
    new = f'{BOX}data-folder="{up}_static/live/" {said} '
    context['body'] = context['body'].replace(BOX, new)
    for script in ('live_model.js','live.js'): app.add_js_file(script, loading_method='defer')

def put(app, exception):
    if exception or app.builder.name != 'html': return
    folder,found = made(app)
    target = Path(app.outdir)/'_static'/'live'
    target.mkdir(parents=True, exist_ok=True)
    names = {p.name for p in (folder/'files').iterdir()}
    for old in target.iterdir():
        if old.name not in names: old.unlink()
    for name in names: shutil.copyfile(folder/'files'/name, target/name)
    shutil.copyfile(Path(__file__).parent/'offline.js', Path(app.outdir)/'offline.js')

def setup(app):
    app.connect('html-page-context', fill)
    app.connect('build-finished', put)
    return dict(parallel_read_safe=True, parallel_write_safe=True)
