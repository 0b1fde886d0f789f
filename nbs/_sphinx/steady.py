"""Run notebooks under the arithmetic of several processors and say what moves:
`steady.py [notebook ...]`; all if none is named.

The libraries under torch choose their products by the processor. Told to take those of an older
one, they sum in another order, on any x86 machine; how many threads share a sum changes it too.
What a notebook asserts and prints must hold in all of them: see CONTRIBUTING.md, *Steady*.
"""
import argparse, os, shutil, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from fastcore.nbio import read_nb
import cells
from outputs import execute, here, moved

ARITHMETICS = {
    'old': dict(ATEN_CPU_CAPABILITY='default', DNNL_MAX_CPU_ISA='SSE41',
                MKL_ENABLE_INSTRUCTIONS='SSE4_2', MKL_CBWR='COMPATIBLE'),
    'avx2': dict(ATEN_CPU_CAPABILITY='avx2', DNNL_MAX_CPU_ISA='AVX2',
                 MKL_ENABLE_INSTRUCTIONS='AVX2'),
    'own': {}}

def under(arithmetic, threads):
    "The environment of a process that calculates so"
    named = {name for settings in ARITHMETICS.values() for name in settings}
    return ({name: value for name,value in os.environ.items() if name not in named}
            | ARITHMETICS[arithmetic] | dict(OMP_NUM_THREADS=str(threads)))

def differs(path):
    "What the notebook at `path` asserts or prints otherwise here than it is stored; '' if nothing"
    folder = here.parents[1]/'_build'/'steady'        # in the project, where nbdev finds settings
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        fresh = Path(work)/path.name
        shutil.copy(path, fresh)
        if (error := execute(fresh).error) is not None: return error
        return '\n'.join(f'cell {i}: stored\n{old}\nhere\n{new}'
                         for i,old,new in moved(read_nb(path), read_nb(fresh)))

def elsewhere(path, arithmetic, threads):
    done = subprocess.run([sys.executable, __file__, '--here', path], capture_output=True,
                          encoding='utf-8', errors='replace', env=under(arithmetic, threads))
    return done.stdout.strip() or done.stderr[-6000:]*(done.returncode != 0)

if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('notebooks', nargs='*', type=Path)
    jobs = min(2, os.cpu_count() or 1)
    parser.add_argument('--jobs', type=int, default=jobs, help='how many at a time')
    parser.add_argument('--arithmetics', nargs='+', choices=ARITHMETICS, default=[*ARITHMETICS])
    parser.add_argument('--threads', type=int, nargs='+', default=[1,2])
    parser.add_argument('--here', action='store_true', help=argparse.SUPPRESS)
    args = parser.parse_args()
    paths = [p.resolve() for p in args.notebooks] or cells.notebooks()
    if args.here:
        print(differs(*paths))
        sys.exit()
    ways = [(a, n) for a in args.arithmetics for n in args.threads]
    width = max(len(cells.name_of(p)) for p in paths)
    print(' '*width, *(f'{a}, {n}'.rjust(8) for a,n in ways), flush=True)
    found = []
    with ThreadPoolExecutor(args.jobs) as pool:
        rows = [(p, [pool.submit(elsewhere, p, *way) for way in ways]) for p in paths]
        for p,row in rows:
            print(cells.name_of(p).ljust(width), *(('moves' if f.result() else 'steady').rjust(8)
                                         for f in row), flush=True)
            found += [f'{p.name}, {a} arithmetic, {n} thread{"s"*(n > 1)}\n{f.result()}'
                      for (a,n),f in zip(ways, row) if f.result()]
    print(*found, sep='\n\n')
    sys.exit(bool(found))
