"Finding things: search, the index of names, plain texts, addresses that lead nowhere, citations"
import html, json, re, struct
from xml.etree import ElementTree
import jsonschema, package, pytest, rules, yaml
from helpers import base, root, serve, settings
from helpers.book import anchor, book, home, markdown, pages, promise
from helpers.looks import expect, watched

lib = root/'attention_nb'

@pytest.fixture(scope='session')
def sections(site):
    return json.loads((site/'sections.js').read_text(encoding='utf-8').removeprefix('var sections '
                                                                                    '= '))

# the pages of public names
of_names = [package.page(lib, n) for n in package.homes(lib)]

def without_number(address):
    "`why#why-softmax` for `06_why.html#why-softmax`"
    return re.sub(r'^\d+_', '', address.replace('.html', ''))

# ---- search

# what newcomers type, and the sections that answer, on pages without their numbers
questions = '''
what is cross entropy loss | model#how-wrong-is-it
what is a gradient step | model#a-step model#the-gradient
next token prediction | model#what-comes-next
what is perplexity | model#how-wrong-is-it decoder#a-text-to-learn-from
why divide by sqrt | why#why-divide-by-the-square-root-of-the-width
why softmax | why#why-softmax
what is a query key and value | attention#query-key-value
positional encoding | position#position-computed
BPE | tokenizer#from-words-to-bytes tokenizer#training
KV cache | cache#keep-what-was-made
GQA | layers/multihead#grouped-heads
SDPA | kernels/dispatch#torch-s-kernel
MLA | latent#one-vector-for-all-heads latent#a-part-that-turns
causal mask | mask#causal
padding mask batch | mask#batches-and-padding
sliding window attention | kernels/mask#window window#a-window-forgets
why -inf in mask | why#why-minus-infinity mask#what-hiding-does-to-a-row
nan row all masked | mask#the-query-that-sees-nothing
attention sink | kernels/reference#normalize-perhaps-with-a-sink
flash attention | kernels/dispatch#torch-s-kernel kernels/dispatch#attention-in-pieces
    kernels/mask#what-the-table-costs flash flash#tiles
layernorm rmsnorm | transformer#norms
what does the output projection do | multihead#why-the-output-projection
load llama weights | guide/load_model checkpoints/families/llama checkpoints/convert#loading
migrate from nn.MultiheadAttention | guide/from_torch
    api/from_torch
    layers/torch_interop#trained-weights layers/torch_interop#in-short
plot attention heatmap | views/attention_views#a-heatmap
cross attention | multihead#two-texts
why several heads | multihead#one-head-cannot-two-can
mixture of experts | transformer#experts
pre-norm vs post-norm | transformer#where-the-norms-stand
how long context yarn | layers/rope_scaling#yarn position#longer-texts-than-in-training
temperature top-p sampling | models/sampling#temperature-and-filters
word vectors king queen | embedding#directions-mean-something
backpropagation through attention | notes/steps#the-backward-pass-by-hand
what is attention | attention#query-key-value attention#why-attention-at-all
    attention
why do transformers need positions | why#order-does-not-matter-unless-you-say-so
    position#position-learned notes/places#no-places-at-all position
how does the gpt-2 tokenizer split text | text/bpe#splitting-before-merging
    tokenizer#the-same-as-gpt-2-id-for-id
visualize attention heads | views/attention_views#the-head-view seeing#what-heads-do
    seeing#all-heads-at-once
how much memory does the kv cache need | cache#what-it-weighs
why is attention quadratic | attention#the-function cache#what-reading-again-costs
    kernels/mask#what-the-table-costs
    layers/multihead#what-each-option-costs
extrapolate to longer sequences | position#longer-texts-than-in-training
cosine similarity of words | embedding#which-words-are-alike
    api/cosine_similarity
train on shakespeare | tokenizer#how-large-should-the-vocabulary-be embedding#train-the-vectors
    decoder#a-text-to-learn-from decoder#training notes/speller#words-backwards decoder
attention dropout | layers/multihead#dropout
residual connection | block#add-do-not-replace
    api/Residual transformer#where-the-norms-stand
use with hugging face models | recording/third_party#models-of-transformers
    checkpoints/convert#loading
    checkpoints/pretrained#load guide/load_model
read a safetensors file | checkpoints/tensors#one-file checkpoints/tensors#tensors-by-name
    checkpoints/tensors#several-files checkpoints/source#a-source checkpoints/tensors
quantization | checkpoints/gguf#unpacking checkpoints/gguf#header-and-table
induction heads | pretrained#what-heads-do
repetition penalty | models/sampling#repetition-penalty
stop token | models/decoding#where-it-ends models/generation#stop-and-continue
special tokens | text/bpe#special-tokens
unknown words | tokenizer#words tokenizer#from-words-to-bytes
    text/tokenizer#what-is-a-word api/WordTokenizer
batch of sentences of different length | text/vocabulary mask#batches-and-padding
swiglu | transformer#feed-forward
command line | views/command views/command#the-command views/command#options
chat template | checkpoints/source#a-conversation pretrained#a-model-that-answers
alibi | layers/position#a-slope api/alibi_slopes
    api/alibi_bias
convert weights to torch | guide/from_torch#convert-a-module layers/torch_interop#the-conversions
    api/to_torch
    layers/torch_interop#trained-weights
sentence embeddings | notes/search#sentences-as-vectors
    checkpoints/pretrained#sentences-in-batches
why is my output nan | mask#the-query-that-sees-nothing'''

# how many answers are looked through, what is typed, and the pages of which one is among them
typed = '''
2 | the cache class | api/KVCache layers/cache
2 | the mask for padding | mask#batches-and-padding guide/masks#padding api/padding_mask
2 | how to load a folder | guide/load_model checkpoints/pretrained checkpoints/source
2 | a picture of one head | views/attention_views#the-head-view views/neuron_view api/head_view
2 | is_causal | mask api/scaled_dot_product_attention api/attention guide/masks layers/torch_interop
2 | key_padding_mask | mask#batches-and-padding guide/masks guide/from_torch
2 | past_key_values | cache#keep-what-was-made guide/generate
2 | what is a head | multihead#heads-with-matrices-of-their-own multihead
2 | rotary | position#turning
2 | why divide by the root | why#why-divide-by-the-square-root-of-the-width
2 | use my own model | guide/load_model checkpoints/pretrained
2 | KVCache | api/KVCache layers/cache
2 | padding_mask | api/padding_mask kernels/mask
1 | kv cache | cache
1 | rope | position
1 | beam search | models/beam_search
1 | visualize my bert | views/attention_views
1 | flash attention | flash
1 | int8 | bits
1 | multi head attention | multihead
1 | softmax | why
1 | from_torch | api/from_torch
1 | torch_interop.from_torch | api/from_torch
1 | FROM_TORCH | api/from_torch
3 | kv cache | api/KVCache
3 | sliding kv cache | api/SlidingKVCache
3 | head view | api/head_view
3 | scaled dot product | api/scaled_dot_product_attention
3 | attention mask | api/AttentionMask'''

def read_questions(text):
    joined = re.sub(r'\n {4}', ' ', text.strip()).splitlines()
    return {q: want.split() for q,want in (line.split(' | ') for line in joined)}

def test_a_newcomer_finds_the_section_among_the_first_three(page, address, sections):
    "At least nine questions of ten; Sphinx's own search leads one in eighteen to the right section"
    wanted = read_questions(questions)
    known = {without_number(r['id']) for r in sections}
    lost = [(q, w) for q,want in wanted.items() for w in want if w not in known]
    assert not lost, 'a question is answered by a section that is not there'
    page.goto(f'{address}/index.html')
    ask = 'async q => (await searchSections(q)).slice(0, 3).map(r => r.id)'
    found = {q: [*map(without_number, page.evaluate(ask, q))] for q in wanted}
    missed = {q: found[q] for q in wanted if not set(found[q]) & set(wanted[q])}
    assert len(wanted) >= 60 and len(missed) <= len(wanted)//10, missed

def test_every_section_of_every_page_can_be_found(sections, parsed):
    ids = [r['id'] for r in sections]
    assert len(ids) == len(set(ids)) and {i.split('.html')[0] for i in ids} == {*pages, *of_names}
    ends = [i.split('#') for i in ids if '#' in i]
    assert not [(name, end) for name,end in ends if end not in parsed[name].ids]
    for name in set(pages) - {'index'}:                # of which the README shows more
        headings = sum(l.startswith('## ') for t in markdown(name) for l in t.splitlines())
        assert sum(i.startswith(f'{name}.html') for i in ids) > headings/2, name

def test_excerpts_are_plain_text(sections):
    marks = r'.{0,20}(?:\\[a-zA-Z]{2,}|\{\\|#\|).{0,20}'
    raw = [(r['id'], m) for r in sections for m in re.findall(marks, r['text'] + r['title'])]
    assert not raw and sum(len(r['text']) for r in sections) > 100_000, raw[:5]

def test_names_of_the_glossary_lead_to_the_sections_it_links(sections):
    terms = {r['id'].replace('.html', ''): r['terms'] for r in sections}
    text = '\n'.join(markdown('glossary'))
    rows = re.findall(r'^\| ([^|]+) \| (\[.+) \|$', text, re.M)
    rows += re.findall(r'^- \*\*([^*]+)\*\*: .* → (.+)$', text, re.M)
    assert len(rows) > 120
    for names,links in rows:
        for target,section in re.findall(r'\(([\w/]+)\.ipynb(?:#([\w-]+))?\)', links):
            own = target + ('#' + re.sub(r'^\d+-', '', section) if section else '')
            assert names.replace('`', '').split(',')[0] in terms[own], (names, own)

def test_what_people_type_finds_its_page_among_the_first(page, address):
    "Words of a task, names in any spelling; lessons stand before the library and the names"
    page.goto(f'{address}/index.html')
    ask = 'async q => (await searchSections(q)).slice(0, 3).map(r => r.id)'
    rows = [line.split(' | ') for line in typed.strip().splitlines()]
    found = {q: [*map(without_number, page.evaluate(ask, q))] for _,q,_ in rows}
    missed = [(q, found[q]) for n,q,want in rows
              if not any(re.match(f'{re.escape(w)}(#|$)', f) for f in found[q][:int(n)]
                         for w in want.split())]
    assert not missed, missed
    for query in ('the of and', ''): assert page.evaluate(ask, query) == []

def test_the_dialog_answers_as_one_types_and_lands_on_the_section(page, address):
    problems = []
    watched(page, problems, (address,))
    page.goto(f'{address}/index.html')
    page.keyboard.press('Control+k')
    page.keyboard.type('why divide by sqr')
    hit = page.locator('#pst-search-dialog ul.search a').first
    section = 'why-divide-by-the-square-root-of-the-width'
    expect(hit).to_have_attribute('href', re.compile(f'#{section}$'))
    expect(page.locator('#pst-search-dialog .search-badge').first).to_have_text('Lesson')
    found = page.locator('#pst-search-dialog ul.search li').first.locator('mark').first
    expect(found).to_be_visible()
    hit.click()
    expect(page).to_have_url(re.compile(f'#{section}$'))
    expect(page.locator(f'#{section} > h2')).to_be_in_viewport()
    assert not problems, problems

def test_answers_of_one_kind(page, address):
    "A chip keeps the answers of its kind, as many as it says, and gives all back"
    page.goto(f'{address}/search.html?q=cache')
    chip,all_of = page.locator('.search-chips button', has_text='API'),'#search-results li'
    many = int(chip.inner_text().split()[1])
    assert 0 < many < 40
    chip.click()
    expect(page.locator(all_of)).to_have_count(many)
    expect(page.locator(f'{all_of} .search-badge').first).to_have_text('API')
    page.locator('.search-chips button[aria-pressed=true]').click()
    expect(page.locator(f'{all_of} .search-badge', has_text='Lesson').first).to_be_visible()

def test_the_search_is_used_without_a_pointer(page, address):
    page.goto(f'{address}/index.html')
    page.keyboard.press('Control+k')
    page.keyboard.type('rope')
    hits = page.locator('#pst-search-dialog ul.search a')
    expect(hits.first).to_have_attribute('href', re.compile('07_position'))
    for key,hit in (('ArrowDown', 0), ('ArrowDown', 1), ('ArrowUp', 0)):
        page.keyboard.press(key)
        expect(hits.nth(hit)).to_be_focused()
    page.keyboard.press('ArrowUp')
    expect(page.locator('#pst-search-dialog input[type=search]')).to_be_focused()
    page.keyboard.press('Enter')
    expect(page).to_have_url(re.compile('07_position.html#turning'))

def test_a_link_lands_on_its_section_and_stays_while_the_page_grows(page, address):
    "Pictures and formulas above it come later; once the reader scrolls, the page stands still"
    section = 'why-divide-by-the-square-root-of-the-width'
    page.goto(f'{address}/why.html#{section}')            # its other name, with the anchor
    page.wait_for_function(f"""document.getElementById('{section}')
        && !document.querySelector('.math:not(:has(mjx-container))')""", timeout=60_000)
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
    page.locator('#search-results li').first.wait_for()
    assert page.evaluate('window.bad') is None
    assert page.locator('#search-results img').count() == 0
    page.goto(f'{address}/search.html?q=zweihundertfach')
    expect(page.locator('#search-results')).to_contain_text('did not match any documents')

def test_the_search_works_from_a_folder(page, site):
    page.goto((site/'search.html').as_uri() + '?q=rope')
    page.locator('#search-results a[href*="position.html#turning"]').wait_for()

# ---- what others read of a page

def letters(text): return re.sub(r'\W', '', html.unescape(text))

def test_a_page_says_what_it_is(site):
    for name in pages:
        text = (site/f'{name}.html').read_text(encoding='utf-8')
        tags = dict(re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]*)"', text))
        for tag in ('description', 'og:description'):
            assert letters(tags[tag]) == letters(promise(name))
        assert tags['og:url'] == base + f'{name}.html' and tags['og:title']
        assert f'<link rel="canonical" href="{base}{name}.html" />' in text
        assert text.count('name="description"') == 1
        assert tags['og:image'].startswith(base) and tags['twitter:card'] == 'summary_large_image'
        shown = (site/tags['og:image'].removeprefix(base)).read_bytes()
        assert shown[:8] == b'\x89PNG\r\n\x1a\n'
        assert struct.unpack('>2I', shown[16:24]) == (1200, 630)
        own = f'previews/{name}.png' in tags['og:image']
        assert own == (rules.kind(name) == 'lesson' or name == 'index'), name
        assert f'Version {settings["version"]}.' in text and 'Apache License 2.0</a>' in text

def test_the_sitemap_has_every_page_once(site):
    loc = '{http://www.sitemaps.org/schemas/sitemap/0.9}loc'
    found = [e.text for e in ElementTree.parse(site/'sitemap.xml').iter(loc)]
    assert sorted(found) == sorted(f'{base}{name}.html' for name in [*pages, *of_names])

def test_an_address_that_leads_nowhere_still_has_the_site(site, tmp_path, page):
    "As GitHub Pages shows it: at any depth, under the name of the project"
    (tmp_path/settings['repo']).symlink_to(site, target_is_directory=True)
    folder,problems = tmp_path/'elsewhere'/'deep',[]
    folder.mkdir(parents=True)
    (folder/'nothing.html').write_bytes((site/'404.html').read_bytes())
    watched(page, problems, 'http')
    with serve(tmp_path) as address:
        page.goto(f'{address}/elsewhere/deep/nothing.html')
        assert 'Page not found' in page.locator('article h1, main h1').last.inner_text()
        assert not problems, problems
        page.keyboard.press('Control+k')
        page.keyboard.type('rope')
        page.locator('#pst-search-dialog ul.search a[href$="position.html#turning"]').click()
        page.wait_for_url(re.compile(rf'{address}/{settings["repo"]}/\w+\.html#turning'))

def prose(text): return re.sub(r'^```.*?^```|`[^`\n]*`', '', text, flags=re.M|re.S)

def test_links_of_the_plain_texts_lead_to_plain_texts(site):
    texts = {p.relative_to(site).as_posix(): p.read_text(encoding='utf-8')
             for p in site.rglob('*.html.md')}
    headings = {name: {anchor(h) for h in re.findall(r'^#+ (.+)', re.sub(
        r'^```.*?^```', '', text, flags=re.M|re.S), re.M)} for name,text in texts.items()}
    assert set(headings) >= {f'{name}.html.md' for name in pages}
    broken,inside = [],0
    for name,text in texts.items():
        for link in re.findall(r'\]\(([^)\s]+)\)', prose(text)):
            link = link.removeprefix(base)
            if re.match(r'\w+:', link): continue
            target,_,section = link.partition('#')
            inside += 1
            target = rules.target(target, name) if target else name
            known = headings.get(target, {section}) if target != name else {section}
            if not (site/target).exists() or '.ipynb' in target:
                broken.append((name, link))
            elif section and section not in known: broken.append((name, link))
        assert not re.search(r'\[@|\{#eq|:::|\\color', prose(text)), name
    assert inside > 300 and not broken, broken

def test_llms_txt_lists_every_page(site):
    text = (site/'llms.txt').read_text(encoding='utf-8')
    assert re.match(r'# attention_nb\n\n> \S.+\n\n- .+\n\n## Learn\n', text)
    links = dict(re.findall(rf'^- \[[^\]]+\]\({re.escape(base)}([\w/.]+)\.html\.md\): (.+)$', text,
                            re.M))
    assert set(links) == {*pages, *of_names}
    assert all(letters(links[name]) == letters(promise(name)) for name in pages)
    assert re.findall(r'^## (.+)', text, re.M) == [
        'Learn', 'Beside the lessons', 'Notes', 'Play', 'Library', 'API', 'Speed']
    assert [n for n in links if n in book] == [*book], 'in the order of the book'

# ---- citations

def test_a_citation_says_its_paper_on_hover_and_focus(page, address):
    problems = []
    watched(page, problems, (address, 'data:', 'blob:'))
    page.goto(f'{address}/{home()["simple_attention"][0]}.html')
    link,tip = page.locator('a[role="doc-noteref"]').first,page.locator('.tooltip.citation')
    paper = 'Neural machine translation by jointly learning to align and translate'
    link.wait_for()
    expect(tip).to_have_count(0)
    link.hover()
    expect(tip).to_contain_text(paper)
    page.mouse.move(0, 0)
    expect(tip).to_have_count(0)
    link.focus()
    expect(tip).to_be_visible()
    assert not problems

def test_the_citation_file_is_valid_and_of_this_version():
    cff = yaml.safe_load((root/'CITATION.cff').read_text(encoding='utf-8'))
    schema = json.loads((root/'tests'/'site'/'citation_schema.json').read_text(encoding='utf-8'))
    jsonschema.validate(cff, schema)
    assert cff['version'] == settings['version'] and cff['url'] == base
    assert cff['license'] == 'Apache-2.0' and settings['license'] == 'apache2'
    assert cff['repository-code'] == settings['git_url']
    assert cff['authors'] == [{'name': settings['author']}]
