"Views against bertviz: size, time to build, time until a page has opened and answered a hover"
import shutil, subprocess, sys, tarfile, tempfile, time
from pathlib import Path

packages = (('requirejs@2.3.6', 'package/require.js', 'require.min.js'),
            ('d3@5.7.0', 'package/dist/d3.min.js', 'd3.min.js'),
            ('jquery@2.2.4', 'package/dist/jquery.min.js', 'jquery.min.js'))

def libraries(folder):
    "Local copies of what bertviz loads from a CDN, by file name; None without npm"
    if not shutil.which('npm'): return None
    found = {}
    for package,inside,name in packages:
        packed = subprocess.run(['npm', 'pack', '--silent', package], cwd=folder, check=True,
                                capture_output=True, text=True).stdout.strip()
        found[name] = tarfile.open(Path(folder)/packed).extractfile(inside).read()
    return found

def copy_of(body):
    headers = {'Access-Control-Allow-Origin': '*'}
    def answer(route): route.fulfill(body=body, content_type='text/javascript', headers=headers)
    return answer

def seconds(f):
    "What `f` gives, and how long it takes"
    start = time.perf_counter()
    result = f()
    return result, time.perf_counter()-start

def opens(browser, path, token, local):
    "Seconds until the page has answered a hover; `local`: scripts that it asks the network for"
    page = browser.new_page()
    for name,body in local.items(): page.route(f'**/{name}', copy_of(body))
    def hover():
        page.goto(path.as_uri(), timeout=120_000)
        page.locator(token).first.hover(timeout=120_000)
        page.evaluate('new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))')
    taken = seconds(hover)[1]
    page.close()
    return taken

def contestants(repeat, model, tokenizer):
    "(number of tokens, name -> (function that builds, what to point at, is it bertviz?))"
    from attention_nb.recording.look import look
    from attention_nb.views.attention_views import head_view, model_view
    from bertviz import head_view as bert_head, model_view as bert_model
    seen = look('time flies like an arrow , fruit flies '*repeat, model, tokenizer)
    ws,tokens = seen.recording.weights(),seen.tokens
    found = {'head_view': (lambda: head_view(ws, tokens).html, '.left .token', False),
             'model_view': (lambda: model_view(ws, tokens).html, '.grid button', False)}
    def theirs(f): return lambda: f([w[None] for w in ws], tokens, html_action='return').data
    if len(tokens) < 200: found |= {'bertviz head_view': (theirs(bert_head), 'svg text', True),
                                    'bertviz model_view': (theirs(bert_model), 'svg', True)}
    return len(tokens), found

def long_texts():
    import torch
    from attention_nb.views.attention_views import head_view
    from attention_nb.views.neuron_view import neuron_view
    torch.manual_seed(0)
    S,n = 50_000,30_000
    row,neurons = torch.randn(1, 1, 1, S).softmax(-1),torch.randn(1, 1, n, 64)
    names = [f'key {i}' for i in range(S)]
    def steps(): return neuron_view(neurons, neurons, names[:n], causal=True).html
    yield S, {'head_view, one query': (
        lambda: head_view(row, ['query'], names).html, '.left .token', False)}
    yield n, {'neuron_view, 64 wide': (steps, 'tbody tr', False)}

def tables(report, rounds):
    "`rounds` is not used, pages are opened once"
    import transformers
    from attention_nb.recording.look import load_hf
    from playwright.sync_api import sync_playwright
    sys.path.insert(0, str(Path(__file__).parent.parent/'tests'))
    from find_browser import find
    transformers.utils.logging.disable_progress_bar()
    model,tokenizer = load_hf('minilm')
    rows,found = [],{}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        local,path = libraries(folder),Path(folder)/'page.html'
        browser = p.chromium.launch(executable_path=find(), args=['--no-sandbox'])
        texts = (contestants(repeat, model, tokenizer) for repeat in (3, 14, 60))
        for n,pictures in (*texts, *long_texts()):
            for name,(build,token,theirs) in pictures.items():
                html,built = seconds(build)
                path.write_text(('<!doctype html><body>' if theirs else '')+html, encoding='utf-8')
                scripts = local if theirs else {}
                opened = None if scripts is None else opens(browser, path, token, scripts)
                rows.append((name, n, len(html.encode())/1e6, built, opened))
                what = f'{name.removeprefix("bertviz ")}, {n} tokens'
                by = 'bertviz' if theirs else 'ours'
                found.setdefault(what, {})[by] = opened
        browser.close()
    report.compare('Pictures of MiniLM, opened', {
        task: [(by, t, t/times['ours']) for by,t in times.items()] for task,times in found.items()
        if times.get('bertviz')}, 'until a page has opened and has answered a pointer, once')
    ours,other = (rows[i][2] for i in (0, 2))
    report.show('Size and time of pictures', rows,
                ('picture', 'tokens', 'MB', 'seconds to build', 'seconds to open and answer'),
                f'{ours:.1f} MB ours, {other:.1f} MB bertviz, for {rows[0][1]} tokens',
                'MiniLM, then long texts of random numbers')
