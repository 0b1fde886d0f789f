"The hosts of views: pages that hold several, paper, no scripts, Jupyter; and long texts"
import json, re, socket, subprocess, sys
import pytest, torch
from attention_nb.views.attention_views import head_view, model_view
from attention_nb.views.neuron_view import neuron_view
from helpers import short
from helpers.looks import expect, patience, press, until, walk, weights, words

def test_many_views_on_one_page_do_not_disturb_each_other(open_view):
    neurons = neuron_view(torch.randn(1,2,6,8), torch.randn(1,2,6,8), words)
    views = [head_view(weights(seed=s), words, title=f'view {s}') for s in range(3)]
    views += [model_view(weights(), words), neurons]
    page = open_view('<!doctype html><html data-theme="dark">'
                     '<style>.token,button{display:none!important}</style><body>'
                     + ''.join(v._repr_html_() for v in views))
    all_of = page.locator('iframe')
    expect(all_of).to_have_count(5)
    frames = [all_of.nth(n).content_frame for n in range(5)]
    for n,f in enumerate(frames):
        all_of.nth(n).scroll_into_view_if_needed()
        expect(f.locator('[data-ready=yes]')).to_be_attached()
        expect(f.locator(':root')).to_have_attribute('data-theme', 'dark')
    frames[1].locator('.left .token').nth(2).click()
    for f,n in zip(frames, (0, 1, 0)): expect(f.locator('.token.on')).to_have_count(n)
    for still in page.locator('[data-still]').all(): expect(still).to_be_hidden()
    host = all_of.first
    host.evaluate("f => { const w = f.contentWindow; w.drawn = 0; w.addEventListener('redraw', () "
                  "=> w.drawn++); }")
    # an attribute that says nothing about the theme; observers are told before a timer runs
    page.evaluate("""document.body.className = 'busy'
        new Promise(done => setTimeout(done))""")
    assert host.evaluate("f => f.contentWindow.drawn") == 0
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    for f in frames: expect(f.locator(':root')).to_have_attribute('data-theme', 'light')
    assert host.evaluate("f => f.contentWindow.drawn") == 1
    assert host.evaluate(
        "f => f.clientHeight >= f.contentDocument.body.getBoundingClientRect().height")

def test_without_scripts_a_picture_remains(browser):
    body = head_view(weights(), words)._repr_html_()
    page = browser.new_page(java_script_enabled=False)
    for text in (body, re.sub(r'<iframe.*?</iframe>', '', body, flags=re.S)):     # and sanitized
        page.set_content(text)
        box = page.locator('img').bounding_box()
        assert box['width'] > 200 and box['height'] > 100
        assert page.locator('img').get_attribute('alt').startswith('Head view')
    page.close()

def test_on_paper_a_frame_gives_way_to_its_still(open_view):
    page = open_view('<!doctype html><html data-theme="dark"><body>'
                     + head_view(weights(), words)._repr_html_())
    expect(page.frame_locator('iframe').locator('[data-ready=yes]')).to_be_attached()
    still,frame = page.locator('[data-still]'),page.locator('iframe')
    for media,shown,hidden in (('screen', frame, still), ('print', still, frame),
                               ('screen', frame, still)):
        page.emulate_media(media=media)
        expect(shown).to_be_visible()
        expect(hidden).to_be_hidden()

# ---- long texts

@pytest.mark.parametrize('S', short([2500], [2500, 50_000]))
def test_of_many_keys_those_in_sight_are_elements(open_view, S):
    "The keyboard reaches the others, the numbers are right"
    w = (3*torch.randn(1, 2, 1, S, generator=torch.Generator().manual_seed(0))).softmax(-1)
    w[0,:,0,-3:] = torch.tensor([0.2, 0.5, 0.1])
    page = open_view(head_view(w, ['query'], [f'key {n}' for n in range(S)]))
    right = page.locator('.right .token')
    expect(right).to_have_count(100)
    stage,names = page.locator('.stage'),right.locator('.t')
    def scroll(to): return lambda: stage.evaluate('(e, to) => e.scrollTo(0, to)', to)
    walk(page, (stage.locator('.left .token'), '.status', f'takes from key {S-2} 50\u00a0%, '),
         (scroll(10**7), names.last, f'key {S-1}'))
    for n,share in ((97, 20), (98, 50)):
        expect(right.locator('.n').nth(n)).to_have_text(f'{share}\u00a0%')
    expect(right.last).to_be_in_viewport()
    walk(page, (scroll(0), names.first, 'key 0'))
    right.nth(3).focus()
    on = page.locator('.right .token.on')
    for keys,n in ((['End'], S-1), (['ArrowUp']*45, S-46)):         # past the first that were there
        press(page, *keys)
        expect(on.locator('.t')).to_have_text([f'key {n}'])
        expect(on).to_be_in_viewport()
        expect(on).to_be_focused()
    page.locator('summary').click()
    rows = page.locator('details tbody tr')
    expect(rows).to_have_count(1000)
    expect(rows.first.locator('th')).to_have_text(f'key {S-2}')

# ---- Jupyter

@pytest.mark.parametrize('app', short(['notebooks'], ['lab/tree', 'notebooks']))
def test_a_view_answers_in_jupyter(browser, tmp_path, app):
    "A real server, a real kernel: the cell is run in the browser and its view answers"
    import nbformat
    view = head_view(torch.eye(3)[None], ['one', 'two', 'three'])
    (tmp_path/'view.json').write_text(json.dumps(view._repr_mimebundle_()))
    # that a view shows itself, the runs of our notebooks prove; without torch the cell is fast
    code = "import json\ndisplay(json.load(open('view.json')), raw=True)"
    kernel = dict(name='python3', display_name='Python 3', language='python')
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)],
                                  metadata=dict(kernelspec=kernel))
    nbformat.write(nb, tmp_path/'view.ipynb')
    module,log = 'jupyterlab' if app.startswith('lab') else 'notebook',tmp_path/'log.txt'
    options = ['--no-browser', '--allow-root', '--ServerApp.ip=127.0.0.1', '--ServerApp.port=0',
               '--IdentityProvider.token=', '--ServerApp.password=',
               f'--ServerApp.root_dir={tmp_path}', '--ServerApp.jpserver_extensions=' + str(dict(
                   jupyterlab=module == 'jupyterlab', jupyter_lsp=False,
                   jupyter_server_terminals=False))]
    with open(log, 'w') as out:
        server = subprocess.Popen([sys.executable, '-m', module, *options], stdout=out,
                                  stderr=subprocess.STDOUT, cwd=tmp_path)
    def address(): return re.search(r'http://127\.0\.0\.1:(\d+)/', log.read_text())
    def answers():          # it names its address before it listens there
        with socket.socket() as s:
            return address() and s.connect_ex(('127.0.0.1', int(address()[1]))) == 0
    page = browser.new_page(viewport=dict(width=1200, height=900))
    page.set_default_timeout(patience)
    try:
        until(lambda: answers() or server.poll() is not None)
        assert server.poll() is None, log.read_text()[-2000:]
        page.goto(f'{address()[0]}{app}/view.ipynb', wait_until='domcontentloaded')
        # the status is idle, too, before there is a kernel
        expect(page.locator('.jp-KernelName')).to_contain_text('Python')
        expect(page.locator('[data-status]').first).to_have_attribute('data-status', 'idle')
        page.locator('.jp-Cell .cm-content').first.click()
        press(page, 'Control+Enter')
        frame = page.frame_locator('.jp-OutputArea iframe')
        frame.locator('.left .token').nth(1).hover()
        expect(frame.locator('.status')).to_contain_text('two takes from two 100\u00a0%')
    finally:
        page.close()
        server.kill()           # nothing of it is needed; its kernel ends when it is gone
        server.wait()
