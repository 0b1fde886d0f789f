"The senses of a word in a real browser: what the slider shows is what torch computes"
import re
import torch
from attention_nb.figures.word_senses import _near, _new_vector, _read, sense_view
from helpers.looks import channels, close, contrast, expect, floats, press, themes

sentences = ['the mouse ran and the cat slept'.split(), 'click the mouse button'.split()]
others = 'dog screen rat touch'.split()

def view(**more):
    "Two sentences whose *mouse* has one vector, and four other words"
    torch.manual_seed(0)
    one,two,y = torch.randn(7, 10),torch.randn(4, 10),torch.randn(4, 10)
    two[2] = one[1]
    return sense_view('mouse', sentences, [one,two], others, y, **more)

def check(page, d, temperature):
    """Weights, near words, their cosines and that of both vectors against torch in float64; how far
    the vectors have gone on the map, and where it shows them"""
    rows,y,axes = _read(d)
    new = []
    for n,(t,at) in enumerate(rows):
        w,vector = _new_vector(t, at, temperature)
        new.append(vector)
        box = page.locator('.sentence').nth(n)
        share,near = box.locator('.share'),box.locator('.near b')
        close(share.evaluate_all('es => es.map(e => e.title)'), w)
        assert share.all_inner_texts() == [f'{100*x:.0f}\u00a0%' for x in w.tolist()]
        best = _near(vector, y, d['shown'])
        assert near.all_inner_texts() == [others[j] for j in best]
        like = torch.nn.functional.cosine_similarity(vector[None], y, dim=-1)
        close(near.evaluate_all('es => es.map(e => e.title)'), like[best])
    alike = torch.nn.functional.cosine_similarity(*new, dim=0)
    close([page.locator('.status').get_attribute('data-cosine')], alike[None])
    tips = page.locator('.tip').evaluate_all('es => es.map(e => e.getAttribute("points"))')
    return (torch.stack(new) - rows[0][0][rows[0][1]]) @ axes.T, [
        floats(text.split()[0].split(',')) for text in tips]

def test_weights_words_and_arrows_follow_the_slider(open_view):
    senses = view(shown=3)
    page,data = open_view(senses),senses._data
    slider,steps,shown = page.get_by_label('temperature'),[],[]
    for at in (-4, -1.25, 2, 4):
        slider.fill(str(at))
        expect(slider).to_have_attribute('aria-valuetext', f'{2.**at:.2f}')
        way,tips = check(page, data, 2.**at)
        steps.append(way)
        shown += tips
    # the page's places are torch's, up to one factor and shift in each direction
    steps,shown = torch.cat(steps),torch.stack(shown)
    for n in (0, 1):
        line = torch.stack([steps[:,n], torch.ones(8, dtype=torch.float64)], 1)
        fit = torch.linalg.lstsq(line, shown[:,n:n+1])[0]
        torch.testing.assert_close(line @ fit, shown[:,n:n+1], atol=.01, rtol=0)
        assert (fit[0] > 0) == (n == 0)                # up is less in a page

def test_it_begins_where_python_says_answers_the_keyboard_and_can_be_read(open_view):
    senses = view(temperature=4, shown=2)
    page,data = open_view(senses),senses._data
    check(page, data, 4)
    slider = page.get_by_label('temperature')
    slider.press('ArrowRight')
    check(page, data, 2**2.25)
    press(page, 'Tab', 'Enter')                        # to the reset
    expect(slider).to_have_attribute('aria-valuetext', '4.00')
    near = page.locator('.near').first.inner_text()
    expect(page.locator('.map')).to_have_attribute('aria-label', re.compile(f'near {near} in'))
    expect(page.locator('.map')).to_have_attribute('role', 'img')
    for theme in themes(page):
        paper = page.evaluate('getComputedStyle(document.body).backgroundColor')
        for what in ('.tip.plus', '.tip.minus', '.map text'):
            ink = page.locator(what).first.evaluate('e => getComputedStyle(e).fill')
            assert contrast(channels(ink), channels(paper)) > 4.5, (theme, what)
