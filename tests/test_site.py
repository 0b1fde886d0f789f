"The built site, read as files and in a real browser that can reach no other host"
import ast, functools, html, json, re, shutil, subprocess, sys, zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin
import nbformat, package, pytest, rules, tidy
from conftest import root

chapters = sorted(p.stem for p in (root/'nbs').glob('*.ipynb') if p.stem != 'index')
pages = ['index', *chapters]

def cells(page): return json.loads((root/'nbs'/f'{page}.ipynb').read_text(encoding='utf-8'))['cells']
def code_cells(page): return [c for c in cells(page) if c['cell_type'] == 'code']

def module_of(page):
    "The module that the notebook writes, or None"
    return next((rules.split_options(rules.source(c))[0]['default_exp'] for c in code_cells(page) if rules.directive(c, 'default_exp')), None)

def entries(module):
    "Public functions and classes of a module"
    if module is None: return []
    path = root/'attention_nb'/f'{module}.py'
    defined = {n.name for n in ast.parse(path.read_text(encoding='utf-8')).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return sorted(defined & set(package.public_names(path)))

home = {name: (page, module_of(page)) for page in chapters for name in entries(module_of(page))}      # public name -> its page and module

class Links(HTMLParser):
    "Targets of links and anchors of a page"
    def __init__(self, text):
        super().__init__()
        self.links,self.ids,self.loaded = [],set(),[]
        self.feed(text)
    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if 'id' in attrs: self.ids.add(attrs['id'])
        if tag == 'a' and attrs.get('href'): self.links.append(attrs['href'])
        for name in ('src', 'poster', 'data'):
            if attrs.get(name): self.loaded.append(attrs[name])
        if tag == 'link' and attrs.get('rel') in ('stylesheet', 'icon', 'preload'): self.loaded.append(attrs['href'])

@pytest.fixture(scope='session')
def parsed(site): return {p.relative_to(site).as_posix(): Links(p.read_text(encoding='utf-8')) for p in site.glob('*.html') if p.stem != '404'}

def test_links_inside_the_site_lead_somewhere(site, parsed):
    broken = []
    for page,links in parsed.items():
        for href in links.links:
            url,anchor = urldefrag(urljoin(f'http://site/{page}', href))
            if not url.startswith('http://site/'): continue
            target = unquote(url.removeprefix('http://site/')) or page
            if not (site/target).exists(): broken.append((page, href))
            elif anchor and target in parsed and unquote(anchor) not in parsed[target].ids: broken.append((page, href))
    assert not broken

def test_no_page_loads_from_elsewhere(parsed):
    assert not [(page, url) for page,links in parsed.items() for url in links.loaded if re.match(r'(https?:)?//', url)]

def test_the_inventory_knows_every_public_name(site):
    data = (site/'objects.inv').read_bytes()
    body = zlib.decompress(data.split(b'\n', 4)[4]).decode()
    assert home
    for name,(_,module) in home.items(): assert re.search(rf'^attention_nb\.{module}\.{name} py:(function|class) ', body, re.M), name

@pytest.mark.parametrize('page', pages)
def test_a_page_has_what_a_reader_expects(site, page):
    text = (site/f'{page}.html').read_text(encoding='utf-8')
    assert 'class="lead"' in text and text.split('<article')[1].count('<h1') == 1
    assert f'colab.research.google.com/github/attention-nb/attention_nb/blob/main/nbs/{page}.ipynb' in text
    assert f'_sources/{page}.ipynb' in text and (site/'_sources'/f'{page}.ipynb').exists()
    assert 'github.com/attention-nb/attention_nb' in text and 'favicon.svg' in text
    squashed = re.sub(r'<[^>]*>|\W', '', text)
    for c in code_cells(page):
        if rules.directive(c, 'hide'): assert re.sub(r'\W', '', '\n'.join(rules.code_lines(c))) not in squashed, f'a hidden cell is on the page: {rules.source(c)[-80:]}'
    assert '#| ' not in re.sub(r'<[^>]*>', '', text), 'a directive is on the page'
    assert '(site)' not in text and not re.search(r'@(eq|fig|sec|tbl)-', re.sub(r'<(code|pre|span)[^>]*>.*?</\1>', '', text, flags=re.S))

@pytest.mark.parametrize('chapter', chapters)
def test_a_chapter_has_entries_aliases_and_plain_text(site, chapter):
    alias,module = re.sub(r'^\d+[a-z]?_', '', chapter),module_of(chapter)
    names = entries(module)                                                # a page may export nothing
    text = (site/f'{chapter}.html').read_text(encoding='utf-8')
    for name in names:
        assert f'id="attention_nb.{module}.{name}"' in text
        assert re.search(rf'github.com/attention-nb/attention_nb/blob/main/attention_nb/{module}.py#L\d+', text)
    assert f'{chapter}.html' in (site/f'{alias}.html').read_text()
    plain = (site/f'{alias}.html.md').read_text()
    assert plain.startswith('# ') and all(name in plain for name in names)
    assert not re.search(r'^#\| (?!explain)|^✓', plain, re.M), 'the plain text has code as it is'
    assert 'prev-next' in text

def labels(text): return [html.unescape(re.sub(r'<[^>]*>', '', l)) for l in re.findall(r'<details class="admonition hide[^>]*>\s*<summary>(.*?)</summary>', text, re.S)]

@pytest.mark.parametrize('page', pages)
def test_folds_are_labelled_with_their_claim(site, page):
    options = [(rules.split_options(rules.source(c)), c) for c in code_cells(page) if not rules.directive(c, 'hide')]
    expected = [rules.fold_label(o, rules.source(c)).replace('`', '') for (o,_),c in options if rules.folded(o) and o.get('include') is not False]
    assert labels((site/f'{page}.html').read_text(encoding='utf-8')) == expected

def following(text): return re.findall(r'<a[^>]*class="right-next"[^>]*href="([^"#]*)', text) or re.findall(r'href="([^"#]*)"[^>]*class="right-next"', text)

def sidebar(text):
    "[(lesson, [its workshops])] as the sidebar of a page shows them, by their titles' links"
    nav = text[text.index('class="bd-links'):]
    nav = nav[:nav.index('</nav>')]
    found = []
    for level,href in re.findall(r'<li class="toctree-l(\d)[^"]*">\s*<a[^>]*href="([^"]*)"', nav):
        if level == '1': found.append((href, []))
        else: found[-1][1].append(href)
    return found

def test_workshops_stand_under_their_lesson_and_follow_it(site):
    lessons = [c for c in chapters if rules.kind(c) == 'lesson']
    expected = [(f'{l}.html', [f'{w}.html' for w in rules.workshops_of(l, chapters)]) for l in lessons]
    assert any(w for _,w in expected)
    expected += [('api.html', []), ('glossary.html', [])]                  # at the end, neither lesson nor workshop
    found = sidebar((site/'index.html').read_text(encoding='utf-8'))
    assert [(l, w) for l,w in found if l != '#'] == expected
    order = ['index.html', *(p for l,w in expected for p in (l, *w))]
    assert [following((site/p).read_text(encoding='utf-8')) for p in order] == [*([p] for p in order[1:]), []]

@pytest.mark.parametrize('chapter', chapters)
def test_a_workshop_is_marked_and_names_its_lesson(site, chapter):
    "The mark is made by the build; what is in it and for whom stands in the first prose, which links the lesson"
    text = (site/f'{chapter}.html').read_text(encoding='utf-8')
    article = text[text.index('<article'):]
    assert ('class="page-kind"' in article) == (rules.kind(chapter) == 'workshop')
    if rules.kind(chapter) == 'workshop':
        top = article.split('<h2')[0]
        assert top.count('page-kind') == 1 and f'{rules.lesson_of(chapter, chapters)}.html' in top, 'the lines above the first section'

# ---- the front page and the glossary

def anchor(heading): return re.sub(r'[^\w\s-]', '', heading.strip().lower()).replace(' ', '-')

def sections(page):
    "Anchor -> all that stands below its heading, down to the next one of its rank; '' is the whole page"
    found,opened = {'': []},[(0, '')]
    for c in cells(page):
        for line in rules.source(c).splitlines():
            if c['cell_type'] == 'markdown' and (m := re.match(r'(#{1,4}) (.+)', line)):
                opened = [o for o in opened if o[0] < len(m[1])] + [(len(m[1]), anchor(m[2]))]
                found[opened[-1][1]] = []
            for _,name in opened: found[name].append(line)
    return {name: '\n'.join(lines) for name,lines in found.items()}

def glossary_problems(lines, sections_of):
    "What is wrong with the lines `- **term, other name**: what it is. → [Lesson](page.ipynb#section)`"
    def letters(text): return re.sub(r'[\W_]', '', text.lower())
    entries = [(l, re.fullmatch(r'- \*\*([^*]+)\*\*: (.+\.) → (\[.+)', l)) for l in lines]
    found = [f'not of the form of the others: {l}' for l,m in entries if m is None]
    terms = [m[1] for _,m in entries if m]
    order = [re.sub(r'[^a-z0-9 ]', '', t.split(',')[0].lower().replace('-', ' ')) for t in terms]
    found += [f'{terms[i+1]} after {terms[i]}' for i in range(len(order)-1) if order[i] >= order[i+1]]
    for m in (m for _,m in entries if m):
        links = re.findall(r'\[[^\]]+\]\((\w+)\.ipynb(?:#([\w-]+))?\)', m[3])
        if not links: found.append(f'{m[1]}: no link to a page')
        for page,name in links:
            text = sections_of(page).get(name)
            if text is None: found.append(f'{m[1]}: {page} has no section {name}')
            elif not any(letters(t.split()[0]).rstrip('s') in letters(text) for t in m[1].split(', ')): found.append(f'{m[1]}: {page}#{name} does not speak of it')
    return found

def test_the_glossary_is_in_order_and_leads_to_places_that_speak_of_the_term():
    lines = [l for c in cells('glossary') for l in rules.source(c).splitlines() if l.startswith('- ')]
    assert len(lines) > 60
    found = glossary_problems(lines, functools.cache(sections))
    assert not found, '\n'.join(found)

def test_the_check_of_the_glossary_can_fail():
    book = dict(page={'': 'A key, a mask.', 'keys': 'A key.'})
    key,mask = '- **key**: What is found. → [Page](page.ipynb#keys)','- **mask, table**: Yes or no. → [Page](page.ipynb)'
    assert glossary_problems([key, mask], book.get) == []
    for lines,message in {(mask, key): 'key after mask, table', (key, key): 'key after key', (key.replace('#keys', '#locks'),): 'key: page has no section locks',
                          (mask.replace('ipynb)', 'ipynb#keys)'),): 'mask, table: page#keys does not speak of it', (key.replace('page.ipynb', 'https://x'),): 'key: no link to a page',
                          (key.replace('**', ''),): 'not of the form of the others: ' + key.replace('**', '')}.items(): assert glossary_problems(lines, book.get) == [message]

def test_every_lesson_has_a_card_with_its_picture_and_its_workshops():
    import nbdev_sphinx
    text = '\n\n'.join(rules.source(c) for c in cells('index') if c['cell_type'] == 'markdown')
    found = nbdev_sphinx.myst(text).split('{grid-item-card} ')[1:]
    lessons = [c for c in chapters if rules.kind(c) == 'lesson']
    assert [re.match(r'\[[^\]]+\]\((\w+)\.ipynb\)', card)[1] for card in found] == lessons
    for lesson,card in zip(lessons, (card.split('\n::::\n')[0] for card in found)):
        assert f':img-top: /_sphinx/_static/cards/{lesson[:2]}.svg\n' in card and re.search(r'^:img-alt: \S.{20}', card, re.M)
        assert re.findall(r'\]\((\w+)\.ipynb\)', card)[1:] == rules.workshops_of(lesson, chapters)
    assert {p.stem for p in nbdev_sphinx.CARDS.glob('*.svg')} == {l[:2] for l in lessons}, 'a picture that no card shows'

def test_cards_are_made_of_the_marked_table_alone():
    import nbdev_sphinx
    table = '| Part | Lesson | For | More |\n|---|---|---|---|\n| **First** | [1. One](01_one.ipynb) | count | [fast](01a_fast.ipynb) |\n| | [2. Two](02_two.ipynb) | add `a` | |\n'
    assert nbdev_sphinx.myst(f'Before\n\n{table}\nafter') == f'Before\n\n{table}\nafter'
    made = nbdev_sphinx.myst(f'Before\n\n<!-- cards -->\n\n{table}\nafter')
    assert made.startswith('Before\n\n:::::{grid}') and made.endswith(':::::\n\nafter') and '|' not in made
    one,two = made.split('{grid-item-card} ')[1:]
    assert one.startswith('[1. One](01_one.ipynb)\n') and '\nFirst\n\nCount\n' in one and ':::{card-footer}\n[fast](01a_fast.ipynb)\n' in one
    assert '\nFirst\n\nAdd `a`\n' in two and 'card-footer' not in two
    with pytest.raises(ValueError, match=r'\[1. One\]\(99_one.ipynb\) of the front page needs a picture, _static/cards/99.svg'):
        nbdev_sphinx.myst(f'<!-- cards -->\n\n{table}'.replace('(01_', '(99_'))

# ---- in the browser

screens = dict(wide=(1400, 'light'), dark=(1400, 'dark'), phone=(390, 'light'))

@pytest.fixture(scope='module', params=screens)
def view(request, browser):
    width,scheme = screens[request.param]
    context = browser.new_context(viewport=dict(width=width, height=900), color_scheme=scheme)
    yield context
    context.close()

@pytest.fixture
def page(browser):
    page = browser.new_page(viewport=dict(width=1400, height=900))
    yield page
    page.close()

@pytest.mark.parametrize('name', pages)
def test_a_page_in_the_browser(view, address, name):
    from playwright.sync_api import expect
    page,problems = view.new_page(),[]
    page.on('request', lambda r: problems.append(r.url) if not r.url.startswith((address, 'data:', 'blob:')) else None)
    page.on('requestfailed', lambda r: problems.append(f'failed: {r.url}'))
    page.on('response', lambda r: problems.append(f'{r.status} {r.url}') if r.status >= 400 else None)
    page.on('pageerror', lambda e: problems.append(str(e)))
    page.on('console', lambda m: problems.append(m.text) if m.type in ('error', 'warning') else None)
    page.goto(f'{address}/{name}.html')
    expect(page.locator('.math:not(:has(mjx-container))')).to_have_count(0, timeout=60_000)
    expect(page.locator('mjx-merror')).to_have_count(0)
    assert page.evaluate('document.documentElement.scrollWidth <= window.innerWidth'), 'the page scrolls sideways'
    wide = page.evaluate("""[...document.querySelectorAll('article img, article svg, article table')].filter(e => {
        const box = e.getBoundingClientRect(), scrolls = e.closest('.table-wrapper, .pst-scrollable-table-container, .output') || getComputedStyle(e.parentElement).overflowX === 'auto';
        return box.right > window.innerWidth + 1 && !scrolls && !e.closest('mjx-container') }).map(e => e.outerHTML.slice(0, 80))""")
    assert not wide, wide
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0 && (i.alt || i.closest('a')))"), 'an image is broken or has no text'
    dark = page.evaluate("document.documentElement.dataset.theme") == 'dark'
    background = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0,3).map(Number)")
    assert (max(background) < 80) == dark == (page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches"))
    page.close()
    assert not problems, problems

def test_the_sidebar_shows_every_page(view, address):
    "Without a click on a wide screen, after one on a phone; workshops indented under their lesson, with a mark"
    from playwright.sync_api import expect
    page = view.new_page()
    page.goto(f'{address}/index.html')
    if page.viewport_size['width'] < 900: page.locator('.primary-toggle:visible').first.click()
    for chapter in chapters: expect(page.locator(f'.bd-links a[href="{chapter}.html"]')).to_be_visible()
    lesson,workshop = (page.locator(f'.bd-links li.toctree-l{n} > a[href*="_"]').first for n in (1, 2))
    left = 'e => e.getBoundingClientRect().left + parseFloat(getComputedStyle(e).paddingLeft)'
    assert workshop.evaluate(left) > lesson.evaluate(left) + 8
    assert workshop.evaluate("e => getComputedStyle(e, '::before').maskImage") != 'none' == lesson.evaluate("e => getComputedStyle(e, '::before').maskImage")
    page.close()

def test_a_card_opens_its_lesson_and_its_small_links_the_workshops(page, address):
    from playwright.sync_api import expect
    page.goto(f'{address}/index.html')
    cards = page.locator('.lesson-cards .sd-card')
    expect(cards).to_have_count(len([c for c in chapters if rules.kind(c) == 'lesson']))
    cards.nth(1).locator('img').click(force=True)                              # the link of the title lies above
    expect(page).to_have_url(re.compile(r'/02_embedding\.html$'))
    page.go_back()
    cards.nth(1).locator('.sd-card-footer a').first.click()
    expect(page).to_have_url(re.compile(r'/02a_glove\.html$'))

@pytest.mark.parametrize('name', ['scaled_dot_product_attention', 'load_glove', 'BPETokenizer', 'head_view'])
def test_search_leads_to_the_page_that_defines_the_name(page, address, name):
    from playwright.sync_api import expect
    where,module = home[name]
    page.goto(f'{address}/search.html?q={name}')
    page.locator(f'#search-results a[href*="{where}.html"][href*="#attention_nb.{module}.{name}"]').first.click(timeout=30_000)
    expect(page).to_have_url(re.compile(rf'{where}\.html.*#attention_nb\.{module}\.{name}$'))
    expect(page.locator(f'[id="attention_nb.{module}.{name}"]').first).to_be_attached()

def test_search_finds_words_of_the_text(page, address):
    from playwright.sync_api import expect
    page.goto(f'{address}/search.html?q=softmax')
    expect(page.locator('#search-results a[href^="03_attention.html"]').first).to_be_visible(timeout=30_000)
    page.goto(f'{address}/search.html?q=zweihundertfach')
    expect(page.locator('#search-results')).to_contain_text('did not match any documents', timeout=30_000)
    expect(page.locator('#search-results ul.search li')).to_have_count(0)

def test_code_has_a_copy_button_and_folded_code_opens(page, address):
    from playwright.sync_api import expect
    page.goto(f'{address}/03_attention.html')
    expect(page.locator('button.copybtn').nth(10)).to_be_attached()
    fold = page.locator('details.hide:has(.fold-tick)').first
    expect(fold.locator('pre').first).not_to_be_visible()
    expect(fold.locator('summary')).to_contain_text(re.compile(r'^\s*✓ .+ · \d+ checks?\s*$'))
    fold.locator('summary').click()
    expect(fold.locator('pre').first).to_be_visible()
    note = page.locator('.code-note').first
    expect(note).to_be_visible()
    code,text = note.locator('pre').bounding_box(),note.locator('.code-note-text').bounding_box()
    assert text['x'] > code['x'] + code['width'] - 1 and abs(text['y'] - code['y']) < 60, 'the note stands beside its code'
    page.set_viewport_size(dict(width=390, height=900))
    code,text = note.locator('pre').bounding_box(),note.locator('.code-note-text').bounding_box()
    assert text['y'] > code['y'] + code['height'] - 1, 'on a phone the note stands below its code'

# ---- the machinery, on a notebook that has everything

sample = [('raw', '---\ntitle: Sample\ndescription: All that a page may hold\n---'),
    ('code', '#| hide\nsecret_of_the_cell = 1'),
    ('markdown', 'A note.[^n] A citation [@vaswani2017], an equation @eq-one, code `@eq-one` and <b>html</b>. A link of its own: [`attention`](https://example.org).\n\n[^n]: The text of the note.'),
    ('markdown', '$$a^2 + b^2$$ {#eq-one}'),
    ('markdown', '::: {.callout-warning title="Mind"}\nThe gap, $x$.\n:::\n\n::: {.callout-note collapse="true"}\n\n## Folded\n\nInside.\n:::'),
    ('markdown', '::: {.panel-tabset}\n\n## One\n\nfirst\n\n## Two\n\nsecond\n\n:::'),
    ('code', 'for r in range(3):\n    total = r + 1\nprint(total)'),
    ('markdown', '#| explain "total = r + 1"\n\nAdds **one**.'),
    ('markdown', '#| explain "for r in range(3):" to "print(total)"\n\nAll of it.'),
    ('code', '#| code-fold: true\n#| code-summary: "What `x < y` means"\nfolded = 1'),
    ('code', '#| code-fold: true\n#| code-summary: "One is one: \\"always\\""\n' + 'assert folded == 1\n'*6),
    ('code', '#| echo: false\n#| fig-alt: >-\n#|   Two, said in\n#|   two lines\nshown_only = 2', {'image/svg+xml': '<svg xmlns="http://www.w3.org/2000/svg"/>', 'text/plain': 'two'})]

def notebook(cells):
    nb = nbformat.v4.new_notebook(metadata=dict(kernelspec=dict(name='python3', display_name='python3', language='python')))
    for kind,source,*outputs in cells:
        cell = dict(raw=nbformat.v4.new_raw_cell, code=nbformat.v4.new_code_cell, markdown=nbformat.v4.new_markdown_cell)[kind](source)
        if outputs: cell.outputs = [nbformat.v4.new_output('display_data', data=o) for o in outputs]
        nb.cells.append(cell)
    return nb

def build(folder, cells, strict=True, **others):
    "Build a site of one notebook, and others by name, with the project's own machinery"
    for d in ('nbs/_sphinx', 'attention_nb'):
        if not (folder/d).exists(): shutil.copytree(root/d, folder/d, ignore=shutil.ignore_patterns('__pycache__'))
    for f in ('pyproject.toml', 'settings.ini', 'nbs/references.bib'): shutil.copy(root/f, folder/f)
    for name,cs in dict(index=cells, **others).items(): nbformat.write(notebook(cs), folder/'nbs'/f'{name}.ipynb')
    return subprocess.run([sys.executable, '-m', 'sphinx', '-q', *(['-W', '--keep-going'] if strict else []), '-E', '-d', folder/'trees', '-c', folder/'nbs'/'_sphinx', folder/'nbs', folder/'html'],
                          cwd=folder, capture_output=True, text=True)

def test_a_page_may_hold_all_this(tmp_path):
    done = build(tmp_path, sample)
    assert done.returncode == 0, done.stderr
    text = (tmp_path/'html'/'index.html').read_text()
    words = re.sub(r'\s+', ' ', html.unescape(re.sub(r'<[^>]*>', ' ', text)))
    assert 'secret_of_the_cell' not in text and 'shown_only' not in text and '<p class="lead">All that a page may hold' in text.replace('class="lead">\n', 'class="lead">')
    for piece in ('The text of the note', 'arXiv:1706.03762', 'Mind', 'The gap', 'Folded', 'Inside', 'Adds one', 'All of it'): assert piece in words, piece
    assert text.count('class="code-note') >= 2 and 'sd-tab-set' in text and '@eq-one' in words and 'id="equation-eq-one"' in text
    assert re.search(r'admonition dropdown note|note dropdown', text)
    assert 'alt="Two, said in two lines"' in text
    assert re.search(r'href="https://example.org"><code[^>]*><span class="pre">attention</span></code></a>\.', text), 'one link, not two'
    assert labels(text) == ['What x < y means', '✓ One is one: "always" · 6 checks'] and '<code>x &lt; y</code>' in text
    plain = (tmp_path/'html'/'index.html.md').read_text()
    assert '![Two, said in two lines](index_files/' in plain and 'folded = 1' in plain and '✓' not in plain and '#|' not in plain.replace('#| explain', '')

def test_what_is_wrong_with_folds_fails_the_build_and_is_named(tmp_path):
    proof = '\n'.join(f'assert {i} == {i}' for i in range(6))
    title = ('markdown', '# Page\n\n> A page')
    lesson = [title, ('markdown', '## Here'), ('code', '#| code-fold: true\nx = 1'), ('markdown', '### There'), ('code', proof),
              ('code', '#| export\n#| code-fold: true\n#| code-summary: "A function"\ndef f(): return 1'), ('code', f'#| hide\n{proof}'), ('code', '\n'.join(proof.splitlines()[:5]))]
    workshop = [title, ('code', '#| export\n#| code-fold: true\n#| code-summary: "A function"\ndef f(): return 1'), ('code', '#| code-fold: true\n#| code-summary: ""\ny = 2')]
    done = build(tmp_path, [title], strict=False, **{'01_page': lesson, '01a_page': workshop})
    found = re.findall(r'ERROR: (\w+\.ipynb, under .*)', done.stderr)
    assert done.returncode != 0 and len(found) == 4, done.stderr
    for piece,line in zip((r"01_page.ipynb, under 'Here', cell 2 \(\w+: 'x = 1'\): folded without a summary", r"01_page.ipynb, under 'There', cell 4 .*: 6 lines that only assert stand open",
                           r"01_page.ipynb, under 'There', cell 5 .*'def f\(\): return 1'\): a lesson shows all the code it exports", r"01a_page.ipynb, under 'Page', cell 2 .*: folded without a summary"), found):
        assert re.match(piece, line), line

def test_workshops_are_children_of_their_lesson(tmp_path):
    def page(title, text=''): return [('markdown', f'# {title}\n\n> A page'), ('markdown', f'## Part\n\n{text}')]
    hidden = [('code', '#| hide\nimport math\nonly_known_when_the_notebook_runs'), ('code', '#| export\ndef shown(): return 1')]       # the build executes the second only
    done = build(tmp_path, page('Home'), **{'01_first': page('First', 'Text.') + hidden, '01a_fast': page('Fast', '[First](01_first.ipynb)'), '01b_more': page('More'), '02_second': page('Second'), '02a_last': page('Last')})
    assert done.returncode == 0, done.stderr
    texts = {p.name: p.read_text() for p in (tmp_path/'html').glob('*.html')}
    expected = [('01_first.html', ['01a_fast.html', '01b_more.html']), ('02_second.html', ['02a_last.html'])]
    assert [x for x in sidebar(texts['index.html']) if x[0] != '#'] == expected
    order = ['index.html', '01_first.html', '01a_fast.html', '01b_more.html', '02_second.html', '02a_last.html']
    assert [following(texts[p]) for p in order] == [*([p] for p in order[1:]), []]
    assert [p for p in order if 'class="page-kind"' in texts[p]] == ['01a_fast.html', '01b_more.html', '02a_last.html']

def test_a_stored_view_comes_to_life_when_the_site_is_built(tmp_path):
    "From its data, by View.from_data; what has no data is shown as it is stored, and the plain text has the picture"
    view = {tidy.VIEW: dict(summary='A view', data=dict(n=[1, 2])), 'image/svg+xml': '<svg xmlns="http://www.w3.org/2000/svg"/>', 'text/plain': 'A view'}
    old = {'text/html': '<p>stored page</p>', 'image/svg+xml': '<svg xmlns="http://www.w3.org/2000/svg"/>', 'text/plain': 'An old view'}
    stand_in = ('class View:\n    @classmethod\n    def from_data(cls, data, summary, svg=None):\n        self = cls(); self.text = f"<p>live {summary} {data} {svg}</p>"; return self\n'
                '    def _repr_html_(self): return self.text\n')
    (tmp_path/'nbs').mkdir()
    cells = [sample[0], ('code', 'v', view), ('code', 'w', old)]
    shutil.copytree(root/'nbs'/'_sphinx', tmp_path/'nbs'/'_sphinx', ignore=shutil.ignore_patterns('__pycache__'))
    (tmp_path/'nbs'/'_sphinx'/'stand_in.py').write_text(f'import sys, types\nviews = sys.modules["attention_nb.views"] = types.ModuleType("attention_nb.views")\nexec({stand_in!r}, views.__dict__)')
    conf = tmp_path/'nbs'/'_sphinx'/'conf.py'
    conf.write_text(conf.read_text() + '\nimport stand_in\n')
    done = build(tmp_path, cells)
    assert done.returncode == 0, done.stderr
    text = (tmp_path/'html'/'index.html').read_text()
    assert "<p>live A view {'n': [1, 2]} <svg" in text and '<p>stored page</p>' in text
    plain = (tmp_path/'html'/'index.html.md').read_text()
    assert plain.count('![](index_files/') == 2 and 'live' not in plain and 'stored page' not in plain

def test_a_note_on_code_that_is_not_there_is_a_build_error(tmp_path):
    "Each, with notebook, heading, cell, and the line that was meant"
    code = 'for r in range(3):\n    total = r + 1\nprint(total)'
    assert rules.quoted_lines(code, '"total=r + 1"') == 'total = r + 1' and rules.quoted_lines(code, '"for r" to "print(total)"') == code
    for quote in ('"total = r + 2"', '"print(total)" to "for r in range(3):"', '""'): assert rules.quoted_lines(code, quote) is None
    done = build(tmp_path, [sample[0], ('markdown', '## Sums'), ('code', code), ('markdown', '#| explain "total = r + 2"\n\nWrong.'), ('markdown', '#| explain\n\nOf nothing.')])
    assert done.returncode != 0 and done.stderr.count('not in the cell above') == 2, done.stderr
    assert re.search(r"index\.ipynb, under 'Sums', cell 3 \(\w+\), line 1: .*: \"total = r \+ 2\"; there is 'total = r \+ 1'", done.stderr), done.stderr

def test_a_reference_to_nothing_is_a_build_error(tmp_path):
    "Named with the notebook, the heading, and the line of the cell"
    done = build(tmp_path, [sample[0], ('markdown', '## Here\n\nA reference @eq-nowhere.\n\nA [link](nowhere.ipynb).\n\nA citation [@nobody1900].')])
    assert done.returncode != 0 and all(name in done.stderr for name in ('eq-nowhere', 'nowhere.ipynb', 'nobody1900')), done.stderr
    assert re.search(r"index\.ipynb, under 'Here', cell \w+, line 5: 'A \[link\]\(nowhere.ipynb\).':", done.stderr), done.stderr

# ---- figures for both themes

def lightness(color): return sum(int(color[i:i+2], 16) for i in (1, 3, 5))/3

def contrast(a, b):
    "That of WCAG 2, from 1 to 21"
    def luminance(c): return sum(w*(n/12.92 if n <= .04045 else ((n+.055)/1.055)**2.4) for w,n in zip((.2126, .7152, .0722), (int(c[i:i+2], 16)/255 for i in (1, 3, 5))))
    low,high = sorted((luminance(a), luminance(b)))
    return (high+.05)/(low+.05)

def test_a_dark_figure_keeps_hues_and_turns_lightness():
    import colorsys, figures
    from attention_nb.plots import colors
    page = '#121212'
    assert lightness(figures.dark_color('#000')) > 220 and figures.dark_color('#ffffff') == figures.dark_color('#fff') == page
    def hue(c): return colorsys.rgb_to_hsv(*(int(c[i:i+2], 16) for i in (1, 3, 5)))[0]
    for c in colors.values():
        dark = figures.dark_color(c)
        assert contrast(dark, page) > 5.5 and abs(hue(dark) - hue(c)) < .06, (c, dark)
    shades = [lightness(figures.dark_color(f'#{2*f"{n:02x}"}{n:02x}')) for n in range(0, 256, 15)]
    assert shades == sorted(shades, reverse=True)

def test_a_figure_for_each_theme_is_made_from_the_stored_one(tmp_path):
    "White paper goes, ink and rasters turn; what only looks like a colour stays; the file itself is not touched"
    import base64, io, figures
    from PIL import Image
    out = io.BytesIO()
    Image.new('RGBA', (2,1), '#ffffff').save(out, 'png')
    raster = base64.b64encode(out.getvalue()).decode()
    svg = ('<svg viewBox="0 0 8 4"><rect width="8" height="4" fill="#fff"/><g id="patch_1"><path style="fill: #ffffff"/></g><path style="fill: #0072b2; stroke:#000000"/>'
           f'<use href="#abc123"/><rect width="3" height="4" fill="#fff"/><text>#abcdef</text><image href="data:image/png;base64,{raster}"/></svg>')
    path = tmp_path/'a.svg'
    path.write_text(svg)
    light,dark = (p.read_text() for p in figures.for_both(path))
    assert path.read_text() == svg
    assert 'width="8"' not in light+dark and 'width="3"' in light and light.count('fill: none') == dark.count('fill: none') == 1
    assert f'fill: {figures.dark_color("#0072b2")}; stroke:{figures.dark_color("#000000")}' in dark and 'fill: #0072b2; stroke:#000000' in light
    assert all(piece in dark for piece in ('href="#abc123"', '>#abcdef<', f'<svg fill="{figures.dark_color("#000000")}"')) and raster in light and raster not in dark
    turned = Image.open(io.BytesIO(base64.b64decode(re.search(r'base64,([^"]*)', dark)[1])))
    assert turned.getpixel((0,0)) == (0x12, 0x12, 0x12, 255)
    Image.new('RGB', (2,1), '#000000').save(tmp_path/'b.png')
    assert [min(Image.open(p).convert('RGB').getpixel((0,0))) > 220 for p in figures.for_both(tmp_path/'b.png')] == [False, True]

@pytest.mark.parametrize('page', ['03_attention', '04_mask'])
def test_letters_of_figures_are_legible_on_a_phone(browser, address, page):
    "Wide figures keep a width of 29 rem and scroll inside their box: letters of 9 points have at least 7.5 pixels"
    context = browser.new_context(viewport=dict(width=390, height=900))
    tab = context.new_page()
    tab.goto(f'{address}/{page}.html')
    figures = tab.evaluate("[...document.querySelectorAll('figure img.for-light:not(.scheme)')].map(e => [e.getBoundingClientRect().width / e.naturalWidth, e.classList.contains('wide'), getComputedStyle(e.parentElement).overflowX])")
    context.close()
    assert len(figures) > 5 and any(wide for _,wide,_ in figures)
    assert all(scale*12 >= 7.5 for scale,_,_ in figures) and all(scrolls == 'auto' for _,wide,scrolls in figures if wide), figures

def test_figures_are_numbered_within_their_chapter(tmp_path):
    svg = {'image/svg+xml': '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>', 'text/plain': 'x'}
    def page(name): return [('markdown', f'# {name}\n\n> A page'), *[('code', f'#| label: fig-{name}-{i}\n#| fig-cap: "Caption {i}"\n#| fig-alt: "Text {i}"\ndraw({i})', svg) for i in (1, 2)], ('markdown', f'See @fig-{name}-2.')]
    done = build(tmp_path, [('markdown', '# Home\n\n> A page')], **{'01_one': page('one'), '01a_more': page('more'), '02_two': page('two')})
    assert done.returncode == 0, done.stderr
    for name,number in (('01_one', '1'), ('01a_more', '1a'), ('02_two', '2')):
        text = (tmp_path/'html'/f'{name}.html').read_text()
        assert re.findall(r'caption-number">(.*?)\s*<', text) == [f'Figure {number}.1', f'Figure {number}.2'] and re.search(rf'See .*?Figure {number}\.2</span>', text)
        assert text.count('class="for-light"') == text.count('class="for-dark"') == 2

def test_an_answer_hides_its_output_until_it_is_opened(tmp_path):
    out = {'text/plain': 'given away'}
    done = build(tmp_path, [sample[0], ('code', '#| code-fold: true\n#| code-summary: "Answer 1"\nx', out), ('code', '#| code-fold: true\n#| code-summary: "How it is drawn"\ny', {'text/plain': 'shown'})])
    assert done.returncode == 0, done.stderr
    text = (tmp_path/'html'/'index.html').read_text()
    folds = ''.join(re.findall(r'<details.*?</details>', text, re.S))
    assert 'given away' in folds and 'shown' in text and 'shown' not in re.sub(r'<[^>]*>', '', folds)

@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_the_theme_shows_one_version_of_each_figure_and_its_caption(browser, address, scheme):
    context = browser.new_context(viewport=dict(width=1400, height=900), color_scheme=scheme)
    page = context.new_page()
    page.goto(f'{address}/03_attention.html')
    shown = page.evaluate("""[...document.querySelectorAll('figure')].filter(f => f.querySelector('img.for-light')).map(f =>
        [...f.querySelectorAll('img, figcaption')].filter(e => getComputedStyle(e).display != 'none').map(e => ['for-light', 'for-dark'].find(c => e.classList.contains(c)) || e.tagName).join(' '))""")
    assert len(shown) > 5 and set(shown) == {f'for-{scheme} FIGCAPTION'}
    assert page.evaluate(f"getComputedStyle(document.querySelector('img.for-{scheme}')).backgroundColor") == 'rgba(0, 0, 0, 0)'
    symbols = page.locator('mjx-mstyle[style*="color"]')
    assert symbols.count() > 10
    for color in set(symbols.evaluate_all('all => all.map(e => getComputedStyle(e).color)')):
        assert contrast('#' + ''.join(f'{int(n):02x}' for n in re.findall(r'\d+', color)[:3]), '#121212' if scheme == 'dark' else '#ffffff') > 4.5, color
    assert float(page.evaluate("parseFloat(getComputedStyle(document.querySelector('.highlight pre')).fontSize)")) >= 13.5
    context.close()
