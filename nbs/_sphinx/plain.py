"""The plain text of the pages: README.md, and on the site NAME.html.md beside each page, whose
links lead to other plain texts, llms.txt, which lists them part by part, and sitemap.xml; and what
stands above each sheet of a printed page.

As a script: write README.md from the index notebook.
"""
import copy, html, re
from pathlib import Path
import nbformat, pybtex.database
from nbdev.config import get_config
import cells
from notebooks import NOTE, process
from quarto import described, front_matter, prose
from tidy import VIEW

def only_quoted(cell):
    "The line that a note is about is no code to run: no language"
    if cell.cell_type == 'markdown' and cell.source.startswith(NOTE):
        cell.source = cell.source.replace('```python', '```', 1)

def markdown_of(nb, name):
    "(markdown, files) of a processed notebook"
    from nbconvert import MarkdownExporter
    nb,alts = copy.deepcopy(nb),[]
    for n,c in enumerate(nb.cells):
        only_quoted(c)
        if 'title' in (fm := front_matter(c)):
            lead = f"> {fm['description']}" if 'description' in fm else ''
            nb.cells[n] = nbformat.v4.new_markdown_cell(f"# {fm['title']}\n\n{lead}")
        if c.cell_type != 'code': continue
        o,c.source = cells.split_options(c.source)
        if o.get('echo') is False: c.source = ''
        for data in (out.get('data', {}) for out in c.outputs):
            data.pop(VIEW, None)                        # a view is its still
            if not any(k.startswith('image/') for k in data): continue
            data.pop('text/plain', None)
            data.pop('text/html', None)
            alts.append(o.get('fig-alt') or described(c.outputs) or '')
    nb.metadata['language_info'] = dict(name='python')
    files = dict(output_files_dir=f'{name.split("/")[-1]}_files')
    body,resources = MarkdownExporter().from_notebook_node(nb, resources=files)
    alts = iter(alts)
    body = re.sub(r'!\[\w+\]\((\w+_files/)', lambda m: f'![{next(alts, "")}]({m[1]}', body)
    body = re.sub(r'^```python\n\n```\n', '', body, flags=re.M)
    return re.sub(r'\n{3,}', '\n\n', body).strip()+'\n', resources['outputs']

def promise(text):
    "What a plain text says below its title"
    found = re.match(r'# .*\n+> (.+)', text)
    return found[1] if found else ''

def keep(env, nb):
    "Keep the plain text of the page that is read"
    env.plain_texts[env.docname] = markdown_of(nb, env.docname)[0]

def in_style(text):
    "A string in a style sheet within a page"
    return '"' + re.sub(r'["<\\\\]', lambda m: f'\\{ord(m[0]):x} ', text) + '"'

def describe(app, doc, template, context, doctree):
    """A page's promise for search engines, and for the tags that sphinxext-opengraph writes; what
    each sheet of paper says above: the page's title and address"""
    if doc in app.env.titles:
        title,address = app.env.titles[doc].astext(),f'{app.config.html_baseurl}{doc}.html'
        context['metatags'] += (
            f'<style>@page {{ @top-left {{ content: {in_style(title)} }} '
            f'@top-right {{ content: {in_style(address)} }} }}</style>\n')
    if not (said := promise(app.env.plain_texts.get(doc, ''))): return
    context['meta'] = (context['meta'] or {}) | {'og:description': said}
    context['metatags'] += f'<meta name="description" content="{html.escape(said)}" />\n'

def anchors(body):
    "Of the headings, as GitHub makes them"
    text = re.sub(r'^```.*?^```', '', body, flags=re.M|re.S)
    headings = re.findall(r'^#+ (.+?)\s*$', text, re.M)
    return {re.sub(r'[^\w -]', '', h.lower()).replace(' ', '-') for h in headings}

def plain(body, site, papers, known, name=''):
    "The page `name` as plain text: `papers` by title, links to what is `known`: page -> anchors"
    def page(m):
        there = m[2] if m[1] else cells.target(m[2], name)
        doc = next((d for d in known if there in (d, cells.alias(d))), there)
        section = f'#{m[3]}' if m[3] in known.get(doc, ()) else ''
        return f']({cells.link_to(doc, name)}.html.md{section}'
    def paper(key):
        e = papers[key]
        name,number = re.sub(r'[{}]', '', e.fields['title']),e.fields.get('eprint')
        return f'[{name}](https://arxiv.org/abs/{number})' if number else name
    def cite(m): return '(' + '; '.join(map(paper, re.findall(r'@([\w:-]+)', m[1]))) + ')'
    def inline(text):
        text = re.sub(r'\[((?:-?@[\w:-]+[;\s]*)+)\]', cite, text)
        return re.sub(r'\{#eq-([\w-]+)\}|(?<![\w/])@eq-([\w-]+)',
                      lambda m: f'({m[1] or m[2]})', text)
    body = re.sub(rf'\]\(({re.escape(site)})?([\w/.]+)\.(?:ipynb|html)(?:#([^)\s]*))?(?=\))', page,
                  body)
    body = re.sub(r'!\[(.*?)\]\(\w+_files/[^)]*\)', r'*Picture: \1*', body)
    body = re.sub(r'^:{3,}.*\n?', '', body, flags=re.M)             # fences of notes
    body = re.sub(r'\{\\color\{#\w+\}\{((?:[^{}]|\{[^{}]*\})*)\}\}', r'\1', body)
    return prose(body, inline)

def heading(doc):
    "The part of llms.txt that lists the page"
    named = dict(notes='Notes', lesson='Learn')
    if cells.kind(doc) in named: return named[cells.kind(doc)]
    part = cells.part(doc)
    return 'Beside the lessons' if part == 'learn' != doc else cells.PARTS.get(part, '')

def write_texts(app, exception):
    "All of them, each under both names of its page"
    if exception or app.builder.name != 'html': return
    out,site,texts = Path(app.outdir),app.config.html_baseurl,app.env.plain_texts
    papers = pybtex.database.parse_file(app.config.bibtex_bibfiles[0]).entries
    known = {doc: anchors(body) for doc,body in texts.items()}
    found = {}
    for doc in [*app.book, *sorted(texts.keys() - app.book.keys())]:
        body = plain(texts[doc], site, papers, known, doc)
        for name in {doc, cells.alias(doc)}:
            (target := out/f'{name}.html.md').parent.mkdir(parents=True, exist_ok=True)
            target.write_text(body, encoding='utf-8')
        line = f'- [{app.env.titles[doc].astext()}]({site}{doc}.html.md): {promise(body)}'
        found.setdefault(heading(doc), []).append(line)
    parts = [f'# {app.config.project}', f'> {promise(texts[app.config.root_doc])}',
             *('\n'.join([f'## {name}\n'*bool(name), *lines]) for name,lines in found.items())]
    (out/'llms.txt').write_text('\n\n'.join(parts) + '\n', encoding='utf-8')
    urls = ''.join(f'<url><loc>{site}{doc}.html</loc></url>\n' for doc in sorted(texts))
    head = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    (out/'sitemap.xml').write_text(f'{head}\n{urls}</urlset>\n', encoding='utf-8')

def write_readme():
    "README.md from nbdev's `readme_nb`; links to notebooks become links to the site"
    cfg = get_config()
    path,site = cfg.nbs_path/cfg.readme_nb,f'{cfg.doc_host}{cfg.doc_baseurl}'
    body,files = markdown_of(process(path.read_text(encoding='utf-8'), path), path.stem)
    body = re.sub(r'\]\((?!https?:|#|index_files/)([^)\s#]+?)\.ipynb',
                  lambda m: f']({site}/{cells.alias(m[1])}.html', body)
    for name,data in {'README.md': body.encode(), **files}.items():
        target = cfg.config_path/name
        if target.exists() and target.read_bytes() == data: continue
        target.parent.mkdir(exist_ok=True)
        new = target.with_name(f'{target.name}.tmp')
        new.write_bytes(data)
        new.replace(target)

def setup(app):
    app.connect('builder-inited', lambda app: vars(app.env).setdefault('plain_texts', {}))
    app.connect('env-purge-doc', lambda app, env, doc: env.plain_texts.pop(doc, None))
    app.connect('html-page-context', describe, priority=400)    # before sphinxext-opengraph
    app.connect('build-finished', write_texts)
    return dict(parallel_read_safe=False, parallel_write_safe=True)

if __name__ == '__main__': write_readme()
