"The head view and the model view in a real browser: colours, swatches, words, scores, phone, paper"
import re
import numpy as np
import pytest, torch
from attention_nb.recording.head_scores import (attention_entropy, first_token, next_token,
                                                previous_token)
from attention_nb.views.page import head_colors
from attention_nb.views.attention_views import head_view, model_view
from helpers import root
from helpers.looks import contrast, expect, lines, numbers, weights, words


style = (root/'attention_nb'/'views_js'/'look.css').read_text()
dark_at = style.index('[data-theme="dark"]')
palettes = dict(light=re.findall(r'--head-\d+: (#\w{6})', style[:dark_at]),
                dark=re.findall(r'--head-\d+: (#\w{6})', style[dark_at:]))
papers = dict(light='#ffffff', dark='#121212')

def rgb(colour): return np.array([int(colour[i:i+2], 16) for i in (1, 3, 5)])/255

def distances(palette, vision):
    "How far apart two colours are (CAM02-UCS, about 1 is just seen) for one way of seeing"
    from colorspacious import cspace_convert
    seen = np.array([rgb(c) for c in palette])
    if vision:
        seen = cspace_convert(seen, dict(name='sRGB1+CVD', cvd_type=vision, severity=100),
                              'sRGB1').clip(0, 1)
    place = cspace_convert(seen, 'sRGB1', 'CAM02-UCS')
    return np.linalg.norm(place[:,None]-place, axis=-1)[np.triu_indices(len(place), 1)]

# ---- colours

@pytest.mark.parametrize('theme', palettes)
@pytest.mark.parametrize('vision,least', [(None, 20), ('deuteranomaly', 14), ('protanomaly', 14),
                                          ('tritanomaly', 11)])
def test_twelve_colours_are_told_apart(theme, vision, least):
    assert len(palettes[theme]) == 12
    assert distances(palettes[theme], vision).min() >= least

def test_a_head_has_one_hue_in_light_and_dark():
    from colorspacious import cspace_convert
    light,dark = (cspace_convert(np.array([rgb(c) for c in palettes[t]]), 'sRGB1', 'CAM02-UCS')
                  for t in ('light', 'dark'))
    turns = np.degrees(np.arctan2(light[:,2], light[:,1]) - np.arctan2(dark[:,2], dark[:,1]))
    assert np.abs((turns + 180) % 360 - 180).max() <= 15

@pytest.mark.parametrize('theme,least', [('light', 2.2), ('dark', 3.5)])
def test_colours_are_seen_on_their_paper(theme, least):
    assert min(contrast(rgb(c), rgb(papers[theme])) for c in palettes[theme]) >= least

def test_the_still_has_the_colours_of_the_page(): assert head_colors == palettes['light']

strongest = """c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data
    let best = [0, 0, 0, 0]
    for (let p = 0; p < d.length; p += 4) if (d[p+3] > best[3]) best = [...d.slice(p, p+4)]
    return best }"""

def test_a_line_of_seven_hundredths_is_seen(open_view):
    w = torch.zeros(1, 24, 2, 2)
    w[:,:12,0,0] = 0.07
    page = open_view(head_view(w, ['a', 'b'], threshold=0.05))
    seen = []
    for h in range(12):
        page.locator('.heads button').nth(h+1).dblclick()
        page.locator('.heads button').nth(h+13).click()           # one alone has that of weights
        expect(page.locator('.status')).to_contain_text(f'(head {h})')
        for theme in palettes:
            page.emulate_media(color_scheme=theme)
            expect(page.locator(':root')).to_have_attribute('data-theme', theme)
            *ink,alpha = page.locator('canvas').evaluate(strongest)
            paper = rgb(papers[theme])
            seen.append(contrast(paper + alpha/255*(np.array(ink)/255-paper), paper))
    assert min(seen) >= 1.2, seen

def test_one_head_alone_is_drawn_in_the_colour_of_weights(open_view):
    page = open_view(head_view(weights(1, 3), words, heads=1))
    one,other = (page.locator('.heads button').nth(n) for n in (2, 1))
    border = 'b => getComputedStyle(b).borderTopColor'
    for theme,weight in (('dark', [185,165,227]), ('light', [107,79,160])):
        page.emulate_media(color_scheme=theme)
        expect(page.locator(':root')).to_have_attribute('data-theme', theme)
        assert page.locator('canvas').evaluate(strongest)[:3] == pytest.approx(weight, abs=3)
        assert one.evaluate(border) == f'rgb({", ".join(map(str, weight))})'
    other.click()                                       # two: each has its own again
    expect(page.locator('.heads.one')).to_have_count(0)
    assert one.evaluate(border) == 'rgb(45, 0, 240)'

def test_heads_beyond_twelve_are_dashed_and_numbered(open_view):
    page = open_view(head_view(weights(1, 30), words))
    buttons = page.locator('.heads button')
    looks = buttons.evaluate_all('bs => bs.slice(1).map(b => [b.textContent, '
                                 'getComputedStyle(b).borderTopStyle, '
                                 'getComputedStyle(b).borderTopColor])')
    assert [l[0] for l in looks] == [str(h) for h in range(30)]
    assert [l[1] for l in looks] == ['solid']*12 + ['dashed']*12 + ['dotted']*6
    assert len({tuple(l[1:]) for l in looks}) == 30

# ---- head view

def test_many_heads_share_a_line_and_have_swatches(open_view):
    w = weights(1, 12)
    w[0,:,1] = 0
    w[0,3,1,2] = 1.
    page = open_view(head_view(w, words))
    lines(page, (w[0].amax(0) >= 0.05).sum().item())
    page.locator('.left .token').nth(1).click()
    lines(page, 1)
    at = """([c, h, j, side]) => { const wide = 9, left = side ? 0 : c.clientWidth - 12*wide;
        const x = (left + (h+.4)*wide)*devicePixelRatio, y = (4+22*(j+.5)-5)*devicePixelRatio
        return [...c.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3); }"""
    def swatch(h, j, side=0):
        return page.evaluate(at, [page.locator('canvas').element_handle(), h, j, side])
    panel = [243, 244, 245]
    assert swatch(3, 2) == (255*rgb(palettes['light'][3])).round().tolist()
    assert swatch(2, 2) == swatch(3, 1) == panel
    page.keyboard.press('Escape')
    page.locator('.right .token').nth(2).click()                       # now beside the queries
    expect(page.locator('.status')).to_contain_text('kept')
    assert swatch(3, 1, 1) == (255*rgb(palettes['light'][3])).round().tolist()
    assert swatch(2, 1, 1) == panel
    for h in range(8, 12): page.locator('.heads button').nth(h+1).click()
    page.keyboard.press('Escape')
    page.locator('.left .token').first.focus()
    page.keyboard.press('Escape')
    # eight heads: a line for each
    lines(page, (w[0,:8] >= 0.05).sum().item())

def test_the_strongest_links_are_said_in_words(open_view):
    w = weights(1, 2)
    w[0] *= 0.1
    w[0,0,1,2],w[0,1,3,2] = 0.9,0.8
    page = open_view(head_view(w, words))
    status = page.locator('.status')
    expect(status).to_have_attribute('aria-live', 'polite')
    expect(status).to_contain_text('Strongest: flies from like 90\u00a0% (head 0), '
                                   'an from like 80\u00a0% (head 1)')
    page.locator('.heads button').nth(2).dblclick()
    expect(status).to_contain_text('Strongest of head 1: an from like 80\u00a0%,')
    page.locator('.left .token').nth(3).click()
    expect(status).to_have_text(re.compile(r'^an takes from like 80\u00a0%, .*\(head 1\); kept$'))
    page.locator('.right .token').nth(2).click()
    expect(status).to_have_text(re.compile(r'^like gives to an 80\u00a0%, .*\(head 1\); kept$'))
    page.locator('.left .token').nth(1).hover()             # a look at another, then back
    expect(status).to_have_text(re.compile(r'^flies takes from .*\(head 1\)$'))
    page.mouse.move(1, 1)
    expect(status).to_have_text(re.compile(r'^like gives to an 80\u00a0%, .*\(head 1\); kept$'))
    page.keyboard.press('Escape')
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
    page.get_by_label('dim special tokens').check()
    expect(page.locator('.token.dim .t')).to_have_text(['[CLS]', '[SEP]', '<s>']*2)
    expect(page.locator('.status')).to_have_text('Strongest of head 0: to from ship 30\u00a0%')
    page.locator('.left .token').nth(1).click()
    expect(page.locator('.status')).to_contain_text('to takes from ship 30\u00a0% (')
    page.locator('.left .token').nth(5).click()
    lines(page, 1)
    assert page.locator('canvas').evaluate(strongest)[3] < before/2
    expect(open_view(head_view(w, words)).get_by_label('dim special tokens')).to_have_count(0)

def box(locator): return locator.bounding_box()

def test_the_stage_fills_the_column_and_fits_the_words(open_view):
    page = open_view(head_view(weights(), words))
    stage = box(page.locator('.stage'))
    assert stage['width'] >= 900-2*8-1 and abs(stage['height'] - (6*22+2*4)) <= 1
    assert box(page.locator('canvas'))['height'] == 6*22+2*4

def test_texts_are_kept_apart_by_name(open_view):
    class Seen:
        def __init__(self, tokens, split=None, **w): self.tokens,self.split,self.w = tokens,split,w
        def shown(self):
            if len(self.w) == 1:
                return dict(weights=self.w['one'], tokens=self.tokens, k_tokens=None,
                            split=self.split)
            return dict(weights=self.w, tokens={k:self.tokens for k in self.w}, k_tokens={},
                        split=None)
    a,b,c = weights(1, 2, 6, 6),weights(2, 3, 3, 3),weights(1, 1, 3, 3, seed=2)
    seen = dict(first=Seen(words, 4, one=a), second=Seen(list('abc'), encoder=b, decoder=c))
    page = open_view(head_view(seen))
    names = page.locator('select').first
    expect(names.locator('option')).to_have_text(['first', 'second, encoder', 'second, decoder'])
    # the first is a pair, the others are not
    expect(page.get_by_label('texts')).to_have_count(1)
    names.focus()
    names.select_option('2')
    expect(names).to_be_focused()
    expect(page.get_by_label('texts')).to_have_count(0)
    page.locator('.left .token').nth(1).hover()
    numbers(page, c[0,0,1])
    with pytest.raises(TypeError, match='must be what look gives'):
        head_view(dict(first=seen['first'], second=3))
    assert [g['q'] for g in model_view(seen['first'])._data['groups']] == [words]

# ---- model view

def scores(w):
    return {'previous token': previous_token(w), 'next token': next_token(w),
            'first token': first_token(w), 'entropy': attention_entropy(w)}

def test_a_head_tells_its_scores_and_they_sort(open_view):
    w = weights(3, 4)
    want = scores(w)
    page = open_view(model_view(w, words, average=True))
    page.get_by_label('layer 2, head 1', exact=True).hover()
    *shares,entropy = [t[2,1].item() for t in want.values()]
    told = [*(f'{100*x:.0f}\u00a0%' for x in shares), f'{entropy:.2f}']
    expect(page.locator('.scores')).to_have_text(
        'layer 2, head 1: ' + ', '.join(map(' '.join, zip(want, told))))
    page.get_by_label('mean of all').hover()
    expect(page.locator('.scores')).to_have_text('layer mean of all, head 0')
    for n,(name,t) in enumerate(want.items(), 1):
        page.get_by_label('sort by').select_option(str(n))
        expect(page.locator('.across')).to_contain_text(name)
        labels = page.locator('.grid button').evaluate_all('bs => bs.map(b => b.ariaLabel)')
        best = t.flatten().argsort(descending=True).tolist()
        assert labels[:12] == [f'layer {x//4}, head {x % 4}' for x in best]
        assert len(labels) == 12+3+1
        expect(page.locator('.grid small').first).to_have_text(re.compile(rf'{best[0]//4}, '
                                                                          rf'{best[0] % 4}: '
                                                                          r'(\d+\W%|\d\.\d\d)$'))
    page.get_by_label('sort by').select_option('0')
    expect(page.locator('.grid button').first).to_have_attribute('aria-label', 'layer 0, head 0')
    expect(page.locator('.axis')).to_have_text(['head', 'layer'])

def test_scores_of_what_is_not_square():
    cross = model_view(weights(1, 2, 3, 6), list('abc'),
                       words)._data['groups'][0]['layers'][0]['scores']
    assert list(cross) == ['first token', 'entropy']
    assert list(model_view(torch.ones(1, 1, 1),
                           ['a'])._data['groups'][0]['layers'][0]['scores']) == ['entropy']

def test_a_head_opens_in_place_and_is_scrolled_to(open_view):
    view,text = model_view(weights(6, 12), words),'<p>text</p>'
    page = open_view(f'<!doctype html><body>{text*20}{view._repr_html_()}{text*40}')
    f = page.frame_locator('iframe')
    page.locator('iframe').scroll_into_view_if_needed()
    chosen,below = (f.get_by_label(f'layer {l}, head 2', exact=True) for l in (4, 5))
    chosen.click()
    large = f.locator('.large')
    expect(large.locator('.stage')).to_be_in_viewport(ratio=1)
    expect(chosen).to_have_attribute('aria-pressed', 'true')
    bottom = box(chosen)['y']+box(chosen)['height']
    assert bottom <= box(large)['y'] and box(large)['y']+box(large)['height'] <= box(below)['y']+1
    expect(large.locator('.title strong')).to_have_text('layer 4, head 2')
    # it moves with its thumbnail
    f.get_by_label('sort by').select_option('4')
    bottom = box(chosen)['y']+box(chosen)['height']
    assert bottom <= box(large)['y'] <= bottom+12
    f.get_by_label('close').click()
    expect(large).to_have_count(0)
    expect(chosen).to_be_focused()

def test_thumbnails_by_keyboard(open_view):
    page = open_view(model_view(weights(3, 4), words))
    expect(page.locator('.grid button[tabindex="0"]')).to_have_count(1)
    page.get_by_label('sort by').focus()
    page.keyboard.press('Tab')
    for key,name in (('ArrowRight', '0, head 1'), ('ArrowDown', '1, head 1'),
                     ('ArrowDown', '2, head 1'), ('ArrowDown', '2, head 1'),
                     ('ArrowLeft', '2, head 0'), ('ArrowLeft', '2, head 0'),
                     ('ArrowUp', '1, head 0')):
        page.keyboard.press(key)
        expect(page.get_by_label(f'layer {name}', exact=True)).to_be_focused()
        expect(page.locator('.scores')).to_contain_text(f'layer {name}:')
    page.keyboard.press('Enter')
    expect(page.locator('.large .heads [aria-pressed=true]')).to_have_text(['0'])
    expect(page.locator('.grid button[tabindex="0"]')).to_have_count(1)

def test_on_a_phone_thumbnails_keep_their_size_and_scroll_in_their_box(open_view):
    page = open_view(model_view(weights(2, 12), words), width=390, height=800)
    button = page.get_by_label('layer 0, head 11', exact=True)
    page.get_by_label('layer 0, head 0', exact=True).click()
    for name in ('0', '11'):
        assert box(page.get_by_label(f'layer 1, head {name}', exact=True))['width'] >= 40
    canvas = page.locator('.grid canvas').first
    # nothing of it is hidden
    assert abs(box(canvas)['width'] - box(canvas.locator('..'))['width']) <= 3
    assert page.evaluate('document.documentElement.scrollWidth') <= 390
    large = box(page.locator('.large'))
    assert 0 <= large['x'] and large['x']+large['width'] <= 390
    expect(page.locator('.axes')).to_have_class(re.compile('cut'))
    button.scroll_into_view_if_needed()
    expect(page.locator('.axes')).not_to_have_class(re.compile('cut'))
    assert box(button)['x']+box(button)['width'] <= 390
    assert box(page.locator('.large')) == large                          # it stays in sight
    assert box(page.locator('.layer').first)['x'] >= 0

# ---- paper

def test_on_paper_a_frame_gives_way_to_its_still(open_view):
    page = open_view('<!doctype html><html data-theme="dark"><body>'
                     + head_view(weights(), words)._repr_html_())
    expect(page.frame_locator('iframe').locator('[data-ready=yes]')).to_be_attached()
    still,frame = page.locator('[data-still]'),page.locator('iframe')
    for media,shown,hidden in (('screen', frame, still), ('print', still, frame),
                               ('screen', frame, still)):
        page.emulate_media(media=media)
        expect(shown).to_be_visible()
        expect(hidden).to_be_hidden()

def test_a_page_of_its_own_prints_all_words_on_white(open_view):
    n = 80
    page = open_view(head_view(torch.eye(n)[None,None], [f'w{i}' for i in range(n)]), theme='dark')
    assert box(page.locator('.stage'))['height'] < 22*n
    page.emulate_media(media='print', color_scheme='dark')
    expect(page.locator(':root')).to_have_attribute('data-theme', 'light')
    expect(page.locator('.bar')).to_be_hidden()
    assert box(page.locator('.stage'))['height'] >= 22*n
    assert box(page.locator('canvas'))['height'] >= 22*n
