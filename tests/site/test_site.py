"The built site, read as files and in a real browser that can reach no other host"
import functools, re, zlib
from urllib.parse import unquote, urldefrag, urljoin
import folds, package, pytest, rules
from helpers import root
from helpers.book import (anchor, article, book, cells, chapters, code_cells, entries, following,
                          labels, lessons, markdown, module_of, pages, plain, proofs,
                          public_names, sidebar, top_bar)
from helpers.looks import expect

@pytest.fixture(scope='session')
def texts(site): return {p: (site/f'{p}.html').read_text(encoding='utf-8') for p in pages}

def test_links_inside_the_site_lead_somewhere(site, parsed):
    broken = []
    for page,links in parsed.items():
        for href in links.links:
            url,name = urldefrag(urljoin(f'http://site/{page}', href))
            if not url.startswith('http://site/'): continue
            target = unquote(url.removeprefix('http://site/')) or page
            known = parsed[target].ids if target in parsed else ()
            if not (site/target).exists(): broken.append((page, href))
            elif name and target in parsed and unquote(name) not in known:
                broken.append((page, href))
    assert not broken

def test_no_page_loads_from_elsewhere(parsed):
    loaded = [(page, url) for page,links in parsed.items() for url in links.loaded]
    assert len(loaded) > 100 and not [x for x in loaded if re.match(r'(https?:)?//', x[1])]

def test_the_inventory_knows_every_public_name(site):
    data = (site/'objects.inv').read_bytes()
    body = zlib.decompress(data.split(b'\n', 4)[4]).decode()
    names = package.homes(root/'attention_nb')
    assert len(names) > 190
    for name,module in names.items():
        found = re.search(rf'^attention_nb\.{module}\.{name} py:(function|class|data) \d+ '
                          r'(api/\S+)\.html#', body, re.M)
        assert found and found[2] == package.page(root/'attention_nb', name), name

def test_a_page_has_what_a_reader_expects(site, texts):
    for page,text in texts.items():
        assert 'class="lead"' in text and text.split('<article')[1].count('<h1') == 1, page
        repository = 'github.com/attention-nb/attention_nb'
        assert f'colab.research.google.com/{repository.replace(".com", "")}' in text
        assert f'/blob/main/nbs/{page}.ipynb' in text and repository in text
        assert f'_sources/{page}.ipynb' in text and (site/'_sources'/f'{page}.ipynb').exists()
        fold = re.search(r'<summary>Imports</summary>.*?</details>', text, re.S)
        assert bool(fold) == (page in chapters) and '%pip' not in text, page
        squashed = re.sub(r'<[^>]*>|\W', '', text.replace(fold[0] if fold else '', ''))
        for c in code_cells(page):
            code = re.sub(r'\W', '', '\n'.join(rules.code_lines(c)))
            assert not rules.directive(c, 'hide') or code not in squashed, ('hidden', page, code)
        assert '#| ' not in re.sub(r'<[^>]*>', '', text), 'a directive is on the page'
        prose = re.sub(r'<(code|pre|span)[^>]*>.*?</\1>', '', text, flags=re.S)
        assert '(site)' not in text and not re.search(r'@(eq|fig|sec|tbl)-', prose), page

def test_a_page_answers_to_its_names_and_has_entries_and_a_plain_text(site, texts):
    for page in chapters:
        names,module,text = entries(page),module_of(page),texts[page]
        for name in names:                       # the place of its code, and a link to the API
            assert f'<a id="attention_nb.{module}.{name}"></a>' in text
            there = rules.link_to(package.page(root/'attention_nb', name), page)
            assert f'href="{there}.html#attention_nb.{module}.{name}"' in text
        if page in lessons:
            other = (site/f'{rules.alias(page)}.html').read_text()
            assert f'{page}.html' in other and 'location.hash' in other
        body = (site/f'{rules.alias(page)}.html.md').read_text()
        assert body == (site/f'{page}.html.md').read_text() and body.startswith('# ')
        assert all(name in body for name in names), page
        assert not re.search(r'^#\| (?!explain)|^✓', body, re.M), 'it has code as it is'

def test_folds_are_labelled_and_proofs_gathered_with_their_claims(texts):
    for page,text in texts.items():
        shown = [c for c in code_cells(page) if not rules.directive(c, 'hide')]
        options = [(rules.split_options(rules.source(c))[0], rules.source(c)) for c in shown]
        wanted = [plain(folds.text(rules.fold_label(o, code))) for o,code in options
                  if rules.folded(o)]
        answers = [w for w in wanted if re.match('(✓ )?Answer', w)]
        claims = [w for w in wanted if w[0] == '✓' and w not in answers]
        begins = ['Imports'] if page in chapters else []
        assert labels(text) == begins + ['Answer' if w in answers else w for w in wanted
                                         if w not in claims]
        found = proofs(text)
        assert sorted(c for _,some in found for c in some) == sorted(
            c[2:].rpartition(' · ')[0] for c in claims), page
        assert sum(n for n,_ in found) == sum(int(c.split()[-2]) for c in claims)
        inside = [plain(c) for c in re.findall(r'<p class="claim">(.*?)</p>', text)]
        assert inside == [c for _,some in found for c in some]
        if page not in lessons: continue
        for part in re.split(r'<h[1-6]\b', article(text)):             # one line a section
            assert len(proofs(part)) <= 1, (page, plain(part)[:60])

def there(page, found):
    "Links of a page as names of pages"
    return [rules.target(href.partition('#')[0].removesuffix('.html'), page) if href[0] != '#'
            else page for href in found]

def test_the_bar_at_the_top_names_the_parts_on_every_page(texts):
    for page in texts:
        words,links,own = zip(*top_bar(texts[page]))
        assert words == ('Learn', 'Play', 'Library', 'API', 'Speed') == (*rules.PARTS.values(),)
        assert there(page, links) == [*rules.PARTS], page
        assert [p for p,now in zip(rules.PARTS, own) if now] == [rules.part(page)][:page != 'index']

def test_a_sidebar_shows_its_part(texts):
    "Learn the lessons by parts and what stands beside them; the library guides, then its rooms"
    def shown(page):
        return {caption: [(there(page, [p])[0], there(page, below)) for p,below in found]
                for caption,found in sidebar(texts[page]).items()}
    found = shown('03_attention')
    assert found == shown('glossary') == shown('notes/steps')
    beside = found.pop('Beside the lessons')
    assert [p for part in found.values() for p,_ in part] == lessons and len(found) == 4
    notes = [p for p in book if rules.kind(p) == 'notes' and p != 'notes/index']
    assert ('notes/index', notes) == beside[-1] and len(notes) > 4
    assert {p for p,_ in beside} >= {'glossary', 'teach'}
    found = shown('kernels/dispatch')
    assert [*found] == ['Use it', 'Room by room'] and found == shown('guide/quickstart')
    assert [p for p,_ in found['Use it']] == [p for p in book if rules.kind(p) == 'guide']
    rooms = dict(found['Room by room'])
    assert {rules.room(p) for p in rooms} == {rules.room(p) for p in book if rules.room(p)}
    for room,below in rooms.items():
        assert below == [p for p in book if rules.kind(p) == 'library' and p != room
                         and rules.room(p) == rules.room(room)], room
    for page in ('index', 'play', 'speed'): assert 'class="bd-docs-nav' not in texts[page]

def test_next_stays_within_a_part(texts):
    "Notes are a line of their own; API pages have none"
    def line(p): return rules.kind(p) == 'notes' or rules.part(p)
    for page in book:
        own = [p for p in book if line(p) == line(page)]
        after = own[own.index(page)+1:][:1]
        assert there(page, following(texts[page])) == after, page

def test_a_way_home_and_what_is_above_a_page(texts):
    for page in book:
        found = re.findall(r'<li class="breadcrumb-item[^"]*">\s*<a href="([^"]*)"', texts[page])
        kind = rules.kind(page)
        above = {'notes': ['learn', 'notes/index'], 'lesson': ['learn'], 'guide': ['library'],
                 'room': ['library'], 'library': ['library', f'{rules.room(page)}/index']}
        parts = above.get(kind, [rules.part(page)])
        wanted = ['index', *(p for p in parts if p in book and p != page)] * (page != 'index')
        assert there(page, found) == wanted, page

def test_below_a_lesson_stand_the_pages_of_the_library_that_link_it_first(texts):
    wanted = {l: [p for p in chapters if rules.kind(p) in ('library', 'notes')
                  and rules.lesson_of(p, cells(p)) == l] for l in lessons}
    beside = [p for p in chapters if rules.kind(p) in ('library', 'notes') and p != 'notes/index']
    assert sum(map(len, wanted.values())) == len(beside) > 40
    for page,text in texts.items():
        row = re.search(r'<nav class="beyond".*?</nav>', text, re.S)
        found = re.findall(r'href="([\w/]+)\.html">', row[0]) if row else []
        assert found == wanted.get(page, []), page

def test_a_lesson_has_its_number_in_its_title_and_in_the_sidebar(texts):
    nav = texts['learn'][texts['learn'].index('class="bd-docs-nav'):]
    found = re.findall(r'href="(\w+)\.html">(\S+)\u2002', nav)
    assert dict(found) == {c: rules.number(c)[0] for c in lessons}
    for page in lessons:
        title = plain(re.search(r'<h1>(.*?)</h1>', article(texts[page]), re.S)[1])
        number, = rules.number(page)
        assert title.startswith(f'{number}\u2002{rules.title(cells(page))}'), title

def test_the_map_below_each_opening_leads_to_all_lessons(texts):
    "Above its first section; today's box is marked, and on a phone the lessons beside it"
    states = {-1: 'past', 0: 'now', 1: 'later'}
    for n,page in enumerate(lessons):
        top = article(texts[page]).split('<h2')[0]
        wide,narrow = re.search(r'<nav class="book-map".*?</nav>', top, re.S)[0].split('</svg>')
        found = {name: state for state,name in re.findall(r'class="(\w+)" href="(\w+)', wide)}
        assert found == {o: states[(i > n) - (i < n)] for i,o in enumerate(lessons)}, page
        near,every = narrow.split('</div>')
        assert re.findall(r'href="(\w+)', near) == lessons[max(n-1, 0):n+2]
        assert re.findall(r'href="(\w+)', every) == lessons
        assert wide.count('aria-current') == near.count('aria-current') == 1
    assert texts['learn'].count('class="book-map"') == 1

def test_a_room_shows_its_modules_and_the_library_the_rooms(texts):
    for page in texts:
        if rules.kind(page) != 'room': continue
        drawn = re.search(r'<div class="rooms">.*?</div>', texts[page], re.S)[0]
        links = re.findall(r'<a href="([^"]+)\.html">', drawn)
        own = [rules.target(l, page) for l in links]
        modules = {p for p in book if rules.room(p) == rules.room(page) and p != page}
        assert len(own) == len({*own}) and modules <= {*own}, page
    drawn = re.search(r'<div class="rooms">.*?</div>', texts['library'], re.S)[0]
    assert {l.split('/')[0] for l in re.findall(r'<a href="([^"]+)\.html">', drawn)} == {
        rules.room(p) for p in book if rules.room(p)}

def test_pictures_and_views_are_numbered_and_have_captions(texts):
    for page in chapters:
        body = re.sub(r'srcdoc="[^"]*"', '', article(texts[page]))
        outside = re.sub(r'<figure.*?</figure>', '', body, flags=re.S)
        bare = r'<iframe[^>]*title="[^"]*"|<img[^>]*alt="[^"]*"'
        assert not re.findall(bare, outside), (page, 'a picture or view without a caption')
        numbers = re.findall(r'<figure.*?caption-number">Figure (\S+?)\s*<', body, re.S)
        own = ''.join(f'{n}.' for n in rules.number(page))
        assert numbers == [f'{own}{n}' for n in range(1, body.count('<figure')+1)]

def test_the_code_of_a_public_name_stands_below_its_mark(texts):
    for page in chapters:
        parts = re.split(r'<p class="made">(.*?)</p>', article(texts[page]), flags=re.S)
        for mark,below in zip(parts[1::2], parts[2::2]):
            code = plain(re.search(r'<pre>(.*?)</pre>', below, re.S)[1])
            for name in re.findall(r'<a id="attention_nb\.[\w.]+\.(\w+)"></a>', mark):
                assert name in public_names(page), f'{page}: {name} is not public'
                assert re.search(rf'^(def|class) {name}\b|^{name}\b.*=', code, re.M), (page, name)

# ---- the glossary

def sections(page):
    "Anchor -> all below its heading, down to the next one of its rank; '' is the whole page"
    found,opened = {'': []},[(0, '')]
    for c in cells(page):
        for line in rules.source(c).splitlines():
            if c['cell_type'] == 'markdown' and (m := re.match(r'(#{1,4}) (.+)', line)):
                opened = [o for o in opened if o[0] < len(m[1])] + [(len(m[1]), anchor(m[2]))]
                found[opened[-1][1]] = []
            for _,name in opened: found[name].append(line)
    return {name: '\n'.join(lines) for name,lines in found.items()}

def glossary_problems(lines, sections_of):
    "What is wrong with lines `- **term, other**: what it is. → [Lesson](page.ipynb#section)`"
    def letters(text): return re.sub(r'[\W_]', '', text.lower())
    entries = [(l, re.fullmatch(r'- \*\*([^*]+)\*\*: (.+\.) → (\[.+)', l)) for l in lines]
    found = [f'not of the form of the others: {l}' for l,m in entries if m is None]
    terms = [m[1] for _,m in entries if m]
    order = [re.sub(r'[^a-z0-9 ]', '', t.split(',')[0].lower().replace('-', ' ')) for t in terms]
    pairs = zip(order, order[1:], terms, terms[1:])
    found += [f'{after} after {before}' for a,b,before,after in pairs if a >= b]
    for m in (m for _,m in entries if m):
        links = re.findall(r'\[[^\]]+\]\(([\w/]+)\.ipynb(?:#([\w-]+))?\)', m[3])
        if not links: found.append(f'{m[1]}: no link to a page')
        words = [letters(t.split()[0]).rstrip('s') for t in m[1].split(', ')]
        for page,name in links:
            text = sections_of(page).get(name)
            if text is None: found.append(f'{m[1]}: {page} has no section {name}')
            elif not any(w in letters(text) for w in words):
                found.append(f'{m[1]}: {page}#{name} does not speak of it')
    return found

def test_the_glossary_is_in_order_and_leads_to_places_that_speak_of_the_term():
    lines = [l for t in markdown('glossary') for l in t.splitlines() if l.startswith('- ')]
    found = glossary_problems(lines, functools.cache(sections))
    assert len(lines) > 60 and not found, '\n'.join(found)

def test_a_link_to_an_equation_has_its_number(texts):
    own = r'eqno">(\([^)<]+\))<a class="headerlink" href="#(.+?)"'
    link = r'href="#(equation-[^"]+)">(\(.+?\))</a>'
    found = []
    for name,text in texts.items():
        numbers = {target: number for number,target in re.findall(own, text)}
        for target,shown in re.findall(link, text):
            assert shown == numbers[target], (name, target)
            found.append(name)
    asked = [page for page in texts for t in markdown(page) for _ in re.findall('@eq-', t)]
    assert sorted(found) == sorted(asked) and len({*asked}) > 3

# ---- in the browser

def test_the_sidebar_opens_the_room_that_is_read(page, address):
    "Without a click on a wide screen, after one on a phone; modules further in than rooms"
    for width in (1400, 390):
        page.set_viewport_size(dict(width=width, height=900))
        page.goto(f'{address}/kernels/dispatch.html')
        if width < 900: page.locator('.primary-toggle:visible').first.click()
        expect(page.locator('.bd-links a:visible').first).to_be_visible()
        shown = page.locator('.bd-links a:visible').evaluate_all(
            "all => all.map(a => a.getAttribute('href').replace('.html', ''))")
        near = {rules.link_to(p, 'kernels/dispatch') for p in book if rules.part(p) == 'library'
                and (rules.kind(p) != 'library' or rules.room(p) in ('kernels', 'checks'))}
        library = {rules.link_to(p, 'kernels/dispatch') for p in book if rules.part(p) == 'library'}
        own = {'../library', 'dispatch'}    # the link to itself is #
        assert library & {*shown} - own == near - own, width
        page.get_by_label('Pages of Text').locator('.toctree-toggle').click()
        expect(page.locator('.bd-links a[href="../text/glove.html"]')).to_be_visible()

def test_the_bar_is_in_words_and_in_sight_at_every_size(page, address):
    page.goto(f'{address}/kernels/dispatch.html')
    for width in (1400, 1024, 390, 360):
        page.set_viewport_size(dict(width=width, height=900))
        page.evaluate('scrollTo(0, 3000)')
        for words in rules.PARTS.values():
            box = page.locator('.bd-header').get_by_role('link', name=words).bounding_box()
            assert box['x'] >= 0 and box['x'] + box['width'] <= width and 0 <= box['y'] < 60
        expect(page.locator('.bd-header .search-button__button:visible')).to_have_count(1)
        tall = page.locator('.bd-header').bounding_box()['height']
        assert tall <= 70, f'{tall} pixels at {width}'

def test_code_can_be_copied_a_proof_opens_and_a_note_stands_beside_its_code(page, address):
    page.goto(f'{address}/attention.html')                      # leads to the page with the number
    expect(page.locator('button.copybtn').nth(10)).to_be_attached()
    folds = page.locator('details.proofs')
    fold = folds.first
    expect(fold.locator('pre').first).not_to_be_visible()
    claim = fold.locator('p.claim').first
    expect(fold.locator('summary')).to_have_text(re.compile(r'✓ \d+ checks?'))
    assert fold.locator('summary').inner_text().endswith('checks')
    assert fold.bounding_box()['height'] < 40 and not claim.is_visible(), 'one line'
    fold.locator('summary').click()
    expect(fold.locator('pre').first).to_be_visible()
    expect(claim).to_be_visible()
    menu,n = page.locator('.page-menu'),folds.count()
    for says,opened in (('Show', n), ('Hide', 0)):              # one was open already
        menu.locator('summary').click()
        expect(menu.locator('.show-checks')).to_have_text(re.compile(rf'^{says} all \d+ checks$'))
        menu.locator('.show-checks').click()
        expect(page.locator('details.proofs[open]')).to_have_count(opened)
        expect(menu.locator('ul')).to_be_hidden()
    note = page.locator('.code-note').first
    expect(note).to_be_visible()
    def boxes(): return (note.locator(s).bounding_box() for s in ('pre', '.code-note-text'))
    code,text = boxes()
    assert text['x'] > code['x'] + code['width'] - 1 and abs(text['y'] - code['y']) < 60
    page.set_viewport_size(dict(width=390, height=900))
    code,text = boxes()
    assert text['y'] > code['y'] + code['height'] - 1, 'on a phone it stands below'
