"The pages of the API: one for each public name; the list of names in groups, and its filter"
import importlib, inspect, re
import api, package, pytest, rules
from helpers import root
from helpers.book import article, cells, lessons, loaded, plain
from helpers.looks import expect

lib = root/'attention_nb'
homes = package.homes(lib)                              # name -> module
offered = {n for names in package.offered.values() for n in names.split()}
pages = {n: package.page(lib, n) for n in homes}

def of(name): return getattr(importlib.import_module(f'attention_nb.{homes[name]}'), name)
def full(name): return f'attention_nb.{homes[name]}.{name}'

@pytest.fixture(scope='session')
def texts(site):
    return {n: article((site/f'{p}.html').read_text(encoding='utf-8')) for n,p in pages.items()}

def tables(text):
    "[rows] of the tables of a page, each row the HTML of its cells"
    found = re.findall(r'<table class="[^"]*api-table.*?</table>', text, re.S)
    return [[re.findall(r'<td>(.*?)</td>', row, re.S) for row in re.findall(
        r'<tr.*?</tr>', t, re.S)[1:]] for t in found]

def signature(text): return text[text.index('<dt class="sig'):text.index('</dt>')]

def test_every_public_name_has_a_page_with_its_signature(texts):
    assert len({p.lower() for p in pages.values()}) == len(pages), 'files that differ in capitals'
    for name,text in texts.items():
        assert plain(re.search(r'<h1>(.*?)<a', text, re.S)[1]) == name
        head,x = signature(text),of(name)
        assert f'id="{full(name)}"' in head, name
        assert ('class</span>' in plain(head) or plain(head).split()[0] == 'class') == \
            inspect.isclass(x), f'{name}: what is it?'
        assert api.summary(name) and plain(re.search(r'<p class="lead">(.*?)</p>', text, re.S)[1])
        if not (inspect.isfunction(x) or inspect.isclass(x)): continue
        if getattr(x, '_is_protocol', False) or name == 'AttentionOptions': continue
        shown = re.findall(r'<em class="sig-param">.*?class="n"><span class="pre">(\w+)', head,
                           re.S)
        assert shown == [*inspect.signature(x).parameters], name

def test_a_table_has_a_row_for_each_parameter(texts):
    asked = 0
    for name,text in texts.items():
        x = of(name)
        if not (inspect.isfunction(x) or inspect.isclass(x)): continue
        if getattr(x, '_is_protocol', False): continue
        options = name == 'AttentionOptions'
        known = {} if options else inspect.signature(x).parameters
        wanted = [*x.__annotations__] if options else [
            f'{"*" * {"VAR_POSITIONAL": 1, "VAR_KEYWORD": 2}.get(p.kind.name, 0)}{n}'
            for n,p in known.items()]
        if not wanted: continue
        rows = tables(text)[0]
        assert [plain(row[0]).strip() for row in rows] == wanted, name
        for (_,kind,default,meaning),p in zip(rows, wanted):
            assert plain(kind).strip() and plain(meaning).strip(), (name, p)
            given = known.get(p)
            if given: assert ('required' in default) == (given.default is given.empty), (name, p)
        asked += len(rows)
    assert asked > 700

def test_a_method_has_an_entry_and_what_torch_brings_has_none(texts):
    for name in ('MultiHeadAttention', 'Transformer', 'SimpleDecoder'):
        assert f'id="{full(name)}.forward"' in texts[name], name
        assert '.extra_repr"' not in texts[name] and '.state_dict"' not in texts[name]
    for name,method in (('BPETokenizer', 'encode'), ('SlidingKVCache', 'attend'),
                        ('Rope', 'tables'), ('Mixer', '__call__'), ('Transformer', 'generate')):
        assert f'id="{full(name)}.{method}"' in texts[name], (name, method)

def test_a_page_leads_to_its_lesson_its_place_and_its_source(texts):
    for name,text in texts.items():
        links = re.search(r'<p class="api-links">(.*?)</p>', text, re.S)[1]
        page = next(p for p in loaded if rules.module(p) == homes[name])
        lesson = page if page in lessons else rules.lesson_of(page, cells(page))
        assert f'../{lesson}.html"' in links and f'lesson {rules.number(lesson)[0]},' in links
        assert page in lessons or f'../{page}.html#{full(name)}"' in links, name
        line = int(re.search(rf'{homes[name].replace(".", "/")}\.py#L(\d+)"', links)[1])
        source = (lib/f'{homes[name].replace(".", "/")}.py').read_text().splitlines()
        assert re.match(rf'(@|(def|class) {name}\b|{name}\b)', source[line-1]), (name, line)

def test_an_example_and_errors_stand_on_the_page(texts):
    book = api.Book(rules.nbs)
    for name,text in texts.items():
        code,printed = book.examples.get(name, (f'import {name}', ''))
        body = plain(text)
        assert api.pasted(code) in body and printed in body, name
        for error,_,call in book.errors(name):
            assert error in body and ' '.join(call.split()) in ' '.join(body.split()), (name, call)
    assert sum(bool(book.errors(n)) for n in homes) > 95

def test_a_page_has_its_plain_text(site):
    listed = (site/'llms.txt').read_text(encoding='utf-8')
    for name,page in pages.items():
        body = (site/f'{page}.html.md').read_text(encoding='utf-8')
        assert body.startswith(f'# {name}\n\n> ') and full(name) in body
        assert f'{page}.html.md): ' in listed
        x = of(name)
        if inspect.isfunction(x): assert f'def {name}(' in body and inspect.getdoc(x) in body, name

# ---- the list of names

@pytest.fixture(scope='session')
def index(site): return article((site/'api.html').read_text(encoding='utf-8'))

def test_the_index_has_every_name_once_and_shows_what_is_offered(index):
    lists = index.split('id="names-you-know-from-elsewhere"')[0]
    def names(text): return [plain(n) for n in re.findall(
        r'<li><p><a [^>]*>(.*?)</a>', text, re.S)]
    folded = ''.join(re.findall(r'<details class="hint">.*?</details>', lists, re.S))
    assert sorted(names(lists)) == sorted(homes) and set(names(folded)) == homes.keys() - offered
    for name,page in pages.items():
        line = re.search(rf'<li><p><a [^>]*href="{page}.html#{full(name)}".*?</p>', lists, re.S)
        assert line and len(plain(line[0])) > len(name) + 10, name
    titles = [plain(t).rstrip('#') for t in re.findall(r'<h2>(.*?)</h2>', lists, re.S)]
    assert titles[:len(package.offered)] == [*package.offered]

def test_words_of_others_lead_to_ours(index):
    from attention_nb.checks import words
    rows = re.findall(r'<tr.*?</tr>', index.split('id="names-you-know-from-elsewhere"')[1], re.S)
    rows = [row for row in rows if '<td' in row]
    known = set()
    for row in rows:
        theirs,*ours = re.findall(r'<td>(.*?)</td>', row, re.S)
        known |= set(re.findall(r'\w+', plain(theirs)))
        assert re.search(r'href="api/\w+\.html#attention_nb\.', ''.join(ours)), plain(row)
    assert {n for some in words.values() for n in some} <= known
    assert {'is_causal', 'attn_mask', 'past_key_values', 'DynamicCache', 'enable_gqa', 'rope_theta',
            'output_attentions', 'num_heads', 'MultiheadAttention', 'from_pretrained'} <= known

def test_the_filter_narrows_the_list_and_says_how_many_are_left(page, address):
    page.goto(f'{address}/api.html')
    box,said = page.get_by_label('Filter by name'),page.locator('.api-filter [role=status]')
    row = page.locator('li:has(> p > a)')
    for word,name in (('is_causal', 'scaled_dot_product_attention'), ('padding', 'padding_mask'),
                      ('DynamicCache', 'ModelCache'), ('lora', 'add_lora')):
        box.fill(word)
        expect(row.filter(has_text=re.compile(rf'^{name} ')).first).to_be_visible()
        expect(row.filter(has_text=re.compile('^head_view '))).to_be_hidden()
        n = page.locator('article li:has(> p > a):visible').count()
        expect(said).to_have_text(f'{n} name{"s" * (n != 1)} left')
    box.fill('no such thing')
    expect(said).to_have_text('0 names left')
    box.fill('')
    expect(said).to_have_text('')
    expect(page.locator('article details.hint[open]')).to_have_count(0)
    box.fill('KVCache')
    box.press('Enter')
    expect(page).to_have_url(re.compile(r'/api/KVCache\.html'))
