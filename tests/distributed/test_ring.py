"""Divided texts against whole ones: nbs/distributed/ring.ipynb and context.ipynb. Two processes,
then four, started once, with gloo."""
from pathlib import Path
import pytest, torch
from helpers.processes import launch, passed

pytest.importorskip('torch.distributed.tensor')
if not torch.distributed.is_gloo_available():
    pytest.skip('torch has no gloo here', allow_module_level=True)
import ring_worker    # for the names of its checks
worker = Path(__file__).parent/'ring_worker.py'

@pytest.fixture(scope='module')
def results(tmp_path_factory):
    both = dict(zip('24', (ring_worker.on_two, ring_worker.on_four)))
    groups = [','.join([n, *names]) for n,names in both.items()]
    return launch(worker, tmp_path_factory.mktemp('ring'), *groups)

@pytest.mark.parametrize('check', ring_worker.on_two)
def test_two_processes(results, check): passed(results[2], check)

@pytest.mark.parametrize('check', ring_worker.on_four)
def test_four_processes(results, check): passed(results[4], check)
