"""Run notebooks and store what they print: `outputs.py [notebook ...]`; all if none is named.

Each runs in a process of its own. In one process the settings of the first would stay for the
others: `%config` hears no change where matplotlib's inline backend already holds the value, and
their figures came out as PNG. The processes are forks of one that has imported what takes seconds.
Here the cells marked `#| whole` run too. A second run changes nothing: a cell marked `#| timed` or
`#| trained` keeps its stored output if the fresh one differs in numbers only.
"""
import argparse, math, multiprocessing, os, re, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from fastcore.nbio import read_nb, write_nb
import cells, package, stale
from tidy import tidy

here = Path(__file__).resolve().parent

def preloaded():
    "The modules that notebooks import, which take seconds: nbdev, torch, transformers, the package"
    ours = (f'attention_nb.{m}' for m in package.modules_in(here.parents[1]/'attention_nb'))
    models = (f'transformers.models.{m}.modeling_{m}' for m in ('auto', 'llama', 'gpt2', 'bert'))
    return ['nbdev.test', 'torch._dynamo', 'torch.nn.attention.flex_attention',
            'matplotlib.pyplot', 'transformers.models.auto.tokenization_auto', *models,
            'transformers.convert_slow_tokenizer', 'gguf', 'pyarrow', 'networkx', *ours]

class Run(NamedTuple):
    error:str|None
    seconds:float                       # of processor time

def run(path, errors, seconds):
    "In a process of its own: run the notebook at `path` in place, write errors and time to files"
    began = sum(os.times()[:4])
    with open(errors, 'w', encoding='utf-8') as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(here)
    from nbdev.config import get_config
    from nbdev.test import test_nb
    cfg = get_config()
    ok,_ = test_nb(path, skip_flags=cfg.tst_flags.split(), basepath=cfg.config_path, save=True,
                   cell_timeout=cfg.cell_timeout)
    Path(seconds).write_text(str(sum(os.times()[:4]) - began))
    sys.exit(not ok)

def lighten(nb):
    "Leave out the cells marked `#| whole`, which take long; their stored outputs stay"
    for c in nb.cells:
        if marked(c, 'whole'): c.source = f'#| eval: false\n{c.source}'

def execute(path, timeout=5400, whole=True):
    "Run the notebook at `path` in place, `whole` or lightened"
    if not whole:
        lighten(nb := read_nb(path))
        write_nb(nb, path)
    kind = 'forkserver' if 'forkserver' in multiprocessing.get_all_start_methods() else 'spawn'
    processes = multiprocessing.get_context(kind)
    if kind == 'forkserver': processes.set_forkserver_preload(preloaded())
    with tempfile.TemporaryDirectory() as folder:
        errors,seconds = Path(folder, 'errors.txt'),Path(folder, 'seconds.txt')
        process = processes.Process(target=run, args=(str(Path(path).resolve()), str(errors),
                                                      str(seconds)))
        process.start()
        process.join(timeout)
        if process.is_alive(): process.kill()
        process.join()
        said = errors.read_text(encoding='utf-8', errors='replace') if errors.exists() else ''
        error = None if process.exitcode == 0 else f'{said[-6000:]}\nexit {process.exitcode}'
        return Run(error, float(seconds.read_text()) if seconds.exists() else math.nan)

# %% what may differ from run to run
_number = re.compile(r'[-+]?(?:\d+(?:,\d{3})*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?')
_address = re.compile(r' at 0x[0-9a-fA-F]+')

def marked(cell, name):
    return cell.cell_type == 'code' and re.search(rf'^#\|\s*{name}\s*$', cell.source, re.M)

def texts(cell):
    "(kind, text) of each output of a cell, warnings left out"
    def text(o):
        if o['output_type'] == 'stream': return o['name'], ''.join(o['text'])
        return o['output_type'], ''.join(o.get('data', {}).get('text/plain', ''))
    return [text(o) for o in cell.get('outputs', []) if o.get('name') != 'stderr']

def words(text):
    "A text without its numbers, its blanks, and the addresses of objects"
    return ' '.join(_number.sub('#', _address.sub('', text)).split())

def numbers(text):
    return [float(n.replace(',', '')) for n in _number.findall(_address.sub('', text))]

def same(stored, fresh, digits=True, rel=1e-3, abs_=2e-4):
    "Are the texts equal, but for rounding, or without `digits` but for their numbers?"
    close = (math.isclose(a, b, rel_tol=rel, abs_tol=abs_)
             for a,b in zip(numbers(stored), numbers(fresh)))
    return words(stored) == words(fresh) and (not digits or all(close))

def same_outputs(stored, fresh):
    "Does a cell print what is stored of it? Of `#| trained` the words, of `#| timed` anything"
    if marked(stored, 'timed'): return True
    old,new,digits = texts(stored),texts(fresh),not marked(stored, 'trained')
    return ([kind for kind,_ in old] == [kind for kind,_ in new]
            and all(same(a, b, digits) for (_,a),(_,b) in zip(old, new)))

def moved(stored, fresh):
    "Of each cell of a notebook that no longer prints what is stored: id, and both texts"
    def show(cell): return '\n'.join(text for _,text in texts(cell))
    cells = {c.id: c for c in fresh.cells}
    return [(c.id, show(c), show(cells[c.id])) for c in stored.cells
            if c.cell_type == 'code' and not same_outputs(c, cells[c.id])]

def alike(stored, fresh):
    "Do the outputs of two cells differ in numbers only?"
    return [words(t) for _,t in texts(stored)] == [words(t) for _,t in texts(fresh)]

def store(path):
    "Run the notebook at `path` and store its outputs, clean; an error message, or None"
    from nbdev.clean import clean_nb
    before,stored = Path(path).read_bytes(),{c.id: c for c in read_nb(path).cells}
    if (error := execute(path).error) is not None:
        Path(path).write_bytes(before)
        return f'{path}\n{error}'
    nb = read_nb(path)
    for c in nb.cells:
        old = stored.get(c.get('id'))
        if old and (marked(c, 'timed') or marked(c, 'trained')) and alike(old, c):
            c.outputs = old.outputs
    clean_nb(nb)
    write_nb(tidy(nb), path)

if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('notebooks', nargs='*', type=Path)
    jobs = min(2, os.cpu_count() or 1)
    parser.add_argument('--jobs', type=int, default=jobs, help='how many at a time')
    args = parser.parse_args()
    paths = args.notebooks or cells.notebooks()
    # else torch takes all cores for each, and they wait
    if args.jobs > 1 and len(paths) > 1: os.environ.setdefault('OMP_NUM_THREADS', '1')
    with ThreadPoolExecutor(args.jobs) as pool:
        failed,done = [],[]
        for path,error in zip(paths, pool.map(store, paths)):
            print(f'{path.name}: {"failed" if error else "stored"}', flush=True)
            if error: failed.append(error)
            else: done.append(path)
    stale.ran(here.parent.parent, done)
    sys.exit('\n\n'.join(failed) or None)
