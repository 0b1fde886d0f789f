"""Models on several processes against one: nbs/09a_parallel.ipynb. Two processes, then four, each set started once, with gloo."""
import json, os, subprocess, sys, time
from pathlib import Path
import pytest, torch

pytest.importorskip('torch.distributed.tensor')
if not torch.distributed.is_gloo_available(): pytest.skip('torch has no gloo here', allow_module_level=True)
worker = Path(__file__).parent/'parallel_worker.py'

def launch(n, folder, *checks, timeout=90, script=worker):
    "Run checks on n processes; none is left when this returns. What each process wrote"
    folder.mkdir(exist_ok=True); (folder/'store').unlink(missing_ok=True)
    env = os.environ | dict(WORLD_SIZE=str(n), OMP_NUM_THREADS='1', PYTHONPATH=os.pathsep.join([str(worker.parent.parent), os.environ.get('PYTHONPATH', '')]))
    logs = [open(folder/f'{r}.log', 'w+') for r in range(n)]
    ranks = [subprocess.Popen([sys.executable, '-W', 'ignore', str(script), str(folder), *checks], env=env | dict(RANK=str(r)), stdout=log, stderr=log)
             for r,log in enumerate(logs)]
    end = time.monotonic() + timeout
    try:
        # as soon as one fails the others have nobody to talk to
        while any(p.poll() is None for p in ranks) and not any(p.poll() for p in ranks) and time.monotonic() < end: time.sleep(.05)
    finally:
        for p in ranks: p.kill(); p.wait()
        for log in logs: log.close()
    tails = ''.join((folder/f'{r}.log').read_text()[-1500:] for r in range(n))
    assert not any(p.returncode for p in ranks), tails
    return [json.loads((folder/f'{r}.json').read_text()) for r in range(n)]

def passed(results, check):
    for r,result in enumerate(results): assert check not in result['failed'], f"rank {r}\n{result['failed'][check]}"
    assert all(check in result['times'] for result in results)

sys.path.insert(0, str(worker.parent))
import parallel_worker
on_two = [c for c in parallel_worker.checks if c not in ('both_ways', 'loads')]
on_four = ['both_ways', 'loads']

@pytest.fixture(scope='module')
def folder(tmp_path_factory): return tmp_path_factory.mktemp('parallel')

@pytest.fixture(scope='module')
def two(folder): return launch(2, folder, *on_two)

@pytest.fixture(scope='module')
def four(folder, two): return launch(4, folder, *on_four)

@pytest.mark.parametrize('check', on_two)
def test_two_processes(two, check): passed(two, check)

@pytest.mark.parametrize('check', on_four)
def test_four_processes(four, check): passed(four, check)
