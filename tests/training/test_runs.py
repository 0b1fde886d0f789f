"""The command in processes: killed, stopped, twice at once, without room.
nbs/training/command.ipynb proves what it computes"""
import json, os, subprocess, sys
from pathlib import Path
import pytest
from helpers import root

worker = Path(__file__).parent/'run_worker.py'
config = dict(vocab_size=300, d_model=16, n_layers=1, n_heads=2)
text = 'i must go back to my ship and to my crew\n'*60

@pytest.fixture(scope='module')
def found(tmp_path_factory):
    if not hasattr(os, 'fork'): pytest.skip('no fork here')
    folder = tmp_path_factory.mktemp('runs')
    (folder/'text.txt').write_text(text)
    (folder/'config.json').write_text(json.dumps(config))
    done = subprocess.run([sys.executable, str(worker), str(folder)], capture_output=True,
                          text=True, timeout=240, env=os.environ | dict(OMP_NUM_THREADS='1'))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder/'said.json').read_text())

def test_a_run_takes_its_steps(found): assert found['uninterrupted'] == dict(code=0, steps=40)

def test_kill_costs_the_steps_since_the_last_checkpoint(found):
    cost = found['killed'].pop('cost')
    assert len(cost) == 4 and all(0 <= n <= 8 for n in cost)
    assert found['killed'] == dict(code=0, same=True)

@pytest.mark.parametrize('kind', ['SIGINT', 'SIGTERM'])
def test_a_signal_saves(found, kind):
    one = found['stopped'][kind]
    assert one.pop('said').endswith('--resume goes on')
    assert one == dict(code=130, saved=True, early=True, then=0, same=True)

def test_two_runs_never_write_one_folder(found):
    assert 'another run is writing into this folder' in found['twice'].pop('said')
    assert found['twice'] == dict(second=2, first=0, same=True)

def test_no_space_is_one_line(found):
    one = found['no_room']
    said = one.pop('said')
    assert len(said) == 1 and said[0].startswith('attention_nb.training: ')
    assert one == dict(code=2, left=[], then=0, same=True)

def test_a_damaged_checkpoint_is_passed_over(found):
    assert found['damaged'] == dict(code=0, named=True, same=True)

def test_the_command_line(tmp_path):
    "As a user types it"
    (tmp_path/'play').mkdir()
    (tmp_path/'play'/'one.txt').write_text(text)
    (tmp_path/'config.json').write_text(json.dumps(config))
    command = [sys.executable, '-m', 'attention_nb.training', 'play', '--out', 'run', '--config',
               'config.json', '--steps', '5', '--length', '16', '--save-every', '5']
    path = os.pathsep.join([str(root), os.environ.get('PYTHONPATH', '')])
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          env=os.environ | dict(PYTHONPATH=path))
    assert done.returncode == 0 and done.stdout.strip() == 'run', done.stderr
    assert 'perplexity' in done.stderr
