"What is asked of every kind of view: of text from strangers, on a phone, of its still"
import json, re, subprocess, sys, xml.etree.ElementTree as xml
import pytest, torch
from attention_nb import (head_view, image_view, model_view, neuron_view, show_tokens, View,
                          AttentionMask)
from attention_nb.recording.inputs import readable
from attention_nb.figures.arcs import arc_view
from attention_nb.figures.cache_steps import cache_view
from attention_nb.figures.explorables import permutation_view, softmax_view
from attention_nb.figures.flash_tiles import tiles_view
from attention_nb.figures.forming import forming_view
from attention_nb.figures.mask_rows import mask_view
from attention_nb.figures.merge_steps import merges_view
from attention_nb.figures.mixing import mixing_view
from attention_nb.figures.model_shapes import shapes_view
from attention_nb.figures.near_words import near_view
from attention_nb.views.page import _kinds
from attention_nb.figures.ring_steps import ring_view
from attention_nb.figures.rope_turns import rotation_view
from attention_nb.figures.row_steps import row_view
from attention_nb.figures.state_steps import state_view
from attention_nb.figures.two_words import two_words_view
from attention_nb.figures.word_senses import sense_view
from helpers import full
from helpers.looks import expect, hostile, hostile_title, moving, sticks_out, weights

title = dict(title=hostile_title)

def square(names): return weights(1, 1, len(names), len(names))
def rows(names): return torch.randn(len(names), 4, generator=torch.Generator().manual_seed(0))

def neurons(names): return neuron_view(*[rows(names)[None,None]]*2, names, **title)

def picture(names):
    return image_view(weights(1, 1, len(names), 12), torch.zeros(60, 80, 3), tokens=names, **title)

def moments(names):
    return forming_view(torch.full((1, len(names), 3, 3), .1), [1], [1.], names=names, **title)

def senses(names):
    x = rows(names)
    return sense_view(names[0], [names, [names[0], hostile_title]], [x, -rows(names)[:2] + 2*x[0]],
                      names, x, shown=2, **title)

def states(names):
    k = torch.nn.functional.normalize(rows(names), dim=-1)
    return state_view(names, names, k, k, written=len(names), **title)

def turns(E, names):
    return rotation_view(*torch.ones(2, E), names, positions=(0,99), length=100, **title)

# a view of some names, where its page shows them, in their order, and how many at most
kinds = dict(
    tokens=(lambda t: show_tokens(t, **title), '.boxes span', 200),
    head=(lambda t: head_view(square(t), t, **title), '.right .t', 200),
    model=(lambda t: model_view(square(t), t, **title), '.large .right .t', 200),
    neuron=(neurons, 'tbody th', 200),
    image=(picture, '.bar button', 20),
    arcs=(lambda t: arc_view(square(t), t, **title), '.word .t', 40),
    softmax=(lambda t: softmax_view(rows(t)[0], rows(t), t, **title), 'tbody tr:not(.sink) th', 40),
    permutation=(lambda t: permutation_view(rows(t), t, **title), '.words:first-child .word', 40),
    rope_turns=(lambda t: turns(2, t), '.chip', 2),
    rope_turns_of_eight=(lambda t: turns(16, t), '.chip', 2),
    mixing=(lambda t: mixing_view(torch.eye(2), [f'{n} {"w"*60}' for n in t], t, **title),
            '.sliders label > span', 2),
    row_steps=(lambda t: row_view(t, [1]*len(t), **title), 'tbody th', 40),
    merge_steps=(lambda t: merges_view([], (t or names)[0][:24], **title), '.nothing', 0),
    near_words=(lambda t: near_view(t, rows(t), **title), 'option', 40),
    two_words=(lambda t: two_words_view(t, *[torch.eye(2)]*3, **title), '.counts thead th', 2),
    mask_rows=(lambda t: mask_view(rows(t) @ rows(t).T, t, **title), '.mask tbody th', 8),
    word_senses=(senses, '.sentence:first-of-type .token', 40),
    cache_steps=(lambda t: cache_view(t, **title), '.cells thead tr > *', 24),
    state_steps=(states, '.keys b', 12),
    flash_tiles=(lambda t: tiles_view({n: AttentionMask(70) for n in t}, sides=[8], **title),
                 'option', 200),
    forming=(moments, 'figcaption', 2),
    ring_steps=(lambda t: ring_view({n: [0,1] for n in t}, **title), 'option', 2),
    model_shapes=(lambda t: shapes_view(**title), '.nothing', 0))

# no mark of a model, which arcs leave out, and each once, as a page shows it
names = [*{readable(t): t for t in hostile if not re.fullmatch('</?[a-z]+>', t)}.values()]

def check(page, kind, names):
    "No name has done anything, each is shown as it was given"
    if kind == 'model': page.locator('.grid button').first.click()
    shown = page.locator(kinds[kind][1])
    expect(shown).to_have_count(len(names))
    assert shown.all_text_contents() == [readable(t) for t in names]
    assert page.evaluate('window.hacked') is None and page.locator('h1').inner_text()
    assert page.locator('script').count() == 2
    high = shown.evaluate_all('es => es.map(e => e.getBoundingClientRect().height)')
    assert max(high, default=0) <= 100

@pytest.mark.parametrize('kind', kinds)
def test_hostile_text_does_nothing_and_all_fits_a_phone_and_a_finger(open_view, kind):
    of,_,most = kinds[kind]
    some = names[1:most+1]
    page = open_view(of(some), width=390, kind='touch', theme='dark', motion='reduce')
    check(page, kind, some)
    pressed = page.locator('button, select, input:not([type=checkbox]), label.check, .track > div')
    assert not pressed.evaluate_all("""es => es.filter(e => e.getClientRects().length
        && e.getBoundingClientRect().height < 44).map(e => e.outerHTML)""")
    assert moving(page) == []
    for width in (390, 1400):
        page.set_viewport_size(dict(width=width, height=800))
        assert page.evaluate('document.documentElement.scrollWidth') <= width
        assert sticks_out(page) == [], width

@full
@pytest.mark.parametrize('kind', [k for k,(*_,most) in kinds.items() if most])
def test_all_hostile_text_in_pages_and_pictures(open_view, tmp_path, kind):
    of,_,most = kinds[kind]
    for n in range(0, len(names)-1, most):
        some = names[n:n+most]
        check(open_view(of(some)), kind, some)
        for suffix in ('svg', 'png')[:most-2]: of(some).save(tmp_path/f'x.{suffix}')

def test_a_stored_view_is_drawn_in_another_process(tmp_path):
    "As the site makes it: only `View` and the modules of figures are imported. Hostile text stays"
    hard = ['</script>', '$\\frac{$', '&lt;b&gt;', '\ud800', '\x1b[31m', 'x'*10_000, '', 'שלום']
    views = {k: of(hard[:most]) for k,(of,_,most) in kinds.items()}
    assert {v._data['kind'] for v in views.values()} == {*_kinds}
    (tmp_path/'views.json').write_text(json.dumps({k: v._stored() for k,v in views.items()}))
    code = """import json, pkgutil; from importlib import import_module
import attention_nb.figures; from attention_nb import View
for m in pkgutil.iter_modules(attention_nb.figures.__path__, 'attention_nb.figures.'):
    import_module(m.name)
for name,d in json.load(open('views.json')).items(): View(**d).save(f'{name}.svg')
View(**d).save('last.png')"""
    subprocess.run([sys.executable, '-c', code], cwd=tmp_path, check=True)
    for name,view in views.items():
        found = (tmp_path/f'{name}.svg').read_text(encoding='utf-8')
        if name in ('image', 'permutation'):
            assert found == view._repr_svg_()
            frame = View(view._data, '"><script>1</script>', found)._repr_html_()
            assert frame.count('<iframe') == 1 and '<script' not in frame
        tags = {e.tag.rpartition('}')[2] for e in xml.fromstring(found).iter()}
        assert not tags & {'script', 'foreignObject', 'iframe'}, name
