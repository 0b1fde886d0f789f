"The explorables in a real browser: what their controls show is what torch computes"
import itertools, math, re
import torch
from attention_nb.kernels.reference import attention
from attention_nb.figures.explorables import permutation_view, softmax_view
from helpers.looks import close, expect, press, titles, walk, words

# ---- softmax

def slider(page, name): return page.get_by_label(re.compile(f'^{name}'))

def check_softmax(page, q, k, *, temperature, width, cap, sink, scaled):
    "Scores after the cap, weights with the sink's, and the Jacobian's diagonal by autograd"
    q,k = q.double()[:width],k.double()[:,:width]
    def capped(s): return s if cap is None else cap*torch.tanh(s/cap)
    def weights(s):
        ends = torch.tensor([-math.inf if sink is None else sink], dtype=s.dtype)
        return torch.cat([capped(s), ends]).softmax(-1)
    s = (k @ q)/temperature/(width**.5 if scaled else 1)
    w,slopes = weights(s),torch.autograd.functional.jacobian(weights, s)[:6].diag()
    *rows,last = titles(page, 'tbody tr')
    for got,want in zip(zip(*rows, strict=True), (capped(s), w[:6], slopes), strict=True):
        close(got, want)
    assert page.locator('tr.sink').is_visible() == (sink is not None)
    if sink is not None: close([last[1]], w[6:])
    return w

def test_bars_and_slopes_follow_the_sliders(open_view):
    torch.manual_seed(0)
    q,k = torch.randn(12),torch.randn(6, 12)
    first = dict(temperature=4, scaled=False, sink=1.)
    page = open_view(softmax_view(q, k, words, width=5, softcap=2.5, **first))
    check_softmax(page, q, k, width=5, cap=2.5, **first)
    slider(page, 'width').press('ArrowRight')
    check_softmax(page, q, k, width=6, cap=2.5, **first)
    for name,text in dict(temperature='4.00', width='6', cap='2.50', sink='1.00').items():
        expect(slider(page, name)).to_have_attribute('aria-valuetext', text)
    # each slider has its own way of saying a value
    at = dict(temperature=math.log2, width=int, cap=lambda c: 20.5 if c is None else c,
              sink=lambda z: -5.5 if z is None else z)
    for *values,scaled in (
            (1/16, 1, None, None, 1), (1., 7, None, -5., 0), (2**.75, 12, None, 2.5, 1),
            (16., 1, .5, -5., 0), (1/16, 7, .5, 2.5, 1), (1., 12, .5, None, 0),
            (2**.75, 1, 9.5, None, 1), (16., 7, 9.5, 2.5, 0)):
        values = dict(zip(at, values))
        for name,value in values.items(): slider(page, name).fill(str(at[name](value)))
        page.get_by_label('divide by').set_checked(scaled)
        w = check_softmax(page, q, k, scaled=scaled, **values)
    expect(page.locator('.status')).to_contain_text(f'The sink has {100*w[6]:.1f}\u00a0%')
    # bars take .12 s to their length
    page.evaluate('Promise.all(document.getAnimations().map(a => a.finished)).then(() => 0)')
    bars = page.locator('tbody tr:not(.sink) td:nth-child(3)').evaluate_all("""cells => cells.map(
        c => c.firstChild.getBoundingClientRect().width / (c.clientWidth - 16 - 60))""")
    torch.testing.assert_close(torch.tensor(bars), w[:6].float(), atol=.02, rtol=.05)
    page.get_by_role('button', name='reset').click()
    check_softmax(page, q, k, width=5, cap=2.5, **first)

# ---- permutation

def check_order(page, x, places, order=None):
    "How far each word's output is from what it was, against attention in the order it returns"
    right = page.locator('.words').last.locator('li')
    shown = [int(n) for n in right.evaluate_all('es => es.map(e => e.dataset.word)')]
    assert shown == (order or shown)
    p = places.double()*page.get_by_label('add positions').is_checked()
    causal = page.get_by_label('causal mask').is_checked()
    a,b = (attention(t, t, t, causal=causal)[0] for t in (x.double()+p, x[shown].double()+p))
    want = (b - a[shown]).norm(dim=-1)
    close(right.evaluate_all('es => es.map(e => e.lastChild.title)'), want)
    same = (want < 1e-6).tolist()
    assert [t == 'same' for t in right.locator('> span:last-child').all_inner_texts()] == same
    paths = page.locator('path').evaluate_all("es => es.map(e => e.getAttribute('class'))")
    assert paths == ['same' if s else 'moved' for s in same]
    expect(page.locator('.status')).to_contain_text(
        'The output of every word follows it' if all(same) else f'{same.count(False)} of 7 words')
    return shown

def opened(open_view, **kw):
    torch.manual_seed(0)
    x,places = torch.randn(2, 7, 10)
    return open_view(permutation_view(x, [*words, '!'], places, **kw)), x, places

def test_outputs_follow_their_words_or_not_as_torch_says(open_view):
    page,x,places = opened(open_view)
    check_order(page, x, places, [6,5,4,3,2,1,0])
    seen = set()
    for positions,causal in itertools.product((False, True), (False, True)):
        page.get_by_label('add positions').set_checked(positions)
        page.get_by_label('causal mask').set_checked(causal)
        for button in ('shuffle', 'reverse'):
            page.get_by_role('button', name=button).click()
            seen.add(tuple(check_order(page, x, places)))
    assert len(seen) > 4                                # shuffled, not always the same
    page.get_by_role('button', name='reset').click()
    check_order(page, x, places, list(range(7)))        # whatever is added or hidden
    assert page.locator('path.moved').count() == 0

def test_words_are_moved_by_pointer_and_keyboard(open_view):
    page,x,places = opened(open_view, order=range(7), causal=True)
    right = page.locator('button.word')
    walk(page, (right.nth(1), 'button.word[aria-pressed=true]', 'flies'))
    right.nth(5).click()                                # the two change places
    check_order(page, x, places, [0,5,2,3,4,1,6])
    expect(page.locator('button.word[aria-pressed=true]')).to_have_count(0)
    right.nth(0).focus()
    press(page, 'ArrowUp', 'ArrowDown', 'ArrowDown')
    check_order(page, x, places, [5,2,0,3,4,1,6])
    expect(right.nth(2)).to_be_focused()                # the keyboard stays with its word
    expect(right.nth(2)).to_have_attribute(
        'aria-label', re.compile(r'^time, place 2, was at 0, output moved by \d'))
    press(page, 'Enter', 'Escape')
    right.nth(6).click()                                # nothing was held any more
    right.first.locator('xpath=ancestor::li/..').dispatch_event('keydown', dict(key='Escape'))
    check_order(page, x, places, [5,2,0,3,4,1,6])
