"Finding things: the search, the index of names, plain texts, link previews, addresses that lead nowhere, citations"
import configparser, json, re, struct
from xml.etree import ElementTree
import jsonschema, package, pytest, rules, yaml
from conftest import root, serve
from test_site import Links, anchor, cells, home, page, pages, parsed       # noqa: F401

ini = configparser.ConfigParser(delimiters=['='])
ini.read(root/'settings.ini', encoding='utf-8')
settings = ini['DEFAULT']
base = f'{settings["doc_host"]}{settings["doc_baseurl"]}/'

@pytest.fixture(scope='session')
def sections(site): return json.loads((site/'sections.js').read_text(encoding='utf-8').removeprefix('var sections = '))

# ---- search

# what newcomers type, and the sections that answer
questions = '''
why divide by sqrt | 03_attention#why-divide-by-the-square-root-of-the-width
why softmax | 03_attention#why-softmax
what is a query key and value | 03_attention#second-version-query-key-value
RoPE | 07_position#turning
rotary embeddings | 07_position#turning
positional encoding | 02_embedding#position-computed
BPE | 01_tokenizer#from-words-to-bytes 01_tokenizer#training
how does byte pair encoding work | 01_tokenizer#from-words-to-bytes 01_tokenizer#training
KV cache | 08_cache#keep-what-was-made
MHA | 05_multihead#heads 05_multihead#the-module
GQA | 05_multihead#grouped-heads
SDPA | 03a_fast#the-function 03a_fast#the-fast-path
MLA | 11_latent#one-vector-for-all-heads 11_latent#a-part-that-turns
causal mask | 04_mask#causal
hide the future | 04_mask#causal
padding mask batch | 04_mask#padding
sliding window attention | 04_mask#window 08_cache#a-window-forgets
why -inf in mask | 03_attention#why-minus-infinity 04_mask#hidden-but-not-by-minus-infinity
nan row all masked | 04_mask#the-query-that-sees-nothing
attention sink | 03_attention#normalize-perhaps-with-a-sink
flash attention | 03a_fast#the-fast-path 03a_fast#attention-in-pieces 04_mask#what-a-mask-costs
layernorm rmsnorm | 09_transformer#norms
what does the output projection do | 05_multihead#why-the-output-projection
load llama weights | 10a_families#llama-and-its-kin 10a_families#loading
migrate from nn.MultiheadAttention | 05a_interop#attention_nb.interop.from_torch 05a_interop#trained-weights 05a_interop#in-short
plot attention heatmap | 06b_views#a-heatmap
cross attention | 05_multihead#two-texts
why several heads | 05_multihead#one-head-cannot-two-can
mixture of experts | 09_transformer#experts
pre-norm vs post-norm | 09_transformer#where-the-norms-stand
how long context yarn | 07a_scaling#yarn 07_position#longer-texts-than-in-training
beam search | 09b_generation#several-beams 08_cache#beams-change-places
temperature top-p sampling | 09b_generation#which-tokens-may-come
word vectors king queen | 02_embedding#directions-mean-something
backpropagation through attention | 03_attention#the-backward-pass-by-hand
what is attention | 03_attention#second-version-query-key-value 03_attention#why-attention-at-all 03_attention
how to mask padding tokens | 04_mask#padding
difference between self attention and cross attention | 05_multihead#two-texts 03_attention#a-layer-that-learns
why do transformers need positions | 03_attention#order-does-not-matter-unless-you-say-so 02_embedding#position-learned 07_position#no-places-at-all 07_position#two-words-that-are-one
what does softmax do | 03_attention#why-softmax
how does the gpt-2 tokenizer split text | 01_tokenizer#splitting-before-gluing 01_tokenizer#the-same-as-gpt-2-id-for-id
visualize attention heads | 06b_views#the-head-view 06_seeing#what-heads-do 06_seeing#all-heads-at-once-and-two-texts
how much memory does the kv cache need | 08_cache#what-it-weighs
why is attention quadratic | 08_cache#what-reading-again-costs 04_mask#what-a-mask-costs 05b_weights#what-each-option-costs
extrapolate to longer sequences | 07_position#longer-texts-than-in-training
cosine similarity of words | 02_embedding#which-words-are-alike 02_embedding#attention_nb.embedding.cosine_similarity
train on shakespeare | 01_tokenizer#shakespeare 09_transformer#a-model-that-learns
attention dropout | 05_multihead#dropout
residual connection | 05_multihead#why-add 05_multihead#from-heads-to-a-model 09_transformer#attention_nb.transformer.Residual 09_transformer#where-the-norms-stand
use with hugging face models | 06a_recording#models-of-transformers 10a_families#loading 10_pretrained#any-model-of-twenty-families
read a safetensors file | 10b_files#one-file 10b_files#tensors-by-name 10b_files#several-files 10b_files#a-source
quantization | 10b_files#unpacking 10b_files#gguf
induction heads | 10_pretrained#what-heads-do
repetition penalty | 09b_generation#less-of-the-same
stop token | 09b_generation#where-it-ends 09b_generation#stop-and-go-on
special tokens | 01_tokenizer#special-tokens 01b_tokenizer_base#special-tokens
unknown words | 01_tokenizer#a-tokenizer-of-words 01_tokenizer#what-is-a-word 01_tokenizer#from-words-to-bytes 01_tokenizer#attention_nb.tokenizer.WordTokenizer
batch of sentences of different length | 01_tokenizer#batches 04_mask#padding
grouped query attention | 05_multihead#grouped-heads
return attention weights | 05_multihead#weights-if-you-ask 05b_weights#weights-without-waste
swiglu | 09_transformer#feed-forward
causal mask with a cache | 04_mask#more-keys-than-queries 08_cache#in-chunks
command line | 06d_command 06d_command#the-command 06d_command#options
attention rollout | 06_seeing#where-a-vector-comes-from 06c_heads#rollout 06c_heads#attention_nb.heads.attention_rollout
saturated softmax vanishing gradient | 03_attention#why-divide-by-the-square-root-of-the-width 03_attention#does-the-scale-matter-for-learning
chat template | 10b_files#conversations 10_pretrained#a-model-that-answers
alibi | 07_position#a-slope 07_position#attention_nb.position.alibi_slopes 07_position#attention_nb.position.alibi_bias
convert weights to torch | 05a_interop#the-conversions 05a_interop#attention_nb.interop.to_torch 05a_interop#trained-weights
sentence embeddings | 10_pretrained#sentences-as-vectors
why is my output nan | 04_mask#the-query-that-sees-nothing'''.strip()

def read_questions(text): return {q: want.split() for q,want in (line.split(' | ') for line in text.splitlines())}

def test_a_newcomer_finds_the_section_among_the_first_three(page, address, sections):
    "At least nine questions of ten; Sphinx's own search leads to the right section for one in eighteen of these"
    wanted = read_questions(questions)
    known = {r['id'].replace('.html', '') for r in sections}
    assert not [(q, w) for q,want in wanted.items() for w in want if w not in known], 'a question is answered by a section that is not there'
    page.goto(f'{address}/index.html')
    found = {q: page.evaluate("async q => (await searchSections(q)).slice(0, 3).map(r => r.id.replace('.html', ''))", q) for q in wanted}
    missed = {q: found[q] for q in wanted if not set(found[q]) & set(wanted[q])}
    assert len(wanted) >= 60 and len(missed) <= len(wanted)//10, missed

def test_every_section_of_every_page_can_be_found(sections, parsed):
    ids = [r['id'] for r in sections]
    assert len(ids) == len(set(ids)) and {i.split('.html')[0] for i in ids} == set(pages)
    assert not [i for i in ids if '#' in i and i.split('#')[1] not in parsed[i.split('#')[0]].ids]
    for name in pages: assert sum(i.startswith(f'{name}.html') for i in ids) > sum(line.startswith('## ') for c in cells(name) if c['cell_type'] == 'markdown' for line in rules.source(c).splitlines())/2

def test_excerpts_are_plain_text(sections):
    raw = [(r['id'], m) for r in sections for m in re.findall(r'.{0,20}(?:\\[a-zA-Z]{2,}|\{\\|#\||<[a-z]+[ >/]).{0,20}', r['text'] + r['title'])]
    assert not [x for x in raw if '<' not in x[1]] and sum(map(len, (r['text'] for r in sections))) > 100_000, raw[:5]

def test_formulas_become_plain_signs():
    import search
    assert search.plain_math(r'{\color{#0072B2}{q_i}} = x_i {\color{#0072B2}{W^Q}}') == 'q_i = x_i W^Q'
    assert search.plain_math(r'\alpha \cdot \sqrt{E}').replace(' ', '') == 'α·√(E)'
    assert not re.search(r'[\\{}&]', search.plain_math(r'\begin{aligned} a &= \frac{b}{c} \\ d &= \mathrm{softmax}(e) \end{aligned}'))

def test_names_of_the_glossary_lead_to_the_sections_it_links(sections):
    terms = {r['id'].replace('.html', ''): r['terms'] for r in sections}
    text = '\n'.join(rules.source(c) for c in cells('glossary'))
    rows = re.findall(r'^\| ([^|]+) \| (\[.+) \|$', text, re.M) + re.findall(r'^- \*\*([^*]+)\*\*: .* → (.+)$', text, re.M)
    assert len(rows) > 120
    for names,links in rows:
        for target,section in re.findall(r'\((\w+)\.ipynb(?:#([\w-]+))?\)', links):
            own = target + ('#' + re.sub(r'^\d+-', '', section) if section else '')
            assert names.replace('`', '').split(',')[0] in terms[own], (names, own)

def test_names_with_other_signs_are_found_as_they_are_written(page, address):
    page.goto(f'{address}/index.html')
    for query in ('from_torch', 'interop.from_torch', 'FROM_TORCH'):
        assert page.evaluate("async q => (await searchSections(q))[0].id", query) == '05a_interop.html#attention_nb.interop.from_torch', query
    assert page.evaluate("async () => (await searchSections('the of and')).length + (await searchSections('')).length") == 0

def test_the_dialog_answers_as_one_types_and_lands_on_the_section(page, address):
    from playwright.sync_api import expect
    problems = []
    page.on('request', lambda r: problems.append(r.url) if not r.url.startswith(address) else None)
    page.on('pageerror', lambda e: problems.append(str(e)))
    page.goto(f'{address}/01_tokenizer.html')
    page.keyboard.press('Control+k')
    page.keyboard.type('why divide by sqr')
    hit = page.locator('#pst-search-dialog ul.search a').first
    expect(hit).to_have_text('Why divide by the square root of the width', timeout=30_000)
    expect(page.locator('#pst-search-dialog .search-summary')).to_contain_text('sections found')
    expect(page.locator('#pst-search-dialog ul.search li').first.locator('mark').first).to_be_visible()
    hit.click()
    expect(page).to_have_url(re.compile(r'/03_attention\.html#why-divide-by-the-square-root-of-the-width$'))
    expect(page.locator('#why-divide-by-the-square-root-of-the-width > h2')).to_be_in_viewport(timeout=30_000)
    assert not problems, problems

def test_a_link_lands_on_its_section_and_stays_while_the_page_grows(page, address):
    "Pictures and formulas above it come later; once the reader scrolls, the page stands still"
    section = 'why-divide-by-the-square-root-of-the-width'
    page.goto(f'{address}/03_attention.html#{section}')
    page.wait_for_function("!document.querySelector('.math:not(:has(mjx-container))')", timeout=60_000)
    page.wait_for_timeout(500)
    top = f"document.getElementById('{section}').getBoundingClientRect().top"
    assert 0 <= page.evaluate(top) < 150
    page.mouse.move(700, 450)
    page.mouse.wheel(0, 500)
    page.wait_for_function(f'{top} < -300')
    page.evaluate("document.querySelector('h1').style.height = '400px'")
    page.wait_for_timeout(300)
    assert page.evaluate(top) < -300

def test_the_search_shows_markup_as_text(page, address):
    page.goto(f'{address}/search.html?q=%3Cimg+src%3Dx+onerror%3D%22window.bad%3D1%22%3E+mask')
    page.locator('#search-results li').first.wait_for(timeout=30_000)
    assert page.evaluate('window.bad') is None and page.locator('#search-results img').count() == 0

def test_the_search_works_from_a_folder(page, site):
    page.goto((site/'search.html').as_uri() + '?q=rope')
    page.locator('#search-results a[href^="07_position.html#turning"]').wait_for(timeout=30_000)

# ---- the index of names

def test_the_api_index_has_every_public_name_with_its_line(site, parsed):
    "Each links its entry; the page is in the sidebar of every page"
    text = (site/'api.html').read_text(encoding='utf-8')
    article = text[text.index('<article'):text.index('</article')]
    lines = {re.sub('<[^>]*>', '', item).split(':')[0]: item for item in re.findall(r'<li>(.*?)</li>', article, re.S)}
    names = {n: m for m,names in package.table(root/'attention_nb').items() for n in names}
    assert {n.strip() for n in lines} == set(names)
    linked = [n for n,m in names.items() if f'#attention_nb.{m}.{n}"' in lines[n] and len(re.sub('<[^>]*>', '', lines[n])) > len(n) + 10]
    assert set(names) - set(linked) == set(names) - set(home), 'functions and classes have entries, constants have none'
    assert [m for m in re.findall(r'<h2>(\w+)', article)][:3] == ['tokenizer', 'merges', 'tokenizer_base'], 'in the order of the book'
    for name in pages: assert 'api.html' in parsed[f'{name}.html'].links or name == 'api'

# ---- what others read of a page

def promise(name):
    "Below the title, as `> promise` or in the front matter"
    text = '\n'.join(rules.source(c) for c in cells(name)[:2])
    return re.search(r'^(?:> |description: )(.+)', text, re.M)[1].strip('"')

def letters(text): return re.sub(r'\W', '', re.sub(r'&\w+;|`', '', text))

@pytest.mark.parametrize('name', pages)
def test_a_page_says_what_it_is(site, name):
    text = (site/f'{name}.html').read_text(encoding='utf-8')
    tags = dict(re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]*)"', text))
    assert letters(tags['description']) == letters(tags['og:description']) == letters(promise(name))
    assert tags['og:url'] == base + f'{name}.html' and f'<link rel="canonical" href="{base}{name}.html" />' in text
    assert tags['og:title'] and tags['og:image'].startswith(base) and len(tags['og:image:alt']) > 20 and text.count('name="description"') == 1
    head = (site/tags['og:image'].removeprefix(base)).read_bytes()[:24]
    assert head[:4] == b'\x89PNG' and struct.unpack('>II', head[16:]) == (1200, 630)
    assert f'Version {settings["version"]}.' in text and 'Apache License 2.0</a>' in text, 'version and licence stand at the foot of the page'

def test_a_preview_keeps_its_words_on_the_picture():
    import publish
    svg = publish.preview_svg('A & B', 'word ' * 40, '<svg viewBox="0 0 1 1"/>')
    tree = ElementTree.fromstring(svg)
    texts = [t for t in tree.iter('{http://www.w3.org/2000/svg}text')]
    assert texts[0].text == 'A & B' and all(len(t.text) <= 58 for t in texts) and max(float(t.get('y')) for t in texts) < publish.HEIGHT

def test_the_sitemap_has_every_page_once(site):
    found = [e.text for e in ElementTree.parse(site/'sitemap.xml').iter('{http://www.sitemaps.org/schemas/sitemap/0.9}loc')]
    assert sorted(found) == sorted(f'{base}{name}.html' for name in pages)

def test_an_address_that_leads_nowhere_still_has_the_site(site, tmp_path, page):
    "As GitHub Pages shows it: at any depth, under the name of the project"
    (tmp_path/settings['repo']).symlink_to(site, target_is_directory=True)
    deep = tmp_path/settings['repo']
    text = (deep/'404.html').read_text(encoding='utf-8')
    folder = tmp_path/'elsewhere'/'deep'
    folder.mkdir(parents=True)
    (folder/'nothing.html').write_text(text, encoding='utf-8')
    failed = []
    page.on('requestfailed', lambda r: failed.append(r.url))
    page.on('response', lambda r: failed.append(r.url) if r.status >= 400 else None)
    with serve(tmp_path) as address:
        page.goto(f'{address}/elsewhere/deep/nothing.html')
        assert 'Page not found' in page.locator('article h1, main h1').last.inner_text() and not failed, failed
        page.keyboard.press('Control+k')
        page.keyboard.type('rope')
        page.locator('#pst-search-dialog ul.search a[href$="07_position.html#turning"]').click(timeout=30_000)
        page.wait_for_url(f'{address}/{settings["repo"]}/07_position.html#turning')

def plain_links(text): return re.findall(r'\]\(([^)\s]+)\)', re.sub(r'^```.*?^```|`[^`\n]*`', '', text, flags=re.M|re.S))

def test_links_of_the_plain_texts_lead_to_plain_texts(site):
    headings = {p.name: {anchor(h) for h in re.findall(r'^#+ (.+)', re.sub(r'^```.*?^```', '', p.read_text(encoding='utf-8'), flags=re.M|re.S), re.M)} for p in site.glob('*.html.md')}
    assert set(headings) >= {f'{name}.html.md' for name in pages}
    broken,inside = [],0
    for name in headings:
        text = (site/name).read_text(encoding='utf-8')
        for link in plain_links(text):
            link = link.removeprefix(base)
            if re.match(r'\w+:', link): continue
            target,_,section = link.partition('#')
            inside += 1
            if not (site/(target or name)).exists() or '.ipynb' in target: broken.append((name, link))
            elif section and target and target.endswith('.md') and section not in headings[target]: broken.append((name, link))
        prose = re.sub(r'^```.*?^```|`[^`\n]*`', '', text, flags=re.M|re.S)
        assert not re.search(r'\[@|\{#eq|:::|\\color', prose), name
    assert inside > 300 and not broken, broken

def test_a_plain_text_is_for_readers_without_the_site():
    import publish
    papers = {'su2021': ('{RoFormer}: Rotary', '2104.09864'), 'old': ('A report', None)}
    def plain(text): return publish.plain(text, {'attention': '03_attention'}, papers, base, {'04_mask': {'causal'}, '03_attention': {'hide'}})
    assert plain('[a](04_mask.ipynb#causal), [a](04_mask.ipynb#gone), [b](https://x.org/y.html), [c](' + base + 'attention.html#hide)') == '[a](04_mask.html.md#causal), [a](04_mask.html.md), [b](https://x.org/y.html), [c](03_attention.html.md#hide)'
    assert plain('So [@su2021; @old].') == 'So ([RoFormer: Rotary](https://arxiv.org/abs/2104.09864); A report).'
    assert plain('$x$ {#eq-one}, see @eq-one and `@eq-one`') == '$x$ (one), see (one) and `@eq-one`'
    assert plain('::: {.callout-note}\ntext\n:::\n') == 'text\n' and plain(r'${\color{#0072B2}{q_{i}}}$') == '$q_{i}$'

def test_llms_txt_lists_every_page(site):
    text = (site/'llms.txt').read_text(encoding='utf-8')
    assert re.match(r'# attention_nb\n\n> \S.+\n\n## Lessons\n', text)
    links = dict(re.findall(rf'^- \[[^\]]+\]\({re.escape(base)}(\w+)\.html\.md\): (.+)$', text, re.M))
    assert set(links) == set(pages) and all(letters(links[name]) == letters(promise(name)) for name in pages)
    assert [h for h in re.findall(r'^## (.+)', text, re.M)] == ['Lessons', 'Workshops', 'Reference']

# ---- citations

def test_a_citation_says_its_paper_on_hover_and_focus(page, address):
    from playwright.sync_api import expect
    problems = []
    page.on('request', lambda r: problems.append(r.url) if not r.url.startswith(address) else None)
    page.goto(f'{address}/03_attention.html')
    link,tip = page.locator('a[role="doc-noteref"]').first,page.locator('.tooltip.citation')
    expect(tip).to_have_count(0)
    link.hover()
    expect(tip).to_contain_text('Neural machine translation by jointly learning to align and translate')
    page.mouse.move(0, 0)
    expect(tip).to_have_count(0)
    link.focus()
    expect(tip).to_be_visible()
    assert not problems

def test_the_citation_file_is_valid_and_of_this_version():
    cff = yaml.safe_load((root/'CITATION.cff').read_text(encoding='utf-8'))
    jsonschema.validate(cff, json.loads((root/'tests'/'citation_schema.json').read_text(encoding='utf-8')))
    assert cff['version'] == settings['version'] and cff['url'] == base and cff['license'] == 'Apache-2.0' and settings['license'] == 'apache2'
    assert cff['repository-code'] == settings['git_url'] and cff['authors'] == [{'name': settings['author']}]
    with pytest.raises(jsonschema.ValidationError): jsonschema.validate({**cff, 'authors': []}, json.loads((root/'tests'/'citation_schema.json').read_text(encoding='utf-8')))
