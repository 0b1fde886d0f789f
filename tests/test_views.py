"The views in a real browser: what they show, how they answer, hostile text, hosts of all kinds"
import html, json, re, subprocess, sys, time, urllib.request, xml.etree.ElementTree as xml
import pytest, torch
from attention_nb.core import attention
from attention_nb.heads import _readable
from attention_nb.recording import load_hf, look, record
from attention_nb.views import head_view, model_view, neuron_view

words = 'time flies like an arrow .'.split()

def weights(layers=2, H=3, L=6, S=6, seed=0): return (2*torch.randn(layers, H, L, S, generator=torch.Generator().manual_seed(seed))).softmax(-1)

@pytest.fixture
def open_view(browser, tmp_path):
    "Open a saved view, with no network, and fail at the end on any error, request or dialog"
    context = browser.new_context(viewport=dict(width=900, height=700), offline=True)
    problems = []
    def go(view, name='view'):
        page = context.new_page()
        page.on('pageerror', lambda e: problems.append(str(e)))
        page.on('console', lambda m: problems.append(m.text) if m.type in ('error', 'warning') and 'willReadFrequently' not in m.text else None)      # this file reads the canvas
        page.on('request', lambda r: problems.append(r.url) if not r.url.startswith(('file:', 'data:', 'blob:')) else None)
        page.on('dialog', lambda d: (problems.append(d.message), d.dismiss()))
        page.goto(view.save(tmp_path/f'{name}.html').as_uri())
        page.wait_for_selector('[data-ready=yes]')
        return page
    yield go
    context.close()
    assert not problems, problems

def shown(page, side='right'): return [t or '0.00' for t in page.locator(f'.{side} .n').all_inner_texts()]
def settled(page): page.evaluate('new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))')

def test_pointing_at_a_token_shows_its_numbers(open_view):
    w = weights()
    page = open_view(head_view(w, words, layer=1))
    for i in (0, 4):
        page.locator('.left .token').nth(i).hover()
        settled(page)
        assert [float(x) for x in shown(page)] == pytest.approx(w[1,:,i].mean(0).tolist(), abs=0.01)
    page.locator('.right .token').nth(2).hover()
    settled(page)
    assert [float(x) for x in shown(page, 'left')] == pytest.approx(w[1,:,:,2].mean(0).tolist(), abs=0.01)

def test_layers_heads_and_threshold(open_view):
    w = weights()
    page = open_view(head_view(w, words))
    page.locator('select').select_option('1')
    for h in (0, 2): page.locator('.heads button').nth(1+h).click()              # off
    page.locator('.left .token').nth(3).hover()
    settled(page)
    assert [float(x) for x in shown(page)] == pytest.approx(w[1,1,3].tolist(), abs=0.01)
    assert 'head 1' in page.locator('.status').inner_text()
    def ink(): return page.evaluate("(() => { const c = document.querySelector('canvas'); return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((x, i) => i % 4 === 3 && x).length })()")
    before = ink()
    page.locator('input[type=range]').fill('1')
    settled(page)
    assert before > 100 and ink() == 0

def test_keyboard_and_tap(open_view):
    page = open_view(head_view(weights(), words))
    page.locator('.left .token').first.focus()
    for key in ('ArrowDown', 'ArrowDown', 'ArrowRight', 'ArrowUp'): page.keyboard.press(key)
    settled(page)
    assert page.locator('.right .token.on .t').inner_text() == 'flies'
    page.keyboard.press('Enter')
    page.locator('.left .token').nth(5).hover()
    settled(page)
    assert page.locator('.token.on .t').all_inner_texts() == ['flies'] and 'kept' in page.locator('.status').inner_text()
    page.keyboard.press('Escape')
    settled(page)
    assert page.locator('.token.on').count() == 0
    page.locator('.left .token').nth(3).click()
    page.locator('.stage').dispatch_event('pointerleave')
    settled(page)
    assert page.locator('.token.on .t').all_inner_texts() == ['an']
    page.locator('summary').click()
    table = page.locator('details table')
    assert table.locator('tbody th').all_inner_texts() == words and table.locator('tbody tr').first.locator('td').count() == 3

def test_pairs_and_named_attentions(open_view):
    w = weights(1, 2, 6, 6)
    page = open_view(head_view(w, words, split=4))
    def ink(): return page.evaluate("(() => { const c = document.querySelector('canvas'); return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((x, i) => i % 4 === 3 && x).length })()")
    everything = ink()
    page.locator('select').select_option('2')
    settled(page)
    assert 0 < ink() < everything
    names = dict(encoder=weights(2, 3, 6, 6), cross=weights(1, 2, 3, 6))
    page = open_view(head_view(names, dict(encoder=words, cross=list('abc')), dict(cross=words)), 'named')
    page.locator('select').first.select_option('1')
    page.wait_for_function("document.querySelectorAll('.left .token').length === 3")
    page.locator('.left .token').nth(1).hover()
    settled(page)
    assert [float(x) for x in shown(page)] == pytest.approx(names['cross'][0,:,1].mean(0).tolist(), abs=0.01)

def test_thumbnails_open(open_view):
    w = weights(3, 4)
    page = open_view(model_view(w, words, average=True, rollout=True))
    assert page.locator('.grid button').count() == 3*4+3+1+1
    page.get_by_label('layer 2, head 1', exact=True).click()
    page.wait_for_selector('.large .token')
    page.locator('.large .left .token').nth(2).hover()
    settled(page)
    assert [float(x) for x in shown(page)] == pytest.approx(w[2,1,2].tolist(), abs=0.01)
    page.get_by_label('layer 0, head 3', exact=True).focus()
    page.keyboard.press('Enter')
    page.wait_for_timeout(200)
    page.locator('.large .left .token').nth(2).hover()
    settled(page)
    assert [float(x) for x in shown(page)] == pytest.approx(w[0,3,2].tolist(), abs=0.01)

def tiny():
    "A random model of each family, by the way it knows positions"
    from transformers import BertConfig, BertModel, GPT2Config, GPT2Model, LlamaConfig, LlamaModel
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=50)
    torch.manual_seed(0)
    return dict(absolute=BertModel(BertConfig(**sizes)), causal=GPT2Model(GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=50)), grouped_rotary=LlamaModel(LlamaConfig(**sizes, num_key_value_heads=2)))

@pytest.mark.parametrize('family', ['absolute', 'causal', 'grouped_rotary'])
def test_numbers_of_the_neuron_view_are_the_recorded_weights(open_view, family):
    model = tiny()[family].eval()
    for p in model.parameters(): p.data.mul_(6 if p.dim() > 1 else 1)            # scores large enough to see
    with torch.no_grad(), record(model) as r: model(torch.arange(3, 9)[None])
    page = open_view(neuron_view(**r.neurons(), tokens=words, layer=1, head=3, query=4))
    def column(n): return [row.locator('td').nth(n).inner_text().strip() for row in page.locator('tbody tr').all()]
    for layer,head,i in ((1,3,4), (0,2,5)):
        for select,value in zip(page.locator('select').all(), (layer, head, i)): select.select_option(str(value))
        assert [float(x) for x in column(3)] == pytest.approx(r.layers[layer].weights[0,head,i].tolist(), abs=0.0051)
        assert ('hidden' in column(2)) == (family != 'absolute' and i < 5)

# ---- text from strangers

hostile = ['<script>window.hacked=1</script>', '</script><script>window.hacked=1</script>', '<img src=x onerror=window.hacked=1>', '"><svg onload=window.hacked=1>', "'", '"', '`', '&lt;b&gt;', '&amp;', '&#x27;', '<!--', '-->', ']]>', '<![CDATA[',
    '${alert(1)}', '{{7*7}}', '</style>', '</title>', '</iframe>', '</textarea>', 'javascript:alert(1)', '\\u003cscript', '\u202eevil\u202c', '\u2066iso', '\u200b', '\u200d', '\ufeff', '\u2028', '\u2029', '\ud800', '\udfff', 'a\udc00b',
    '\U0001f600', '\U0001f468\u200d\U0001f469\u200d\U0001f467', '\U0001f1e9\U0001f1ea', 'e\u0301\u0301\u0301\u0301', 'שלום', 'مرحبا', '漢字', 'ไทย', 'x'*10_000, ' '*50, '', '\t', '\n', '\r\n', '$x^2$', '$\\frac{$', '%s', '__proto__', 'constructor',
    'NaN', 'null', 'undefined', '0', '-1', '\\', '\\n', '//', '/*', '*/', '<b>bold</b>', '<a href=//evil>', 'style="x"', '\ufffe', '\uffff', '\U0010ffff', '<style>*{display:none}</style>', '<base href=//evil>', '<meta http-equiv=refresh content=0>',
    '<iframe srcdoc="<script>parent.hacked=1</script>">', '<math><mi//xlink:href="data:x,<script>hacked=1</script>">', 'on\x00load', '\x1b[31m', *(chr(c) for c in range(1, 32)), '\x7f', '\x80', '\x9f']

@pytest.mark.parametrize('kind', ['head', 'model', 'neuron'])
def test_hostile_text_does_nothing_and_is_shown_as_given(open_view, tmp_path, kind):
    n = len(hostile)
    assert n >= 100
    w = weights(1, 1, n, n)
    title = '</title><script>window.hacked=1</script>\u202e'
    view = dict(head=lambda: head_view(w, hostile, title=title), model=lambda: model_view(w, hostile, title=title), neuron=lambda: neuron_view(torch.randn(1,1,n,4), torch.randn(1,1,n,4), hostile, title=title))[kind]()
    page = open_view(view)
    if kind == 'model':
        page.locator('.grid button').first.click()
        page.wait_for_selector('.large .token')
    texts = page.eval_on_selector_all('.right .t' if kind != 'neuron' else 'tbody th', 'es => es.map(e => e.textContent)')
    assert texts == [_readable(t) for t in hostile]
    assert page.evaluate('window.hacked') is None and page.locator('h1').inner_text()
    assert page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'the page scrolls sideways'
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    heights = page.eval_on_selector_all('.right .token' if kind != 'neuron' else 'tbody tr', 'es => es.map(e => e.getBoundingClientRect().height)')
    assert max(heights) <= 60
    for suffix in ('svg', 'png'): picture = view.save(tmp_path/f'x.{suffix}')
    tree = xml.parse(tmp_path/'x.svg')
    assert not [e for e in tree.iter() if e.tag.endswith(('script', 'foreignObject', 'iframe'))]
    frame = head_view(w[:,:,:20,:20], hostile[:20], title=title)._repr_html_()
    assert frame.count('<iframe') == 1 and '<script' not in frame

# ---- hosts

def test_many_views_on_one_page_do_not_disturb_each_other(browser, tmp_path):
    views = [head_view(weights(seed=s), words, title=f'view {s}') for s in range(3)] + [model_view(weights(), words), neuron_view(torch.randn(1,2,6,8), torch.randn(1,2,6,8), words)]
    (tmp_path/'host.html').write_text('<!doctype html><html data-theme="dark"><style>.token,button{display:none!important}</style><body>' + ''.join(v._repr_html_() for v in views), encoding='utf-8')
    page = browser.new_page(viewport=dict(width=900, height=900))
    page.goto((tmp_path/'host.html').as_uri())
    frames = page.frames[1:]
    assert len(frames) == 5
    for n,f in enumerate(frames):
        page.locator('iframe').nth(n).scroll_into_view_if_needed()
        f.wait_for_selector('[data-ready=yes]', state='attached')
    frames[1].locator('.left .token').nth(2).click()
    settled(page)
    assert [f.locator('.token.on').count() for f in frames[:3]] == [0, 1, 0]
    assert page.evaluate("[...document.querySelectorAll('[data-still]')].every(e => e.style.display === 'none')")
    assert all(f.evaluate("document.documentElement.dataset.theme") == 'dark' for f in frames)
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    frames[0].wait_for_function("document.documentElement.dataset.theme === 'light'")
    assert frames[0].evaluate('frameElement.clientHeight >= document.body.getBoundingClientRect().height')
    page.close()

def test_without_scripts_a_picture_remains(browser, tmp_path):
    body = head_view(weights(), words)._repr_html_()
    for name,text in (('frame', body), ('sanitized', re.sub(r'<iframe.*?</iframe>', '', body, flags=re.S))):
        (tmp_path/f'{name}.html').write_text(text, encoding='utf-8')
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto((tmp_path/f'{name}.html').as_uri())
        box = page.locator('img').bounding_box()
        assert box['width'] > 200 and box['height'] > 100 and page.locator('img').get_attribute('alt').startswith('Head view')
        context.close()

@pytest.mark.parametrize('shape', [(6,12,512), (1,12,2000)], ids=str)
def test_long_texts(open_view, shape):
    layers,H,L = shape
    w = weights(layers, H, L, L)
    view = head_view(w, [f'w{i}' for i in range(L)])
    if L == 512: assert len(view.html) < 16e6
    page = open_view(view)
    page.locator('.left .token').nth(7).hover()
    settled(page)
    numbers = [float(x) for x in shown(page)]
    assert numbers == pytest.approx(w[0,:,7].mean(0).tolist(), abs=0.01) and len(numbers) == L

@pytest.mark.parametrize('app', ['lab/tree', 'notebooks'], ids=['JupyterLab', 'Notebook'])
def test_in_jupyter(browser, tmp_path, app):
    "A real server, a real kernel: the cell is run in the browser and its view answers"
    import nbformat
    code = "import torch\nfrom attention_nb.views import head_view\nhead_view(torch.eye(3)[None], ['one', 'two', 'three'])"
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)], metadata=dict(kernelspec=dict(name='python3', display_name='Python 3', language='python')))
    nbformat.write(nb, tmp_path/'view.ipynb')
    module = 'jupyterlab' if app.startswith('lab') else 'notebook'
    log = open(tmp_path/'log.txt', 'w')
    server = subprocess.Popen([sys.executable, '-m', module, '--no-browser', '--allow-root', '--ServerApp.ip=127.0.0.1', '--ServerApp.port=0', '--IdentityProvider.token=', '--ServerApp.password=', f'--ServerApp.root_dir={tmp_path}'],
                              stdout=log, stderr=subprocess.STDOUT, cwd=tmp_path)
    page = browser.new_page(viewport=dict(width=1200, height=900))
    try:
        for _ in range(120):
            if found := re.search(r'http://127\.0\.0\.1:\d+/', (tmp_path/'log.txt').read_text()): break
            assert server.poll() is None, (tmp_path/'log.txt').read_text()[-2000:]
            time.sleep(0.5)
        page.goto(f'{found[0]}{app}/view.ipynb', wait_until='domcontentloaded')
        cell = page.locator('.jp-Cell .cm-content').first
        cell.wait_for(timeout=60_000)
        page.wait_for_timeout(2000)
        cell.click()
        page.keyboard.press('Shift+Enter')
        frame = page.frame_locator('.jp-OutputArea iframe')
        frame.locator('[data-ready=yes]').wait_for(timeout=240_000)
        frame.locator('.left .token').nth(1).hover()
        page.wait_for_timeout(300)
        assert 'two → two: 1.00' in frame.locator('.status').inner_text()
    finally:
        page.close()
        server.terminate()
        server.wait(20)
        log.close()
