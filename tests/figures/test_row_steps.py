"One row in a real browser: what sliders and steps do is what torch says"
import torch
from attention_nb.figures.row_steps import _descent, row_view
from helpers.looks import close, expect

tokens,share = ['space','h','o'],torch.tensor([1., 0., 2.]).double()/3

def follows(page, logits):
    p,gradient,loss = _descent(logits, share)
    close(page.locator('.status').get_attribute('title').split(),
          torch.cat([p, gradient, loss[None]]))

def slide(page, n, value):
    page.locator('.sliders input').nth(n).evaluate(
        "(e, x) => { e.value = x; e.dispatchEvent(new Event('input')) }", str(value))

def test_steps_and_sliders(open_view):
    page,z = open_view(row_view(tokens, [1, 0, 2])),torch.zeros(3).double()
    status,step = page.locator('.status'),page.get_by_role('button', name='step')
    follows(page, z)
    expect(status).to_have_text('The loss is 1.10; the least possible is 0.64. Steps: 0.')
    for rate in (1., 10., 2.5):
        slide(page, 3, rate)
        step.click()
        z = z - rate*_descent(z, share)[1]
        follows(page, z)
    slide(page, 1, -3.2)
    z[1] = -3.2
    follows(page, z)
    expect(status).to_contain_text('Steps: 3.')
    page.get_by_role('button', name='reset').click()
    follows(page, torch.zeros(3).double())
    expect(page.locator('.sliders input').nth(3)).to_have_value('1')

def test_a_hundred_small_steps_reach_the_shares(open_view):
    page = open_view(row_view(tokens, [1, 0, 2], torch.tensor([8., 8., -8.]), rate=2))
    step = page.get_by_role('button', name='step')
    step.evaluate('e => { for (let n = 0; n < 300; n++) e.click() }')
    cells = page.locator('.bar-cell').all_text_contents()
    assert cells[0][:2] == '33' and cells[2][:2] == '66', cells
