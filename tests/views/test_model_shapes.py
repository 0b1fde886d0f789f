"The view of shapes in a real browser: what its sliders give is what a model has"
import re
from attention_nb.views.model_shapes import _counts, _steps, shapes_view
from helpers.looks import expect

names = [name for name,*_ in _steps]

def sizes_of(page):
    said = page.locator('.sliders label').evaluate_all(
        "es => es.map(e => [e.firstChild.textContent.at(-1), e.querySelector('output').value])")
    sizes = {letter: int(x) for letter,x in said}
    return sizes | dict(D=sizes['H']*sizes['E'])

def slide(page, letter, value):
    "Move the slider of a size to a value, which it must have"
    box = page.locator('.sliders label', has=page.get_by_text(re.compile(f' {letter}$'))).first
    for at in range(int(box.locator('input').get_attribute('max'))+1):
        box.locator('input').fill(str(at))
        if box.locator('output').inner_text() == str(value): return
    raise AssertionError(f'{letter} cannot be {value}')

def check(page):
    "Every step against Python's table, which the notebook holds against a model"
    counts = _counts(sizes_of(page))
    shown = page.locator('.shape').all_inner_texts()
    assert shown == [f'({", ".join(map(str, shape))})' for shape,*_ in counts]
    for n,(_,parameters,work) in enumerate(counts):
        page.locator('.step').nth(n).dispatch_event('click')
        got = page.locator('#view').evaluate('e => [+e.dataset.parameters, +e.dataset.work]')
        assert got == [parameters, work], names[n]

def test_shapes_parameters_and_products_are_those_that_python_counts(open_view):
    page = open_view(shapes_view(length=7, n_heads=6, n_kv_heads=3, head_dim=10, d_ff=24,
                                 vocab_size=11, batch=3))
    check(page)
    for letter,value in (('L',16), ('E',8), ('H',4), ('G',2), ('F',64), ('N',64), ('B',2)):
        slide(page, letter, value)
        assert sizes_of(page)[letter] == value
    check(page)

def test_key_heads_always_divide_heads(open_view):
    page = open_view(shapes_view(n_heads=16, n_kv_heads=16))
    slide(page, 'H', 4)
    assert sizes_of(page)['G'] == 4                     # 16 were asked for
    slide(page, 'G', 2)
    slide(page, 'H', 8)
    assert sizes_of(page)['G'] == 2
    page.get_by_role('button', name='reset').click()
    s = sizes_of(page)
    assert (s['H'], s['G'], s['D']) == (16, 16, 512)

def test_steps_follow_buttons_and_keys(open_view):
    page = open_view(shapes_view(step=3))
    current = page.locator('.step[aria-current=step]')
    expect(current).to_contain_text('queries')
    expect(page.locator('.status')).to_contain_text('queries: (B, H, L, E)')
    page.get_by_role('button', name='next step').click()
    expect(current).to_contain_text('keys')
    current.focus()
    for _ in range(2): page.keyboard.press('ArrowUp')
    expect(current).to_contain_text('norm')
    for _ in range(9): page.keyboard.press('ArrowUp')
    expect(current).to_contain_text('ids')
    expect(page.get_by_role('button', name='back')).to_be_disabled()
    page.keyboard.press('ArrowRight')
    expect(current).to_contain_text('embedding')
    page.locator('.step').last.click()
    expect(page.get_by_role('button', name='next step')).to_be_disabled()
    assert page.locator('svg rect').count() == 1

def test_a_sheet_for_each_head(open_view):
    page = open_view(shapes_view(n_heads=4, n_kv_heads=2, step=3))
    assert page.locator('svg rect').count() == 4
    page.locator('.step').nth(4).click()
    assert page.locator('svg rect').count() == 2
