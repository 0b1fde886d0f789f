"The senses of a word in a real browser: what the slider shows is what torch computes"
import re
import pytest, torch
from attention_nb.recording.inputs import readable
from attention_nb.views.word_senses import sense_view
from helpers.looks import channels, contrast, expect, hostile, hostile_title

sentences = ['the mouse ran and the cat slept'.split(), 'click the mouse button'.split()]
others = 'dog screen rat touch'.split()

def example():
    "Two sentences whose *mouse* has one vector, and four other words"
    torch.manual_seed(0)
    one,two = torch.randn(7, 10),torch.randn(4, 10)
    two[2] = one[1]
    return [one,two],torch.randn(4, 10)

def view(**more):
    x,y = example()
    return sense_view('mouse', sentences, x, others, y, **more)

def floats(texts):
    return torch.tensor([float(t.replace('−', '-')) for t in texts], dtype=torch.float64)
def close(got, want): torch.testing.assert_close(floats(got), want, atol=1e-6, rtol=1e-6)

def check(page, temperature, shown):
    "Weights, near words, their cosines and that of both vectors, against torch in float64"
    x,y = example()
    new = []
    for n,(t,at) in enumerate(zip(x, (1,2))):
        t = t.double()
        w = (t @ t[at] / 10**.5 / temperature).softmax(-1)
        new.append(w @ t)
        box = page.locator('.sentence').nth(n)
        close(box.locator('.share').evaluate_all('es => es.map(e => e.title)'), w)
        said = [f'{100*share:.0f}\u00a0%' for share in w.tolist()]
        assert box.locator('.share').all_inner_texts() == said
        like = torch.nn.functional.cosine_similarity(new[-1][None], y.double(), dim=-1)
        best = like.argsort(descending=True)[:shown]
        assert box.locator('.near b').all_inner_texts() == [others[j] for j in best]
        close(box.locator('.near b').evaluate_all('es => es.map(e => e.title)'), like[best])
    alike = torch.nn.functional.cosine_similarity(*new, dim=0)
    close([page.locator('.status').get_attribute('data-cosine')], alike[None])
    return new

def tips(page):
    "Where the two arrows point, in the page"
    texts = page.locator('.tip').evaluate_all('es => es.map(e => e.getAttribute("points"))')
    return [floats(text.split()[0].split(',')) for text in texts]

def test_weights_words_and_arrows_follow_the_slider(open_view):
    page,x = open_view(view(shown=3)),example()[0]
    slider = page.get_by_label('temperature')
    seen = []
    for at in (-4, -1.25, 0, 2, 4):
        slider.fill(str(at))
        expect(slider).to_have_attribute('aria-valuetext', f'{2.**at:.2f}')
        new = check(page, 2.**at, 3)
        seen.append(([n - x[0][1].double() for n in new], tips(page)))
    # the page's places are torch's, up to one factor and shift in each direction
    a,b = (t[None].double() for t in (seen[2][0][0], seen[2][0][1]))
    across = torch.nn.functional.normalize(b - a)
    along = (a + b)/2 - ((a + b)/2 @ across.T)*across
    axes = torch.cat([across, torch.nn.functional.normalize(along)])
    steps = torch.stack([step for steps,_ in seen for step in steps]) @ axes.T
    shown = torch.stack([tip for _,both in seen for tip in both])
    for n in (0, 1):
        line = torch.stack([steps[:,n], torch.ones(10, dtype=torch.float64)], 1)
        fit = torch.linalg.lstsq(line, shown[:,n:n+1])[0]
        torch.testing.assert_close(line @ fit, shown[:,n:n+1], atol=.01, rtol=0)
        assert (fit[0] > 0) == (n == 0)                # up is less in a page
    page.get_by_role('button', name='reset').click()
    expect(slider).to_have_attribute('aria-valuetext', '1.00')
    check(page, 1, 3)

def test_it_begins_where_python_says_and_answers_the_keyboard(open_view):
    page = open_view(view(temperature=4, shown=2))
    check(page, 4, 2)
    slider = page.get_by_label('temperature')
    slider.focus()
    page.keyboard.press('ArrowRight')
    expect(slider).to_have_attribute('aria-valuetext', f'{2**2.25:.2f}')
    check(page, 2**2.25, 2)
    page.keyboard.press('Tab')
    page.keyboard.press('Enter')
    expect(slider).to_have_attribute('aria-valuetext', '4.00')
    near = page.locator('.near').first.inner_text()
    expect(page.locator('.map')).to_have_attribute('aria-label', re.compile(f'near {near} in'))
    expect(page.locator('.map')).to_have_attribute('role', 'img')

@pytest.mark.parametrize('width', [390, 1400])
def test_nothing_is_wider_than_the_page(browser, tmp_path, width):
    context = browser.new_context(viewport=dict(width=width, height=800), has_touch=width == 390)
    page = context.new_page()
    page.goto(view(shown=4).save(tmp_path/'x.html').as_uri())
    expect(page.locator('[data-ready=yes]')).to_be_attached()
    assert page.evaluate('document.documentElement.scrollWidth <= innerWidth')
    boxes = page.locator('input, button, .chip, .map text').evaluate_all(
        'es => es.map(e => e.getBoundingClientRect()).map(r => [r.left, r.right])')
    assert boxes and min(l for l,_ in boxes) >= 0 and max(r for _,r in boxes) <= width
    if width == 390:
        heights = page.locator('input, button').evaluate_all(
            'es => es.map(e => e.getBoundingClientRect().height)')
        assert min(heights) >= 44
    context.close()

@pytest.mark.parametrize('theme', ['light', 'dark'])
def test_its_inks_are_readable(browser, tmp_path, theme):
    page = browser.new_page(color_scheme=theme)
    page.goto(view(shown=4).save(tmp_path/'x.html').as_uri())
    expect(page.locator('[data-ready=yes]')).to_be_attached()
    paper = page.evaluate('getComputedStyle(document.body).backgroundColor')
    for what in ('.tip.plus', '.tip.minus', '.map text'):
        ink = page.locator(what).first.evaluate('e => getComputedStyle(e).fill')
        assert contrast(channels(ink), channels(paper)) > 4.5, what
    page.close()

def test_hostile_words_do_nothing(open_view):
    torch.manual_seed(0)
    bad,x = hostile[:39],torch.randn(40, 4)
    other = torch.cat([x[:1], torch.randn(1, 4)])
    page = open_view(sense_view('w', [['w', *bad], ['w', hostile_title]], [x,other], bad, x[1:],
                                title=hostile_title))
    said = page.locator('.sentence').first.locator('.token').all_text_contents()
    assert said == [readable(t) for t in ('w', *bad)]
    assert page.evaluate('window.hacked') is None
    assert page.evaluate('document.documentElement.scrollWidth <= innerWidth')
