"""What nbdev-clean leaves in the stored outputs of the notebooks, and does not belong there; run it
after nbdev-clean.

A view is stored as its data and its still; the site puts the live page together from them, so no
notebook holds a copy of a script. A figure is stored without the date at which it was drawn, and
one of matplotlib's at half its size: no metadata, two digits after the point of a coordinate, the
letters of the site.
"""
import re, sys
from importlib.resources import files
from fastcore.nbio import nb2str, read_nb, write_nb
import cells

# {"summary": ..., "data": what the live page holds}
VIEW = 'application/vnd.attention-nb.view+json'
_date = re.compile(r'[ \t]*<dc:date>[^<]*</dc:date>\n?')

_coordinates = re.compile(r'\b(d|x|y|transform)="([^"]*)"')
_fonts = re.compile(r"; font-family: 'DejaVu Sans'(?:, [^;\"]*sans-serif)?(?=[;\"])")
_look = (files('attention_nb')/'views_js'/'look.css').read_text('utf-8')
# of the whole book
LETTERS = re.search('--letters: (.*?);', _look)[1].replace('"', "'")

def slim(svg):
    "A figure of matplotlib's, smaller; any other as it is"
    if 'Matplotlib v' not in svg: return svg
    svg = re.sub(r'\s*<metadata>.*?</metadata>', '', svg, flags=re.S)
    def shorter(m):
        numbers = re.sub(r'-?\d+\.\d+', lambda n: f'{float(n[0]):.2f}'.rstrip('0').rstrip('.'),
                         m[2])
        return f'{m[1]}="{" ".join(numbers.split())}"'
    svg = _fonts.sub('', _coordinates.sub(shorter, svg))
    svg = svg.replace('<svg ', f'<svg font-family="{LETTERS}" ', 1)
    return re.sub(r'\n\s+<', '\n<', svg)

def tidy(nb):
    "Clean the outputs of `nb` in place"
    for out in (o for c in nb['cells'] for o in c.get('outputs', [])):
        data = out.get('data', {})
        if VIEW in data: data.pop('text/html', None)
        if 'image/svg+xml' in data:
            data['image/svg+xml'] = slim(_date.sub('', ''.join(data['image/svg+xml'])))
    return nb

def tidy_file(path):
    "Tidy the notebook at `path`; it is written only if that changes it"
    nb = read_nb(path)
    before = nb2str(nb)
    if nb2str(tidy(nb)) != before: write_nb(nb, path)

if __name__ == '__main__':
    for path in sys.argv[1:] or cells.notebooks():
        tidy_file(path)
