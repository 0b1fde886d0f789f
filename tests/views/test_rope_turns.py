"The rotation view in a real browser: where its words are moved, it shows what torch computes"
import itertools, math, re
import pytest, torch
from attention_nb.layers.position import apply_rope
from attention_nb.layers.rope_scaling import rope_frequencies
from attention_nb.views.rope_turns import rotation_view
from helpers.looks import expect, hostile, hostile_title

def numbers(texts):
    return torch.tensor([float(t.replace('−', '-')) for t in texts], dtype=torch.float64)
def close(got, want):
    torch.testing.assert_close(numbers(got), want.double(), atol=1e-6, rtol=1e-6)

def arrows(x, theta, place, added, interleaved):
    "The pairs of `x` in a place, by `apply_rope` or with sine and cosine added"
    angle = (place*theta)[None]
    E = len(x)
    first,second = (slice(0, E, 2),slice(1, E, 2)) if interleaved else (slice(0, E//2),
                                                                         slice(E//2, E))
    if added: return torch.stack([x[first]+angle[0].sin(), x[second]+angle[0].cos()], -1)
    turned = apply_rope(x[None], angle.cos(), angle.sin(), interleaved=interleaved)[0]
    return torch.stack([turned[first], turned[second]], -1)

def check(page, q, k, theta, i, j, *, added=False, interleaved=False):
    "All numbers of the page against torch"
    x,y = (arrows(t.double(), theta.double(), n, added, interleaved) for t,n in ((q,i), (k,j)))
    rows = page.locator('tbody tr').evaluate_all('rs => rs.map(r => [...r.cells].map(c => '
                                                 'c.title))')
    def direction(v): return torch.atan2(v[:,1], v[:,0])*180/math.pi
    numbers_of = torch.complex(x[:,0], x[:,1]),torch.complex(y[:,0], y[:,1])
    close([r[0] for r in rows], theta.double()*180/math.pi)
    close([r[1] for r in rows], direction(x))
    close([r[2] for r in rows], direction(y))
    close([r[3] for r in rows], (numbers_of[1]/numbers_of[0]).angle()*180/math.pi)
    close([r[4] for r in rows], (x*y).sum(-1))
    close([page.locator('.status').get_attribute('title')], (x*y).sum()[None])

def place(page, name, value): page.get_by_label(name, exact=True).fill(str(value))

@pytest.fixture
def three():
    torch.manual_seed(0)
    return torch.randn(6),torch.randn(6)

@pytest.mark.parametrize('interleaved', [False, True])
def test_numbers_follow_the_sliders_as_torch_says(open_view, three, interleaved):
    q,k = three
    theta = rope_frequencies(6, 20.)
    page = open_view(rotation_view(q, k, ['ship','crew'], theta=theta, places=(2,9), length=30,
                                   interleaved=interleaved))
    check(page, q, k, theta, 2, 9, interleaved=interleaved)
    for (i,j),added in itertools.product(((0,0), (29,3), (11,12), (5,29)), (False, True)):
        page.get_by_label('add the place').set_checked(added)
        place(page, 'place of ship', i)
        place(page, 'place of crew', j)
        check(page, q, k, theta, i, j, added=added, interleaved=interleaved)
    page.get_by_label('add the place').uncheck()
    before = page.locator('.status').get_attribute('title')
    place(page, 'both places', 0)
    check(page, q, k, theta, 0, 24, interleaved=interleaved)
    # moved together: the same score
    close([before], numbers([page.locator('.status').get_attribute('title')]))
    expect(page.get_by_label('both places')).to_have_attribute('max', '5')
    page.get_by_role('button', name='reset').click()
    check(page, q, k, theta, 2, 9, interleaved=interleaved)

def one(**kw):
    kw = dict(theta=torch.tensor([math.radians(20)]), places=(6,10)) | kw
    return rotation_view(torch.tensor([1.,.2]), torch.tensor([1.1,.7]), ['ship','crew'], **kw)

def drag(page, what, places, length=24):
    "Take the middle of an element and carry it some places along"
    box = page.locator(what).bounding_box()
    width = page.locator('.track').bounding_box()['width']
    x,y = box['x'] + box['width']/2,box['y'] + box['height']/2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + places*width/(length-1), y + 30, steps=4)
    page.mouse.up()

def test_words_are_dragged_and_answer_the_keyboard(open_view):
    page = open_view(one())
    status = page.locator('.status')
    expect(status).to_have_text('crew is 4 places after ship. Angle between the arrows 101°, score '
                                '−0.257.')
    drag(page, '.both', 7)
    expect(page.get_by_label('place of ship')).to_have_value('13')
    expect(page.get_by_label('place of crew')).to_have_value('17')
    expect(status).to_contain_text('Angle between the arrows 101°, score −0.257.')
    drag(page, '.chip.k', -4)
    expect(status).to_contain_text('crew is in the place of ship. Angle between the arrows 21°')
    drag(page, '.chip.q', 100)                           # not beyond the last place
    expect(page.get_by_label('place of ship')).to_have_value('23')
    expect(status).to_contain_text('crew is 10 places before ship.')
    page.mouse.move(0, 0)                                # nothing is held any more
    expect(page.get_by_label('place of ship')).to_have_value('23')
    page.get_by_label('place of crew').focus()
    for _ in range(3): page.keyboard.press('ArrowRight')
    expect(page.get_by_label('place of crew')).to_have_value('16')
    page.get_by_label('both places').focus()
    page.keyboard.press('Home')
    expect(status).to_contain_text('crew is 7 places before ship.')
    expect(page.get_by_label('place of ship')).to_have_value('7')

def test_the_arrows_that_are_drawn_have_the_angles_that_are_said(open_view):
    page = open_view(one(places=(3,14)))
    ends = page.locator('line:not(.ghost)').evaluate_all(
        "es => es.map(e => [+e.getAttribute('x2'), -e.getAttribute('y2')])")
    drawn = [math.degrees(math.atan2(y, x)) for x,y in ends]
    said = numbers(page.locator('tbody td').evaluate_all('cs => cs.slice(1, 3).map(c => c.title)'))
    torch.testing.assert_close(torch.tensor(drawn).double(), said, atol=1e-3, rtol=0)
    arc = page.locator('.arc').get_attribute('points').split()
    first,last = (tuple(map(float, p.split(','))) for p in (arc[0], arc[-1]))
    assert math.degrees(math.atan2(-first[1], first[0])) == pytest.approx(drawn[0], abs=1e-3)
    assert math.degrees(math.atan2(-last[1], last[0])) == pytest.approx(drawn[1], abs=1e-3)

@pytest.mark.parametrize('width', [390, 1400])
@pytest.mark.parametrize('E', [2, 16])
def test_nothing_is_wider_than_the_page(browser, tmp_path, width, E):
    page = browser.new_page(viewport=dict(width=width, height=800))
    view = rotation_view(torch.randn(E), torch.randn(E), ['w'*60, 'crew'], length=100)
    page.goto(view.save(tmp_path/'x.html').as_uri())
    expect(page.locator('[data-ready=yes]')).to_be_attached()
    for i,j in ((0,99), (99,0), (50,50)):
        place(page, 'place of crew', j)
        page.get_by_label(re.compile('^place of www')).fill(str(i))
        assert page.evaluate('document.documentElement.scrollWidth <= innerWidth')
    boxes = page.locator('input, button, th, td, .chip, svg').evaluate_all(
        'es => es.map(e => e.getBoundingClientRect()).flatMap(r => [r.left, r.right])')
    assert boxes and min(boxes) >= 0 and max(boxes) <= width
    page.close()

def test_fingers_find_what_they_press(browser, tmp_path):
    context = browser.new_context(viewport=dict(width=390, height=800), has_touch=True,
                                  is_mobile=True)
    page = context.new_page()
    page.goto(one().save(tmp_path/'x.html').as_uri())
    expect(page.locator('[data-ready=yes]')).to_be_attached()
    heights = page.locator('.chip, .both, button, input[type=range], label.check').evaluate_all(
        'es => es.map(e => e.getBoundingClientRect().height)')
    assert len(heights) == 8 and min(heights) >= 44
    context.close()

def test_hostile_words_do_nothing(open_view):
    from attention_nb.recording.inputs import readable
    for pair in zip(hostile[:12:2], hostile[1:12:2]):
        page = open_view(rotation_view(torch.ones(2), torch.ones(2), pair, title=hostile_title))
        assert page.locator('.chip').all_text_contents() == [readable(t) for t in pair]
        assert page.evaluate('window.hacked') is None
        page.close()
