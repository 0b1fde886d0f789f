"""Models on several processes against one: nbs/distributed/tensor_parallel.ipynb. Two processes,
then four, started once, with gloo."""
import os, time
from pathlib import Path
import pytest, torch
from helpers.processes import launch, passed

pytest.importorskip('torch.distributed.tensor')
if not torch.distributed.is_gloo_available():
    pytest.skip('torch has no gloo here', allow_module_level=True)
import parallel_worker    # for the names of its checks
worker = Path(__file__).parent/'parallel_worker.py'
on_two = [c for c in parallel_worker.checks if c not in ('both_ways', 'loads', 'dies', 'hangs')]
on_four = ['both_ways', 'loads']

@pytest.fixture(scope='module')
def folder(tmp_path_factory): return tmp_path_factory.mktemp('parallel')

@pytest.fixture(scope='module')
def results(folder):
    return launch(worker, folder, ','.join(['2', *on_two]), ','.join(['4', *on_four]))

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
        passed(launch(worker, tmp_path, f'2,{trouble}', timeout=4, begun=tmp_path/'pids')[2],
               trouble)
    assert time.monotonic()-start < 40
    pids,end = (tmp_path/'pids').read_text().split(),time.monotonic()+5
    # a signal takes its time
    while any(map(alive, pids)) and time.monotonic() < end: time.sleep(.05)
    assert len(pids) == 2 and not any(map(alive, pids))
