"The built site, read as files and in a real browser that can reach no other host"
import html, json, re, shutil, subprocess, sys, zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin
import nbformat, pytest
from conftest import root
from test_package import documented

chapters = sorted(p.stem for p in (root/'nbs').glob('*.ipynb') if p.stem != 'index')
pages = ['index', *chapters]

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
def parsed(site): return {p.relative_to(site).as_posix(): Links(p.read_text(encoding='utf-8')) for p in site.glob('*.html')}

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
    for module,names in documented.items():
        for name in names: assert re.search(rf'^attention_nb\.{module}\.{name} py:(function|class) ', body, re.M), name

@pytest.mark.parametrize('page', pages)
def test_a_page_has_what_a_reader_expects(site, page):
    text = (site/f'{page}.html').read_text(encoding='utf-8')
    nb = json.loads((root/'nbs'/f'{page}.ipynb').read_text(encoding='utf-8'))
    assert 'class="lead"' in text and text.split('<article')[1].count('<h1') == 1
    assert f'colab.research.google.com/github/attention-nb/attention_nb/blob/main/nbs/{page}.ipynb' in text
    assert f'_sources/{page}.ipynb' in text and (site/'_sources'/f'{page}.ipynb').exists()
    assert 'github.com/attention-nb/attention_nb' in text and 'favicon.svg' in text
    for c in nb['cells']:
        source = ''.join(c['source'])
        if c['cell_type'] == 'code' and re.search(r'^#\|\s*hide\s*$', source, re.M):
            last = re.sub(r'\W', '', source.strip().splitlines()[-1])
            assert last not in re.sub(r'<[^>]*>|\W', '', text), f'a hidden cell is on the page: {source[-80:]}'
    assert '#| ' not in re.sub(r'<[^>]*>', '', text), 'a directive is on the page'
    assert '(site)' not in text and not re.search(r'@(eq|fig|sec|tbl)-', re.sub(r'<(code|pre|span)[^>]*>.*?</\1>', '', text, flags=re.S))

@pytest.mark.parametrize('chapter', chapters)
def test_a_chapter_has_entries_aliases_and_plain_text(site, chapter):
    module = chapter.split('_', 1)[1]
    names = documented.get(module, ())                                     # a page beside a chapter exports nothing
    text = (site/f'{chapter}.html').read_text(encoding='utf-8')
    for name in names:
        assert f'id="attention_nb.{module}.{name}"' in text
        assert re.search(rf'github.com/attention-nb/attention_nb/blob/main/attention_nb/{module}.py#L\d+', text)
    assert f'{chapter}.html' in (site/f'{module}.html').read_text()
    plain = (site/f'{module}.html.md').read_text()
    assert plain.startswith('# ') and all(name in plain for name in names)
    assert 'prev-next' in text

# ---- in the browser

@pytest.fixture(params=[(1400, 'light'), (1400, 'dark'), (390, 'light')], ids=['wide', 'dark', 'phone'])
def view(request, browser):
    width,scheme = request.param
    context = browser.new_context(viewport=dict(width=width, height=900), color_scheme=scheme)
    yield context
    context.close()

@pytest.mark.parametrize('name', pages)
def test_a_page_in_the_browser(view, address, name):
    page,problems = view.new_page(),[]
    page.on('request', lambda r: problems.append(r.url) if not r.url.startswith((address, 'data:', 'blob:')) else None)
    page.on('requestfailed', lambda r: problems.append(f'failed: {r.url}'))
    page.on('response', lambda r: problems.append(f'{r.status} {r.url}') if r.status >= 400 else None)
    page.on('pageerror', lambda e: problems.append(str(e)))
    page.on('console', lambda m: problems.append(m.text) if m.type in ('error', 'warning') else None)
    page.goto(f'{address}/{name}.html', wait_until='networkidle')
    assert page.evaluate('document.documentElement.scrollWidth <= window.innerWidth'), 'the page scrolls sideways'
    if page.locator('.math').count(): page.wait_for_selector('mjx-container')
    math = page.evaluate("[...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container') || e.querySelector('mjx-merror')).map(e => e.textContent)")
    assert not math, f'not rendered: {math}'
    wide = page.evaluate("""[...document.querySelectorAll('article img, article svg, article table')].filter(e => {
        const box = e.getBoundingClientRect(), scrolls = e.closest('.table-wrapper, .pst-scrollable-table-container, .output') || getComputedStyle(e.parentElement).overflowX === 'auto';
        return box.right > window.innerWidth + 1 && !scrolls && !e.closest('mjx-container') }).map(e => e.outerHTML.slice(0, 80))""")
    assert not wide, wide
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0 && (i.alt || i.closest('a')))"), 'an image is broken or has no text'
    dark = page.evaluate("document.documentElement.dataset.theme") == 'dark'
    background = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0,3).map(Number)")
    assert (max(background) < 80) == dark == (page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches"))
    assert not problems, problems

@pytest.mark.parametrize('query', ['scaled_dot_product_attention', 'load_glove', 'BPETokenizer', 'softmax'])
def test_search_finds(browser, address, query):
    page = browser.new_page()
    page.goto(f'{address}/search.html?q={query}')
    page.wait_for_selector('#search-results ul.search li a', timeout=20_000)
    found = page.locator('#search-results ul.search li a').all_inner_texts()
    assert any(query.lower() in t.lower() or 'Attention' in t for t in found), found
    page.close()

def test_code_has_a_copy_button_and_folded_code_opens(browser, address):
    page = browser.new_page()
    page.goto(f'{address}/03_attention.html', wait_until='networkidle')
    assert page.locator('button.copybtn').count() > 10
    fold = page.locator('details.hide').first
    assert not fold.locator('pre').first.is_visible()
    fold.locator('summary').click()
    assert fold.locator('pre').first.is_visible()
    note = page.locator('.code-note').first
    code,text = note.locator('pre').bounding_box(),note.locator('.code-note-text').bounding_box()
    assert text['x'] > code['x'] + code['width'] - 1 and abs(text['y'] - code['y']) < 60, 'the note stands beside its code'
    page.set_viewport_size(dict(width=390, height=900))
    code,text = note.locator('pre').bounding_box(),note.locator('.code-note-text').bounding_box()
    assert text['y'] > code['y'] + code['height'] - 1, 'on a phone the note stands below its code'
    page.close()

# ---- the machinery, on a notebook that has everything

sample = [('raw', '---\ntitle: Sample\ndescription: All that a page may hold\n---'),
    ('code', '#| hide\nsecret_of_the_cell = 1'),
    ('markdown', 'A note.[^n] A citation [@vaswani2017], an equation @eq-one, code `@eq-one` and <b>html</b>.\n\n[^n]: The text of the note.'),
    ('markdown', '$$a^2 + b^2$$ {#eq-one}'),
    ('markdown', '::: {.callout-warning title="Mind"}\nThe gap, $x$.\n:::\n\n::: {.callout-note collapse="true"}\n\n## Folded\n\nInside.\n:::'),
    ('markdown', '::: {.panel-tabset}\n\n## One\n\nfirst\n\n## Two\n\nsecond\n\n:::'),
    ('code', 'for r in range(3):\n    total = r + 1\nprint(total)'),
    ('markdown', '#| explain "total = r + 1"\n\nAdds **one**.'),
    ('markdown', '#| explain "for r in range(3):" to "print(total)"\n\nAll of it.'),
    ('code', '#| code-fold: true\nfolded = 1'), ('code', '#| echo: false\nshown_only = 2')]

def build(folder, cells):
    "Build a site of one notebook with the project's own machinery"
    nb = nbformat.v4.new_notebook(metadata=dict(kernelspec=dict(name='python3', display_name='python3', language='python')))
    for kind,source in cells:
        cell = dict(raw=nbformat.v4.new_raw_cell, code=nbformat.v4.new_code_cell, markdown=nbformat.v4.new_markdown_cell)[kind](source)
        if 'shown_only' in source: cell.outputs = [nbformat.v4.new_output('stream', name='stdout', text='two\n')]
        nb.cells.append(cell)
    for d in ('nbs/_sphinx', 'attention_nb'): shutil.copytree(root/d, folder/d, ignore=shutil.ignore_patterns('__pycache__'))
    for f in ('pyproject.toml', 'settings.ini', 'nbs/references.bib'): shutil.copy(root/f, folder/f)
    nbformat.write(nb, folder/'nbs'/'index.ipynb')
    return subprocess.run([sys.executable, '-m', 'sphinx', '-q', '-W', '--keep-going', '-E', '-d', folder/'trees', '-c', folder/'nbs'/'_sphinx', folder/'nbs', folder/'html'],
                          cwd=folder, capture_output=True, text=True)

def test_a_page_may_hold_all_this(tmp_path):
    done = build(tmp_path, sample)
    assert done.returncode == 0, done.stderr
    text = (tmp_path/'html'/'index.html').read_text()
    words = re.sub(r'\s+', ' ', html.unescape(re.sub(r'<[^>]*>', ' ', text)))
    assert 'secret_of_the_cell' not in text and 'shown_only' not in text and '<p class="lead">All that a page may hold' in text.replace('class="lead">\n', 'class="lead">')
    for piece in ('The text of the note', 'arXiv:1706.03762', 'Mind', 'The gap', 'Folded', 'Inside', 'Adds one', 'All of it', 'two'): assert piece in words, piece
    assert text.count('class="code-note') >= 2 and 'sd-tab-set' in text and '@eq-one' in words and 'id="equation-eq-one"' in text
    assert re.search(r'admonition dropdown note|note dropdown', text) and 'Show the code' in text

@pytest.mark.parametrize('quote', ['"total = r + 2"', '"print(total)" to "for r in range(3):"', '""'])
def test_a_note_on_code_that_is_not_there_is_a_build_error(tmp_path, quote):
    cells = [sample[0], ('code', 'for r in range(3):\n    total = r + 1\nprint(total)'), ('markdown', f'#| explain {quote}\n\nWrong.')]
    done = build(tmp_path, cells)
    assert done.returncode != 0 and 'not in the cell above' in done.stderr

@pytest.mark.parametrize('text', ['A reference @eq-nowhere.', 'A [link](nowhere.ipynb).', 'A citation [@nobody1900].'])
def test_a_reference_to_nothing_is_a_build_error(tmp_path, text):
    assert build(tmp_path, [sample[0], ('markdown', text)]).returncode != 0
