"""Models on several processes against one: nbs/distributed/tensor_parallel.ipynb. Two processes,
then four, started once, with gloo."""
import json, os, signal, subprocess, sys, time
from pathlib import Path
import pytest, torch

pytest.importorskip('torch.distributed.tensor')
if not torch.distributed.is_gloo_available():
    pytest.skip('torch has no gloo here', allow_module_level=True)
worker = Path(__file__).parent/'parallel_worker.py'

def launch(folder, *groups, timeout=120):
    """Run groups of checks, '2,this,that'; no process is left when this returns. What the
    processes wrote, by their number"""
    path = os.pathsep.join([str(worker.parent.parent), os.environ.get('PYTHONPATH', '')])
    env = os.environ | dict(OMP_NUM_THREADS='1', PYTHONPATH=path)
    command = [sys.executable, '-W', 'ignore', str(worker), str(folder), *groups]
    with open(folder/'log', 'w') as log:
        all_ = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
        try: code = all_.wait(timeout)
        except subprocess.TimeoutExpired: code = f'none after {timeout} s'
        finally:
            try: os.killpg(all_.pid, signal.SIGKILL)
            except ProcessLookupError: pass
            all_.wait()
    assert code == 0, f"exit code {code}\n{(folder/'log').read_text()[-3000:]}"
    def wrote(n): return [json.loads((folder/f'{n}-{r}.json').read_text()) for r in range(n)]
    return {n: wrote(n) for n in (int(g.split(',')[0]) for g in groups)}

def passed(results, check):
    for r,result in enumerate(results):
        assert check not in result['failed'], f"rank {r}\n{result['failed'][check]}"
    assert all(check in result['times'] for result in results)

sys.path.insert(0, str(worker.parent))
import parallel_worker    # for the names of its checks
on_two = [c for c in parallel_worker.checks if c not in ('both_ways', 'loads', 'dies', 'hangs')]
on_four = ['both_ways', 'loads']

@pytest.fixture(scope='module')
def folder(tmp_path_factory): return tmp_path_factory.mktemp('parallel')

@pytest.fixture(scope='module')
def results(folder): return launch(folder, ','.join(['2', *on_two]), ','.join(['4', *on_four]))

@pytest.mark.parametrize('check', on_two)
def test_two_processes(results, check): passed(results[2], check)

@pytest.mark.parametrize('check', on_four)
def test_four_processes(results, check): passed(results[4], check)

def agrees(model, folder):
    with torch.no_grad(): logits = model(**parallel_worker.batch(model)[0])
    torch.testing.assert_close(logits, torch.load(folder/'logits.pt'), atol=1e-9, rtol=1e-9)

def test_one_process_loads_what_two_wrote(folder, results):
    "The checkpoint of a split model is that of a whole one"
    import torch.distributed.checkpoint as dcp
    model = parallel_worker.filled_with(parallel_worker.on_meta('gpt_oss4'))
    state = model.state_dict()
    dcp.load(state, checkpoint_id=str(folder/'checkpoint'), no_dist=True)
    model.load_state_dict(state)
    agrees(model, folder)

def test_one_process_loads_a_file(folder, results):
    "`load_shard` fills a whole model too"
    from attention_nb.distributed.tensor_parallel import load_shard
    model = parallel_worker.filled_with(parallel_worker.on_meta('gpt_oss4'))
    agrees(load_shard(model, folder/'whole.safetensors'), folder)

def alive(pid):
    "Whether a process runs; one that is over and only waits to be asked about does not"
    try: os.kill(int(pid), 0)
    except ProcessLookupError: return False
    stat = Path(f'/proc/{pid}/stat')
    return not stat.exists() or ') Z ' not in stat.read_text()

@pytest.mark.parametrize('trouble', ['dies', 'hangs'])
def test_no_process_is_left(tmp_path, trouble):
    "One process is gone, or waits for ever: the test fails, and soon nobody is there"
    start = time.monotonic()
    with pytest.raises(AssertionError):
        passed(launch(tmp_path, f'2,{trouble}', timeout=12)[2], trouble)
    assert time.monotonic()-start < 40
    pids,end = (tmp_path/'pids').read_text().split(),time.monotonic()+5
    # a signal takes its time
    while any(map(alive, pids)) and time.monotonic() < end: time.sleep(.05)
    assert len(pids) == 2 and not any(map(alive, pids))
