"""Faults that the short run must notice: `.venv/bin/python tests/faults.py [word of a fault ...]`.

Each is planted alone into a copy of the project, in a notebook and in the module that it writes,
or in another file. Then those tests of the short run are asked that look at the changed page: the
notebook itself, the tests that import its module, and those that the fault names. A row of a table
says which noticed it; the exit code is 1 if one fault was not. Whoever makes the tests shorter
runs this before and after: about a minute a fault.
"""
import argparse, json, os, queue, re, shutil, subprocess, sys, tempfile, time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

root = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(root/'nbs'/'_sphinx'))
import cells                                                                  # noqa: E402

@dataclass(frozen=True)
class Fault:
    what:str
    where:str                           # a page of the book, or a file below the project
    old:str
    new:str
    tests:str = ''                      # besides the notebook and the tests that import its module

SITE = 'tests/site/test_site.py tests/site/test_pages.py'
FAULTS = [
    # simple: the short forms of the lessons
    Fault('heads are cut from neighbouring numbers', '08_multihead',
          'cut:Tensor = t.unflatten(-1, (self.n_heads,-1))',
          'cut:Tensor = t.unflatten(-1, (-1,self.n_heads)).mT'),
    Fault('what was summed before is not scaled again', '17_flash',
          'out = old*out + p @ v[j:j+n]', 'out = out + p @ v[j:j+n]'),
    # text
    Fault('special tokens are not counted in vocab_size', 'text/bpe',
          'vocab_size=size-len(special)', 'vocab_size=size'),
    Fault('an analogy goes the other way', 'text/glove',
          'self._nearest(vb - va + vc, k, {a,b,c})', 'self._nearest(va - vb + vc, k, {a,b,c})'),
    Fault('sines and cosines change places', 'text/embedding',
          'torch.stack((angle.sin(), angle.cos()), -1)',
          'torch.stack((angle.cos(), angle.sin()), -1)'),
    # kernels
    Fault('scale left out', 'kernels/options',
          'if scale is None: scale = 1/math.sqrt(q.shape[-1])', 'if scale is None: scale = 1.'),
    Fault('key heads repeated in another order', 'kernels/reference',
          'return k.repeat_interleave(n, -3), v.repeat_interleave(n, -3)',
          'return torch.cat([k]*n, -3), torch.cat([v]*n, -3)'),
    Fault('causal off by one', 'kernels/positions', 'if causal: right = 0', 'if causal: right = 1'),
    Fault('top-left in place of bottom-right', 'kernels/positions',
          'q_pos = torch.arange(L, device=device) + (S-L)',
          'q_pos = torch.arange(L, device=device)'),
    Fault('a window one key too wide', 'kernels/positions', 'mask = mask & (k_pos >= q_pos-left)',
          'mask = mask & (k_pos > q_pos-left-2)'),
    Fault('merge of log-sum-exp with the wrong sign', 'kernels/dispatch',
          'weights = (lses - lse).exp()', 'weights = (lse - lses).exp()'),
    # layers
    Fault('halves of a rotation swapped', 'layers/position',
          'torch.cat((-sin,sin), -1)', 'torch.cat((sin,-sin), -1)'),
    Fault('cache slot off by one', 'layers/cache',
          'return torch.arange(start, end, device=self._k.device) % self._n_slots',
          'return torch.arange(start+1, end+1, device=self._k.device) % self._n_slots'),
    Fault('sequences of a cache are not chosen', 'layers/cache',
          'for c in self._all(): c.select(rows)', 'for c in []: c.select(rows)',
          'tests/models/test_generation.py'),
    Fault('group of quantization shifted', 'layers/quantized',
          'wide = weight.detach().float().unflatten(1, (-1, group))',
          'wide = weight.detach().float().roll(1, 1).unflatten(1, (-1, group))'),
    # models
    Fault('top-p off by one', 'models/sampling',
          'excluded = ascending.softmax(-1, dtype=wide_dtype(logits.dtype)).cumsum(-1) <= 1-p',
          'excluded = ascending.softmax(-1).cumsum(-1).roll(1, -1) <= 1-p'),
    Fault('beams forget where they come from', 'models/beam_search',
          'state.select_rows((rows*n + beam.gather(1, chosen)).flatten())',
          'state.select_rows((rows*n + chosen % n).flatten())'),
    Fault('every draft is accepted', 'models/speculative',
          'is_accepted = uniform*q.gather(1, candidates) < p.gather(1, candidates)',
          'is_accepted = uniform >= 0'),
    Fault('weights of experts do not sum to one', 'models/blocks',
          'if cfg.normalize: weights = weights/(weights.sum(-1, keepdim=True) + _epsilon)',
          'if cfg.normalize: weights = weights/scores.sum(-1, keepdim=True)'),
    Fault('padding moves positions', 'models/transformer',
          'return (padding_mask.long().cumsum(-1) - 1).clamp(min=0)',
          'return torch.arange(padding_mask.shape[-1]).expand(padding_mask.shape)'),
    # checkpoints
    Fault('a key map with two names swapped', 'checkpoints/families/common',
          '*.mlp.gate_proj  *.ffn.gate', '*.mlp.gate_proj  *.ffn.up',
          'tests/checkpoints/test_families.py'),
    Fault('a chat template keeps line ends', 'checkpoints/chat_template',
          'ImmutableSandboxedEnvironment(trim_blocks=True,',
          'ImmutableSandboxedEnvironment(trim_blocks=False,'),
    Fault('experts interleaved the other way', 'checkpoints/convert',
          'for half in (expert[...,::2], expert[...,1::2])',
          'for half in (expert[...,1::2], expert[...,::2])', 'tests/checkpoints/test_families.py'),
    # recording
    Fault('induction looks at the token itself', 'recording/head_scores',
          'after = before.roll(1, 1)', 'after = before.roll(0, 1)'),
    Fault('the head beside it is patched', 'recording/patching',
          'new[:,h] = _expand(z, out[:,h], where, absorbed)',
          'new[:,h-1] = _expand(z, out[:,h], where, absorbed)'),
    Fault('rows that are taken back off by one', 'recording/steps',
          'self.steps = [s if s.end <= n else s.crop(n-s.past, columns(s))',
          'self.steps = [s if s.end <= n else s.crop(n-s.past+1, columns(s))'),
    # views
    Fault('text of a view is not escaped', 'views/page',
          "for c in '<>&': text = text.replace(c, f'\\\\u{ord(c):04x}')",
          "for c in '&': text = text.replace(c, f'\\\\u{ord(c):04x}')", 'tests/views'),
    Fault('a title of a view is not escaped', 'views/page',
          "title = html.escape(data['title'] or summary)", "title = data['title'] or summary",
          'tests/views'),
    Fault('shared heads of the neuron view', 'attention_nb/views_js/arithmetic.js',
          'Math.floor(head * d.kvHeads / d.heads)', '(head % d.kvHeads)', 'tests/views'),
    Fault("layer norm's eps in the browser's model", 'attention_nb/live_js/encoder.js',
          'Math.sqrt(square + eps)', 'Math.sqrt(square + 0.01)',
          'tests/figures/test_browser_model.py'),
    Fault('a view asks the network', 'attention_nb/views_js/common.js',
          'const data = JSON.parse(', 'fetch("https://example.org/"); const data = JSON.parse(',
          'tests/views'),
    # distributed
    Fault('keys are taken for those of the next process', 'distributed/ring',
          'block = self.block(self.peers(step)[1])', 'block = self.block(self.peers(step)[0])',
          'tests/distributed/test_ring.py'),
    Fault('two processes keep the same tokens', 'distributed/shards',
          '(rank,2*n-1-rank)', '(rank,2*n-1-(rank+1) % n)'),
    Fault('each process has the bias of the first head', 'distributed/tensor_parallel',
          'if t.dim() == 4 and t.shape[1] > 1: return _local_shard(t, mesh, 1)',
          'if t.dim() == 4 and t.shape[1] > 1: return t[:,:1]',
          'tests/distributed/test_tensor_parallel.py'),
    # training
    Fault('LoRA scale ignored', 'training/lora',
          'return out + self.scale*F.linear(F.linear(x, self.lora_A), self.lora_B)',
          'return out + F.linear(F.linear(x, self.lora_A), self.lora_B)'),
    Fault('resumed without the random state', 'training/checkpoint',
          "torch.set_rng_state(state['rng_state'])", "torch.get_rng_state()", 'tests/training'),
    Fault('the mean of means', 'training/loop',
          'total = torch.tensor(sum(loss for loss,_ in parts), dtype=torch.float64)',
          'total = n*torch.tensor(sum(loss/m for loss,m in parts)/len(parts))'),
    # pages
    Fault('a changed stored output', 'nbs/03_attention.ipynb', '15  my 13  ship 33  and 12',
          '15  my 13  ship 34  and 12', 'tests/project/test_notebooks.py::'
          'test_runs_and_outputs_are_true[03_attention]'),
    Fault('a module out of step with its notebook', 'attention_nb/kernels/mask.py',
          'def causal_mask(', 'def causal_mask( ',
          'tests/project/test_notebooks.py::test_module_and_readme_are_in_step'),
    Fault('a picture without a text', 'nbs/03_attention.ipynb',
          '"#| fig-alt: \\"A row of bars', '"# fig-alt: \\"A row of bars',
          'tests/project/test_budgets.py'),
    Fault('a broken link', 'nbs/04_mask.ipynb', '## Summary', '## Summary [x](no_such.ipynb)',
          SITE),
    Fault('a proof folds without a claim', 'nbs/kernels/mask.ipynb', '#| code-summary:',
          '# code-summary:', 'tests/project/test_budgets.py'),
    Fault('a page overflows a phone', 'nbs/_sphinx/_static/custom.css',
          '.lead { font-size: 1.2rem;', '.lead { font-size: 1.2rem; min-width: 700px;', SITE),
    Fault('a promise that is hard to read in the dark', 'nbs/_sphinx/_static/custom.css',
          '.lead { font-size: 1.2rem; color: var(--pst-color-text-muted); }',
          '.lead { font-size: 1.2rem; color: #555; }', SITE),
    Fault('a page loads from elsewhere', 'nbs/_sphinx/_templates/colophon.html',
          '<', '<img alt="" src="https://example.org/a.png"><', SITE),
    Fault('answers stand open', 'nbs/_sphinx/folds.py', "_answer = re.compile(r'(?:✓ )?Answer",
          "_answer = re.compile(r'(?:✓ )?Reply", SITE),
]

def planted(fault, copy):
    "The files that the fault changes: path -> text with it"
    page = copy/'nbs'/f'{fault.where}.ipynb'
    if not page.exists():
        text = (copy/fault.where).read_text('utf-8')
        assert fault.old in text, f'{fault.what}: {fault.where} does not say {fault.old!r}'
        return {copy/fault.where: text.replace(fault.old, fault.new, 1)}
    module = copy/'attention_nb'/f'{cells.module(fault.where).replace(".", "/")}.py'
    nb = json.loads(page.read_text('utf-8'))
    found = [c for c in nb['cells'] if c['cell_type'] == 'code' and cells.exported(c)
             and fault.old in cells.source(c)]
    assert len(found) == 1, f'{fault.what}: {len(found)} cells of {page} say {fault.old!r}'
    found[0]['source'] = cells.source(found[0]).replace(fault.old, fault.new)
    text = module.read_text('utf-8')
    assert text.count(fault.old) == 1, f'{fault.what}: {module} does not say {fault.old!r} once'
    return {page: json.dumps(nb, indent=1, ensure_ascii=False),
            module: text.replace(fault.old, fault.new)}

def tests_of(fault):
    from conftest import imports
    if not (root/'nbs'/f'{fault.where}.ipynb').exists(): return fault.tests.split()
    module = cells.module(fault.where)
    files = [str(p.relative_to(root)) for p in sorted((root/'tests').rglob('test_*.py'))
             if imports(p, module)]
    notebook = f'tests/project/test_notebooks.py::test_runs_and_outputs_are_true[{fault.where}]'
    return [notebook, *dict.fromkeys(fault.tests.split() + files)]

def noticed(fault, copy):
    "The first test that fails, or None"
    texts = planted(fault, copy)
    before = {path: path.read_bytes() for path in texts}
    for path,text in texts.items(): path.write_text(text, 'utf-8')
    paths = os.pathsep.join([str(copy), os.environ.get('PYTHONPATH', '')])
    command = [sys.executable, '-m', 'pytest', '-x', '-q', '-p', 'no:cacheprovider',
               *tests_of(fault)]
    try: done = subprocess.run(command, cwd=copy, capture_output=True, text=True,
                               env=os.environ | dict(PYTHONPATH=paths, OMP_NUM_THREADS='1'))
    finally:
        for path,data in before.items(): path.write_bytes(data)
    if done.returncode == 0: return None
    found = re.search(r'^(?:FAILED|ERROR) tests/(\S+)', done.stdout, re.M)
    assert found, done.stdout[-3000:] + done.stderr[-3000:]
    return found[1]

def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('words', nargs='*', help='only faults that have one of them')
    parser.add_argument('--jobs', type=int, default=2, help='how many at a time, each in a copy')
    args = parser.parse_args()
    chosen = [f for f in FAULTS if not args.words
              or any(w in f'{f.what} {f.where}' for w in args.words)]
    copies = queue.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for n in range(args.jobs):
            copy = Path(folder, str(n), 'project')
            shutil.copytree(root, copy, ignore=shutil.ignore_patterns(
                '.git', '.venv', '_build', '__pycache__', '.hypothesis', '.pytest_cache'))
            copies.put(copy)
        def one(fault):
            copy,start = copies.get(),time.monotonic()
            try: by = noticed(fault, copy)
            except AssertionError as e: by = f'could not be planted or tried: {e}'
            finally: copies.put(copy)
            return by, time.monotonic()-start
        missed = []
        print('| fault | in | noticed by | s |\n| --- | --- | --- | ---: |', flush=True)
        with ThreadPoolExecutor(args.jobs) as pool:
            for fault,(by,seconds) in zip(chosen, pool.map(one, chosen)):
                if by is None or by.startswith('could not'): missed.append(fault.what)
                print(f'| {fault.what} | {fault.where} | {by or "**nobody**"} | {seconds:.0f} |',
                      flush=True)
    sys.exit(f'not noticed: {", ".join(missed)}' if missed else None)

if __name__ == '__main__': main()
