"""Run notebooks and store what they print: `outputs.py [notebook ...]`; all of them when none is named.

Each runs in a process of its own. In one process the settings of the first would stay for the others: `%config` hears no change
where matplotlib's inline backend already holds the value, and their figures came out as PNG instead of SVG.
A second run changes nothing: a cell marked `#| timed` keeps its stored output if the fresh one differs in numbers only.
"""
import argparse, os, re, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from fastcore.nbio import read_nb, write_nb
from tidy import tidy

here = Path(__file__).resolve().parent
child = ('import sys; from nbdev.test import test_nb; from nbdev.config import get_config\n'
         'cfg = get_config()\n'
         'ok,seconds = test_nb(sys.argv[1], skip_flags=cfg.tst_flags.split(), basepath=cfg.config_path, save=True, cell_timeout=cfg.cell_timeout)\n'
         'sys.exit(not ok)')

def execute(path, timeout=1800):
    "Run the notebook at `path` in place; the finished process, whose stderr holds the error if there is one"
    return subprocess.run([sys.executable, '-c', child, str(Path(path).resolve())], cwd=here, capture_output=True, text=True, timeout=timeout)

def is_timed(cell): return cell.cell_type == 'code' and re.search(r'^#\|\s*timed\b', cell.source, re.M) is not None

def words(cell):
    "The outputs of a cell without their numbers"
    texts = [''.join(o.get('text') or o.get('data', {}).get('text/plain', '')) for o in cell.get('outputs', [])]
    return [re.sub(r'\s+', ' ', re.sub(r'[-+]?\d[\d.,]*(e[-+]?\d+)?', '#', t)).strip() for t in texts]

def store(path):
    "Run the notebook at `path` and store its outputs, clean; an error message, or None"
    from nbdev.clean import clean_nb
    before = Path(path).read_bytes()
    stored = {c.id: c for c in read_nb(path).cells}
    done = execute(path)
    if done.returncode: return Path(path).write_bytes(before) and f'{path}\n{done.stderr[-6000:]}'
    nb = read_nb(path)
    for c in nb.cells:
        old = stored.get(c.get('id'))
        if is_timed(c) and old and words(old) == words(c): c.outputs = old.outputs
    clean_nb(nb)
    write_nb(tidy(nb), path)

if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('notebooks', nargs='*', type=Path)
    parser.add_argument('--jobs', type=int, default=min(2, os.cpu_count() or 1), help='how many at a time')
    args = parser.parse_args()
    paths = args.notebooks or sorted(here.parent.glob('*.ipynb'))
    if args.jobs > 1 and len(paths) > 1: os.environ.setdefault('OMP_NUM_THREADS', '1')    # else torch takes all cores for each, and they wait
    with ThreadPoolExecutor(args.jobs) as pool:
        failed = []
        for path,error in zip(paths, pool.map(store, paths)):
            print(f'{path.name}: {"failed" if error else "stored"}', flush=True)
            if error: failed.append(error)
    sys.exit('\n\n'.join(failed) or None)
