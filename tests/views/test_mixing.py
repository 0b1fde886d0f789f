"The page of two sliders in a real browser: its arithmetic is torch's"
import itertools
import pytest, torch
from attention_nb.views.mixing import _mixture, _nearest, mixing_view
from helpers.looks import expect, hostile, hostile_title

def said(page):
    "Output, how far it is from what is wanted, and how near it can come"
    texts = page.locator('.status').get_attribute('title').replace('−', '-').split()
    return torch.tensor([float(t) for t in texts], dtype=torch.float64)

def torch_says(values, wanted, heads, weights):
    values,wanted,weights = values.double(),wanted.double(),torch.tensor(weights).double()
    out = _mixture(values, weights)
    best = _mixture(values, _nearest(values, wanted, heads))
    return torch.stack([*out, (out-wanted).norm(), (best-wanted).norm()])

def press(page, heads): page.get_by_role('button', name=f'{heads} head').click()

def test_what_the_page_says_is_what_torch_says(open_view):
    torch.manual_seed(0)
    for values,wanted in ((torch.tensor([[4., 1.], [0., 3.]]), torch.tensor([4., 3.])),
                          (torch.randn(2, 2), torch.randn(2)), (torch.ones(2, 2), torch.zeros(2))):
        page = open_view(mixing_view(values, ['my', 'crew'], ['whose', 'with whom'], wanted))
        sliders = page.get_by_role('slider')
        press(page, 'two')
        for a,b in itertools.product((0, .17, 1), (0, .5, .99)):
            sliders.nth(0).fill(str(a))
            sliders.nth(1).fill(str(b))
            torch.testing.assert_close(said(page), torch_says(values, wanted, 2, [a, b]),
                                       atol=1e-6, rtol=1e-6)
        press(page, 'one')                              # the second follows the first
        expect(sliders.nth(1)).to_have_value('1')
        for n,a in ((0, .25), (1, .8)):                 # either slider moves both
            sliders.nth(n).fill(str(a))
            expect(sliders.nth(1-n)).to_have_value(str(a))
            torch.testing.assert_close(said(page), torch_says(values, wanted, 1, [a, a]),
                                       atol=1e-6, rtol=1e-6)

def test_words_buttons_and_keyboard(open_view):
    values = torch.tensor([[4., 1.], [0., 3.]])
    page = open_view(mixing_view(values, ['my', 'crew'], ['whose', 'with whom']))
    status,sliders = page.locator('.status'),page.get_by_role('slider')
    expect(status).to_have_text('One head makes (2.00, 2.00), 2.24 away from what is wanted. '
                                'It cannot come nearer than 1.79.')
    expect(page.get_by_role('img')).to_have_attribute('aria-label', status.inner_text())
    assert page.locator('svg line.reach').count() == 1 and page.locator('svg rect').count() == 0
    sliders.first.focus()
    page.keyboard.press('ArrowRight')
    expect(sliders.first).to_have_attribute('aria-valuetext', 'my 51\u00a0%, crew 49\u00a0%')
    expect(sliders.last).to_have_attribute('aria-valuetext', 'my 51\u00a0%, crew 49\u00a0%')
    two = page.get_by_role('button', name='two heads')
    two.focus()
    page.keyboard.press('Enter')
    expect(two).to_have_attribute('aria-pressed', 'true')
    assert page.locator('svg line.reach').count() == 0 and page.locator('svg rect').count() == 1
    expect(status).to_contain_text('They can reach it.')
    sliders.first.focus()
    page.keyboard.press('End')
    sliders.last.focus()
    page.keyboard.press('Home')
    expect(status).to_have_text('Two heads make (4.00, 3.00), what is wanted.')
    page.get_by_role('button', name='reset').click()
    expect(sliders.last).to_have_value('0.5')
    expect(page.get_by_role('button', name='one head')).to_have_attribute('aria-pressed', 'true')

def test_it_begins_as_python_says(open_view):
    values = torch.tensor([[4., 1.], [0., 3.]])
    page = open_view(mixing_view(values, ['my', 'crew'], heads=2, weights=(.25, .75)))
    assert [s.input_value() for s in page.get_by_role('slider').all()] == ['0.25', '0.75']
    expect(page.get_by_role('button', name='two heads')).to_have_attribute('aria-pressed', 'true')

@pytest.mark.parametrize('width', [390, 1400])
def test_nothing_is_wider_than_the_page(browser, tmp_path, width):
    view = mixing_view(torch.tensor([[4., 1.], [0., 3.]]), ['i'*60, 'w'*60], ['m'*60, 'n'*60])
    page = browser.new_page(viewport=dict(width=width, height=800), has_touch=width == 390)
    page.goto(view.save(tmp_path/'x.html').as_uri())
    expect(page.locator('[data-ready=yes]')).to_be_attached()
    assert page.evaluate('document.documentElement.scrollWidth <= innerWidth')
    boxes = page.locator('input, button, output').evaluate_all(
        'es => es.map(e => [e.getBoundingClientRect().right, e.getBoundingClientRect().height])')
    assert boxes and max(right for right,_ in boxes) <= width
    if width == 390:
        touched = page.locator('input, button').evaluate_all(
            'es => es.map(e => e.getBoundingClientRect().height)')
        assert min(touched) >= 44
    page.close()

def test_hostile_words_do_nothing(open_view):
    for n in range(0, len(hostile)-3, 4):
        view = mixing_view(torch.eye(2), hostile[n:n+2], hostile[n+2:n+4], title=hostile_title)
        page = open_view(view)
        assert page.evaluate('window.hacked') is None
        assert page.evaluate('document.documentElement.scrollWidth <= innerWidth')
