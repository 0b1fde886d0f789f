"The head view, the model view and the boxes of tokens in a real browser; their colours"
import re
from types import SimpleNamespace
import numpy as np
import pytest, torch
from attention_nb.recording import head_scores as scores
from attention_nb.text.tokenizer import WordTokenizer
from attention_nb.views.page import head_colors
from attention_nb.views.attention_views import head_view, model_view, show_tokens
from helpers import root
from helpers.looks import contrast, expect, lines, numbers, press, themes, walk, weights, words

style = (root/'attention_nb'/'views_js'/'look.css').read_text().split('[data-theme="dark"]')
palettes = {theme: re.findall(r'--head-\d+: (#\w{6})', part)
            for theme,part in zip(('light', 'dark'), style)}
papers = dict(light='#ffffff', dark='#121212')

def rgb(colour): return np.array([int(colour[i:i+2], 16) for i in (1, 3, 5)])/255

# ---- colours

def test_the_still_has_the_colours_of_the_page(): assert head_colors == palettes['light']

strongest = """c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data
    let best = [0, 0, 0, 0]
    for (let p = 0; p < d.length; p += 4) if (d[p+3] > best[3]) best = [...d.slice(p, p+4)]
    return best }"""

def test_colours_are_seen_on_their_paper_and_a_line_of_seven_hundredths_is(open_view):
    w = torch.zeros(1, 24, 2, 2)
    w[:,:12,0,0] = 0.07
    page = open_view(head_view(w, ['a', 'b'], threshold=0.05))
    for theme in themes(page):
        paper = rgb(papers[theme])
        seen = [contrast(rgb(c), paper) for c in palettes[theme]]
        assert min(seen) >= dict(light=2.2, dark=3.5)[theme]
        pale = int(np.argmin(seen))
        page.locator('.heads button').nth(pale+1).dblclick()
        page.locator('.heads button').nth(pale+13).click()        # one alone has that of weights
        expect(page.locator('.status')).to_contain_text(f'(head {pale})')
        *ink,alpha = page.locator('canvas').evaluate(strongest)
        assert contrast(paper + alpha/255*(np.array(ink)/255-paper), paper) >= 1.2

# ---- head view

def box(locator):
    "Left, top, right, bottom"
    at = locator.bounding_box()
    return at['x'], at['y'], at['x']+at['width'], at['y']+at['height']

def high(locator): return locator.bounding_box()['height']

def token(page, side, i, where=''): return page.locator(f'{where} .{side} .token').nth(i)

def test_layers_heads_and_threshold(open_view):
    even = head_view(torch.full((1,2,24,24), 1/24), [f't{n}' for n in range(24)])
    lines(open_view(even), 2*24*24)                      # left to itself it shows them
    w = weights()
    page = open_view(head_view(w, words))
    assert page.locator('.stage').bounding_box()['width'] >= 900-2*8-1
    assert abs(high(page.locator('.stage')) - (6*22+2*4)) <= 1
    assert high(page.locator('canvas')) == 6*22+2*4
    lines(page, (w[0] >= 0.05).sum().item())
    ink = "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter(x => x).length"
    assert page.locator('canvas').evaluate(ink) > 100
    page.locator('select').select_option('1')
    for h in (0, 2): page.locator('.heads button').nth(1+h).click()              # off
    token(page, 'right', 2).hover()
    numbers(page, w[1,1,:,2], 'left')
    token(page, 'left', 3).hover()
    numbers(page, w[1,1,3])
    expect(page.locator('.status')).to_contain_text('(head 1)')
    page.locator('input[type=range]').fill('1')
    lines(page, 0)
    assert page.locator('canvas').evaluate(ink) == 0
    after = page.get_by_label('next layer')
    after.click()                                        # round to the first, and the button stays
    expect(page.locator('select')).to_have_value('0')
    expect(after).to_be_focused()
    page.locator('.heads button').nth(3).dblclick()
    for heads in (['2'], ['0', '1', '2'], []):           # this one, then all, then none
        expect(page.locator('.heads button[aria-pressed=true]')).to_have_text(heads)
        page.locator('.heads button').first.click()

def test_keyboard_and_tap(open_view):
    page = open_view(head_view(weights(), words))
    on,status = page.locator('.token.on .t'),page.locator('.status')
    def away(): page.mouse.move(1, 1)
    token(page, 'left', 0).focus()
    press(page, 'ArrowDown', 'ArrowDown', 'ArrowRight')
    walk(page, ('ArrowUp', '.right .token.on .t', ['flies']), ('Enter', status, 'kept'),
         (token(page, 'left', 5).hover, on, ['.']), (away, on, ['flies']),   # a look at another
         ('End', on, ['.']), ('Home', on, ['time']), ('Escape', on, []),
         (token(page, 'left', 3), status, 'kept'), (away, on, ['an']))
    page.locator('summary').click()
    table = page.locator('details table')
    expect(table.locator('tbody th')).to_have_text(words)
    expect(table.locator('tbody tr').first.locator('td')).to_have_count(3)

def test_pairs_and_named_attentions(open_view):
    w = weights(1, 2, 6, 6)
    page = open_view(head_view(w, words, split=4))
    large = w[0] >= 0.05
    lines(page, large.sum().item())
    parts = [q.sum().item() for rows in (large[:,:4], large[:,4:])
             for q in (rows[...,:4], rows[...,4:])]
    for value,n in enumerate(parts, 1):
        page.locator('select').select_option(str(value))
        lines(page, n)
    names = dict(encoder=weights(2, 3, 6, 6), cross=weights(1, 2, 3, 6))
    page = open_view(head_view(names, dict(encoder=words, cross=list('abc')), dict(cross=words)))
    page.locator('select').first.select_option('1')
    expect(page.locator('.left .t')).to_have_text(list('abc'))
    token(page, 'left', 1).hover()
    numbers(page, names['cross'][0,:,1].mean(0))

def test_many_heads_share_a_line_and_have_swatches(open_view):
    w = weights(1, 12)
    w[0,:,1] = 0
    w[0,3,1,2] = 1.
    page = open_view(head_view(w, words))
    lines(page, (w[0].amax(0) >= 0.05).sum().item())
    token(page, 'left', 1).click()
    lines(page, 1)
    at = """(c, [h, j, side]) => { const wide = 9, left = side ? 0 : c.clientWidth - 12*wide;
        const x = (left + (h+.4)*wide)*devicePixelRatio, y = (4+22*(j+.5)-5)*devicePixelRatio
        return [...c.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3); }"""
    def swatch(h, j, side=0): return page.locator('canvas').evaluate(at, [h, j, side])
    colour,panel = (255*rgb(palettes['light'][3])).round().tolist(),[243, 244, 245]
    assert [swatch(3, 2), swatch(2, 2), swatch(3, 1)] == [colour, panel, panel]
    press(page, 'Escape')
    token(page, 'right', 2).click()                                    # now beside the queries
    expect(page.locator('.status')).to_contain_text('kept')
    assert [swatch(3, 1, 1), swatch(2, 1, 1)] == [colour, panel]
    press(page, 'Escape')
    for h in range(8, 12): page.locator('.heads button').nth(h+1).click()
    lines(page, (w[0,:8] >= 0.05).sum().item())                        # eight: a line for each

def test_the_strongest_links_are_said_in_words(open_view):
    w = weights(1, 2)
    w[0] *= 0.1
    w[0,0,1,2],w[0,1,3,2] = 0.9,0.8
    page = open_view(head_view(w, words))
    status = page.locator('.status')
    def pattern(text): return re.compile(text.replace(' %', '\u00a0%'))
    expect(status).to_have_attribute('aria-live', 'polite')
    expect(status).to_have_text(pattern(
        r'Strongest: flies from like 90 % \(head 0\), an from like 80 % \(head 1\)'))
    kept = pattern(r'^like gives to an 80 %, .*\(head 1\); kept$')
    walk(page, (page.locator('.heads button').nth(2).dblclick, status,
                pattern('Strongest of head 1: an from like 80 %,')),
         (token(page, 'left', 3), status, pattern(r'^an takes from like 80 %, .* 1\); kept$')),
         (token(page, 'right', 2), status, kept),
         (token(page, 'left', 1).hover, status, pattern(r'^flies takes from .*\(head 1\)$')),
         (lambda: page.mouse.move(1, 1), status, kept))     # a look at another, then back
    press(page, 'Escape')
    page.locator('input[type=range]').fill('1')
    expect(status).to_have_text('No weight is this large.')

def test_special_tokens_dim_on_request(open_view):
    tokens = ['[CLS]', 'to', 'ship', '[SEP]', '<s>', '<']
    w = torch.zeros(1, 1, 6, 6)
    w[...,0],w[0,0,1,2] = 0.7,0.3
    page = open_view(head_view(w, tokens))
    expect(page.locator('.token.dim')).to_have_count(0)
    expect(page.locator('.status')).to_contain_text('to from [CLS] 70\u00a0%')
    before = page.locator('canvas').evaluate(strongest)[3]
    walk(page, (page.get_by_label('dim special tokens').check, '.token.dim .t',
                ['[CLS]', '[SEP]', '<s>']*2))
    expect(page.locator('.status')).to_have_text('Strongest of head 0: to from ship 30\u00a0%')
    walk(page, (token(page, 'left', 1), '.status', 'to takes from ship 30\u00a0% ('))
    token(page, 'left', 5).click()
    lines(page, 1)
    assert page.locator('canvas').evaluate(strongest)[3] < before/2
    expect(open_view(head_view(w, words)).get_by_label('dim special tokens')).to_have_count(0)

def test_texts_are_kept_apart_by_name(open_view):
    a,b,c = weights(1, 2, 6, 6),weights(2, 3, 3, 3),weights(1, 1, 3, 3, seed=2)
    one = SimpleNamespace(shown=lambda: dict(weights=a, tokens=words, k_tokens=None, split=4))
    two = SimpleNamespace(shown=lambda: dict(
        weights=dict(encoder=b, decoder=c), k_tokens={}, split=None,
        tokens=dict(encoder=list('abc'), decoder=list('abc'))))
    page = open_view(head_view(dict(first=one, second=two)))
    names = page.locator('select').first
    expect(names.locator('option')).to_have_text(['first', 'second, encoder', 'second, decoder'])
    # the first is a pair, the others are not
    expect(page.get_by_label('texts')).to_have_count(1)
    names.focus()
    names.select_option('2')
    expect(names).to_be_focused()
    expect(page.get_by_label('texts')).to_have_count(0)
    token(page, 'left', 1).hover()
    numbers(page, c[0,0,1])
    with pytest.raises(TypeError, match='must be what look gives'):
        head_view(dict(first=one, second=3))
    assert [g['q'] for g in model_view(one)._data['groups']] == [words]

def test_a_page_of_its_own_prints_all_words_on_white(open_view):
    n = 80
    page = open_view(head_view(torch.eye(n)[None,None], [f'w{i}' for i in range(n)]), theme='dark')
    assert high(page.locator('.stage')) < 22*n
    page.emulate_media(media='print', color_scheme='dark')
    expect(page.locator(':root')).to_have_attribute('data-theme', 'light')
    expect(page.locator('.bar')).to_be_hidden()
    for what in ('.stage', 'canvas'): assert high(page.locator(what)) >= 22*n

# ---- model view

def head(page, l, h): return page.get_by_label(f'layer {l}, head {h}', exact=True)

def test_thumbnails_open_by_keyboard_and_by_click(open_view):
    w = weights(3, 4)
    page = open_view(model_view(w, words, average=True, rollout=True))
    expect(page.locator('.grid button')).to_have_count(3*4+3+1+1)
    one = page.locator('.grid button[tabindex="0"]')
    expect(one).to_have_count(1)
    page.get_by_label('sort by').press('Tab')
    for key,l,h in (('ArrowRight', 0, 1), ('ArrowDown', 1, 1), ('ArrowDown', 2, 1),
                    ('ArrowLeft', 2, 0), ('ArrowLeft', 2, 0), ('ArrowUp', 1, 0)):
        press(page, key)
        expect(head(page, l, h)).to_be_focused()
        expect(page.locator('.scores')).to_contain_text(f'layer {l}, head {h}:')
    press(page, 'Enter')
    for l,h in ((1, 0), (2, 1)):
        expect(page.locator('.large .heads [aria-pressed=true]')).to_have_text([str(h)])
        token(page, 'left', 2, '.large').hover()
        numbers(page, w[l,h,2], where='.large')
        head(page, 2, 1).click()
    expect(one).to_have_count(1)

def test_a_head_tells_its_scores_and_they_sort(open_view):
    w = weights(3, 4)
    want = {'previous token': scores.previous_token(w), 'next token': scores.next_token(w),
            'first token': scores.first_token(w), 'entropy': scores.attention_entropy(w)}
    page = open_view(model_view(w, words, average=True))
    head(page, 2, 1).hover()
    told = [f'{name} {t[2,1]:.2f}' if name == 'entropy' else f'{name} {100*t[2,1]:.0f}\u00a0%'
            for name,t in want.items()]
    expect(page.locator('.scores')).to_have_text('layer 2, head 1: ' + ', '.join(told))
    page.get_by_label('mean of all').hover()
    expect(page.locator('.scores')).to_have_text('layer mean of all, head 0')
    for n,(name,t) in enumerate(want.items(), 1):
        page.get_by_label('sort by').select_option(str(n))
        expect(page.locator('.across')).to_contain_text(name)
        labels = page.locator('.grid button').evaluate_all('bs => bs.map(b => b.ariaLabel)')
        best = [divmod(x, 4) for x in t.flatten().argsort(descending=True).tolist()]
        assert labels[:12] == [f'layer {l}, head {h}' for l,h in best] and len(labels) == 12+3+1
        expect(page.locator('.grid small').first).to_have_text(
            re.compile(r'%d, %d: (\d+\W%%|\d\.\d\d)$' % best[0]))
    page.get_by_label('sort by').select_option('0')
    expect(page.locator('.grid button').first).to_have_attribute('aria-label', 'layer 0, head 0')
    expect(page.locator('.axis')).to_have_text(['head', 'layer'])

def test_scores_of_what_is_not_square():
    def names(*args): return [*model_view(*args)._data['groups'][0]['layers'][0]['scores']]
    assert names(weights(1, 2, 3, 6), list('abc'), words) == ['first token', 'entropy']
    assert names(torch.ones(1, 1, 1), ['a']) == ['entropy']

def test_a_head_opens_in_place_and_is_scrolled_to(open_view):
    view,text = model_view(weights(6, 12), words),'<p>text</p>'
    page = open_view(f'<!doctype html><body>{text*20}{view._repr_html_()}{text*40}')
    f = page.frame_locator('iframe')
    page.locator('iframe').scroll_into_view_if_needed()
    chosen,large = head(f, 4, 2),f.locator('.large')
    chosen.click()
    expect(large.locator('.stage')).to_be_in_viewport(ratio=1)
    expect(chosen).to_have_attribute('aria-pressed', 'true')
    (*_,bottom),(_,top,_,end) = box(chosen),box(large)
    assert bottom <= top and end <= box(head(f, 5, 2))[1]+1
    expect(large.locator('.title strong')).to_have_text('layer 4, head 2')
    f.get_by_label('sort by').select_option('4')                 # it moves with its thumbnail
    assert box(chosen)[3] <= box(large)[1] <= box(chosen)[3]+12
    f.get_by_label('close').click()
    expect(large).to_have_count(0)
    expect(chosen).to_be_focused()

# ---- tokens

def test_tokens_are_boxes_and_those_of_a_tokenizer_have_ids(open_view):
    page = open_view(show_tokens([*words, '  ']))
    boxes,status = page.locator('.boxes span'),page.locator('.status')
    boxes.nth(2).hover()
    expect(status).to_have_text('token 2 of 7')
    narrow,wide = (boxes.nth(n).bounding_box()['width'] for n in (5, 6))
    assert wide > 1.3*narrow                            # two spaces are seen as two
    tokenizer = WordTokenizer.train(['my ship'])
    page = open_view(show_tokens('my ship sails', tokenizer))
    expect(boxes).to_have_text(['my', 'ship', '<unk>'])
    ids = [str(i) for i in tokenizer.encode('my ship sails')]
    expect(page.locator('.boxes small')).to_have_text(ids)
    expect(page.locator('.boxes .special')).to_have_text(['<unk>'])
    boxes.nth(2).hover()
    expect(status).to_have_text('token 2 of 3, id 1, special')
