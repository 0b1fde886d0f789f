"The rotation view in a real browser: where its words are moved, it shows what torch computes"
import math
import pytest, torch
from attention_nb.layers.rope_scaling import rope_frequencies
from attention_nb.views.page import unpack_floats
from attention_nb.figures.rope_turns import _between, _at_position, rotation_view
from helpers.looks import close, expect, floats, press, titles, walk

def check(page, d, i, j, added=False):
    "All numbers of the page against Python's, which the notebook holds against `apply_rope`"
    q,k,theta = (unpack_floats(d[f'{name}data'], -1).double() for name in ('q','k','theta'))
    pairs = torch.tensor(d['pairs'])
    x,y = (_at_position(t[pairs], theta, place, added) for t,place in ((q,i), (k,j)))
    turns = [torch.atan2(t[:,1], t[:,0]) for t in (x, y)] + [_between(x, y)]
    *angles,scores = zip(*titles(page, 'tbody tr'), strict=True)
    for got,want in zip(angles, turns, strict=True): close(got, want*180/math.pi)
    close(scores, (x*y).sum(-1))
    close([page.locator('.status').get_attribute('title')], (x*y).sum()[None])

def place(page, name, value): page.get_by_label(name, exact=True).fill(str(value))

@pytest.mark.parametrize('interleaved', [False, True])
def test_numbers_follow_the_sliders_as_torch_says(open_view, interleaved):
    torch.manual_seed(0)
    q,k = torch.randn(2, 6)
    view = rotation_view(q, k, ['ship','crew'], theta=rope_frequencies(6, 20.), positions=(2,9),
                         length=30, interleaved=interleaved)
    page,data = open_view(view),view._data
    check(page, data, 2, 9)
    close(page.locator('tbody tr').evaluate_all('rs => rs.map(r => r.cells[0].title)'),
          rope_frequencies(6, 20.)*180/math.pi)
    for (i,j),added in (((0,0), True), ((29,3), False), ((11,12), False), ((5,29), True)):
        page.get_by_label('add the place').set_checked(added)
        place(page, 'place of ship', i)
        place(page, 'place of crew', j)
        check(page, data, i, j, added)
    page.get_by_label('add the place').uncheck()
    before = page.locator('.status').get_attribute('title')
    place(page, 'both places', 0)
    check(page, data, 0, 24)
    close([page.locator('.status').get_attribute('title')], floats([before]))    # moved together
    expect(page.get_by_label('both places')).to_have_attribute('max', '5')
    page.get_by_role('button', name='reset').click()
    check(page, data, 2, 9)

def one(**kw):
    kw = dict(theta=torch.tensor([math.radians(20)]), positions=(6,10)) | kw
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
    ship,crew,both = map(page.get_by_label, ('place of ship', 'place of crew', 'both places'))
    expect(status).to_have_text('crew is 4 places after ship. Angle between the arrows 101°, score '
                                '−0.257.')
    walk(page, (lambda: drag(page, '.both', 7), status, 'the arrows 101°, score −0.257.'))
    expect(ship).to_have_value('13')
    expect(crew).to_have_value('17')
    walk(page, (lambda: drag(page, '.chip.k', -4), status,
                'crew is in the place of ship. Angle between the arrows 21°'),
         (lambda: drag(page, '.chip.q', 100), status,    # not beyond the last place
          'crew is 10 places before ship.'),
         (lambda: page.mouse.move(0, 0), status,         # nothing is held any more
          'crew is 10 places before ship.'))
    crew.focus()
    press(page, 'ArrowRight', 'ArrowRight', 'ArrowRight')
    expect(crew).to_have_value('16')
    walk(page, (lambda: both.press('Home'), status, 'crew is 7 places before ship.'))
    expect(ship).to_have_value('7')

def test_the_arrows_that_are_drawn_have_the_angles_that_are_said(open_view):
    page = open_view(one(positions=(3,14)))
    def angles(points):
        return torch.tensor([math.degrees(math.atan2(-y, x)) for x,y in points])
    ends = page.locator('line:not(.ghost)').evaluate_all(
        "es => es.map(e => [+e.getAttribute('x2'), +e.getAttribute('y2')])")
    arc = page.locator('.arc').get_attribute('points').split()
    said = floats(titles(page, 'tbody tr')[0][:2])
    for points in (ends, [map(float, p.split(',')) for p in (arc[0], arc[-1])]):
        torch.testing.assert_close(angles(points).double(), said, atol=1e-3, rtol=0)
