"Views that go on step by step, in a real browser: at each step they show what Python counts"
import itertools
import pytest, torch
from attention_nb.kernels.attention_mask import AttentionMask
from attention_nb.figures.cache_steps import _counted, cache_view
from attention_nb.figures.flash_tiles import _order, _passed, tiles_view
from attention_nb.figures.forming import forming_view
from attention_nb.figures.ring_steps import pairs_of_steps, ring_view
from helpers import short
from helpers.looks import expect, words

def said(page, picture, step):
    "The sentence of the step, which is also the label of the picture"
    says = page.locator('.status').inner_text()
    assert page.locator(picture).get_attribute('aria-label') == says
    assert step or says == 'Nothing is computed yet.'
    return says

# ---- what each must show of its data at a step

def check_cache(page, d, step, keeps=True):
    shown = page.locator('.counts tbody tr').evaluate_all("""rows => rows.map(r =>
        [...r.cells].slice(1).map(c => +c.textContent.replaceAll(',', '')))""")
    assert [*zip(*shown)] == [_counted(step, d['bytes'], on) for on in (True, False)]
    def square(i, j): return '' if i >= step or j > i else 'read' if keeps and j < i else 'made'
    squares = page.locator('.cells tbody tr').evaluate_all("""rows => rows.map(r =>
        [...r.cells].map(c => c.className.replace('now', '').trim()))""")
    assert squares == [[square(i, j) for j in range(6)] for i in range(6)]
    says = said(page, '.grid', step)
    assert says.startswith(f'Step {step}, {words[step-1]}: ')
    assert (f'{(step-1)*d["bytes"]:,} bytes' in says) == keeps

def check_tiles(page, d, step, rule=0, side=0):
    seen,n = d['rules'][rule],d['sides'][side]
    kinds,L,S = seen['kinds'][side],seen['L'],seen['S']
    order = _order(kinds)
    scores,fetched,written = _passed(kinds, L, S, n, 5, step)
    shown = page.locator('.counts tr').evaluate_all(
        "rows => rows.map(r => r.cells[1].textContent.replaceAll(',', ''))")
    assert shown == [f'{step} of {len(order)}', str(len(kinds)*len(kinds[0])-len(order)),
                     str(scores), str(fetched+written), str(10*(L+S) + 4*L*S),
                     str(20*n + n*n + 2*n)]
    tiles = page.locator('.tiles i').evaluate_all("""cells => cells.map(c => c.classList)
        .filter(c => !c.contains('top') && !c.contains('side')).slice(1)
        .map(c => [c.contains('none'), c.contains('done'), c.contains('now')])""")
    assert tiles == [[kind == '0', (i, j) in order[:step], step > 0 and (i, j) == order[step-1]]
                     for i,row in enumerate(kinds) for j,kind in enumerate(row)]
    says = said(page, '.tiles', step)
    if not step: return
    i,j = order[step-1]
    assert says.startswith(f'Queries {i*n} to {min((i+1)*n, L)-1} meet '
                           f'keys {j*n} to {min((j+1)*n, S)-1}')
    assert ('hidden' in says) == (kinds[i][j] == '1')
    assert ('output' in says) == (i not in [row for row,_ in order[step:]])

steps,losses = [10, 100, 150, 400],[4., 3.5, 2., .25]
formed = torch.rand(4, 2, 8, 8, generator=torch.Generator().manual_seed(0)).tril()

def check_forming(page, d, step):
    dark = page.locator('.heads canvas').evaluate_all("""all => all.map(c => [...c.getContext('2d')
        .getImageData(0, 0, 8, 8).data].filter((_, n) => n % 4 === 3))""")
    shown = torch.tensor(dark).view(2, 8, 8)/255
    torch.testing.assert_close(shown, formed[step], atol=.004, rtol=0)
    says = f'After {steps[step]} steps the loss is {losses[step]:.2f}.'
    assert said(page, '.heads', says) == says
    x,y = (float(page.locator('.curve circle').get_attribute(a)) for a in ('cx','cy'))
    assert abs(x - (24 + 364*steps[step]/400)) < .01 and abs(y - (112 - 102*losses[step]/4)) < .01

def check_ring(page, d, step, order=0):
    owners = [o['ranks'] for o in d['orders']]
    owner = owners[order]
    def kind(i, j):
        at = (owner[i]-owner[j]) % 3
        return 'now' if at == step-1 else 'done' if at < step else 'later'
    cells = page.locator('.pairs rect').evaluate_all("""cells => cells.map(c =>
        [c.getAttribute('y')/10 - 2, c.getAttribute('x')/10 - 2, c.getAttribute('class')])""")
    assert {(round(i), round(j)): kind for i,j,kind in cells} == {
        (i, j): kind(i, j) for i in range(8) for j in range(i+1)}
    each = pairs_of_steps(owner, 3)
    whole = max(sum(map(max, pairs_of_steps(o, 3))) for o in owners)
    widths = page.locator('.lanes rect').evaluate_all("r => r.map(r => +r.getAttribute('width'))")
    assert widths == pytest.approx([max(0, 284*n/whole - .8) for pairs in each[:step]
                                    for n in pairs])
    says = said(page, '.rings', step)
    if not step: return
    last,so_far = each[step-1],sum(map(max, each[:step]))
    waits = sum(n < max(last) for n in last)
    idle = round(100*(1 - sum(map(sum, each[:step]))/(3*so_far)))
    named = f'{waits or "no"} process{"" if waits == 1 else "es"} wait{"s" if waits == 1 else ""}'
    assert says == (f'Step {step} takes as long as {max(last)} pairs, and {named}. The steps so '
                    f"far take {so_far}; {idle} % of everybody's time was waiting.")

# ---- the views, and how their buttons and sliders are called

rules = {'everything': AttentionMask(200, 150), 'causal': AttentionMask(200, causal=True),
         'window': AttentionMask(200, causal=True, window=(10,0))}

def tiles(**kw): return tiles_view(rules, sides=(32,64), width=5, **kw)

def forming(**kw): return forming_view(formed, steps, losses, names=['one','two'], **kw)

def ring(**kw):
    return ring_view({'in order': [0,0,0,1,1,1,2,2], 'early and late': [0,1,2,2,1,0,0,2]}, **kw)

@pytest.mark.parametrize('view,check,name,label,least,most', [
    (cache_view(words, step=1), check_cache, 'next word', 'step', 1, 6),
    (tiles(step=0), check_tiles, 'next tile', 'tiles', 0, 35),
    (forming(), check_forming, 'later', 'moment', 0, 3),
    (ring(step=0), check_ring, 'next step', 'steps', 0, 3)], ids=['cache','tiles','forming','ring'])
def test_every_step_shows_what_python_counts(open_view, view, check, name, label, least, most):
    "By buttons, keys and the slider, on which an arrow goes one step, though both could hear it"
    page = open_view(view)
    back,after = (page.get_by_role('button', name=n) for n in ('back', name))
    slider = page.get_by_label(label, exact=True)
    check(page, view._data, least)
    expect(back).to_be_disabled()
    for step in range(least+1, least+4):
        after.click()
        check(page, view._data, step)
    slider.fill(str(most))
    check(page, view._data, most)
    expect(after).to_be_disabled()
    back.focus()
    for key,step in (('Enter', -1), ('ArrowLeft', -2), ('ArrowRight', -1), ('Enter', -2)):
        page.keyboard.press(key)
        check(page, view._data, most+step)
    slider.press('ArrowRight')
    check(page, view._data, most-1)

def test_without_a_cache_and_of_another_model(open_view):
    view = cache_view(words, layers=12, n_kv_heads=12, step=4, keeps=False)
    page = open_view(view)
    check_cache(page, view._data, 4, False)
    assert view._data['bytes'] == 36_864
    slider = page.get_by_label('step', exact=True)
    slider.fill('5')
    check_cache(page, view._data, 5, False)
    expect(slider).to_have_attribute('aria-valuetext', f'5, {words[4]}')
    page.get_by_label('with a cache').check()
    check_cache(page, view._data, 5)

@pytest.mark.parametrize('rule,side', short([(0,1), (1,0), (2,1)],
                                            [*itertools.product(range(3), range(2))]))
def test_rules_and_sizes_of_tiles(open_view, rule, side):
    view = tiles()
    page = open_view(view)
    page.get_by_label('rule').select_option(str(rule))
    page.get_by_role('combobox', name='tiles of').select_option(str(side))
    step = len(_order(view._data['rules'][rule]['kinds'][side]))//2
    page.get_by_label('tiles', exact=True).fill(str(step))
    check_tiles(page, view._data, step, rule, side)

def test_moments_and_orders_are_what_was_asked_for(open_view):
    page = open_view(forming(moment=2))
    check_forming(page, None, 2)
    expect(page.get_by_label('moment', exact=True)).to_have_attribute('aria-valuetext', 'step 150')
    for view in (ring(), ring(step=2)):
        page = open_view(view)
        check_ring(page, view._data, 2)
    page.get_by_label('order').select_option('1')
    check_ring(page, view._data, 2, 1)
