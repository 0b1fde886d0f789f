"""axe finds nothing serious on a page, its views included, in light and dark; pages of every kind,
and all of them with WHOLE=1"""
import os
from importlib.resources import files
import pytest
from helpers.book import pages
from helpers.looks import expect

some = ['index', '03_attention', 'views/explorables', 'views/browser_model', 'kernels/index',
        'checkpoints/families/registry', 'views/flash_tiles', 'glossary']
checked = pages if os.environ.get('WHOLE') else some
found = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations
    .filter(v => ['serious', 'critical'].includes(v.impact))
    .map(v => [v.id, ...v.nodes.slice(0, 3).map(n => [n.target.flat(9).join(' '), n.html])])"""

in_the_box = found.replace('document,', '{include: [".live"]},')

@pytest.fixture(scope='module')
def asked(browser):
    "A page in which axe can look into every frame"
    context = browser.new_context(viewport=dict(width=1400, height=900), bypass_csp=True)
    context.add_init_script((files('axe_playwright_python')/'axe.min.js').read_text('utf-8'))
    yield context.new_page()
    context.close()

@pytest.mark.parametrize('name', checked)
def test_axe_finds_nothing_serious(asked, address, name):
    asked.goto(f'{address}/{name}.html')
    for scheme in ('light', 'dark'):
        asked.emulate_media(color_scheme=scheme)
        asked.evaluate('window.MathJax?.startup?.promise.then(() => null)')
        asked.wait_for_timeout(500)
        assert asked.evaluate(found) == [], scheme

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
    box.locator('summary').first.click()
    views = box.locator('select option').all_inner_texts()
    assert len(views) > 3
    problems = {}
    for view in views if checked == pages else views[::3]:
        box.locator('select').select_option(label=view)
        asked.wait_for_timeout(800)
        for scheme in ('light', 'dark'):
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
