"The model in the page: its worker against Python, what it fetches, what a reader does with it"
import base64, json, os, re, time
from types import SimpleNamespace
import pytest, torch
from helpers import root, serve
from helpers.looks import contrast, expect, hostile, until, walk

sentences = [
    'The animal was too tired to cross the street.', 'Time flies like an arrow.', 'a', '',
    'She poured water from the pitcher into the cup until it was full, and then some more.',
    'Crème brûlée, naïve façade; the coöperative élite.',
    "Don't (ever) e-mail: 100% $5 <b>&amp;</b>",
    'ＡＢＣ full width, ﬁ ligature, ½', 'I like 🍕 and 🤖!', 'Быстрая коричневая лиса прыгает.',
    'Η γρήγορη καφέ αλεπού. ΟΔΟΣ', 'השועל החום המהיר', 'الثعلب البني السريع',
    '我喜欢猫。東京へ行きます',
    'तेज़ भूरी लोमड़ी', 'İstanbul ve ığdır', 'tab\there\nnew\u00a0line\u200bzero\x07bell \ufffd',
    'pneumonoultramicroscopicsilicovolcanoconiosis ' + 'x'*101 + ' end',
    'word '*10_000, 'Many words make a text that is long. '*14]        # the last one just fits

@pytest.fixture(scope='module')
def context(browser):
    "One for the whole file, which keeps the weights"
    found = browser.new_context(viewport=dict(width=1400, height=900))
    yield found
    found.close()

@pytest.fixture(scope='module')
def page(context, address):
    found = context.new_page()
    found.goto(f'{address}/figures/browser_model.html')
    return found

def live(page):
    "What there is in the box of a page"
    box = page.locator('.live')
    return SimpleNamespace(
        box=box, text=box.locator('textarea').first, status=box.locator('.live-status'),
        result=box.locator('.live-result'), frame=page.frame_locator('.live iframe'),
        button=lambda name, **kw: box.get_by_role('button', name=name, **kw))

# many numbers are sent as bytes
packed = """async text => {
    await attentionNb.load()
    const {tokens, cut, layers, vector} = await attentionNb.inside.ask('run', text)
    const file = new FileReader()
    file.readAsDataURL(new Blob(layers.map(l => l.weights)))
    await new Promise(done => { file.onload = done })
    return {tokens, cut, vector: [...vector], weights: file.result.split(',')[1]} }"""

def test_the_worker_computes_what_python_does(page):
    from transformers import AutoModel, AutoTokenizer
    from attention_nb.figures.browser_model import int8_pieces
    from attention_nb.checkpoints.source import locate
    tokenizer = AutoTokenizer.from_pretrained(locate('minilm'))
    model = AutoModel.from_pretrained(locate('minilm'), attn_implementation='eager').eval()
    for name,p in model.named_parameters():
        if p.dim() == 2 and 'pooler' not in name:           # as rounded as the worker's
            counts,step = int8_pieces(p.data)
            p.data = counts*step.repeat_interleave(64, 1)
    for text in sentences:
        found = page.evaluate(packed, text)
        ids = tokenizer(text, return_tensors='pt', truncation=True, max_length=128)
        assert found['tokens'] == tokenizer.convert_ids_to_tokens(ids['input_ids'][0]), text
        assert found['cut'] == (len(tokenizer(text)['input_ids']) > 128)
        with torch.no_grad(): theirs = model(**ids, output_attentions=True)
        want = torch.cat(theirs.attentions)
        got = torch.frombuffer(bytearray(base64.b64decode(found['weights'])), dtype=torch.float32)
        assert (got.view_as(want) - want).abs().max() < 1e-3, text
        vector = torch.nn.functional.normalize(theirs.last_hidden_state[0].mean(0), dim=0)
        assert vector @ torch.tensor(found['vector']) > 1 - 1e-3

said = dict(model_type='bert', hidden_size=8, num_attention_heads=2, num_hidden_layers=2,
            intermediate_size=12, vocab_size=7, max_position_embeddings=8, type_vocab_size=2)
words = ['[PAD]','[UNK]','[CLS]','[SEP]','birds','fly']

def bert(**kw):
    "A BERT of two blocks"
    from transformers import BertConfig, BertModel
    torch.manual_seed(0)
    return BertModel(BertConfig(**said | kw, attn_implementation='eager')).eval()

@pytest.fixture(scope='module')
def build(browser):
    "Build and run in the worker's script: the weights, or what is refused"
    from attention_nb.figures.browser_model import _worker
    from safetensors.torch import save
    found = browser.new_page()
    found.add_script_tag(content=_worker())
    def f(config, tensors, vocabulary=words):
        data = tensors if isinstance(tensors, bytes) else save(tensors)
        return found.evaluate("""([config, words, data]) => {
            const buffer = Uint8Array.from(atob(data), c => c.charCodeAt(0)).buffer
            try { return [...run(build(config, words, buffer), 'Birds fly').layers[1].weights] }
            catch (error) { return error.message }}""",
            [config, vocabulary, base64.b64encode(data).decode()])
    yield f
    found.close()

odd = dict(
    position_embedding_type=['relative_key', 'absolute', None], is_decoder=[True],
    add_cross_attention=[True], is_encoder_decoder=[True], pruned_heads=[{'0': [1]}, {}],
    num_attention_heads=[0, 3, -2], num_hidden_layers=[0, 1, 3, 2.5], hidden_size=[12, [8]],
    intermediate_size=[16], vocab_size=[8], max_position_embeddings=[16], type_vocab_size=[3],
    layer_norm_eps=[None, 0, '1e-12', True], hidden_act=[None, 'gelu_python'], kinds_of_moon=[2],
    pad_token_id=[7, None], initializer_range=['no matter'], tie_word_embeddings=[True, 'yes'],
    eos_token_id=[[1,2], [1,-1]], hidden_dropout_prob=[2])

@pytest.mark.parametrize('name,value', [(n, x) for n,values in odd.items() for x in values])
def test_the_page_refuses_what_python_refuses(build, name, value):
    from attention_nb.checkpoints.families.registry import config_from_hf
    from attention_nb.checkpoints.convert import build_model
    config,tensors = said | {name: value},dict(bert().state_dict())
    found = build(config, tensors)
    try: build_model(*config_from_hf(config, architecture='BertModel'), tensors)
    except (ValueError,NotImplementedError):
        assert isinstance(found, str) and name in found and '\n' not in found, found
        assert value is None or json.dumps(value, separators=(',',':')) in found, found
    else: assert isinstance(found, list)

def test_weights_that_are_no_bert_of_that_shape_are_refused(build):
    from safetensors.torch import save
    model = bert()
    own,name = dict(model.state_dict()),'encoder.layer.0.output.dense.bias'
    whole,same = save(own),build(said, own)
    with torch.no_grad(): theirs = model(torch.tensor([[2,4,5,3]]), output_attentions=True)
    # said has no epsilon: a field that is missing is BERT's own
    assert (torch.tensor(same) - theirs.attentions[1].flatten()).abs().max() < 1e-5
    for change,error in (
            ({'encoder.layer.0.attention.self.distance_embedding.weight': torch.ones(3, 4)},
             'encoder.layer.0.attention.self.distance_embedding.weight has no place'),
            ({'encoder.layer.1.crossattention.self.query.bias': torch.ones(8)}, 'has no place'),
            ({name: torch.ones(7)}, 'output.dense.bias is 7, but hidden_size'),
            ({name: torch.ones(8).int()}, 'output.dense.bias is I32'),
            ({name: torch.ones(8).to(torch.int8)}, 'dense.bias is I8'),
            ({name: torch.full((8,), torch.nan)}, 'what is no number'),
            ({f'bert.{name}': torch.ones(8)}, 'are the same tensor')):
        assert error in build(said, own | change), error
    assert f'have no {name}' in build(said, {n: x for n,x in own.items() if n != name})
    for broken in (b'', whole[:90], whole[:-1], b'\xff'*20, (2).to_bytes(8, 'little') + b'[1'):
        assert build(said, broken).startswith('model.safetensors '), broken[:20]
    for vocabulary,error in ((words + ['a','b'], 'vocab.txt has 8 tokens, and vocab_size is 7'),
                             (words[:2] + words[3:], 'vocab.txt has no [CLS]')):
        assert build(said, own, vocabulary) == error
    older = {n.replace('LayerNorm.weight', 'LayerNorm.gamma'): x for n,x in own.items()}
    head = {f'bert.{n}': x for n,x in older.items()} | {'classifier.bias': torch.ones(2)}
    assert build(said, head) == build(said, {n: x.double() for n,x in own.items()}) == same
    for config in (None, [], 'bert'): assert 'must be an object' in build(config, own)

def test_what_is_hidden_is_seen_by_nobody_and_a_head_can_go(page):
    text,run = 'The chicken crossed the road.', '([t, o]) => attentionNb.run(t, o)'
    plain = torch.tensor(page.evaluate(run, [text, {}])['weights'])
    hidden = torch.tensor(page.evaluate(run, [text, dict(hidden=[2])])['weights'])
    assert (hidden[...,2] == 0).all() and (hidden.sum(-1) - 1).abs().max() < 1e-5
    without = torch.tensor(page.evaluate(run, [text, dict(without=[[1, 3]])])['weights'])
    assert (without[:2] == plain[:2]).all() and (without[2:] != plain[2:]).any()

def test_nothing_is_fetched_before_the_reader_asks_and_once_if_all_is_well(browser, address):
    "What cannot be loaded is said in a line"
    context = browser.new_context()
    page,asked = context.new_page(),[]
    page.on('request', lambda r: asked.append(r.url))
    def weights(): return any(url.endswith('.safetensors') for url in asked)
    hostile = '<img src=x onerror="document.title=1">'
    page.goto(f'{address}/figures/browser_model.html#text=' + hostile)
    own,show = live(page),live(page).button('Show attention')
    expect(show).to_be_visible()
    assert page.evaluate('typeof attentionNb.run') == 'function'
    assert not [url for url in asked if '/live/' in url]
    assert own.text.input_value() == hostile
    for answer,error in ((lambda r: r.fulfill(body='short'), 'did not arrive as it was made'),
                         (lambda r: r.abort(), 'That did not work')):
        page.route('**/*.safetensors', answer, times=1)
        walk(page, (show, own.status, error))
    walk(page, (show, own.status, 'tokens, read in'))
    assert weights() and not page.locator('img[src=x]').count()
    assert all(url.startswith((address, 'data:', 'blob:')) for url in asked)
    # it follows the typing, and a second visit has kept the weights
    walk(page, (lambda: own.text.fill('Birds fly.'), own.status, '5 tokens, read in'))
    expect(own.frame.locator('.words .word')).to_have_count(3)
    for name,inside in (('lines', '.column.left > *'), ('all heads', '.grid button'),
                        ('arithmetic', '.numbers td'), ('tokens', '.boxes')):
        own.box.locator('select').select_option(label=name)
        expect(own.frame.locator(inside).first).to_be_visible()
    own.box.locator('summary').click()
    other = own.box.get_by_label('How similar is another sentence?')
    walk(page, (lambda: other.fill('A bird flies.'), '.live-similar',
                re.compile(r'^(Very s|S)imilar: cosine 0\.')))
    asked.clear()
    page.reload()
    walk(page, (show, own.status, 'tokens, read in'))
    assert not weights()
    context.close()

@pytest.fixture
def front(context, address):
    "The front page and its picture, in which a sentence is written"
    page = context.new_page()
    page.emulate_media(color_scheme='dark')
    page.goto(f'{address}/index.html')
    picture = page.locator('.cell_output iframe[title^=Arcs]').content_frame
    field = picture.get_by_role('textbox', name='the sentence')
    def write(text):
        picture.get_by_role('button', name='change the sentence').click()
        page.keyboard.press('ControlOrMeta+a')
        page.keyboard.type(text)
    yield SimpleNamespace(page=page, own=live(page), picture=picture, field=field, write=write,
                          says=picture.locator('.says'), words=picture.locator('.word .t'))
    page.close()

def test_the_picture_of_the_front_page_becomes_the_readers(front, context):
    """The model reads what is typed into it; arcs follow what is hidden or taken out; a link gives
    all of it back, also without a network"""
    page,own,picture,said = front.page,front.own,front.picture,front.says
    tops = """[...document.querySelectorAll('.doors .sd-card')].map(
        e => Math.round(e.getBoundingClientRect().top + scrollY))"""
    hidden,before = own.box.locator('.live-tokens [aria-pressed=true]'),page.evaluate(tops)
    front.write("The animal didn't cross the street because it was too tired.")
    walk(page, ('Enter', own.status, '16 tokens, read in'),
         (picture.get_by_role('option', name='it', exact=True), said,
          'it takes 67\u00a0% from animal'))
    assert page.evaluate(tops) == pytest.approx(before, abs=2)
    own.button('hide a word').click()
    walk(page, (own.button('tired', exact=True), said,
                'it takes 46\u00a0% from animal, before 67\u00a0%'))
    expect(hidden).to_be_focused()
    expect(picture.locator('.word.hidden')).to_have_text('tired')
    expect(picture.locator('path.old').first).to_be_attached()
    expect(own.result).to_contain_text(re.compile(
        r"^Without “tired”, “\w+” takes \d+\s% from “\w+” in head \d\.\d+, before \d+\s%\. The "
        r"sentence's vector changes \w+( little)?: cosine 0\.9\d\."))
    out,turns = own.button('remove head 3.1'),picture.locator('.turns [aria-pressed=true]')
    assert contrast(*out.evaluate("""e => [getComputedStyle(e).color,
        getComputedStyle(document.body).backgroundColor]""")) > 7
    walk(page, (out, own.result, 'Hidden: “tired”. Switched off: head 3.1.'))
    expect(own.result).to_contain_text(re.compile(
        r"^Without head 3\.1, .* The sentence's vector barely changes"))
    layer,head = re.search(r'in head ([45])\.(\d+)', own.result.inner_text()).groups()
    shown = f'layer {layer}, head {head}'
    expect(turns).to_contain_text(shown)                # the one that moved most, before and after
    expect(picture.locator('.turns button:not([hidden])')).to_have_count(5)
    expect(said).to_contain_text('before')
    expect(picture.locator('path.old').first).to_be_attached()
    expect(own.button(f'remove head {layer}.{head}')).to_be_visible()
    own.button('copy link').click()
    for part in (f'head={layer}.{head}', 'hide=13', 'out=3.1'): assert part in page.url
    own.result.get_by_role('button', name='show head 3.1').click()
    expect(turns).to_contain_text('who is it')
    expect(said).to_contain_text('it takes 46\u00a0% from animal')      # what it adds is gone
    expect(said).to_contain_text('this head is switched off')
    other = context.new_page()
    other.goto(page.url)                                # read at once: the weights are here
    again,theirs = live(other),other.locator('.cell_output iframe[title^=Arcs]').content_frame
    expect(again.result).to_have_text('Hidden: “tired”. Switched off: head 3.1.')
    expect(theirs.locator('.turns [aria-pressed=true]')).to_contain_text(shown)
    other.evaluate('navigator.serviceWorker.ready.then(() => null)')
    until(lambda: other.evaluate("caches.open('attention_nb pages').then(c => c.keys()).then("
                                 "keys => keys.some(k => k.url.endsWith('view.html')))"))
    context.set_offline(True)
    other.reload()
    expect(again.result).to_contain_text('Hidden: “tired”.')
    expect(theirs.locator('.word.hidden')).to_have_text('tired')
    context.set_offline(False)
    other.close()

def test_a_sentence_is_edited_where_it_stands(front):
    """By mouse and keyboard, in one paragraph of text: a paste brings no markup, Enter ends it,
    Escape brings back what stood there; arcs follow while one types"""
    page,own,picture,field,words = front.page,front.own,front.picture,front.field,front.words
    chicken = picture.get_by_role('option', name='chicken')
    expect(picture.get_by_text('or choose one and type')).to_be_visible()
    expect(field).to_be_hidden()
    chicken.click()
    page.keyboard.type('Xy')                            # in place of the word
    expect(field).to_have_text(re.compile('^The Xy crossed the road'))
    page.keyboard.press('Escape')
    expect(field).to_be_hidden()
    expect(chicken).to_be_focused()
    chicken.click()                                     # the second time its word is selected
    expect(field).to_be_focused()
    page.keyboard.type('dog')
    expect(own.status).to_contain_text('tokens, read in')
    expect(picture.locator('.says b').first).to_have_text('dog')        # where the cursor is
    expect(field).to_be_focused()
    page.keyboard.press('Enter')
    expect(words).to_have_text(words_of('The dog crossed the road because it wanted to get to the '
                                        'other side.'))
    expect(picture.get_by_role('option', name='dog')).to_be_focused()
    front.write('')
    for html in hostile[2:4]:
        field.evaluate("""(e, html) => {
            const clipboardData = new DataTransfer()
            clipboardData.setData('text/html', `<b>${html}</b>`)
            clipboardData.setData('text/plain', html + '\\n')
            const paste = new InputEvent('beforeinput', {inputType: 'insertFromPaste',
                dataTransfer: clipboardData, cancelable: true, bubbles: true})
            if (e.dispatchEvent(paste)) throw Error('the browser would paste it')}""", html)
    assert field.evaluate('e => [e.children.length, e.textContent.includes("<img")]') == [0, True]
    page.keyboard.press('Enter')
    expect(field).to_be_hidden()
    expect(words.nth(2)).to_have_text('##g')             # of <img
    assert not page.evaluate('window.hacked') and not words.first.evaluate('() => window.hacked')

def test_sentences_take_turns_until_the_first_pointer_or_key(context, address):
    for motion,stop,moves in (('no-preference', None, True), ('reduce', None, False),
                              ('no-preference', 'key', False), ('no-preference', 'pointer', False)):
        page = context.new_page()
        page.clock.install()
        page.emulate_media(reduced_motion=motion)
        page.goto(f'{address}/index.html')
        picture = page.locator('.cell_output iframe[title^=Arcs]').content_frame
        words = picture.locator('.word .t').nth(1)
        expect(words).to_have_text('chicken')
        if stop == 'key': picture.get_by_role('button', name='next word').press('Shift')
        if stop == 'pointer': picture.locator('.says').hover()
        page.clock.fast_forward(4100)
        expect(words).to_have_text('trophy' if moves else 'chicken')
        page.close()

def words_of(text): return re.findall(r'\w+|[^\w\s]', text.lower())

@pytest.fixture
def own(page):
    "The box of the page, which also can read a sentence"
    found = live(page)
    def read(text):
        found.text.fill(text)
        found.button('Show attention').click()
        expect(found.frame.locator('.word .t')).to_have_text(words_of(text))
    found.read = read
    yield found
    page.set_viewport_size(dict(width=1400, height=900))

def test_a_sentence_opens_with_a_pronoun_or_its_clearest_arc_and_examples_are_pressed(page, own):
    clear = 'The keys of the cabinet are old.'
    w = torch.tensor(page.evaluate('t => attentionNb.run(t)', clear)['weights'])[3,1,1:-1,1:-1]
    at = torch.arange(len(w))
    best = (w*(at[:,None]-at).abs().sqrt()).amax(-1).argmax()
    for text,word in (
            ('The dog chased the cats until they ran.', 'they'), ('She sold it.', 'it'),
            ('My sister sold her bike because she never rode it.', 'it'), ('They sleep.', 'they'),
            (clear, clear.lower().split()[best])):
        own.read(text)
        for what in ('.word.asks .t', '.says b >> nth=0'):
            expect(own.frame.locator(what)).to_have_text(word)
    examples = own.box.locator('.live-examples button')
    assert examples.count() >= 3
    said = examples.nth(1).inner_text()
    walk(page, (examples.nth(1), own.frame.locator('.word .t'), words_of(said)))
    expect(own.text).to_have_value(said)
    assert own.box.locator('.live-tools select').count() == 1       # as this page says

def test_without_a_network_a_page_comes_as_it_was_last_and_what_is_old_goes(browser, tmp_path):
    "Scripts are asked for as they were named; what no kept page needs is kept no longer"
    worker = (root/'nbs'/'_sphinx'/'offline.js').read_text(encoding='utf-8')
    (tmp_path/'offline.js').write_text(worker, encoding='utf-8')
    context,begun = browser.new_context(),time.time()
    page = context.new_page()
    def write(name, version):
        (tmp_path/'script.js').write_text(f'document.title = "script {version}"')
        (tmp_path/name).write_text(f'<script src="script.js?v={version}"></script>')
        for file in ('script.js', name):    # of days to come: no browser takes its own copy as new
            os.utime(tmp_path/file, (begun + 100*version,)*2)
    kept = """async () => (await (await caches.open('attention_nb pages')).keys())
        .map(({url}) => url.split('/').at(-1)).filter(name => !name.startsWith('offline.js')).sort()
        .join(' ')"""
    with serve(tmp_path) as url:
        def visit(name, ends):
            page.goto(f'{url}/{name}')
            page.evaluate("""async () => {
                await navigator.serviceWorker.register('offline.js')
                const {active} = await navigator.serviceWorker.ready
                const loaded = performance.getEntriesByType('resource').map(e => e.name)
                active.postMessage([location.origin + location.pathname, ...loaded])}""")
            until(lambda: page.evaluate(kept) == ends)
        write('one.html', 1)
        page.goto(f'{url}/one.html')
        page.evaluate("""async () => {                  // what an older worker left
            const place = await caches.open('attention_nb pages')
            await place.put('script.js?v=0', new Response('document.title = "script 0"'))}""")
        visit('one.html', 'one.html script.js?v=1')
        write('two.html', 2)
        visit('two.html', 'one.html script.js?v=1 script.js?v=2 two.html')
        write('two.html', 3)
        visit('two.html', 'one.html script.js?v=1 script.js?v=3 two.html')
        context.set_offline(True)
        for name,version in (('one.html', 1), ('two.html', 3), ('two.html?highlight=head', 3)):
            page.goto(f'{url}/{name}')
            assert page.title() == f'script {version}', name
    context.close()

def test_a_link_may_name_what_is_not_there(page, address):
    errors = []
    page.on('pageerror', lambda e: errors.append(e))
    for link,said in (
            ('text=100% sure&view=neuron&head=7.44&token=40&hide=55&out=9.99',
             r'^5 tokens, read in [\d.]+ s$'),
            ('text=Hi&hide=0_1_2', 'one token at least must be seen$')):
        page.goto('about:blank')
        page.goto(f'{address}/figures/browser_model.html#{link}')   # read at once: weights are here
        expect(live(page).status).to_have_text(re.compile(said))
    assert not errors

def test_weights_of_ones_own(page, tmp_path):
    words = ['[PAD]','[UNK]','[CLS]','[SEP]','birds','fly','##ing','.']
    model = bert(vocab_size=8, hidden_size=16, intermediate_size=32, max_position_embeddings=16)
    model.half().save_pretrained(tmp_path)
    config,vocab = tmp_path/'config.json',tmp_path/'vocab.txt'
    vocab.write_text('\n'.join(words))
    own,run = live(page),'text => attentionNb.run(text)'
    files = [config, vocab, tmp_path/'model.safetensors']
    def choose(n=3): own.box.locator('input[type=file]').set_input_files(files[:n])
    own.box.locator('.live-more').evaluate('fold => fold.open = true')
    walk(page, (lambda: choose(2), own.status, 'model.safetensors is missing'))
    own.text.fill('Birds flying.')
    walk(page, (choose, own.status, '6 tokens, read in'))
    found = page.evaluate(run, 'Birds flying.')
    ids = torch.tensor([[words.index(t) for t in found['tokens']]])
    with torch.no_grad(): theirs = model.float()(ids, output_attentions=True).attentions
    assert (torch.tensor(found['weights']) - torch.cat(theirs)).abs().max() < 1e-4
    expect(own.frame.locator('.words .word')).to_have_count(4)      # of a head that is there
    said = config.read_text()
    config.write_text(json.dumps(json.loads(said) | dict(model_type='gpt2')))
    walk(page, (choose, own.status, 'config.json says "gpt2", not "bert"'))
    assert page.evaluate(run, 'Birds flying.') == found, 'the old one stays'
    config.write_text(said)
    vocab.write_text('\n'.join(words).replace('birds', 'Birds'))     # capitals are kept
    (tmp_path/'pooling').mkdir()
    (tmp_path/'pooling'/'config.json').write_text('{}')         # the folder is dropped, not this
    own.status.evaluate("line => line.scrollIntoView({block: 'center', behavior: 'instant'})")
    place,hand = own.status.bounding_box(),page.context.new_cdp_session(page)
    for step in ('dragEnter', 'dragOver', 'drop'):
        hand.send('Input.dispatchDragEvent', dict(
            type=step, x=place['x'] + 9, y=place['y'] + 4,
            data=dict(items=[], files=[str(tmp_path)], dragOperationsMask=1)))
    until(lambda: page.evaluate(run, 'Birds birds')['tokens'] == ['[CLS]','Birds','[UNK]','[SEP]'])
