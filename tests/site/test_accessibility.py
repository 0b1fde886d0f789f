"""axe finds nothing on a page, its views included, light on a wide screen and dark on a phone,
nor in the search; pages of every kind, and with WHOLE=1 all of them, and each screen in both"""
import os, re
from importlib.resources import files
import pytest
from helpers.book import pages
from helpers.looks import expect

some = ['index', '03_attention', 'views/explorables', 'views/browser_model', 'kernels/index',
        'checkpoints/families/registry', 'views/flash_tiles', 'glossary', 'play', 'library', 'api',
        'speed']
whole = bool(os.environ.get('WHOLE'))
screens = [(1400,'light'), (390,'dark'), (1400,'dark'), (390,'light')][:4 if whole else 2]
found = """async () => (await axe.run(document, {resultTypes: ['violations'],
    rules: {'label-content-name-mismatch': {enabled: true}}})).violations.map(
    v => [v.id, ...v.nodes.slice(0, 3).map(n => [n.target.flat(9).join(' '), n.html])])"""

# a frame in it has no heading of the first rank, as the page has one
in_the_box = found.replace('document,', '{include: [".live"]},').replace(
    'rules: {', "rules: {'page-has-heading-one': {enabled: false}, ")

@pytest.fixture(scope='module')
def asked(browser):
    "A page in which axe can look into every frame"
    context = browser.new_context(viewport=dict(width=1400, height=900), bypass_csp=True)
    context.add_init_script((files('axe_playwright_python')/'axe.min.js').read_text('utf-8'))
    yield context.new_page()
    context.close()

@pytest.mark.parametrize('name', pages if whole else some)
def test_axe_finds_nothing(asked, address, name):
    for width,scheme in screens:
        asked.set_viewport_size(dict(width=width, height=900))
        asked.emulate_media(color_scheme=scheme)
        asked.goto(f'{address}/{name}.html')
        asked.evaluate('window.MathJax?.startup?.promise.then(() => null)')
        asked.wait_for_timeout(500)
        assert asked.evaluate(found) == [], (width, scheme)

def test_axe_finds_nothing_while_one_searches(asked, address):
    for width,scheme in screens:
        asked.emulate_media(color_scheme=scheme)
        asked.set_viewport_size(dict(width=width, height=900))
        asked.goto(f'{address}/glossary.html')
        asked.keyboard.press('Control+k')
        asked.keyboard.type('causal mask')
        expect(asked.locator('#pst-search-dialog ul.search li')).to_have_count(12)
        asked.wait_for_timeout(300)
        assert asked.evaluate(found) == [], (width, scheme)

def test_ids_are_unique_and_ways_have_names(site):
    for name in pages:
        text = re.sub(r'srcdoc="[^"]*"', '', (site/f'{name}.html').read_text(encoding='utf-8'))
        ids = re.findall(r'<[^>]*\sid="([^"]*)"', text)
        assert len(ids) == len(set(ids)), (name, [i for i in set(ids) if ids.count(i) > 1])
        assert not re.findall(r'<nav(?![^>]*aria-label)[^>]*>', text), name

def test_axe_finds_nothing_serious_in_the_readers_own_sentence(asked, address):
    asked.goto(f'{address}/views/browser_model.html')
    box = asked.locator('.live')
    box.locator('textarea').first.fill('The cat sat down.')
    box.get_by_role('button', name='Show attention').click()
    expect(box.locator('.live-status')).to_contain_text('tokens, read in', timeout=60_000)
    box.get_by_role('button', name='hide a word').click()
    box.get_by_role('button', name='sat', exact=True).click()
    expect(box.locator('.live-result')).to_contain_text('Without “sat” the')
    box.get_by_role('button', name='remove head').click()
    expect(box.locator('.live-result')).to_contain_text('Switched off: head')
    asked.add_style_tag(content='* { transition: none !important }')
    box.locator('summary').first.click()
    views = box.locator('select option').all_inner_texts()
    assert len(views) > 3
    problems = {}
    for view in views if whole else views[::3]:
        box.locator('select').select_option(label=view)
        asked.wait_for_timeout(800)
        for scheme in ('light','dark'):
            asked.emulate_media(color_scheme=scheme)
            asked.wait_for_timeout(400)
            problems[view, scheme] = asked.evaluate(in_the_box)
    assert not any(problems.values()), problems

def test_axe_would_find_something(asked, address):
    asked.emulate_media(color_scheme='light')
    asked.goto(f'{address}/teach.html')
    asked.evaluate("document.querySelector('.bd-article h1').style.color = 'gray'")
    asked.evaluate("document.querySelector('.bd-article h1').style.background = 'darkgray'")
    assert [name for name,*_ in asked.evaluate(found)] == ['color-contrast']
