"Arcs over a sentence in a real browser: they are the weights, and heads take turns until touched"
import pytest, torch
from attention_nb.figures.arcs import arc_view
from attention_nb.views.page import unpack_weights
from helpers.looks import expect, press, walk

words = 'the chicken crossed the road because it wanted'.split()

weights = (2*torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))).softmax(-1)

def drawn(page):
    "The widths of the arcs, once they have come to rest"
    expect(page.locator('[data-moving=no]')).to_be_attached()
    return page.locator('.sentence path').evaluate_all(
        "paths => paths.map(p => +p.getAttribute('stroke-width'))")

def should(view, head, query):
    w = unpack_weights(view._data['weights'], len(view._data['heads']), 8, 8)[head, query].tolist()
    return sorted(1.5 + 8.5*x for j,x in enumerate(w) if x >= .03 and j != query)

def test_arcs_are_weights(open_view):
    view = arc_view(weights, words, heads=[(0,1), (1,2)], queries=[6, 2])
    page = open_view(view, motion='reduce')
    def others(queries):
        "Below each head: what it gives most of, to a query"
        w = weights.clone().diagonal_scatter(torch.zeros(2, 3, 8), dim1=2, dim2=3)
        best = (w[l,h,q].argmax() for (l,h),q in zip([(0,1), (1,2)], queries))
        return [f'{words[q]} ← {words[j]}' for q,j in zip(queries, best)]
    assert drawn(page) == pytest.approx(should(view, 0, 6))
    expect(page.locator('.turns .of')).to_have_text(others([6, 2]))
    page.get_by_role('button', name='layer 1, head 2').click()
    page.get_by_role('option', name='road').hover()
    expect(page.locator('.turns .of')).to_have_text(others([4, 4]))
    for width in (390, 900):
        page.set_viewport_size(dict(width=width, height=700))
        assert drawn(page) == pytest.approx(should(view, 1, 4)), width
    word = {name: page.get_by_role('option', name=name) for name in words}
    word['crossed'].click()
    for do,query in ((word['road'].hover, 4),           # pointing previews,
                     (page.locator('.says').hover, 2),  # and leaving returns to the pin
                     (lambda: press(page, 'Escape'), 2), (word['because'].focus, 5),
                     (lambda: press(page, 'ArrowRight'), 6)):
        do()
        assert drawn(page) == pytest.approx(should(view, 1, query)), query
    assert page.locator('.says').inner_text().startswith('it takes ')

def test_a_head_is_switched_off_and_parked_weight_is_said(open_view):
    "Its arcs go; a view names its heads, their numbers are titles"
    w = torch.tensor([[.2,.1,.6,.1], [.8,.05,.1,.05], [.1,.5,.2,.2], [.25]*4])[None,None]
    view = arc_view(w, ['[CLS]','a','b','[SEP]'], queries=[1], names=['parking place'])
    page = open_view(view, motion='reduce')
    head = page.get_by_role('button', name='parking place')
    expect(head).to_have_attribute('title', 'layer 0, head 0')
    expect(page.locator('.sentence text')).to_have_text('85\u00a0% on [CLS] and [SEP]')
    head.click()
    expect(head).to_have_attribute('aria-pressed', 'false')
    expect(page.locator('.sentence path')).to_have_count(0)
    head.click()
    expect(page.locator('.sentence path')).to_have_count(2)

def test_tab_begins_at_the_chosen_word(open_view):
    page = open_view(arc_view(weights, words, heads=[(0,1)], queries=[6]))
    walk(page, ('Tab', ':focus .t', 'it'), ('ArrowLeft', ':focus .t', 'because'),
         ('Tab', 'button:focus', 'layer 0, head 1'), ('Shift+Tab', ':focus .t', 'because'))
    assert page.locator('.word[tabindex="0"]').count() == 1

def test_a_page_that_moves_below_a_resting_mouse_points_at_nothing(open_view):
    page = open_view(arc_view(weights, words, heads=[(0,1)], queries=[6]))
    at = page.get_by_role('option', name='road').bounding_box()
    page.evaluate('document.body.style.padding = "400px 8px 2000px"')
    page.mouse.move(at['x'] + 5, at['y'] + 5)
    page.evaluate('scrollTo(0, 392)')
    # the browser knows by itself what now lies below the mouse
    expect(page.locator('.word:hover')).to_be_attached()
    expect(page.locator('.word.asks .t')).to_have_text('it')
    page.mouse.move(at['x'] + 8, at['y'] + 5)
    expect(page.locator('.word.asks .t')).to_have_text('road')

def test_heads_take_turns_until_touched(open_view):
    page = open_view(arc_view(weights, words, heads=[(0,1), (1,2)], queries=[6, 2]), kind='clock')
    shown = page.locator('.turns [aria-pressed=true]')
    expect(shown).to_contain_text('layer 0, head 1')
    page.clock.fast_forward(4000)
    expect(shown).to_contain_text('layer 1, head 2')
    page.get_by_role('option', name='road').hover()
    now = shown.inner_text()
    page.clock.fast_forward(4000)
    assert shown.inner_text() == now

def test_shares_and_marks_are_said(open_view):
    w = torch.tensor([[.2,.1,.6,.1], [.25,.15,.5,.1], [.3,.3,.2,.2], [.25]*4])[None,None]
    page = open_view(arc_view(w, ['[CLS]','a','b','[SEP]'], queries=[1]))
    cents = 'a takes 50 % from b, 15 % from itself, 35 % from [CLS] and [SEP]'
    expect(page.locator('.says')).to_have_text(cents.replace(' %', '\u00a0%'))
    page.set_viewport_size(dict(width=390, height=700))               # several lines, with numbers
    expect(page.locator('.word .n')).to_have_text(['15\u00a0%', '50\u00a0%'])
    expect(page.locator('.word .n').first).to_be_visible()
    expect(page.locator('.word .n').first).to_have_css('background-color', 'rgb(255, 255, 255)')

def test_on_a_narrow_screen_arcs_join_words_of_several_lines(open_view):
    "They begin and end at their words; at one of a line above, below it"
    page = open_view(arc_view(weights, words, queries=[6]), motion='reduce')
    page.set_viewport_size(dict(width=260, height=700))
    assert len({w['y'] for w in page.locator('.word').evaluate_all(
        'all => all.map(e => ({y: e.offsetTop}))')}) > 1
    drawn(page)
    off = page.evaluate('''() => {
        const [asks] = document.querySelectorAll('.word.asks')
        const outer = document.querySelector('.sentence svg').getBoundingClientRect()
        const away = ([x, y], word) => {
            const b = word.getBoundingClientRect()
            const left = b.left - outer.left, top = b.top - outer.top
            return Math.max(left - x, x - left - b.width, top - y, y - top - b.height - 3)
        }
        return [...document.querySelectorAll('.sentence path')].map(path => {
            const at = n => { const p = path.getPointAtLength(n); return [p.x, p.y] }
            const ends = [at(0), at(path.getTotalLength())]
            const others = [...document.querySelectorAll('.word')].filter(w => w !== asks)
            const by = others.map(w => away(ends[1], w)), to = others[by.indexOf(Math.min(...by))]
            const under = to.offsetTop >= asks.offsetTop ||
                ends[1][1] > to.getBoundingClientRect().bottom - outer.top
            return [away(ends[0], asks), Math.min(...by), under ? 0 : 99]
        }) }''')
    assert off and all(max(each) < 3 for each in off)

def test_arcs_move_unless_that_is_unwanted(open_view):
    view = arc_view(weights, words, queries=[6])
    for motion,moves in (('no-preference', 'yes'), ('reduce', 'no')):
        page = open_view(view, motion=motion)
        expect(page.locator('[data-moving=no]')).to_be_attached()
        found = page.evaluate("""document.querySelectorAll('.word')[1].click(),
            document.querySelector('[data-moving]').dataset.moving""")
        assert found == moves
