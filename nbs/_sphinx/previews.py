"""The picture that a shared link shows, 1200 by 630: the card of a lesson with its number and title

Pages that are no lesson share the picture of the front page. Drawn from the SVG of the cards by
resvg, with the letters that matplotlib brings: the same on every machine.
"""
import html, re, textwrap
from pathlib import Path
import matplotlib, resvg_py
import cells
from plain import promise

WIDTH,HEIGHT = 1200,630
cards = Path(__file__).parent/'_static'/'cards'
fonts = Path(matplotlib.get_data_path())/'fonts'/'ttf'
FRONT = '03.svg'                        # the card that stands for the whole book

def card_of(doc):
    "The picture of a lesson, or of the front page for all others"
    own = cards/f'{doc[:2]}.svg'
    return own if cells.kind(doc) == 'lesson' and own.exists() else cards/FRONT

def address(doc):
    "Where the picture of a page stands on the site"
    return f'_images/previews/{doc if cells.kind(doc) == "lesson" else "index"}.png'

def drawing(doc, title, said, project):
    "The picture as SVG"
    number = f'Lesson {int(doc[:2])}' if cells.kind(doc) == 'lesson' else ''
    card = re.sub(r'<svg ', '<svg x="60" y="60" width="520" height="260" ',
                  card_of(doc).read_text(encoding='utf-8'), count=1)
    def text(x, y, size, words, color='#1f2933', weight='normal'):
        return (f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}" font-weight="{weight}">'
                f'{html.escape(words, quote=False)}</text>')
    lines = textwrap.wrap(said, 62)[:3]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="DejaVu Sans"><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
            f'<rect y="{HEIGHT-14}" width="{WIDTH}" height="14" fill="#6b4fa0"/>{card}'
            + text(640, 210, 34, number, '#5b6673') + text(60, 410, 64, title, weight='bold')
            + ''.join(text(60, 475 + 42*i, 30, line, '#3b4650') for i,line in enumerate(lines))
            + text(640, 150, 44, project, '#6b4fa0', 'bold') + '</svg>')

def draw(doc, title, said, project):
    "The picture as bytes of a PNG"
    return resvg_py.svg_to_bytes(svg_string=drawing(doc, title, said, project), width=WIDTH,
                                 height=HEIGHT, skip_system_fonts=True, font_dirs=[str(fonts)],
                                 font_family='DejaVu Sans', sans_serif_family='DejaVu Sans')

def tag(app, doc, template, context, doctree):
    "The tags that name the picture"
    if doctree is None: return
    meta = {'og:image': app.config.html_baseurl + address(doc), 'og:image:width': str(WIDTH),
            'og:image:height': str(HEIGHT)}
    context['meta'] = (context['meta'] or {}) | meta
    context['metatags'] += '<meta name="twitter:card" content="summary_large_image" />\n'

def write(app, exception):
    if exception or app.builder.name != 'html': return
    for doc in app.env.found_docs:
        if cells.kind(doc) != 'lesson' and doc != 'index': continue
        target = Path(app.outdir)/address(doc)
        target.parent.mkdir(parents=True, exist_ok=True)
        title = app.config.project if doc == 'index' else app.env.titles[doc].astext()
        said = promise(app.env.plain_texts.get(doc, ''))
        target.write_bytes(draw(doc, title, said, '' if doc == 'index' else app.config.project))

def setup(app):
    app.connect('html-page-context', tag, priority=400)         # before sphinxext-opengraph
    app.connect('build-finished', write)
    return dict(parallel_read_safe=True, parallel_write_safe=True)
