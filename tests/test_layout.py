"The look of the built site on a phone, a screen, with a keyboard and on paper"
import html, io, re
import nbdev_sphinx, nbformat, pytest, rules
from conftest import root

chapters = sorted(p.stem for p in (root/'nbs').glob('*.ipynb') if rules.kind(p.stem))

@pytest.fixture(scope='module')
def tab(browser):
    "A function that opens a page: one tab for each width and scheme, with its mathematics set"
    contexts = {}
    def open_page(url, width=1400, scheme='light'):
        if (width, scheme) not in contexts: contexts[width,scheme] = browser.new_context(viewport=dict(width=width, height=900), color_scheme=scheme).new_page()
        page = contexts[width,scheme]
        page.emulate_media(media='screen', color_scheme=scheme)
        page.goto(url)
        page.evaluate('window.MathJax?.startup?.promise.then(() => null)')
        return page
    yield open_page
    for page in contexts.values(): page.context.close()

def contrast(a, b):
    "That of WCAG 2, from 1 to 21, of two colours as a browser writes them"
    def luminance(c): return sum(w*(n/12.92 if n <= .04045 else ((n+.055)/1.055)**2.4) for w,n in zip((.2126, .7152, .0722), (int(n)/255 for n in re.findall(r'\d+', c)[:3])))
    low,high = sorted((luminance(a), luminance(b)))
    return (high+.05)/(low+.05)

# ---- phone

SCROLLERS = "[...document.querySelectorAll('.bd-article :is(pre, figure, mjx-container[display=true], .pst-scrollable-table-container)')].filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth)"

def test_no_page_is_wider_than_a_phone(tab, address, site):
    "The pages of the book are among those of test_site.py; these are the others"
    others = [p.name for p in site.glob('*.html') if rules.kind(p.stem) is None and p.stem not in ('index', 'glossary') and 'location.replace' not in p.read_text(encoding='utf-8')]
    assert {'genindex.html', 'search.html'} <= set(others)
    for name in others: assert tab(f'{address}/{name}', 390).evaluate('document.documentElement.scrollWidth') <= 390, name

@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_what_is_too_wide_scrolls_in_its_box_under_a_shade(tab, address, scheme):
    page,kinds = tab(f'{address}/03_attention.html', 390, scheme),set()
    for name in ('05_multihead', '10a_families'):
        found = page.evaluate(SCROLLERS + """.map(e => { const s = getComputedStyle(e);
            return [e.localName, s.overflowX, s.backgroundAttachment, getComputedStyle(e).backgroundImage.split('linear-gradient').length-1, getComputedStyle(document.documentElement).getPropertyValue('--edge')] })""")
        for kind,overflow,attachment,shades,edge in found:
            assert overflow == 'auto' and shades == 4 and attachment.startswith('local, local, scroll, scroll'), kind
            assert ('255' in edge) == (scheme == 'dark'), 'a dark edge cannot be seen on a dark page'
        kinds |= {kind for kind,*_ in found}
        page = tab(f'{address}/{name}.html', 390, scheme)
    kinds |= set(page.evaluate(SCROLLERS + '.map(e => e.localName)'))
    assert kinds == {'pre', 'figure', 'mjx-container', 'div'}, 'each kind was seen'

def test_the_shade_lies_over_the_cut_edge_only(tab, address):
    "The last columns of pixels of a box that can scroll on are darker than those of its middle, and no longer so at its end"
    from PIL import Image
    page = tab(f'{address}/03_attention.html', 390)
    box = page.locator('.bd-article .cell_input pre').filter(has_text='def tell').first
    def edge():
        picture = Image.open(io.BytesIO(box.screenshot())).convert('L')
        return picture.getpixel((picture.width-2, 6)), picture.getpixel((picture.width//2, 6)), picture.getpixel((2, 6))
    right,middle,left = edge()
    assert right < middle - 15 and abs(left - middle) < 6
    box.evaluate('e => { e.scrollLeft = 9999 }')
    right,middle,left = edge()
    assert left < middle - 15 and abs(right - middle) < 6

def test_the_first_column_of_a_table_stays(tab, address):
    page = tab(f'{address}/10a_families.html', 390)
    table = page.locator('.pst-scrollable-table-container').first
    first = table.locator('tbody tr').nth(2).locator('td')
    before = [first.nth(i).bounding_box()['x'] for i in (0, 1)]
    table.evaluate('e => { e.scrollLeft = 80 }')
    after = [first.nth(i).bounding_box()['x'] for i in (0, 1)]
    assert abs(after[0] - before[0]) < 2 and abs(after[1] - before[1] + 80) < 2
    assert first.nth(0).evaluate('e => getComputedStyle(e).backgroundColor') == page.evaluate('getComputedStyle(document.body).backgroundColor'), 'what scrolls goes under it'
    assert first.nth(0).bounding_box()['width'] < 170

# ---- screen

def test_without_its_sidebar_a_page_begins_at_the_first_letter(tab, address):
    page = tab(f'{address}/02b_plots.html', 1300)
    page.add_style_tag(content='* { transition: none !important }')
    page.locator('.primary-toggle:visible').first.click()
    page.wait_for_function("getComputedStyle(document.querySelector('#pst-primary-sidebar')).visibility == 'hidden'")
    for width in (1000, 1199, 1200, 1300, 1407, 1500):
        page.set_viewport_size(dict(width=width, height=900))
        assert 8 <= page.locator('article h1').bounding_box()['x'] <= 120, width
        assert page.locator('.primary-toggle:visible').first.bounding_box()['x'] >= 8, width
    page.set_viewport_size(dict(width=1300, height=900))

@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_comments_are_quieter_than_code_and_legible(tab, address, scheme):
    page = tab(f'{address}/03_attention.html', 1400, scheme)
    comment,name,under = page.evaluate("['.highlight .c1', '.highlight .n', '.highlight pre'].map((s, i) => getComputedStyle(document.querySelector('.cell_input '+s))[i < 2 ? 'color' : 'backgroundColor'])")
    assert 4.5 <= contrast(comment, under) < .6*contrast(name, under)

def test_a_section_weighs_more_than_its_parts(tab, address):
    page = tab(f'{address}/03_attention.html')
    weights = [page.evaluate(f"(s => [parseFloat(s.fontSize), Number(s.fontWeight)])(getComputedStyle(document.querySelector('article h{n}')))") for n in (1, 2, 3)]
    assert weights[0][0] > weights[1][0] > weights[2][0] and weights[1][1] > weights[2][1]

@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_a_cell_and_its_output_are_one_block(tab, address, scheme):
    page = tab(f'{address}/03_attention.html', 1400, scheme)
    pairs = page.evaluate("""[...document.querySelectorAll('.cell > .cell_input + .cell_output')].map(o => { const i = o.previousElementSibling, a = i.getBoundingClientRect(), b = o.getBoundingClientRect();
        return [b.top-a.bottom, b.left-a.left, b.right-a.right, getComputedStyle(i).borderLeftColor == getComputedStyle(o).borderLeftColor] })""")
    assert len(pairs) > 10 and all(max(map(abs, gaps)) < 1 and same for *gaps,same in pairs), pairs

# ---- what the pages say, read as files

@pytest.mark.parametrize('chapter', chapters)
def test_pictures_and_views_are_numbered_and_have_captions(site, chapter):
    text = (site/f'{chapter}.html').read_text(encoding='utf-8')
    article = re.sub(r'srcdoc="[^"]*"', '', text[text.index('<article'):text.index('</article>')])
    outside = re.sub(r'<figure.*?</figure>', '', article, flags=re.S)
    assert not re.findall(r'<iframe[^>]*title="[^"]*"|<img[^>]*alt="[^"]*"', outside), 'a picture or view without a caption'
    numbers = re.findall(r'<figure.*?caption-number">Figure (\S+?)\s*<', article, re.S)
    assert numbers == [f'{rules.number(chapter)[0]}.{n}' for n in range(1, article.count('<figure')+1)]

def test_the_sidebar_numbers_chapters_and_workshops(site):
    text = (site/'index.html').read_text(encoding='utf-8')
    nav = text[text.index('class="bd-links'):]
    labels = dict(re.findall(r'<a class="reference internal" href="(\w+)\.html">(\S+)\u2002', nav[:nav.index('</nav>')]))
    assert labels == {c: rules.number(c)[0] for c in chapters}

@pytest.mark.parametrize('chapter', chapters)
def test_an_entry_is_public_and_stands_above_its_code(site, chapter):
    text = (site/f'{chapter}.html').read_text(encoding='utf-8')
    parts = re.split(r'(<h[1-6]>.*?</h[1-6]>)', text[text.index('<article'):], flags=re.S)
    for heading,body in zip(parts[1::2], parts[2::2]):
        if 'api-source' not in body: continue
        name = html.unescape(re.sub('<[^>]*>', '', heading)).strip().rstrip('#')
        assert not any(part.startswith('_') for part in name.split('.')), name
        code = re.search(r'<pre>(.*?)</pre>', body, re.S)
        assert code and re.search(rf'\b(def|class) {name.split(".")[-1]}\b', html.unescape(re.sub('<[^>]*>', '', code[1]))), f'{name} is not what the first code below it defines'

def test_a_cell_of_several_entries_comes_in_parts():
    def cell(source, **metadata): return nbformat.v4.new_code_cell(source, metadata=metadata, outputs=[nbformat.v4.new_output('stream', text='out')])
    both = cell('#| exports\nn = 1\ndef f(): return n\n\n@cache\ndef g(): pass\ndef _h(): pass')
    entries = [cell('show_doc(g)', entry=True), cell('show_doc(f)', entry=True)]
    found = list(nbdev_sphinx.entries_first([both, *entries]))
    assert [c.source for c,_ in found] == ['show_doc(f)', '#| exports\nn = 1\ndef f(): return n', 'show_doc(g)', '@cache\ndef g(): pass\ndef _h(): pass']
    assert [follows for _,follows in found] == [True, False, True, False] and [len(c.outputs) for c,_ in found[1::2]] == [0, 1]
    shut = cell('#| code-fold: true\n' + both.source)
    assert [(c.source, follows) for c,follows in nbdev_sphinx.entries_first([shut, *entries])] == [('show_doc(f)', False), ('show_doc(g)', False), (shut.source, False)]
    methods = [cell('show_doc(C)', entry=True), cell('show_doc(C.m, title_level=4)', entry=True)][::-1]
    assert [c.source for c,_ in nbdev_sphinx.entries_first([cell('class C: pass'), *methods])] == ['show_doc(C)', 'show_doc(C.m, title_level=4)', 'class C: pass']

def test_hints_are_read_as_markdown_and_headers_of_tables_have_a_scope(site):
    assert nbdev_sphinx.myst('a\n\n<details><summary>Hint</summary>Count *all*.</details>') == 'a\n\n<details class="hint"><summary>Hint</summary>\n\nCount *all*.\n\n</details>'
    text = (site/'05_multihead.html').read_text(encoding='utf-8')
    hints = re.findall(r'<details class="hint">.*?</details>', text, re.S)
    assert len(hints) > 2 and '<em>' in ''.join(hints) and not any('*' in re.sub('<[^>]*>', '', h) for h in hints)
    table = (site/'10a_families.html').read_text(encoding='utf-8')
    assert table.count('<th') > 5 and table.count('<th scope="col"') == len(re.findall(r'<th\b', table))

# ---- keyboard

def test_the_keyboard_skips_to_the_text_and_shows_where_it_is(tab, address):
    page = tab(f'{address}/04_mask.html')
    page.keyboard.press('Tab')
    skip = page.locator('#pst-skip-link a')
    assert skip.evaluate('e => e == document.activeElement')
    page.wait_for_function("document.querySelector('#pst-skip-link').getBoundingClientRect().top >= 0")
    for _ in range(60):
        page.keyboard.press('Tab')
        seen = page.evaluate("(e => { const s = getComputedStyle(e); return [s.outlineStyle != 'none' && parseFloat(s.outlineWidth) >= 2 || s.boxShadow != 'none', e.outerHTML.slice(0, 120)] })(document.activeElement)")
        assert seen[0], seen[1]
    skip.focus()
    page.keyboard.press('Enter')
    page.keyboard.press('Tab')
    assert page.evaluate("document.activeElement.closest('main') != null && document.activeElement.closest('.bd-sidebar-primary') == null")

# ---- paper

@pytest.fixture
def paper(tab, address):
    "A function that opens a page as it is printed on A4, from a dark screen"
    def open_page(name):
        page = tab(f'{address}/{name}.html', 680, 'dark')
        page.evaluate("void dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media='print')
        return page
    return open_page

@pytest.mark.parametrize('chapter', ['03_attention', '05_multihead', '06_seeing', '10a_families'])
def test_nothing_is_cut_on_paper(paper, chapter):
    page = paper(chapter)
    assert page.evaluate('document.documentElement.dataset.theme') == 'light'
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    page.evaluate("document.querySelectorAll('.cell_input pre, .cell_output pre').forEach(p => p.append(' ' + 'long_line '.repeat(30) + 'x'.repeat(300)))")
    cut = page.evaluate("""[...document.querySelectorAll('.bd-article :is(pre, table, figure, img, mjx-container)')].filter(e => e.getBoundingClientRect().width &&
        (e.getBoundingClientRect().right > innerWidth + 1 || !['figure', 'mjx-container'].includes(e.localName) && e.scrollWidth > e.clientWidth + 1 && e.clientWidth)).map(e => e.outerHTML.slice(0, 100))""")
    assert not cut, cut
    shown = "[...document.querySelectorAll('.bd-sidebar-primary, .bd-sidebar-secondary, .bd-header-article, .prev-next-footer, .copybtn, .headerlink, iframe, .bd-footer')].filter(e => e.getClientRects().length).map(e => e.className)"
    assert page.evaluate(shown) == []
    assert page.locator('article h1').is_visible()
    assert all(page.evaluate("[...document.querySelectorAll('img[data-still]')].map(e => e.getClientRects().length && getComputedStyle(e).display == 'block')"))
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate('document.documentElement.dataset.theme') == 'dark'

def test_answers_are_printed_if_asked_for(paper):
    page = paper('05_multihead')
    folds = page.locator('details:is(.answer, .hint)')
    assert folds.count() > 5 and not any(folds.nth(i).is_visible() for i in range(folds.count()))
    assert page.locator('details.hide:not(.answer)').first.is_visible(), 'a proof shows its claim'
    page.evaluate("""window.print = () => { window.opened = [...document.querySelectorAll('details:is(.answer, .hint)')].map(d => d.open && d.getClientRects().length > 0); dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint')) }""")
    page.emulate_media(media='screen')
    button = page.locator('.dropdown-menu button', has_text='with answers')
    assert button.count() == 1
    button.evaluate('e => e.click()')
    assert page.evaluate('opened.length > 5 && opened.every(Boolean)')
    assert page.locator('details:is(.answer, .hint)[open]').count() == 0, 'and closed again'

def test_a_pdf_has_numbers_an_outline_answers_and_links_that_stay_inside(browser, address, tmp_path):
    import pdf
    from pypdf import PdfReader
    n = pdf.book(browser, address, tmp_path/'book.pdf', answers=True, only=['02_embedding', '02b_plots'])
    reader = PdfReader(tmp_path/'book.pdf')
    assert n == len(reader.pages) > 12
    for number,page in enumerate(reader.pages, 1): assert str(number) in re.findall(r'^\d+$', page.extract_text(), re.M), f'page {number} does not say so'
    chapters = [(o.title, reader.get_destination_page_number(o)) for o in reader.outline if not isinstance(o, list)]
    assert [title for title,_ in chapters] == ['2 Embedding', '2b Plots'] and chapters[0][1] == 0
    assert 'Plots' in reader.pages[chapters[1][1]].extract_text().split('\n')[0:3]
    assert ''.join(p.extract_text() for p in reader.pages).count('Answer ') > 3
    links = [link.get_object() for page in reader.pages for link in page.get('/Annots', ())]
    assert not [link['/A']['/URI'] for link in links if str(link.get('/A', {}).get('/URI', '')).startswith(address)]
    to_lesson = [link['/Dest'][0].get_object() for page in reader.pages[chapters[1][1]:] for link in (a.get_object() for a in page.get('/Annots', ())) if '/Dest' in link]
    assert reader.pages[0] in to_lesson, 'the workshop links its lesson'
