"""Models on several processes against one: nbs/distributed/tensor_parallel.ipynb. With data
parallelism too, on four processes, are also the runs of tests/training/test_mesh.py"""
from pathlib import Path
import pytest, torch
from helpers import short
from helpers.processes import launch, passed

pytest.importorskip('torch.distributed.tensor')
if not torch.distributed.is_gloo_available():
    pytest.skip('torch has no gloo here', allow_module_level=True)
import parallel_worker

cases = [(2, check) for check in parallel_worker.checks]
# each way to divide a layer, and to divide the data, is in one family
repeated = 'tp_llama', 'tp_latent_lite', 'ddp_gpt2', 'fsdp_llama'
kept = [(n, check) for n,check in cases if check not in repeated and 'trains' not in check]

@pytest.fixture(scope='module')
def folder(tmp_path_factory): return tmp_path_factory.mktemp('parallel')

@pytest.fixture(scope='module')
def results(request, folder):
    return launch(request, Path(parallel_worker.__file__), folder, [(2, 'writes')])

@pytest.mark.parametrize('n,check', short(kept, cases))
def test_several_processes_give_what_one_gives(results, n, check): passed(results[n], check)

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
