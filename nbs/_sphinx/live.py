"""Sphinx extension: the model that runs in the pages with a box for a sentence: `<!-- live -->` has
arcs, `<!-- live: all -->` with every view; lines within it are sentences to press, see quarto.py.

The folder of the model is written once from the installed package, and again when the module or the
scripts of the views change. live_model.js and live.js, which fill the box, are on those pages
alone; offline.js stands at the root, so that it can keep whole pages.

On the first page and on Play a second model guesses what comes next. No weights are kept in the
repository: it is trained in half a minute, beside the reading of the pages, and again when its code
changes.
"""
import json, os, shutil, subprocess, sys
from pathlib import Path
from nbdev.config import get_config
import fresh

BOX = '<div class="live" id="your-own-sentence" '
GUESSES = 'index', 'play'                              # pages on which a letter is guessed
TRAIN = """import sys
from attention_nb.figures.next_letter import shakespeare_letters, train_letters, write_letters
write_letters(sys.argv[1], *train_letters(shakespeare_letters()))"""

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

def trained(app):
    "The folder of the decoder that guesses letters"
    lib = get_config().lib_path
    stamp = fresh.of_files(lib/'figures'/'next_letter.py', lib/'simple'/'decoder.py')
    return Path(app.doctreedir).parent/'letters'/stamp[:12]

def wanted(app):
    "Whether this build has a page on which a letter is guessed"
    pages = (Path(app.srcdir)/f'{name}.ipynb' for name in GUESSES)
    return app.builder.name == 'html' and any(
        p.exists() and '<!-- live' in p.read_text(encoding='utf-8') for p in pages)

def train(app):
    "Begin to train the decoder that guesses letters, if it is wanted and not there"
    folder = trained(app)
    if not wanted(app) or any(folder.glob('*.safetensors')): return
    shutil.rmtree(folder.parent, ignore_errors=True)
    app.training = subprocess.Popen([sys.executable, '-c', TRAIN, str(folder)],
                                    env={**os.environ, 'OMP_NUM_THREADS': '1'})

def decoder(app):
    "The file of the decoder, once it is trained"
    if (training := getattr(app, 'training', None)) and training.wait():
        raise RuntimeError('the decoder that guesses letters could not be trained')
    return next(trained(app).glob('*.safetensors'))

def fill(app, pagename, templatename, context, doctree):
    "Tell the box where the model is"
    if BOX not in context.get('body', ''): return
    _,found = made(app)
    said = ' '.join(f'data-{name}="{found[name]}"' for name in ('file','sha256','bytes'))
    up = '../'*pagename.count('/')
    new,scripts = f'{BOX}data-folder="{up}_static/live/" {said} ',['live_model.js','live.js']
    if pagename in GUESSES:
        new += f'data-letters="{decoder(app).name}" data-lesson="{up}12_decoder.html" '
        scripts.append('next_letter.js')
    context['body'] = context['body'].replace(BOX, new)
    for script in scripts: app.add_js_file(script, loading_method='defer')

def put(app, exception):
    if exception or app.builder.name != 'html': return
    folder,found = made(app)
    target = Path(app.outdir)/'_static'/'live'
    target.mkdir(parents=True, exist_ok=True)
    files = [*(folder/'files').iterdir(), *([decoder(app)] if wanted(app) else [])]
    for old in {p.name for p in target.iterdir()} - {p.name for p in files}: (target/old).unlink()
    for path in files: shutil.copyfile(path, target/path.name)
    shutil.copyfile(Path(__file__).parent/'offline.js', Path(app.outdir)/'offline.js')

def setup(app):
    app.connect('builder-inited', train)
    app.connect('html-page-context', fill)
    app.connect('build-finished', put)
    return dict(parallel_read_safe=True, parallel_write_safe=True)
