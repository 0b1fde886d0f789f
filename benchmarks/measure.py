"What every topic needs: contestants in turns, functions in a process of their own, tables"
import contextlib, json, multiprocessing, os, statistics, time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from unittest import mock

COMPARED = 'task', 'by', 'seconds', 'relative time (ours = 1)'

def interleave(contestants, rounds, ours, patience=10):
    """Rows (name, median seconds, median ratio to `ours`): each round calls every contestant once,
    after one unmeasured round; after `patience` seconds three rounds are enough"""
    times = {name: [] for name in contestants}
    begun = time.perf_counter()
    for r in range(rounds+1):
        if r > 3 and time.perf_counter()-begun > patience: break
        for name,f in contestants.items():
            start = time.perf_counter()
            result = f()
            taken = time.perf_counter()-start
            del result
            if r: times[name].append(taken)
    def ratio(t): return statistics.median(a/b for a,b in zip(t, times[ours]))
    return [(name, statistics.median(t), ratio(t)) for name,t in times.items()]

def sized(B, H, L, E, *, Hkv=None, S=None):
    "The shape of a call of attention in words"
    of_keys = f' and {Hkv} of keys' if Hkv not in (None, H) else ''
    keys = f', {S:,} keys' if S not in (None, L) else ''
    return (f'batch {B}, {H} head{"s"*(H > 1)}{of_keys}, {L:,} token{"s"*(L > 1)}{keys}, '
            f'width {E}')

def in_process(function, *args):
    "What `function` returns in a fresh process; it must be importable"
    with ProcessPoolExecutor(1, multiprocessing.get_context('spawn')) as pool:
        return pool.submit(function, *args).result()

@contextlib.contextmanager
def given_back():
    """Processes that are started meanwhile give what they free back to the system at once, so that
    their peaks count what is held. Otherwise glibc keeps pieces of up to 32 MB, more or fewer"""
    with mock.patch.dict(os.environ, MALLOC_MMAP_THRESHOLD_='1000000'): yield

def peak():
    "Kilobytes of memory that this process has had at most (Linux)"
    lines = Path('/proc/self/status').read_text().splitlines()
    return int(next(l for l in lines if l.startswith('VmHWM')).split()[1])

class Report:
    "Prints tables as Markdown while they are made, and keeps them for a JSON file"
    def __init__(self): self.tables = []

    def say(self, text): print(f'\n{text}', flush=True)

    def show(self, title, rows, headers, said='', note=''):
        """A table of numbers; a column of times has `seconds` in its header; `said`: the result,
        `note`: what all rows have in common"""
        from tabulate import tabulate
        self.tables.append(dict(title=title, headers=list(headers), rows=[list(r) for r in rows])
                           | {k: v for k,v in dict(said=said, note=note).items() if v})
        self.say('; '.join(filter(None, (title, note, said))) + '\n'
                 + tabulate(rows, headers=headers, floatfmt='.3f', tablefmt='github'))

    def compare(self, title, found, note=''):
        """A table of contestants, `found`: task -> rows (name, seconds, ratio to ours); a name that
        begins with *ours* is no peer, nor is one that ends in *again*, the same once more"""
        self.show(title, [(task, *row) for task,rows in found.items() for row in rows], COMPARED,
                  note=note)

    def write(self, path, machine):
        said = dict(machine=machine, tables=self.tables)
        new = Path(f'{path}.tmp')
        new.write_text(json.dumps(said, ensure_ascii=False, indent=1) + '\n', encoding='utf-8')
        new.replace(path)
