"The image view in a real browser: its veil, what it says, keys, questions in words"
import re
import torch
from attention_nb.views.images import image_view
from helpers.looks import expect, themes, walk

rows,columns = 3,4

def weights(layers=2, H=3, L=13, S=13):
    return (3*torch.randn(layers, H, L, S, generator=torch.Generator().manual_seed(1))).softmax(-1)

picture = torch.randint(256, (60,80,3), dtype=torch.uint8)

def veil(page):
    "How much of the picture each patch of the page hides, (rows, columns), from 0 to 1"
    pixels = page.locator('.picture canvas').evaluate("""c => [...c.getContext('2d').getImageData(
        0, 0, c.width, c.height).data].filter((_, n) => n % 4 === 3)""")
    return torch.tensor(pixels).view(rows, columns)/255

def about(x, digits=0):
    "A share as the page writes it, to one step of its last digit: weights travel in such steps"
    near = (f'{max(0, 100*x + d*10**-digits):.{digits}f}' for d in (-1, 0, 1))
    return '(' + '|'.join(near).replace('.', r'\.') + ')\u00a0%'

def says(page, pattern): expect(page.locator('.status')).to_contain_text(re.compile(pattern))

def shows(page, w):
    "Wait until the page says the largest of the patches' weights, then look at the veil"
    w = w[-rows*columns:]
    most = w.max()
    says(page, f'(takes|gives) {about(most)} .*the most of all patches')
    torch.testing.assert_close(veil(page), .85*(1-w/most).view(rows, columns), atol=.01, rtol=0)

def point(page, r, c, act='hover'):
    box = page.locator('.picture').bounding_box()
    at = dict(x=(c+.5)*box['width']/columns, y=(r+.5)*box['height']/rows)
    getattr(page.locator('.picture'), act)(position=at)

def test_the_veil_is_thin_where_the_weight_is_large(open_view):
    w = weights()
    page = open_view(image_view(w, picture, layer=1))
    shows(page, w[1,:,0].mean(0))
    expect(page.locator('.patch')).to_be_hidden()
    point(page, 1, 2)
    shows(page, w[1,:,1+1*4+2].mean(0))
    best = w[1,:,7].mean(0)[1:].argmax().item()
    says(page, f'patch 1,2 takes .* from patch {best//4},{best%4} .* '
               f'{about(w[1,:,7,0].mean())} from .CLS.')
    at = page.locator('.patch').evaluate('e => [e.style.left, e.style.top, e.style.width]')
    assert at == ['50%', f'{100/3:.4f}%', '25%']
    page.mouse.move(0, 0)                                  # away: the query that was chosen
    shows(page, w[1,:,0].mean(0))
    for theme in themes(page):                             # the veil has the colour of the page
        red = page.locator('canvas').evaluate(
            "c => c.getContext('2d').getImageData(0, 0, 1, 1).data[0]")
        assert abs(red - dict(light=255, dark=20)[theme]) <= 2

def test_layers_heads_and_the_opposite_question(open_view):
    w = weights()
    page = open_view(image_view(w, picture, head=2, query=(0,1), rollout=True))
    shows(page, w[0,2,2])
    page.get_by_label('next layer').click()
    shows(page, w[1,2,2])
    for n,value,shown in ((1, '1', w[1,0,2]), (2, '1', w[1,0,:,2])):    # head 0; what it gives to
        page.locator('select').nth(n).select_option(value)
        shows(page, shown)
    page.locator('select').first.select_option('2')        # rollout, which has one head
    expect(page.locator('select')).to_have_count(2)
    walk(page, (lambda: page.get_by_label('veil').fill('0'), '.status', 'patch 0,1'))
    assert veil(page).max() == 0

def test_keys_clicks_and_taps(open_view):
    w = weights()
    page = open_view(image_view(w, picture))
    page.locator('.picture').focus()
    keys = dict(ArrowRight='patch 0,0', ArrowDown='patch 1,0', End='patch 2,3', ArrowUp='patch 1,3',
                Home='patch 0,0', ArrowLeft='patch 0,0', Escape='[CLS]')
    walk(page, *((key, '.status', f'{name} takes') for key,name in keys.items()))
    point(page, 2, 1, 'click')
    walk(page, (lambda: page.mouse.move(0, 0), '.status', 'patch 2,1 takes'))
    button = page.get_by_role('button', name='[CLS]')
    expect(button).to_have_attribute('aria-pressed', 'false')
    button.click()
    expect(button).to_have_attribute('aria-pressed', 'true')
    shows(page, w[0,:,0].mean(0))
    page.locator('summary').click()
    shares = [re.compile(about(x, 1)) for x in w[0,:,0,1:].mean(0).tolist()]
    expect(page.locator('details tbody td')).to_have_text(shares)

def test_words_that_ask_a_picture(open_view):
    w = weights(1, 2, 5, 12)
    page = open_view(image_view(w, picture, tokens='a ship and its crew'.split(), query=1))
    shows(page, w[0,:,1].mean(0))
    page.get_by_role('button', name='crew').click()
    shows(page, w[0,:,4].mean(0))
    point(page, 2, 3)                                      # a key that is pointed at, not a query
    says(page, f'crew takes .*; patch 2,3: {about(w[0,:,4,11].mean())}')
    walk(page, (lambda: page.locator('.picture').press('Home'), '.status', '; patch 0,0: '))

def test_tokens_behind_the_patches(open_view):
    "A model that finds objects has tokens in front and behind"
    w = weights(1, 2, 15, 15)
    page = open_view(image_view(w, picture, grid=(3,4), n_special=1))
    expect(page.locator('.bar button')).to_have_text(['[CLS]', '[EXTRA 1]', '[EXTRA 2]'])
    page.get_by_role('button', name='[EXTRA 2]').click()
    of_patches = w[0,:,14,1:13].mean(0)
    shows(page, of_patches)
    says(page, f'{about(1-of_patches.sum())} from .CLS., .EXTRA 1., .EXTRA 2.')
