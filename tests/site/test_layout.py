"Dark pages, the keyboard, what a reader has read, and paper; test_pages.py opens each page"
import re
import pytest, rules
from helpers import full, short
from helpers.book import cells, home, lessons, plain
from helpers.looks import contrast, expect

@pytest.fixture
def lesson(): return home()['simple_attention'][0]

def ready(page, url):
    page.goto(url)
    page.evaluate('window.MathJax?.startup?.promise.then(() => null)')
    return page

def test_a_lesson_counts_as_read_once_its_end_was_seen(browser, address):
    "In this browser alone, and nothing moves"
    context = browser.new_context(viewport=dict(width=1400, height=900))
    page,of = context.new_page(),len(lessons)
    said = page.locator('.reading-progress')
    ready(page, f'{address}/{lessons[3]}.html')
    expect(said).to_have_text(f'0 of {of} lessons read')
    page.locator('#summary').scroll_into_view_if_needed()
    expect(said).to_have_text(f'1 of {of} lessons read')
    page.goto(f'{address}/{lessons[0]}.html')
    expect(said).to_have_text(f'1 of {of} lessons read')
    read = page.locator('.bd-links a:has(.read)')
    expect(read).to_have_count(1)
    expect(read).to_have_text(re.compile('Attention read'))
    page.goto(f'{address}/kernels/dispatch.html')
    expect(page.locator('.bd-toc-nav')).to_be_visible()
    expect(said).to_have_count(0)
    page.evaluate("localStorage.setItem('lessons-read', 'not JSON')")
    page.goto(f'{address}/{lessons[0]}.html')
    expect(said).to_have_text(f'0 of {of} lessons read')
    context.close()

def test_a_question_is_asked_before_its_result(browser, address):
    """What came out opens with an answer, or with none, and stays open; a search in the page and
    paper find it, and without scripts nothing is shut"""
    lesson = lessons[5]
    def opened(**kw):
        context = browser.new_context(viewport=dict(width=1400, height=900), **kw)
        page = context.new_page()
        page.goto(f'{address}/{lesson}.html')
        page.locator('.bd-footer').wait_for()
        return context, page
    context,page = opened()
    first,shut = page.locator('.predict').first,page.locator('[hidden=until-found]')
    asked,many = page.locator('.predict').count(),shut.count()
    result = page.locator('.cell_output[tabindex], .predict + .cell_output').first
    assert asked >= 2 and many >= 2*asked
    def size(): return result.evaluate('e => e.firstElementChild.checkVisibility({'
                                       'contentVisibilityAuto: true, visibilityProperty: true})')
    assert not size()
    page.emulate_media(media='print')
    assert size()
    page.emulate_media(media='screen')
    first.get_by_label('What do you predict?').fill('<b>a line</b>')
    first.get_by_role('button').click()
    said = page.locator('.predicted')
    expect(said).to_have_text('You said: <b>a line</b>')
    page.reload()
    expect(said).to_have_text('You said: <b>a line</b>')
    expect(page.locator('.predict')).to_have_count(asked-1)
    shut.first.dispatch_event('beforematch')            # a search in the page
    expect(page.locator('.predict')).to_have_count(asked-2)
    page.evaluate("localStorage.setItem('predicted', 'not JSON')")
    page.reload()
    expect(page.locator('.predict')).to_have_count(asked)
    first.get_by_role('button').click()                 # nothing was said, so it asks again
    expect(result).to_be_focused()
    page.reload()
    expect(page.locator('.predict')).to_have_count(asked)
    page.locator('.page-menu > summary').click()
    page.get_by_role('button', name='Show all results').click()
    expect(shut).to_have_count(0)
    expect(page.locator('.predict')).to_have_count(0)
    page.goto(f'{address}/{lessons[19]}.html')          # the end of a section tells the result
    expect(page.locator('section:has(> .cell > .predict) > p').last).to_be_hidden()
    context.close()
    context,page = opened(java_script_enabled=False)
    expect(page.locator('[hidden=until-found], .predict')).to_have_count(0)
    context.close()

def test_a_figure_that_tells_the_answer_is_shut_with_it_and_has_its_height_when_it_opens(
        browser, address):
    context = browser.new_context(viewport=dict(width=1400, height=900))
    page = context.new_page()
    page.goto(f'{address}/03_attention.html')
    figure = page.locator('.cell_output:has(iframe)').first
    expect(figure).to_have_attribute('hidden', 'until-found')
    page.locator('.predict').first.get_by_role('button').click()
    frame = page.locator('.text_html iframe').first
    expect(frame.content_frame.locator('[data-ready=yes]')).to_be_visible()
    assert frame.bounding_box()['height'] > 300
    context.close()

def test_on_a_dark_page_ink_is_light_and_keeps_its_colour(page, address, lesson):
    "Figures, by what is drawn on the screen; symbols in formulas by what the browser says"
    from attention_nb.views.plots import colors
    import colorsys, io
    from PIL import Image
    swatches = ''.join(f'<rect x="{9*n}" width="9" height="9" fill="{c}"/>' for n,c in
                       enumerate(['#fff', '#000', *colors.values()]))
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="72" height="9">{swatches}</svg>'
    page.emulate_media(color_scheme='dark')
    ready(page, f'{address}/{lesson}.html')
    figure = page.locator('.cell_output img:not([data-still])').first
    style = figure.evaluate(
        'e => { const s = getComputedStyle(e); return [s.padding, s.background] }')
    assert style[0] == '0px' and 'rgba(0, 0, 0, 0)' in style[1], 'a frame on dark paper'
    drawing = page.locator('.text_html:has(.scheme)').first
    expect(drawing).to_have_css('background-color', 'rgba(0, 0, 0, 0)')
    figure.evaluate("""(img, svg) => {
        img.style.cssText = 'width: 72px; min-width: 0'
        img.src = 'data:image/svg+xml,' + encodeURIComponent(svg) }""", svg)
    figure.evaluate('img => img.decode()')
    shot = figure.screenshot()
    drawn = Image.open(io.BytesIO(shot)).convert('RGB')
    paper,ink,*others = (drawn.getpixel((9*n+4, 4)) for n in range(2+len(colors)))
    def hexes(rgb): return '#' + ''.join(f'{c:02x}' for c in rgb)
    def hue(rgb): return colorsys.rgb_to_hsv(*(c/255 for c in rgb))[0]
    assert max(abs(c-18) for c in paper) <= 2 and min(ink) > 220
    for name,rgb in zip(colors, others):
        was = tuple(int(colors[name][i:i+2], 16) for i in (1, 3, 5))
        turn = abs(hue(rgb) - hue(was))
        assert contrast(hexes(rgb), hexes(paper)) > 3.5 and min(turn, 1-turn) < .08, (name, rgb)
    for scheme,background in (('light', '#ffffff'), ('dark', '#121212')):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f'document.documentElement.dataset.theme == "{scheme}"')
        symbols = page.locator('mjx-mstyle[style*="color"]')
        found = set(symbols.evaluate_all('all => all.map(e => getComputedStyle(e).color)'))
        assert len(found) > 3 and min(contrast(c, background) for c in found) > 4.5, found
        name,comment,under = page.evaluate("""['.n', '.c1', 'pre'].map(s => getComputedStyle(
            document.querySelector('.cell_input .highlight ' + s))).map(
            (s, i) => i < 2 ? s.color : s.backgroundColor)""")
        assert 4.5 <= contrast(comment, under) < contrast(name, under)

def test_pointing_at_a_symbol_lights_it_in_formulas_and_in_code(page, address):
    page.goto(f'{address}/03_attention.html')
    page.wait_for_function("document.querySelector('mjx-mstyle[data-role]')")
    article = page.locator('article.bd-article')
    for pointed,kind,other in (('mjx-mstyle', 'q', 'k'), ('.highlight .n', 'k', 'q')):
        page.locator(f'{pointed}[data-role="{kind}"]:visible').first.hover()
        expect(article).to_have_attribute('data-lit', kind)
        for place in ('mjx-mstyle', '.highlight .n'):
            clear = 'rgba(0, 0, 0, 0)'
            one,two = (article.locator(f'{place}[data-role="{k}"]:visible').first
                       for k in (kind, other))
            expect(one).not_to_have_css('background-color', clear)
            expect(two).to_have_css('background-color', clear)
    page.locator('h1').hover()
    expect(article).to_have_attribute('data-lit', '')
    drawing = page.locator('svg.scheme')
    def clear(role): return drawing.locator(f'[data-role="{role}"]').first
    for do in ('focus', 'click'):                       # by keyboard, and with a finger
        getattr(page.locator('.roles').get_by_role('button', name='keys'), do)()
        expect(clear('k')).to_have_css('opacity', '1')
        expect(clear('v')).to_have_css('opacity', '0.2')
        page.locator('h1').hover()
        expect(clear('v')).to_have_css('opacity', '1')

def test_the_keyboard_skips_to_the_text_and_shows_where_it_is(page, address):
    ready(page, f'{address}/mask.html')
    page.wait_for_url(re.compile(r'\d_mask\.html'))
    page.keyboard.press('Tab')
    skip = page.locator('#pst-skip-link a')
    assert skip.evaluate('e => e == document.activeElement')
    shown = "document.querySelector('#pst-skip-link').getBoundingClientRect().top >= 0"
    page.wait_for_function(shown)
    ring = """(e => { const s = getComputedStyle(e); return [
        s.outlineStyle != 'none' && parseFloat(s.outlineWidth) >= 2 || s.boxShadow != 'none',
        e.outerHTML.slice(0, 120)] })(document.activeElement)"""
    for _ in range(60):
        page.keyboard.press('Tab')
        seen,what = page.evaluate(ring)
        assert seen, what
    skip.focus()
    page.keyboard.press('Enter')
    page.keyboard.press('Tab')
    assert page.evaluate("document.activeElement.closest('main') != null")

# ---- paper

@pytest.fixture
def paper(page, address):
    "A function that opens a page as it is printed on A4, from a dark screen"
    def open_page(name):
        page.set_viewport_size(dict(width=680, height=900))
        page.emulate_media(media='screen', color_scheme='dark')
        page.goto(f'{address}/{name}.html')
        page.evaluate('window.MathJax?.startup?.promise.then(() => null)')
        page.evaluate("void dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media='print')
        return page
    return open_page

cut = """[...document.querySelectorAll('.bd-article :is(pre, table, figure, img, mjx-container)')]
    .filter(e => { const box = e.getBoundingClientRect()
        const inner = !['figure', 'mjx-container'].includes(e.localName) && e.clientWidth
        return box.width && (box.right > innerWidth + 1
            || inner && e.scrollWidth > e.clientWidth + 1) })
    .map(e => e.outerHTML.slice(0, 100))"""
bars = """[...document.querySelectorAll(`.bd-sidebar-primary, .bd-sidebar-secondary, iframe,
    .bd-header, .bd-header-article, .prev-next-footer, .copybtn, .headerlink, .bd-footer, form,
    button, dialog`)].filter(
    e => e.getClientRects().length).map(e => e.className)"""

@pytest.mark.parametrize('name', short(['03_attention'], ['03_attention', '10_seeing',
                                                          'checkpoints/families/registry']))
def test_nothing_is_cut_on_paper(paper, name):
    page = paper(name)
    theme = 'document.documentElement.dataset.theme'
    assert page.evaluate(theme) == 'light'
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    page.evaluate("""document.querySelectorAll('.cell_input pre, .cell_output pre').forEach(
        p => p.append(' ' + 'long_line '.repeat(30) + 'x'.repeat(300)))""")
    assert not page.evaluate(cut) and page.evaluate(bars) == []
    assert page.locator('article h1').is_visible()
    assert all(page.evaluate("""[...document.querySelectorAll('img[data-still]')].map(
        e => e.getClientRects().length && getComputedStyle(e).display == 'block')"""))
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(theme) == 'dark'

def test_answers_are_printed_if_asked_for(paper):
    page = paper('08_multihead')
    folds = page.locator('details:is(.answer, .hint)')
    assert folds.count() > 5 and not any(folds.nth(i).is_visible() for i in range(folds.count()))
    assert page.locator('details.proofs').first.is_visible(), 'a proof shows its claim'
    page.evaluate("""window.print = () => {
        window.opened = [...document.querySelectorAll('details:is(.answer, .hint)')].map(
            d => d.open && d.getClientRects().length > 0)
        for (const name of ['beforeprint', 'afterprint']) dispatchEvent(new Event(name)) }""")
    page.emulate_media(media='screen')
    button = page.locator('.page-menu button', has_text='with hints and answers')
    assert button.count() == 1
    button.evaluate('e => e.click()')
    assert page.evaluate('opened.length > 5 && opened.every(Boolean)')
    assert page.locator('details:is(.answer, .hint)[open]').count() == 0, 'and closed again'

@full
def test_a_pdf_has_numbers_an_outline_answers_and_links_inside(browser, address, tmp_path):
    import pdf
    from pypdf import PdfReader
    lesson,page = home()['simple_cosine'][0],home()['show_numbers'][0]
    n = pdf.book(browser, address, tmp_path/'book.pdf', answers=True, only=[lesson, page])
    with pytest.raises(SystemExit, match='no page nothing; the pages are index, '):
        pdf.book(browser, address, tmp_path/'none.pdf', only=['nothing'])
    reader = PdfReader(tmp_path/'book.pdf')
    texts = [p.extract_text() for p in reader.pages]
    assert n == len(texts) > 12
    for number,text in enumerate(texts, 1):
        assert str(number) in re.findall(r'^\d+$', text, re.M)
        assert text.count('.html') and re.search(r'Embedding|Plots', text), 'title and address'
    chapters = [(o.title, reader.get_destination_page_number(o)) for o in reader.outline
                if not isinstance(o, list)]
    assert [title.split()[0] for title,_ in chapters] == [lesson[:2].lstrip('0'), 'Plots']
    first = chapters[1][1]
    assert chapters[0][1] == 0 and plain(chapters[1][0].split()[-1]) in texts[first][:300]
    n_answers = sum('code-summary: "Answer' in rules.source(c) for c in cells(lesson))
    assert ''.join(texts).count('Answer') == n_answers > 3
    assert 'the answers stay rome and got' in ' '.join(''.join(texts).split())    # one of them
    links = [[a.get_object() for a in p.get('/Annots', ())] for p in reader.pages]
    outer = [str(link.get('/A', {}).get('/URI', '')) for some in links for link in some]
    assert not [uri for uri in outer if uri.startswith(address)]
    inner = [link['/Dest'][0].get_object() for some in links[first:] for link in some
             if '/Dest' in link]
    assert reader.pages[0] in inner, 'the page of the library links its lesson'
