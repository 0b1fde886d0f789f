"The view of tiles in a real browser: what it counts is what Python counts"
import pytest
from attention_nb.views.flash_tiles import _order, _passed, tiles_view
from attention_nb.kernels.visibility import Visibility
from helpers.looks import expect, hostile, hostile_title

rules = {'everything': Visibility(200, 150), 'causal': Visibility(200, causal=True),
         'window': Visibility(200, causal=True, window=(10,0))}

def opened(open_view, step=None, **kw):
    view = tiles_view(rules, sides=(32,64), width=5, step=step, **kw)
    return open_view(view), view._data

def shown(page):
    rows = page.locator('.counts tr').evaluate_all("rows => rows.map(r => r.cells[1].textContent)")
    return [row.replace(',', '') for row in rows]

def check(page, data, rule, side, step):
    rule,n = data['rules'][rule],data['sides'][side]
    kinds,L,S = rule['kinds'][side],rule['L'],rule['S']
    order = _order(kinds)
    scores,fetched,written = _passed(kinds, L, S, n, 5, step)
    assert shown(page) == [f'{step} of {len(order)}', str(len(kinds)*len(kinds[0])-len(order)),
                           str(scores), str(fetched+written), str(10*(L+S) + 4*L*S),
                           str(20*n + n*n + 2*n)]
    done = page.locator('.tiles i').evaluate_all(
        "cells => cells.map(c => c.classList)"
        ".filter(c => !c.contains('top') && !c.contains('side')).slice(1)"
        ".map(c => [c.contains('none'), c.contains('done'), c.contains('now')])")
    want = [[kind == '0', (i, j) in order[:step], step > 0 and (i, j) == order[step-1]]
            for i,row in enumerate(kinds) for j,kind in enumerate(row)]
    assert done == want
    says = page.locator('.status').inner_text()
    if not step: return says == 'Nothing is computed yet.'
    i,j = order[step-1]
    assert says.startswith(f'Queries {i*n} to {min((i+1)*n, L)-1} meet '
                           f'keys {j*n} to {min((j+1)*n, S)-1}')
    assert ('hidden' in says) == (kinds[i][j] == '1')
    assert ('output' in says) == (i not in [row for row,_ in order[step:]])
    assert page.locator('.tiles').get_attribute('aria-label') == says

def test_every_step_counts_what_python_counts(open_view):
    page,data = opened(open_view, step=0)
    back,after = (page.get_by_role('button', name=name) for name in ('back', 'next tile'))
    check(page, data, 0, 0, 0)
    expect(back).to_be_disabled()
    for step in range(1, 8):
        after.click()
        check(page, data, 0, 0, step)
    back.click()
    check(page, data, 0, 0, 6)
    page.get_by_label('tiles', exact=True).fill('35')
    check(page, data, 0, 0, 35)
    expect(after).to_be_disabled()

@pytest.mark.parametrize('rule', range(3))
@pytest.mark.parametrize('side', range(2))
def test_rules_and_sizes(open_view, rule, side):
    page,data = opened(open_view)
    page.get_by_label('rule').select_option(str(rule))
    page.get_by_role('combobox', name='tiles of').select_option(str(side))
    last = len(_order(data['rules'][rule]['kinds'][side]))
    for step in (last, last//2):
        page.get_by_label('tiles', exact=True).fill(str(step))
        check(page, data, rule, side, step)

def test_the_keyboard_steps(open_view):
    page,data = opened(open_view, step=4)
    page.get_by_role('button', name='back').focus()
    page.keyboard.press('ArrowRight')
    check(page, data, 0, 0, 5)
    page.keyboard.press('ArrowLeft')
    page.keyboard.press('Enter')
    check(page, data, 0, 0, 3)
    page.get_by_label('tiles', exact=True).focus()
    page.keyboard.press('ArrowRight')                   # once, though both could hear it
    check(page, data, 0, 0, 4)

@pytest.mark.parametrize('width', [390, 1400])
def test_nothing_is_wider_than_the_page(browser, tmp_path, width):
    page = browser.new_page(viewport=dict(width=width, height=800), has_touch=width == 390)
    view = tiles_view({'w'*80: Visibility(2048, causal=True)})
    page.goto(view.save(tmp_path/'x.html').as_uri())
    expect(page.locator('[data-ready=yes]')).to_be_attached()
    assert page.evaluate('document.documentElement.scrollWidth <= innerWidth')
    page.close()

def test_hostile_names_do_nothing(open_view):
    from attention_nb.recording.inputs import readable
    see = {name: Visibility(70) for name in hostile}
    page = open_view(tiles_view(see, title=hostile_title))
    assert page.locator('option').all_text_contents()[:len(see)] == [readable(n) for n in see]
    assert page.evaluate('window.hacked') is None
    assert page.evaluate('document.documentElement.scrollWidth <= innerWidth')
