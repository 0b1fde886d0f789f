"A page can be read as soon as its text has come, and what comes later moves nothing"
import os, re
import pytest
import cells, paint
from helpers import root

# width, and whether it is touched; two of the three, but with WHOLE=1 all
screens = dict(wide=(1400, False), narrow=(390, False), touch=(390, True))
asked = [*screens] if os.environ.get('WHOLE') else ['wide','touch']
frames = {cells.name_of(p): dict(zip(screens, map(int, m[1].split(',')), strict=True))
          for p in cells.notebooks()
          for c in cells.load(p) if (m := re.search(r'^#\| frame: ([\d, ]+)$',
                                                    cells.source(c), re.M))}

def texts(site):
    found = (p for p in site.rglob('*.html') if '_static' not in p.parts)
    return {p.relative_to(site).with_suffix('').as_posix(): p.read_text(encoding='utf-8')
            for p in found}

def test_text_waits_for_no_script_and_for_no_icon_font(site, page, address):
    asked = []
    page.on('request', lambda request: asked.append(request.url))
    page.goto(f'{address}/03_attention.html')
    fonts = [u for u in asked if 'awesome' in u.lower()]
    assert len(asked) > 10 and not fonts
    for name,text in texts(site).items():
        head = re.findall(r'<script(?=[^>]*\ssrc=)[^>]*>', text.split('</head>')[0])
        waits = [s for s in head if 'defer' not in s and 'documentation_options' not in s]
        assert not waits, (name, waits)

def test_every_icon_of_a_page_has_a_picture(site, page, address):
    used = {n for text in texts(site).values()
            for said in re.findall(r'class="([^"]*\bfa[bs]?[ -][^"]*)"', text)
            for n in re.findall(r'\bfa-([\w-]+)', said)} - {'solid', 'brands', 'lg'}
    assert len(used) > 10 and used <= {*paint.ICONS}, used - {*paint.ICONS}
    page.goto(f'{address}/03_attention.html')
    bars = page.locator('.fa-bars').first.evaluate('e => getComputedStyle(e).maskImage')
    assert bars.startswith('url("data:image/svg+xml')

@pytest.mark.parametrize('scheme', ('light','dark'))
def test_the_first_paint_has_the_colours_of_the_system(browser, address, scheme):
    page = browser.new_page(color_scheme=scheme)
    page.route('**/*.js*', lambda route: route.abort())
    page.goto(f'{address}/03_attention.html')
    assert page.evaluate('document.documentElement.dataset.theme') == scheme
    paper = page.locator('body').evaluate('e => getComputedStyle(e).backgroundColor')
    assert (sum(map(int, re.findall(r'\d+', paper)[:3])) > 600) == (scheme=='light'), paper
    page.close()

listen = """window.moved = []
new PerformanceObserver(list => window.moved.push(...list.getEntries().map(e =>
    [e.value, ...e.sources.map(s => s.node?.className ?? s.node?.nodeName)])))
    .observe({type: 'layout-shift', buffered: true})"""

def settled(page):
    "Wait until letters, formulas and scripts have come, and a moment for what they might move"
    page.wait_for_load_state('networkidle')
    page.evaluate("""Promise.all([document.fonts.ready, window.MathJax?.startup?.promise])
        .then(() => new Promise(done => setTimeout(done, 300)))""")

@pytest.mark.parametrize('name', ['index', 'play', '09_cache'])
def test_a_page_of_which_a_part_has_come_is_drawn_as_the_whole_one(page, address, site, name):
    "Its column has its place before its text; a view's picture does not stand in for its frame"
    text = (site/f'{name}.html').read_text(encoding='utf-8')
    def seen(until, script):
        page.route(f'**/{name}.html', lambda route: route.fulfill(
            body=text.split(until)[0], content_type='text/html; charset=utf-8'), times=1)
        page.goto(f'{address}/{name}.html')
        return page.evaluate(script)
    column = """(({x, width}) => [x, width])(
        document.querySelector('.bd-article-container').getBoundingClientRect())"""
    assert seen('<article', column) == seen('</body>', column)
    still = "getComputedStyle(document.querySelector('img[data-still]')).display"
    assert seen('<iframe title=', still) == 'none'
    menu = "getComputedStyle(document.querySelector('.bd-content'), '::after').content"
    assert seen('<div class="bd-article-container">', menu) == 'none'

# of the first frame, once it has one that stays for half a second
height = """() => new Promise(done => {
    const frame = document.querySelector('.text_html iframe')
    let last = 0, since = 0
    const ask = () => {
        const now = frame.style.height && frame.offsetHeight
        if (now !== last) { last = now; since = performance.now() }
        if (now && performance.now() - since > 500) done(now); else setTimeout(ask, 50)
    }
    ask()
})"""

@pytest.mark.parametrize('name', frames)
def test_nothing_moves_and_a_frame_has_its_height_before_its_view_runs(browser, address, name):
    "As `#| frame: WIDE, NARROW, TOUCH` says, but for other letters on another machine"
    pages = [browser.new_page(viewport=dict(width=width, height=900), has_touch=touch)
             for width,touch in map(screens.get, asked)]
    for page in pages:
        page.add_init_script(listen)
        page.goto(f'{address}/{name}.html')
    for page in pages:
        settled(page)
        moved = page.evaluate('window.moved')
        assert sum(m[0] for m in moved) <= .05, moved
        page.locator('.text_html iframe').first.scroll_into_view_if_needed()
    for page,said in zip(pages, map(frames[name].get, asked), strict=True):
        now = page.evaluate(height)
        assert abs(now - said) < .1*now, f'frame: {said} is now {now}'
        page.close()

def test_a_view_on_the_first_screen_says_its_height(page, address, site):
    for name,text in texts(site).items():
        if '<iframe title=' not in text or name in frames: continue
        page.goto(f'{address}/{name}.html')
        top = page.evaluate(
            "document.querySelector('.text_html iframe').getBoundingClientRect().top")
        assert top > 900, f'{name} begins with a view: say it, as #| frame: 400, 600, 700'
