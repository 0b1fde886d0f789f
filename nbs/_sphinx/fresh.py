"""Sphinx extension: a build does again what a change concerns, and nothing else.

Sphinx reads a page when its notebook is newer. Here it is read as well when what it shows of others
is not what it was: the names it links, the titles below it, its views.
And it is written when a page that it links has other anchors, or the sidebar other titles.
Whatever is no notebook is `machinery`, a value in conf.py: when that changes, all is read.
"""
import re
from pathlib import Path
from nbdev.config import get_config
import api, cells, place, quarto, rooms
from package import digest
from tidy import VIEW

def of_files(*paths):
    "The digest of files, and of all files in folders"
    files = (f for p in paths for f in (sorted(p.rglob('*')) if p.is_dir() else [p]))
    return digest([(f.name, f.read_bytes()) for f in files
                   if f.is_file() and f.suffix not in ('.pyc', '.tmp')])

class Book:
    "What pages show of one another"
    def __init__(self, env):
        paths = {d: Path(env.doc2path(d)) for d in env.found_docs if not d.startswith('api/')}
        self.texts = {d: p.read_text(encoding='utf-8') for d,p in paths.items()}
        pages = {d: cells.load(p) for d,p in paths.items()}
        self.titles = [(d, cells.title(pages[d]), cells.lesson_of(d, pages[d]))
                       for d in cells.in_order(pages)]
        self.names = [(name.split('.')[-1], name, quarto.address(name))
                      for name in quarto.own_names().values()]
        self.root,self.graph = env.config.root_doc,rooms.graph()

    def inputs(self, doc):
        "A digest of what the page `doc` shows of others"
        text = self.texts[doc]
        words = set(re.findall(r'\w+', text))
        parts = sorted(n for n in self.names if n[0] in words)
        if api.MARK in text: parts.append(api.listing())
        if doc == self.root or cells.kind(doc) == 'room': parts += [self.titles, self.graph]
        if VIEW in text:
            lib = get_config().lib_path
            parts.append(of_files(lib/'views', lib/'figures'))
        return digest(parts)

    def linking(self, docs):
        "Pages with a link to one of `docs`"
        ends = {n.split('/')[-1] for d in docs for n in (d, cells.alias(d))}
        link = re.compile(rf'\b(?:{"|".join(ends)})\.(?:ipynb|html)')
        return {doc for doc,text in self.texts.items() if link.search(text)} if docs else set()

def anchors(env, doc):
    "What others may link on the page `doc`"
    objects = env.domains.python_domain.objects.items()
    slugs = env.metadata[doc].get('myst_slugs', {})
    return digest(slugs, sorted(name for name,entry in objects if entry.docname == doc))

def outdated(app, env, added, changed, removed):
    "Pages to read besides those whose file has changed"
    book,before,warned = Book(env),env.fresh.get('inputs', {}),place.warned(app)
    env.fresh['inputs'] = inputs = {doc: book.inputs(doc) for doc in book.texts}
    return [doc for doc in inputs
            if before.get(doc) != inputs[doc] or {doc, place.EVERY} & set(warned)]

def updated(app, env):
    "Pages to write besides those that were read"
    book,before = Book(env),dict(env.fresh)
    env.fresh |= dict(titles=book.titles, anchors={d: anchors(env, d) for d in env.found_docs})
    if before.get('titles') != book.titles: return env.found_docs
    old,new = before['anchors'],env.fresh['anchors']
    return book.linking({d for d in old.keys() | new.keys() if old.get(d) != new.get(d)})

def remove(app, env, doc):
    "The pages of a notebook go with it"
    for name in {doc, cells.alias(doc)}:
        for end in ('html', 'html.md'): Path(app.outdir, f'{name}.{end}').unlink(missing_ok=True)

def setup(app):
    app.add_config_value('machinery', '', 'env')
    app.connect('builder-inited', lambda app: vars(app.env).setdefault('fresh', {}))
    app.connect('env-get-outdated', outdated)
    app.connect('env-updated', updated)
    app.connect('env-purge-doc', remove)
    return dict(parallel_read_safe=True, parallel_write_safe=True)
