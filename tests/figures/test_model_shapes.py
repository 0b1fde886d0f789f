"The view of shapes in a real browser: what its sliders give is what Python counts"
from attention_nb.figures.model_shapes import _counts, shapes_view
from helpers.looks import expect, press, walk

def sizes_of(page):
    said = page.locator('.sliders label').evaluate_all(
        "es => es.map(e => [e.firstChild.textContent.at(-1), e.querySelector('output').value])")
    sizes = {letter: int(x) for letter,x in said}
    return sizes | dict(D=sizes['H']*sizes['E'])

def slide(page, letter, value):
    "Move the slider of a size to a value, which it must have"
    page.locator('.sliders label').evaluate_all("""(all, [letter, value]) => {
        const box = all.find(e => e.firstChild.textContent.endsWith(' ' + letter))
        const [input, said] = [box.querySelector('input'), box.querySelector('output')]
        for (let at = 0; at <= input.max; at++) {
            input.value = at
            input.dispatchEvent(new Event('input'))
            if (said.value === value) break
        } }""", [letter, str(value)])
    assert sizes_of(page)[letter] == value

def check(page):
    "Every step against Python's table, which the notebook holds against a model"
    counts = _counts(sizes_of(page))
    shown = page.locator('.shape').all_inner_texts()
    assert shown == [f'({", ".join(map(str, shape))})' for shape,*_ in counts]
    got = page.locator('.step').evaluate_all("""all => all.map(e => {
        e.click()
        const {parameters, work} = document.getElementById('view').dataset
        return [+parameters, +work] })""")
    assert got == [[parameters, work] for _,parameters,work in counts]

def test_shapes_parameters_and_products_are_those_that_python_counts(open_view):
    page = open_view(shapes_view(length=7, n_heads=6, n_kv_heads=3, head_dim=10, d_ff=24,
                                 vocab_size=11, batch=3))
    check(page)
    for letter,value in (('L',16), ('E',8), ('H',4), ('G',2), ('F',64), ('N',64), ('B',2)):
        slide(page, letter, value)
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

def test_steps_follow_buttons_and_keys_and_have_a_sheet_for_each_head(open_view):
    page = open_view(shapes_view(n_heads=4, n_kv_heads=2, step=3))
    current = page.locator('.step[aria-current=step]')
    back,after = (page.get_by_role('button', name=name) for name in ('back', 'next step'))
    sheets = page.locator('svg rect')
    expect(current).to_contain_text('queries')
    expect(page.locator('.status')).to_contain_text('queries: (B, H, L, E)')
    expect(sheets).to_have_count(4)
    walk(page, (after, current, 'keys'))
    expect(sheets).to_have_count(2)
    current.press('ArrowUp')
    walk(page, ('ArrowUp', current, 'norm'))
    press(page, *['ArrowUp']*8)
    walk(page, ('ArrowUp', current, 'ids'))
    expect(back).to_be_disabled()
    walk(page, ('ArrowRight', current, 'embedding'))
    page.locator('.step').last.click()
    expect(after).to_be_disabled()
    expect(sheets).to_have_count(1)
