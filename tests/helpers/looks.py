"What a browser shows: patience, colours, and views that are opened and watched"
import functools, re, time
import pytest, torch

patience = 90_000       # milliseconds that a busy machine may take for one answer
words = 'time flies like an arrow .'.split()

def expect(locator):
    "Playwright's `expect`, which asks again until it is so; imported where there is a browser"
    from playwright import sync_api
    sync_api.expect.set_options(timeout=patience)
    return sync_api.expect(locator)

def until(holds, seconds=patience/1000):
    "Ask again and again: a browser's own wait takes a promise for an answer"
    end = time.monotonic()+seconds
    while not holds():
        assert time.monotonic() < end, 'it never came to that'
        time.sleep(.05)

def channels(color):
    "Red, green and blue from 0 to 1 of `#rrggbb` or what a browser says of a color"
    digits = re.findall(r'[0-9a-fA-F]{2}', color) if color[0] == '#' else re.findall(r'\d+', color)
    return [int(d, 16 if color[0] == '#' else 10)/255 for d in digits[:3]]

def luminance(rgb):
    linear = [c/12.92 if c <= .04045 else ((c+.055)/1.055)**2.4 for c in rgb]
    return sum(w*c for w,c in zip((.2126, .7152, .0722), linear))

def contrast(a, b):
    "That of WCAG 2, from 1 to 21, of two colors or their channels"
    light = [luminance(channels(c) if isinstance(c, str) else c) for c in (a, b)]
    return (max(light)+.05)/(min(light)+.05)

def weights(layers=2, H=3, L=6, S=6, seed=0):
    scores = 2*torch.randn(layers, H, L, S, generator=torch.Generator().manual_seed(seed))
    return scores.softmax(-1)

def near(x):
    "A pattern for a share as the page writes it, to one step of its last digit; 0 % is left out"
    texts = {f'{max(0, 100*x+d):.0f}' for d in (-1, 0, 1)}
    return re.compile('|'.join(f'^{t}\u00a0%$' for t in texts) + ('|^$' if '0' in texts else ''))

def numbers(page, want, side='right', where=''):
    "Wait until the column shows these numbers"
    expect(page.locator(f'{where} .{side} .n')).to_have_text([near(x) for x in want.tolist()])

def floats(texts):
    "The numbers that a page has written"
    return torch.tensor([float(t.replace('−', '-')) for t in texts], dtype=torch.float64)

def close(texts, want):
    torch.testing.assert_close(floats(texts), want.double(), atol=1e-6, rtol=1e-6)

def titles(page, rows):
    "The titles of all cells but a row's first, in which numbers stand in full"
    return page.locator(rows).evaluate_all(
        'rows => rows.map(r => [...r.cells].slice(1).map(c => c.title))')

def themes(page):
    "Go through light and dark; the page follows"
    for theme in ('light', 'dark'):
        page.emulate_media(color_scheme=theme)
        expect(page.locator(':root')).to_have_attribute('data-theme', theme)
        yield theme

def press(page, *keys):
    for key in keys: page.keyboard.press(key)

def walk(page, *steps):
    """Do one thing after another: press a key, click a place, or call; after each wait until a text
    stands in its place: a part of it, or the texts of all places, or a pattern"""
    for do,where,text in steps:
        if isinstance(do, str): page.keyboard.press(do)
        elif callable(do): do()
        else: do.click()
        found = expect(page.locator(where) if isinstance(where, str) else where)
        if isinstance(text, str): found.to_contain_text(text)
        else: found.to_have_text(text)

def lines(page, n): expect(page.locator('canvas.lines')).to_have_attribute('data-lines', str(n))

def watched(page, problems, inside=('file:', 'data:', 'blob:')):
    "Note errors, warnings, dialogs, and requests for what is not `inside`"
    def said(m):
        ours = 'willReadFrequently' in m.text            # the tests read the canvas
        if m.type in ('error', 'warning') and not ours: problems.append(m.text)
    def asked(r):
        if not r.url.startswith(inside): problems.append(r.url)
    page.on('pageerror', lambda e: problems.append(str(e)))
    page.on('console', said)
    page.on('request', asked)
    page.on('requestfailed', lambda r: problems.append(f'failed: {r.url}'))
    page.on('response', lambda r: problems.append(r.url) if r.status >= 400 else None)
    page.on('dialog', lambda d: (problems.append(d.message), d.dismiss()))
    return page

drawn = """async () => {
    await document.fonts.ready
    await window.MathJax?.startup?.promise
    // a frame that is out of sight draws nothing
    const frame = () => new Promise(d => { requestAnimationFrame(d); setTimeout(d, 50) })
    await frame(); await frame()
}"""

def settled(page):
    "Wait until all has come and formulas and frames are drawn"
    page.wait_for_load_state('networkidle')
    expect(page.locator('.math:not(:has(mjx-container))')).to_have_count(0)
    for frame in page.frames: frame.evaluate(drawn)

@functools.cache
def tab(browser, kind):
    """A page without a network in which one view after another is opened, and what it complained
    of; a page for each view would cost more than the view. `kind`: mouse, touch, or clock, whose
    time the test moves"""
    context = browser.new_context(offline=True, has_touch=kind == 'touch')
    context.set_default_timeout(patience)
    problems = []
    page = watched(context.new_page(), problems)
    if kind == 'clock': page.clock.install()
    return page, problems

@pytest.fixture
def open_view(browser, tmp_path):
    """Open a view, or a page that holds some; at the end no error, request or dialog may have come.
    The page is the same for all tests"""
    used = []
    def go(view, width=900, height=700, kind='mouse', theme='light', motion='no-preference'):
        page,problems = tab(browser, kind)
        if problems not in used: used.append(problems)
        if kind == 'clock': page.clock.resume()
        page.mouse.move(0, 0)
        page.set_viewport_size(dict(width=width, height=height))
        page.emulate_media(media='screen', color_scheme=theme, reduced_motion=motion)
        path = tmp_path/'view.html'
        if isinstance(view, str): path.write_text(view, encoding='utf-8')
        else: view.save(path)
        page.goto(path.as_uri())
        if not isinstance(view, str):
            expect(page.locator('[data-ready=yes]').first).to_be_attached()
        return page
    yield go
    found = [p for problems in used for p in problems]
    for problems in used: problems.clear()
    assert not found, found

def sticks_out(page):
    "What reaches beyond the window, but in a box that scrolls or cuts"
    return page.evaluate("""() => [...document.querySelectorAll('body, body *')].filter(e => {
        const {left, right, width} = e.getBoundingClientRect()
        for (let p = e.parentElement; p; p = p.parentElement)
            if (getComputedStyle(p).overflowX !== 'visible' || p.localName === 'svg') return false
        return width && (left < 0 || right > innerWidth + 1)
    }).map(e => e.outerHTML.slice(0, 80))""")

def moving(page):
    "What would move: nothing may where little motion is wanted"
    return page.evaluate("""() => [...document.querySelectorAll('*')].filter(e => {
        const {transitionDuration, animationName, scrollBehavior} = getComputedStyle(e)
        return transitionDuration !== '0s' || animationName !== 'none'
            || scrollBehavior === 'smooth'
    }).map(e => e.outerHTML.slice(0, 80))""")

# ---- text from strangers
hostile = [
    '<script>window.hacked=1</script>', '</script><script>window.hacked=1</script>',
    '<img src=x onerror=window.hacked=1>', '"><svg onload=window.hacked=1>', "'", '"', '`',
    '&lt;b&gt;', '&amp;', '&#x27;', '<!--', '-->', ']]>', '<![CDATA[', '${alert(1)}', '{{7*7}}',
    '</style>', '</title>', '</iframe>', '</textarea>', 'javascript:alert(1)', '\\u003cscript',
    '\u202eevil\u202c', '\u2066iso', '\u200b', '\u200d', '\ufeff', '\u2028', '\u2029', '\ud800',
    '\udfff', 'a\udc00b', '\U0001f600', '\U0001f468\u200d\U0001f469\u200d\U0001f467',
    '\U0001f1e9\U0001f1ea', 'e\u0301\u0301\u0301\u0301', 'שלום', 'مرحبا', '漢字', 'ไทย',
    'x'*10_000, ' '*50, '', '\t', '\n', '\r\n', '$x^2$', '$\\frac{$', '%s', '__proto__',
    'constructor', 'NaN', 'null', 'undefined', '0', '-1', '\\', '\\n', '//', '/*', '*/',
    '<b>bold</b>', '<a href=//evil>',
    'style="x"', '\ufffe', '\uffff', '\U0010ffff', '<style>*{display:none}</style>',
    '<base href=//evil>', '<meta http-equiv=refresh content=0>',
    '<iframe srcdoc="<script>parent.hacked=1</script>">',
    '<math><mi//xlink:href="data:x,<script>hacked=1</script>">', 'on\x00load', '\x1b[31m',
    *(chr(c) for c in range(1, 32)), '\x7f', '\x80', '\x9f']
hostile_title = '</title><script>window.hacked=1</script>\u202e'
