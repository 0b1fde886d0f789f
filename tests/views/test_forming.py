"The view of heads that form in a real browser: each moment shows its weights and its loss"
import pytest, torch
from attention_nb.views.forming import forming_view
from helpers.looks import expect, fits, hostile, hostile_title

steps,losses = [10, 100, 150, 400],[4., 3.5, 2., .25]

def weights(T=4, M=2, L=8):
    return torch.rand(T, M, L, L, generator=torch.Generator().manual_seed(0)).tril()

def view(**kw): return forming_view(weights(), steps, losses, **(dict(names=['one','two']) | kw))

def painted(page, head, i, j):
    "How dark a cell is, from 0 to 1"
    return page.locator('.heads canvas').nth(head).evaluate(
        "(c, [i, j]) => c.getContext('2d').getImageData(j, i, 1, 1).data[3]/255", [i, j])

def check(page, n):
    w = weights()
    for head in (0, 1):
        for i,j in ((0, 0), (5, 2), (7, 7), (2, 5)):
            assert abs(painted(page, head, i, j) - w[n,head,i,j].item()) < .004
    says = page.locator('.status').inner_text()
    assert says == f'After {steps[n]} steps the loss is {losses[n]:.2f}.'
    assert page.locator('.heads').get_attribute('aria-label') == says
    x,y = (float(page.locator('.curve circle').get_attribute(a)) for a in ('cx','cy'))
    assert abs(x - (4 + 392*steps[n]/400)) < .01 and abs(y - (104 - 98*losses[n]/4)) < .01

def test_every_moment_shows_its_weights(open_view):
    page = open_view(view())
    assert page.locator('figcaption').all_text_contents() == ['one', 'two']
    check(page, 0)
    back,later = (page.get_by_role('button', name=name) for name in ('back', 'later'))
    expect(back).to_be_disabled()
    for n in (1, 2, 3):
        later.click()
        check(page, n)
    expect(later).to_be_disabled()
    slider = page.get_by_label('moment', exact=True)
    slider.fill('1')
    check(page, 1)
    expect(slider).to_have_attribute('aria-valuetext', 'step 100')
    back.focus()
    page.keyboard.press('ArrowLeft')
    check(page, 0)

def test_it_begins_at_the_moment_that_is_asked_for(open_view): check(open_view(view(moment=2)), 2)

@pytest.mark.parametrize('width', [390, 1400])
def test_nothing_is_wider_than_the_page(browser, tmp_path, width):
    assert fits(browser, view(), tmp_path/'x.html', width)

def test_hostile_names_do_nothing(open_view):
    from attention_nb.recording.inputs import readable
    page = open_view(view(names=hostile[:2], title=hostile_title))
    assert page.locator('figcaption').all_text_contents() == [readable(t) for t in hostile[:2]]
    assert page.evaluate('window.hacked') is None
