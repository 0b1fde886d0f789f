"The page of two sliders in a real browser: its arithmetic is torch's"
import torch
from attention_nb.figures.mixing import _mixture, _nearest, mixing_view
from helpers.looks import close, expect, walk

def check(page, values, wanted, heads, weights):
    "Output, how far it is from what is wanted, and how near it can come"
    values,wanted,weights = values.double(),wanted.double(),torch.tensor(weights).double()
    out,best = (_mixture(values, w) for w in (weights, _nearest(values, wanted, heads)))
    said = page.locator('.status').get_attribute('title').split()
    close(said, torch.stack([*out, (out-wanted).norm(), (best-wanted).norm()]))

def test_what_the_page_says_is_what_torch_says(open_view):
    torch.manual_seed(0)
    for values,wanted in ((torch.randn(2, 2), torch.randn(2)), (torch.ones(2, 2), torch.zeros(2))):
        page = open_view(mixing_view(values, ['my', 'crew'], ['whose', 'with whom'], wanted,
                                     heads=2, weights=(.25, .75)))
        check(page, values, wanted, 2, [.25, .75])
        sliders = page.get_by_role('slider')
        for a,b in ((0, .5), (.17, 0), (1, .99)):
            sliders.first.fill(str(a))
            sliders.last.fill(str(b))
            check(page, values, wanted, 2, [a, b])
        page.get_by_role('button', name='one head').click()
        expect(sliders.last).to_have_value('1')         # the second follows the first
        for n,a in ((0, .25), (1, .8)):                 # either slider moves both
            sliders.nth(n).fill(str(a))
            expect(sliders.nth(1-n)).to_have_value(str(a))
            check(page, values, wanted, 1, [a, a])

def test_words_buttons_and_keyboard(open_view):
    values = torch.tensor([[4., 1.], [0., 3.]])
    page = open_view(mixing_view(values, ['my', 'crew'], ['whose', 'with whom']))
    status,sliders = page.locator('.status'),page.get_by_role('slider')
    one,two = (page.get_by_role('button', name=f'{n} head') for n in ('one', 'two'))
    def drawn(): return page.locator('svg line.reach').count(), page.locator('svg rect').count()
    expect(status).to_have_text('One head makes (2.00, 2.00), 2.24 away from what is wanted. '
                                'It cannot come nearer than 1.79.')
    expect(page.get_by_role('img')).to_have_attribute('aria-label', status.inner_text())
    assert drawn() == (1, 0)
    sliders.first.press('ArrowRight')
    for s in (sliders.first, sliders.last):
        expect(s).to_have_attribute('aria-valuetext', 'my 51\u00a0%, crew 49\u00a0%')
    walk(page, (lambda: two.press('Enter'), status, 'They can reach it.'))
    expect(two).to_have_attribute('aria-pressed', 'true')
    assert drawn() == (0, 1)
    sliders.first.press('End')
    walk(page, (lambda: sliders.last.press('Home'), status,
                'Two heads make (4.00, 3.00), what is wanted.'))
    page.get_by_role('button', name='reset').click()
    expect(sliders.last).to_have_value('0.5')
    expect(one).to_have_attribute('aria-pressed', 'true')
