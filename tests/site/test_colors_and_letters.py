"""One hand: letters and colours stand in views_js/look.css; plots, schemes, cards, formulas and the
site have the same"""
import json, re
from attention_nb.views.plots import colors
from helpers import root
import quarto, rules, tidy

look = (root/'attention_nb'/'views_js'/'look.css').read_text('utf-8')
light = look[:look.index('[data-theme="dark"]')]
letters = re.search('--letters: (.*?);', look)[1]
roles = 'q', 'k', 'v', 'weight'
schemes = [*(root/'attention_nb'/'figures').glob('*.svg'), *quarto.CARDS.glob('*.svg')]
def shade(name):
    "Of a variable in light, as #rrggbb"
    numbers = re.search(rf'--{name}: (\d+,\d+,\d+);', light)[1].split(',')
    return '#' + ''.join(f'{int(n):02x}' for n in numbers)
def named(name): return re.search(rf'--{name}: (#\w+);', light)[1].lower()

def test_plots_have_the_colours_of_the_views():
    assert [colors[n].lower() for n in ('q','k','v','w')] == [shade(n) for n in roles]
    assert colors['x'].lower() == named('soft')
    style = (root/'attention_nb'/'book.mplstyle').read_text()
    assert set(re.findall(r'^(?:text|.*label|.*title).*color: (\w+)', style, re.M)) == {
        named('ink')[1:]}

def test_formulas_have_the_colours_of_the_views():
    used = {c for p in rules.notebooks() for c in re.findall(
        r'\\color\{(#\w{6})', ''.join(json.dumps(p.read_text('utf-8'))))}
    assert {c.lower() for c in used} == {shade(n) for n in roles}
    style = (root/'nbs'/'_sphinx'/'_static'/'custom.css').read_text()
    for name in roles:
        numbers = ', '.join(str(int(shade(name)[n:n+2], 16)) for n in (1, 3, 5))
        own = rf'rgb\({numbers}\)"\] {{{{ color: rgb\(var\(--{name}(-text)?\)\)'
        assert re.search(own.replace('{{', '{'), style), name
    assert '--pst-font-family-base: "Book Sans", var(--letters)' in style

def test_drawn_schemes_and_stored_plots_have_the_letters_of_the_site():
    assert tidy.LETTERS == letters.replace('"', "'")
    for p in schemes:
        found = re.findall(r'font-family[:=]\s*"?([^;>]*?sans-serif)', p.read_text('utf-8'))
        assert found and {f.replace('"', "'") for f in found} == {tidy.LETTERS}, p.name
    stored = [''.join(data['image/svg+xml']) for p in rules.notebooks()
              for c in json.loads(p.read_text('utf-8'))['cells'] for out in c.get('outputs', ())
              if 'image/svg+xml' in (data := out.get('data', {}))]
    assert sum(f'<svg font-family="{tidy.LETTERS}"' in svg for svg in stored) > 80
    assert not [svg[:200] for svg in stored if "family: 'DejaVu Sans'" in svg]
