"The front page, the first pages of Learn, Play and Library, and the guides"
import configparser, re
import pytest, quarto, rules
from helpers import root
from helpers.book import (article, book, cells, code_cells, lessons, loaded, markdown, plain,
                          promise)
from helpers.looks import expect

guides = [p for p in book if rules.kind(p) == 'guide']

@pytest.fixture(scope='module')
def parts(site):
    "The articles of the first pages"
    return {p: article((site/f'{p}.html').read_text(encoding='utf-8'))
            for p in ('index', 'learn', 'play', 'library')}

def grid(text, kind):
    "The cards of a grid: (where the title leads, its text, the picture or None)"
    start = re.search(rf'<div class="[^"]*page-cards {kind}[^"]*"', text).start()
    found = []
    for card in text[start:].split('sd-card ')[1:]:
        title = re.search(r'sd-card-title.*?<a [^>]*href="([^"]*)".*?</a>', card, re.S)
        picture = re.search(r'<img alt="([^"]*)"[^>]*src="([^"]*)"', card)
        found.append((title[1], plain(title[0]), picture and picture.groups()))
    return found

# ---- the front page

def test_the_front_page_says_what_the_book_is_and_counts_what_is_there(parts):
    from attention_nb import FAMILIES
    lead = promise('index')
    assert lead in plain(parts['index'].split('</p>')[0] + '</p>')
    assert all(f'{len(lessons)} lessons' in promise(name) for name in ('index', 'learn'))
    evidence = next(t for t in re.findall(r'<p>.*?</p>', parts['index']) if 'No sign-up' in t)
    words = dict(zip('twenty-four twenty-five twenty-six twenty-seven'.split(), range(24, 28)))
    said = re.search(r'More than ([\d,]+) checks .* weights of ([\w-]+) model', plain(evidence))
    assert words[said[2]] == len(FAMILIES)
    count = sum(rules.checks(rules.source(c)) for page in book for c in code_cells(page)
                if not rules.exported(c))
    assert .9*count < int(said[1].replace(',', '')) < count, count

def test_the_readme_has_the_lessons_the_commands_and_none_of_the_site():
    text = (root/'README.md').read_text(encoding='utf-8')
    for lesson in lessons: assert f'/{rules.alias(lesson)}.html)' in text
    for line in ('pip install "attention_nb[models,glove]"', 'make docs', 'make test'):
        assert re.search(rf'^{re.escape(line)}', text, re.M)
    assert 'nbs/guide' not in text and '/guide/quickstart.html' in text

@pytest.mark.parametrize('width,height', [(1400, 900), (390, 844)])
def test_the_doors_are_near_the_top_and_the_picture_is_as_wide_as_the_page(page, address, width,
                                                                            height):
    page.set_viewport_size(dict(width=width, height=height))
    page.emulate_media(color_scheme='dark')
    page.goto(f'{address}/index.html')
    expect(page.locator('.secondary-toggle:visible, .bd-sidebar-primary:visible')).to_have_count(0)
    picture = page.frame_locator('.text_html iframe').first
    expect(picture.get_by_role('button', name='change the sentence')).to_be_visible()
    wide = page.locator('.text_html iframe').first.evaluate('e => e.offsetWidth')
    assert wide > (1000 if width > 1000 else 340), f'the figure is {wide} pixels wide'
    doors = page.locator('.doors .sd-card')
    expect(doors).to_have_count(2)
    if width > 1000:
        for n in range(2):
            box = doors.nth(n).bounding_box()
            assert box['y'] + box['height'] <= height, box
    else: assert doors.first.bounding_box()['y'] < 1000
    assert page.locator('.lead').bounding_box()['y'] < 150
    style = page.locator('.page-cards img').first.evaluate('e => getComputedStyle(e).background')
    assert 'rgba(0, 0, 0, 0)' in style, style

def test_the_farthest_arcs_stay_within_the_picture(page, address):
    page.set_viewport_size(dict(width=1400, height=900))
    page.goto(f'{address}/index.html')
    frame = page.frame_locator('.text_html iframe').first
    for n in (0, -1):
        frame.locator('.words > *').nth(n).hover()
        expect(frame.locator('svg path').first).to_be_attached()
        above = frame.locator('svg').evaluate(
            '''e => Math.min(...[...e.querySelectorAll("path")].map(p =>
                p.getBoundingClientRect().top)) - e.getBoundingClientRect().top''')
        assert above >= 0, f'an arc ends {-above} pixels above the picture'

# ---- learn

def test_every_lesson_has_a_card_with_its_picture_and_its_minutes():
    found = quarto.myst('\n\n'.join(markdown('learn'))).split('{grid-item-card} ')[1:]
    assert [re.match(r'\[[^\]]+\]\((\w+)\.ipynb\)', card)[1] for card in found] == lessons
    for lesson,card in zip(lessons, (card.split('\n::::\n')[0] for card in found)):
        assert f':img-top: /_sphinx/_static/cards/{lesson[:2]}.svg\n' in card
        assert f'\n{rules.minutes(cells(lesson))} minutes\n' in card
        assert re.search(r'^:img-alt: \S.{20}', card, re.M)

def test_lessons_stand_in_their_parts_and_what_is_beside_them_at_the_end(parts, site):
    import conf
    found = re.split(r'<h2>(.*?)<a ', parts['learn'])
    shown = {plain(t): re.findall(r'sd-card-title.*?href="(\w+)\.html"', body, re.S)
             for t,body in zip(found[1::2], found[2::2])}
    last = [*shown][-1]
    assert {n: [int(rules.number(l)[0]) for l in some] for n,some in shown.items()} == {
        **{n: [i for i in r if i < len(lessons)] for n,r in conf.book_parts.items()}, last: []}
    row = found[-1]
    for page in ('glossary', 'teach', 'notes/index'): assert f'href="{page}.html"' in row
    assert 'href="03_attention.html"' in parts['learn'].split('<h2')[0]

def test_a_card_opens_its_lesson(page, address):
    page.goto(f'{address}/learn.html')
    cards = page.locator('.cards .sd-card')
    expect(cards).to_have_count(len(lessons))
    cards.nth(1).locator('img').click(force=True)               # the link of the title lies above
    expect(page).to_have_url(re.compile(rf'/{lessons[1]}\.html$'))

# ---- play

def kinds(page):
    return {out['data'][quarto.VIEW]['data']['kind'] for c in code_cells(page)
            for out in c.get('outputs', []) if quarto.VIEW in out.get('data', {})}

def test_each_figure_of_the_gallery_has_its_still_and_leads_into_a_lesson(parts):
    found = grid(parts['play'], 'stills')
    words = dict(zip('seventeen eighteen nineteen twenty'.split(), range(17, 21)))
    said = re.search(r'and (\w+) figures', promise('play'))[1]
    assert len(found) == words[said]
    for where,title,(alt,picture) in found:
        assert where.partition('.html')[0] in lessons, title
        assert picture.startswith('data:image/svg+xml;base64,') and len(alt) > 30, title
    shown = re.findall(r'^\| \[(\w+)\]', '\n'.join(markdown('play')), re.M)
    there = {k for p in loaded for k in kinds(p)}
    assert {*shown} == there - {'tokens', 'arcs'}, 'a kind of view is missing'
    link = 'href="figures/index.html"><span class="std std-doc">How the figures are made'
    assert link in parts['play']

def test_a_still_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="03_attention.ipynb has no output of a view 'dance'"):
        quarto.still('[dance](03_attention.ipynb)')
    with pytest.raises(ValueError, match='_static/cards/dance.svg'): quarto.drawn('dance')

# ---- library and guides

def test_the_library_leads_to_its_guides_and_rooms(parts):
    for page in [*guides, 'speed', 'api']: assert f'href="{page}.html"' in parts['library'], page
    for room in {rules.room(p) for p in book if rules.room(p)}:
        assert re.search(rf'<td>.*?href="{room}(/index)?\.html"', parts['library']), room
    assert guides == [f'guide/{n}' for n in (
        'install', 'quickstart', 'from_torch', 'load_model', 'generate', 'masks', 'own_attention',
        'recipes')]

def test_install_names_the_extras_that_there_are():
    ini = configparser.ConfigParser(delimiters=['='])
    ini.read(root/'settings.ini', encoding='utf-8')
    names = (re.fullmatch(r'(\w+)_requirements', n) for n in ini['DEFAULT'])
    extras = {m[1] for m in names if m}
    table = [l for t in markdown('guide/install') for l in t.splitlines() if l.startswith('|')]
    assert extras == {*re.findall(r'`(\w+)`', ' '.join(l.split('|')[1] for l in table))}
