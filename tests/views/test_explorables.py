"The explorables in a real browser: what their controls show is what torch computes"
import itertools, math, re
import pytest, torch
from attention_nb.kernels.reference import attention
from attention_nb.views.explorables import permutation_view, softmax_view
from helpers.looks import expect, hostile, hostile_title, words

def floats(texts):
    return torch.tensor([float(t.replace('−', '-')) for t in texts], dtype=torch.float64)
def close(got, want): torch.testing.assert_close(floats(got), want.double(), atol=1e-6, rtol=1e-6)

# ---- softmax

def slide(page, **values):
    "Move sliders; each has its own way of saying a value"
    at = dict(temperature=math.log2, width=int, cap=lambda c: 20.5 if c is None else c,
              sink=lambda z: -5.5 if z is None else z)
    for name,value in values.items():
        page.get_by_label(re.compile(f'^{name}')).fill(str(at[name](value)))

def torch_says(q, k, *, temperature, width, cap, sink, scaled):
    "Scores after the cap, weights with the sink's, and the Jacobian's diagonal by autograd"
    q,k = q.double()[:width],k.double()[:,:width]
    s = (k @ q)/temperature/(width**.5 if scaled else 1)
    def capped(s): return s if cap is None else cap*torch.tanh(s/cap)
    def weights(s):
        return torch.cat([capped(s), torch.tensor([-math.inf if sink is None else sink],
                                                  dtype=s.dtype)]).softmax(-1)
    return capped(s), weights(s), torch.autograd.functional.jacobian(weights, s)[:len(k)].diag()

def test_bars_and_slopes_follow_the_sliders(open_view):
    torch.manual_seed(0)
    q,k = torch.randn(12),torch.randn(6, 12)
    page = open_view(softmax_view(q, k, words))
    titles = "rows => rows.map(r => [...r.cells].slice(1).map(c => c.title))"
    for n,(temperature,width,cap,sink) in enumerate(itertools.product((1/16, 1., 2**.75, 16.),
        (1, 7, 12), (None, .5, 9.5), (None, -5., 2.5))):
        scaled = n % 2 == 0
        slide(page, temperature=temperature, width=width, cap=cap, sink=sink)
        page.get_by_label('divide by').set_checked(scaled)
        scores,w,slopes = torch_says(q, k, temperature=temperature, width=width, cap=cap, sink=sink,
                                     scaled=scaled)
        *rows,last = page.locator('tbody tr').evaluate_all(titles)
        close([r[0] for r in rows], scores)
        close([r[1] for r in rows], w[:6])
        close([r[2] for r in rows], slopes)
        assert page.locator('tr.sink').is_visible() == (sink is not None)
        if sink is not None: close([last[1]], w[6:])
    expect(page.locator('.status')).to_contain_text(f'The sink has {100*w[6]:.1f}\u00a0%')
    # bars take .12 s to their length
    page.evaluate('Promise.all(document.getAnimations().map(a => a.finished)).then(() => 0)')
    bars = page.locator('tbody tr:not(.sink) td:nth-child(3)').evaluate_all(
        'cells => cells.map(c => c.firstChild.getBoundingClientRect().width / (c.clientWidth - 16 '
        '- 60))')
    torch.testing.assert_close(torch.tensor(bars), w[:6].float(), atol=.02, rtol=.05)
    page.get_by_role('button', name='reset').click()
    expect(page.get_by_label('temperature')).to_have_attribute('aria-valuetext', '1.00')
    expect(page.get_by_label('cap')).to_have_attribute('aria-valuetext', 'none')
    expect(page.get_by_label(re.compile('^width'))).to_have_value('12')

def test_the_view_begins_where_python_says_and_answers_the_keyboard(open_view):
    torch.manual_seed(0)
    q,k = torch.randn(12),torch.randn(6, 12)
    page = open_view(softmax_view(q, k, words, temperature=4, width=5, scaled=False, softcap=2.5,
                                  sink=1.))
    says = {name: page.get_by_label(re.compile(f'^{name}')) for name in ('temperature', 'width',
        'cap', 'sink')}
    for name,text in dict(temperature='4.00', width='5', cap='2.50', sink='1.00').items():
        expect(says[name]).to_have_attribute('aria-valuetext', text)
    says['width'].focus()
    page.keyboard.press('ArrowRight')
    expect(says['width']).to_have_attribute('aria-valuetext', '6')
    *_,slopes = torch_says(q, k, temperature=4, width=6, cap=2.5, sink=1., scaled=False)
    close(page.locator('tbody tr:not(.sink) td:last-child').evaluate_all('cells => cells.map(c => '
                                                                         'c.title)'), slopes)

def test_the_view_shows_the_sliders_that_are_asked_for(open_view):
    torch.manual_seed(0)
    page = open_view(softmax_view(torch.randn(4), torch.randn(6, 4), words,
                                  sliders=['width','temperature']))
    assert page.locator('input[type=range]').count() == 2
    slide(page, temperature=4., width=2)
    expect(page.get_by_label('temperature')).to_have_attribute('aria-valuetext', '4.00')
    expect(page.get_by_label(re.compile('^cap'))).to_have_count(0)

# ---- permutation

def moved(x, places, order, positions, causal):
    "How far the output of each word is from what it was, in the new order"
    p = places if positions else 0*places
    a,b = (attention(t, t, t, causal=causal)[0] for t in (x+p, x[order]+p))
    return (b - a[order]).norm(dim=-1)

def state(page):
    "The order on the right, and how far each output has moved"
    rows = page.locator('.words').last.locator('li')
    order = [int(n) for n in rows.evaluate_all('es => es.map(e => e.dataset.word)')]
    return order, rows.evaluate_all('es => es.map(e => e.lastChild.title)')

def check(page, x, places):
    order,far = state(page)
    options = {name: page.get_by_label(label).is_checked()
               for name,label in (('positions', 'add positions'), ('causal', 'causal mask'))}
    want = moved(x.double(), places.double(), order, **options)
    close(far, want)
    same = (want < 1e-6).tolist()
    said = page.locator('.words').last.locator('li > span:last-child').all_inner_texts()
    assert [t == 'same' for t in said] == same
    assert page.locator('path').evaluate_all("es => es.map(e => "
                                             "e.getAttribute('class'))") == ['same' if s
                                             else 'moved' for s in same]
    status = page.locator('.status').inner_text()
    assert status.startswith('The output of every word follows '
                             'it') if all(same) else status.startswith(f'{same.count(False)} of 7 '
                                                                       f'words')
    return order,options

def test_outputs_follow_their_words_or_not_as_torch_says(open_view):
    torch.manual_seed(0)
    x,places,names = torch.randn(7, 10),torch.randn(7, 10),[*words, '!']
    page = open_view(permutation_view(x, names, places))
    assert check(page, x, places) == ([6,5,4,3,2,1,0], dict(positions=False, causal=False))
    seen = set()
    for positions,causal in itertools.product((False, True), (False, True)):
        page.get_by_label('add positions').set_checked(positions)
        page.get_by_label('causal mask').set_checked(causal)
        for press in ('shuffle', 'reverse', 'shuffle'):
            page.get_by_role('button', name=press).click()
            order,options = check(page, x, places)
            assert options == dict(positions=positions, causal=causal)
            seen.add(tuple(order))
    assert len(seen) > 6                                # shuffled, not always the same
    page.get_by_role('button', name='reset').click()
    assert check(page, x, places)[0] == list(range(7))
    assert state(page)[1] == ['0']*7                    # whatever is added or hidden

def test_words_are_moved_by_pointer_and_keyboard(open_view):
    torch.manual_seed(0)
    x,places,names = torch.randn(7, 10),torch.randn(7, 10),[*words, '!']
    page = open_view(permutation_view(x, names, places, order=range(7), causal=True))
    right = page.locator('button.word')
    right.nth(1).click()
    expect(right.nth(1)).to_have_attribute('aria-pressed', 'true')
    right.nth(5).click()                                # the two change places
    assert check(page, x, places)[0] == [0,5,2,3,4,1,6]
    expect(page.locator('button.word[aria-pressed=true]')).to_have_count(0)
    right.nth(0).focus()
    for key in ('ArrowUp', 'ArrowDown', 'ArrowDown'): page.keyboard.press(key)
    assert check(page, x, places)[0] == [5,2,0,3,4,1,6]
    expect(right.nth(2)).to_be_focused()                # the keyboard stays with its word
    expect(right.nth(2)).to_have_attribute('aria-label',
                                           re.compile(r'^time, place 2, was at 0, output moved by '
                                                      r'\d'))
    page.keyboard.press('Enter')
    page.keyboard.press('Escape')
    right.nth(6).click()
    assert state(page)[0] == [5,2,0,3,4,1,6]            # nothing was held any more
    errors = []
    page.on('pageerror', lambda e: errors.append(e))
    right.first.locator('xpath=ancestor::li/..').dispatch_event('keydown', dict(key='Escape'))
    assert state(page)[0] == [5,2,0,3,4,1,6] and not errors

# ---- both

def both():
    x = torch.randn(6, 10)
    return dict(softmax=softmax_view(x[0], x, words, sink=0.), permutation=permutation_view(x,
        words))

@pytest.mark.parametrize('width', [390, 1400])
@pytest.mark.parametrize('kind', ['softmax', 'permutation'])
def test_nothing_is_wider_than_the_page(browser, tmp_path, kind, width):
    page = browser.new_page(viewport=dict(width=width, height=800))
    page.goto(both()[kind].save(tmp_path/'x.html').as_uri())
    expect(page.locator('[data-ready=yes]')).to_be_attached()
    assert page.evaluate('document.documentElement.scrollWidth <= innerWidth')
    boxes = page.locator('input, button, th, .word, li > span').evaluate_all(
        'es => es.map(e => e.getBoundingClientRect().right)')
    assert boxes and max(boxes) <= width
    page.close()

@pytest.mark.parametrize('kind', ['softmax', 'permutation'])
def test_hostile_words_do_nothing(open_view, kind):
    from attention_nb.recording.inputs import readable
    bad = hostile[:40]
    x = torch.randn(40, 4)
    view = softmax_view(x[0], x, bad,
                        title=hostile_title) if kind == 'softmax' else permutation_view(x, bad,
                        title=hostile_title)
    page = open_view(view)
    where = 'tbody tr:not(.sink) th' if kind == 'softmax' else '.words:first-child .word'
    assert page.locator(where).all_text_contents() == [readable(t) for t in bad]
    assert page.evaluate('window.hacked') is None
    assert page.evaluate('document.documentElement.scrollWidth <= innerWidth')

def test_a_still_is_drawn_in_a_process_that_never_imported_the_module(tmp_path):
    import json, subprocess, sys
    view = both()['permutation']
    (tmp_path/'data.json').write_text(json.dumps(view._data))
    code = ("import json, sys; from attention_nb.views.page import View; "
            "View.from_data(json.load(open('data.json')), 'x').save('x.svg')")
    subprocess.run([sys.executable, '-c', code], cwd=tmp_path, check=True)
    assert (tmp_path/'x.svg').read_text() == view._repr_svg_()
