"""The command in processes of its own: killed, stopped, twice at once, without room; and several
processes that share a run, under torchrun's agent too, whose losses are those of one. Beside
nbs/training/command.ipynb and nbs/training/mesh.ipynb"""
import os
from pathlib import Path
import pytest
from helpers import short
from helpers.processes import launch, passed

one = 'killed stopped_SIGINT stopped_SIGTERM twice no_room damaged command_line'.split()
meshes = 'elsewhere_2x2x1 half refused lost unseen failed'.split()
repeated = 'elsewhere_2x1x2 elsewhere_1x2x2'.split()

@pytest.fixture(scope='module')
def results(request, tmp_path_factory):
    if not hasattr(os, 'fork'): pytest.skip('no fork here')
    return launch(request, Path(__file__).parent/'run_worker.py', tmp_path_factory.mktemp('runs'))

@pytest.mark.parametrize('check', one)
def test_a_run_of_one_process(results, check): passed(results[1], check)

@pytest.mark.parametrize('check', short(meshes, [*meshes, *repeated]))
def test_a_run_of_several_processes(results, check): passed(results[1], check)
