"""Sphinx extension: what search engines, link previews and language models read.

Each page has a description, its promise, and a picture for link previews: its title over the card of its lesson. Beside each page
stands its plain text, NAME.html.md, whose links lead to other plain texts; llms.txt lists them, sitemap.xml the pages.
"""
import html, re
from pathlib import Path
from textwrap import wrap
import matplotlib, pybtex.database, resvg_py
from docutils import nodes
from nbdev.config import get_config, nbpath2html
import nbdev_sphinx, rules

WIDTH,HEIGHT = 1200,630                                 # of a picture for link previews
FONTS = [str(Path(matplotlib.get_data_path(), 'fonts', 'ttf', f'DejaVuSans{style}.ttf')) for style in ('', '-Bold')]

def promise(doctree):
    "What a page says below its title"
    lead = next(doctree.findall(lambda n: isinstance(n, nodes.paragraph) and 'lead' in n['classes']), None)
    return lead.astext().replace('\n', ' ') if lead else ''

# %% link previews
def preview_svg(title, text, card):
    "A picture with a title, a few lines of text and, if there is one, the card of a lesson"
    lines = [(l, 64, 'bold', '#1a1a1a') for l in wrap(title, 28)] + [(l, 32, 'normal', '#4a4a4a') for l in wrap(text, 58)]
    y,drawn = 60,''
    for line,size,weight,color in lines:
        y += 1.35*size
        drawn += f'<text x="70" y="{y:.0f}" font-size="{size}" font-weight="{weight}" fill="{color}">{html.escape(line)}</text>'
    if card: drawn += card.replace('<svg', f'<svg x="580" y="330" width="550" height="260"', 1)
    name = f'<text x="70" y="570" font-size="32" fill="#6b4fa0">{html.escape(get_config().title)}</text>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="DejaVu Sans">{drawn}{name}</svg>'

def preview(app, doc, title, text):
    "The address of the page's picture within the site"
    lesson = rules.kind(doc) and rules.lesson_of(doc, app.env.found_docs)
    card = nbdev_sphinx.CARDS/f'{lesson[:2]}.svg' if lesson else None
    path = Path(app.outdir, '_images', 'previews', f'{doc}.png')
    path.parent.mkdir(parents=True, exist_ok=True)
    svg = preview_svg(title, text, card and card.read_text(encoding='utf-8'))
    path.write_bytes(resvg_py.svg_to_bytes(svg_string=svg, width=WIDTH, background='white', skip_system_fonts=True, font_files=FONTS, sans_serif_family='DejaVu Sans'))
    return path.relative_to(app.outdir).as_posix()

def describe(app, doc, template, context, doctree):
    "Description and picture of a page, for the tags that sphinxext-opengraph writes"
    if doctree is None or not (text := promise(doctree)): return
    title = html.unescape(re.sub('<[^>]*>', '', context['title']))
    context['meta'] = (context['meta'] or {}) | {'og:description': text, 'og:image': app.config.html_baseurl + preview(app, doc, title, text), 'og:image:alt': f'{title}: {text}'}
    context['metatags'] += f'<meta name="description" content="{html.escape(text)}" />\n'

def without_chapters(app, doc, template, context, doctree):
    "sphinx-notfound-page has no list of chapters for a site of one page, and the theme cannot do without"
    if doc != app.config.notfound_pagename: return
    toctree = context['toctree']
    context['toctree'] = lambda *args, **kwargs: toctree(*args, **kwargs) or ''

# %% plain text
def titles_of(bib): return {key: (e.fields['title'], e.fields.get('eprint')) for key,e in pybtex.database.parse_file(bib).entries.items()}

def anchors(body):
    "Of the headings, as GitHub makes them"
    prose = re.sub(r'^```.*?^```', '', body, flags=re.M|re.S)
    return {re.sub(r'[^\w -]', '', h.lower()).replace(' ', '-') for h in re.findall(r'^#+ (.+?)\s*$', prose, re.M)}

def plain(body, pages, papers, site, known):
    "The markdown of a page with links to other plain texts, papers by title, and without the marks that only the site reads; `known`: page -> its anchors"
    def page(m):
        doc = pages.get(m[1], m[1])
        return f']({doc}.html.md' + (f'#{m[2]}' if m[2] in known.get(doc, ()) else '')
    def paper(key):
        title,number = papers[key]
        title = re.sub(r'[{}]', '', title)
        return f'[{title}](https://arxiv.org/abs/{number})' if number else title
    def cite(m): return '(' + '; '.join(paper(key) for key in re.findall(r'@([\w:-]+)', m[1])) + ')'
    body = re.sub(rf'\]\((?:{re.escape(site)})?(\w+)\.(?:ipynb|html)(?:#([^)\s]*))?(?=\))', page, body)
    body = re.sub(r'^:{3,}.*\n?', '', body, flags=re.M)                                             # fences of callouts and notes on code
    body = re.sub(r'\{\\color\{#\w+\}\{((?:[^{}]|\{[^{}]*\})*)\}\}', r'\1', body)
    parts = re.split(r'(^```.*?^```|`[^`\n]+`)', body, flags=re.M|re.S)
    for i in range(0, len(parts), 2):
        text = re.sub(r'\[((?:-?@[\w:-]+[;\s]*)+)\]', cite, parts[i])
        parts[i] = re.sub(r'\{#eq-([\w-]+)\}|(?<![\w/])@eq-([\w-]+)', lambda m: f'({m[1] or m[2]})', text)
    return ''.join(parts)

def write_texts(app, exception):
    "NAME.html.md beside each page, under both its names, llms.txt and sitemap.xml"
    if exception or app.builder.name != 'html': return
    cfg,out = get_config(),Path(app.outdir)
    docs = sorted(app.env.found_docs)
    pages = {Path(nbpath2html(Path(doc))).stem: doc for doc in docs}
    papers,groups = titles_of(app.config.bibtex_bibfiles[0]),dict(Lessons=[], Workshops=[], Reference=[])
    texts = {doc: nbdev_sphinx.markdown_of(Path(app.env.doc2path(doc))) for doc in docs}
    known = {doc: anchors(body) for doc,(body,_) in texts.items()}
    for doc,(body,files) in texts.items():
        body = plain(body, pages, papers, app.config.html_baseurl, known)
        for target in {doc, *(alias for alias,d in pages.items() if d == doc)}: (out/f'{target}.html.md').write_text(body, encoding='utf-8')
        for name,data in files.items(): nbdev_sphinx.write_if_changed(out/name, data)
        group = dict(lesson='Lessons', workshop='Workshops').get(rules.kind(doc), 'Reference')
        title = app.env.titles[doc].astext()
        groups[group].append(f'- [{title}]({app.config.html_baseurl}{doc}.html.md): {promise(app.env.get_doctree(doc))}')
    text = f'# {cfg.title}\n\n> {promise(app.env.get_doctree(app.config.root_doc))}\n\n' + '\n\n'.join(f'## {name}\n\n' + '\n'.join(lines) for name,lines in groups.items() if lines)
    (out/'llms.txt').write_text(text + '\n', encoding='utf-8')
    urls = ''.join(f'<url><loc>{app.config.html_baseurl}{doc}.html</loc></url>\n' for doc in docs)
    (out/'sitemap.xml').write_text(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n', encoding='utf-8')

def setup(app):
    app.connect('html-page-context', describe, priority=400)                                        # before sphinxext-opengraph
    app.connect('html-page-context', without_chapters)                                              # after sphinx-notfound-page, which conf.py loads before
    app.connect('build-finished', write_texts)
    return dict(parallel_read_safe=True, parallel_write_safe=True)
