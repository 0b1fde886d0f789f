"""Each page of the site, opened once on a wide light screen and once on a dark phone, and asked
everything: nothing fails, moves, sticks out, is cut or hard to read, and axe finds nothing. The
short run opens one page of each kind"""
import re
from importlib.resources import files
import cells, pytest
from helpers import full, short
from helpers.book import pages
from helpers.looks import contrast, expect, patience, settled, watched

of_each_kind = ['index', '03_attention', 'checkpoints/families/registry', 'kernels/index', 'play',
                'api', 'api/MultiHeadAttention']
every = [*pages, *(p for p in of_each_kind if p not in pages), 'genindex', 'search']

# page -> the height of its first view on a wide screen, a narrow one and a phone, `#| frame: ...`
frames = {cells.name_of(p): [*map(int, m[1].split(','))] for p in cells.notebooks()
          for c in cells.load(p)
          if (m := re.search(r'^#\| frame: ([\d, ]+)$', cells.source(c), re.M))}

# what is wrong on a page; each gives [] where nothing is
asked = dict(
    a_formula_is_not_set="[...document.querySelectorAll('mjx-merror')].map(e => e.outerHTML)",
    a_picture_is_missing="""[...document.images].filter(
        i => !(i.complete && i.naturalWidth > 0 && (i.alt || i.closest('a'))))
        .map(i => i.outerHTML.slice(0, 200))""",
    the_page_is_too_wide="""document.documentElement.scrollWidth > innerWidth
        ? [document.documentElement.scrollWidth] : []""",
    something_sticks_out="""[...document.querySelectorAll(
        'article :is(img, svg, table, p, li, h1, h2, h3)')]
        .filter(e => e.getBoundingClientRect().right > innerWidth + 1
            && !e.closest('.table-wrapper, .pst-scrollable-table-container, .output')
            && getComputedStyle(e.parentElement).overflowX !== 'auto'
            && !e.closest('mjx-container')).map(e => e.outerHTML.slice(0, 80))""",
    what_is_wide_does_not_scroll="""[...document.querySelectorAll(
        '.bd-article :is(pre, .pst-scrollable-table-container)')].filter(
        e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth
            && !['auto', 'scroll'].includes(getComputedStyle(e).overflowX))
        .map(e => e.outerHTML.slice(0, 80))""",
    a_signature_is_cut="""[...document.querySelectorAll('article :is(dt, td)')].filter(
        e => e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML.slice(0, 80))""")
on_a_phone = dict(
    letters_of_a_figure_are_small="""[...document.querySelectorAll('figure img:not([data-still])')]
        .map(e => e.getBoundingClientRect().width / e.naturalWidth).filter(s => s*12 < 7.4)""",
    a_figure_or_formula_is_cut="""[...document.querySelectorAll(
        'figure, .cell_output:has(figure), mjx-container[display="true"]')].filter(
        e => e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML.slice(0, 200))""",
    a_formula_is_small="""[...document.querySelectorAll('mjx-container[display="true"]')].map(
        e => parseFloat(getComputedStyle(e).fontSize)).filter(size => size < 12)""",
    a_caption_is_indented="""[...document.querySelectorAll('figcaption')].map(e =>
        e.getBoundingClientRect().left + parseFloat(getComputedStyle(e).paddingLeft))
        .filter(x => Math.abs(x - 16) >= 1)""",
    code_or_an_output_does_not_wrap="""[...document.querySelectorAll('.highlight > pre')].filter(
        e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1
            && !e.closest('.columns')).map(e => e.innerText.slice(0, 80))""",
    a_broken_line_goes_on_at_the_left="""[...document.querySelectorAll('.line')].filter(e => {
        const range = document.createRange(), {left} = e.getBoundingClientRect()
        range.selectNodeContents(e)
        const [first, ...rest] = range.getClientRects()
        return rest.some(r => r.top > first.bottom && r.left < left + 12)
    }).map(e => e.innerText)""",
    a_comment_is_torn_from_its_code="""[...document.querySelectorAll('.gap')].filter(
        e => e.getBoundingClientRect().width > 20).map(e => e.parentNode.innerText.slice(0, 80))""")

violations = """async () => (await axe.run(document, {resultTypes: ['violations'], preload: false,
    rules: {'label-content-name-mismatch': {enabled: true}}})).violations.map(
    v => [v.id, ...v.nodes.slice(0, 3).map(n => [n.target.flat(9).join(' '), n.html])])"""
shifts = """window.moved = []
new PerformanceObserver(list => window.moved.push(...list.getEntries().map(e =>
    [e.value, ...e.sources.map(s => s.node?.className ?? s.node?.nodeName)])))
    .observe({type: 'layout-shift', buffered: true})"""

no_fading = """const sheet = new CSSStyleSheet()
sheet.replaceSync('*, ::before, ::after { transition: none !important }')
document.adoptedStyleSheets.push(sheet)"""

def open_tab(browser, address, **options):
    "A page in which axe can look into every frame, and what it says"
    context = browser.new_context(bypass_csp=True, reduced_motion='reduce', **options)
    context.add_init_script((files('axe_playwright_python')/'axe.min.js').read_text('utf-8'))
    for script in (shifts, no_fading): context.add_init_script(script)
    context.set_default_timeout(patience)
    problems = []
    return watched(context.new_page(), problems, (address, 'data:', 'blob:')), problems

@pytest.fixture(scope='module')
def tab(browser, address):
    page,problems = open_tab(browser, address)
    yield page, problems
    page.context.close()

def nothing_is_wrong(page, questions):
    found = page.evaluate('({' + ', '.join(f'{n}: {q}' for n,q in questions.items()) + '})')
    assert not any(found.values()), {n: wrong for n,wrong in found.items() if wrong}

def nothing_moved(page):
    moved = page.evaluate('window.moved')
    assert sum(m[0] for m in moved) <= .05, moved

def view_has_height(page, said):
    "But for other letters on another machine"
    view = page.locator('.text_html iframe').first
    view.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('.text_html iframe').style.height")
    settled(page)
    now = view.evaluate('e => e.offsetHeight')
    assert abs(now - said) < .1*now, f'frame: {said} is now {now}'
    page.evaluate('scrollTo(0, 0)')

@pytest.mark.parametrize('name', short(of_each_kind, every))
def test_a_page_in_the_browser(tab, address, name):
    page,problems = tab
    views = name in frames
    for width,scheme,height in ((1400, 'light', 0), (390, 'dark', 1)):
        page.set_viewport_size(dict(width=width, height=900))
        page.emulate_media(color_scheme=scheme)
        page.goto('about:blank')
        problems.clear()                # of the page before, which was left early
        page.goto(f'{address}/{name}.html')
        settled(page)
        if views: nothing_moved(page)
        assert page.evaluate('document.documentElement.dataset.theme') == scheme
        nothing_is_wrong(page, asked | (on_a_phone if width == 390 else {}))
        paper = page.evaluate('getComputedStyle(document.body).backgroundColor')
        assert (contrast(paper, '#ffffff') > 10) == (scheme == 'dark')
        assert page.evaluate(violations) == [], (width, scheme)
        if views: view_has_height(page, frames[name][height])
        elif page.locator('.text_html iframe').count():
            top = page.locator('.text_html iframe').first.bounding_box()['y']
            assert top > 900, 'a view on the first screen says its height: #| frame: 400, 600, 700'
    assert not problems, problems

@full
@pytest.mark.parametrize('name', frames)
def test_a_view_has_its_height_where_it_is_touched(browser, address, name):
    page,_ = open_tab(browser, address, viewport=dict(width=390, height=900), has_touch=True)
    page.goto(f'{address}/{name}.html')
    settled(page)
    nothing_moved(page)
    view_has_height(page, frames[name][2])
    page.context.close()

def test_axe_finds_nothing_while_one_searches(tab, address):
    page,_ = tab
    page.goto(f'{address}/glossary.html')
    page.keyboard.press('Control+k')
    page.keyboard.type('causal mask')
    expect(page.locator('#pst-search-dialog ul.search li')).to_have_count(12)
    settled(page)
    assert page.evaluate(violations) == []

# a frame in it has no heading of the first rank, as the page has one
in_the_box = violations.replace('document,', '{include: [".live"]},').replace(
    'rules: {', "rules: {'page-has-heading-one': {enabled: false}, ")

@full
def test_axe_finds_nothing_in_the_readers_own_sentence(tab, address):
    page,_ = tab
    page.goto(f'{address}/figures/browser_model.html')
    box = page.locator('.live')
    box.locator('textarea').first.fill('The cat sat down.')
    box.get_by_role('button', name='Show attention').click()
    expect(box.locator('.live-status')).to_contain_text('tokens, read in')
    box.get_by_role('button', name='hide a word').click()
    box.get_by_role('button', name='sat', exact=True).click()
    expect(box.locator('.live-result')).to_contain_text('Without “sat”')
    box.get_by_role('button', name='remove head').click()
    expect(box.locator('.live-result')).to_contain_text('Switched off: head')
    box.locator('summary').first.click()
    for view in box.locator('select option').all_inner_texts():
        box.locator('select').select_option(label=view)
        for scheme in ('light','dark'):
            page.emulate_media(color_scheme=scheme)
            settled(page)
            assert page.evaluate(in_the_box) == [], (view, scheme)
