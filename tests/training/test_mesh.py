"""The command under torchrun: four processes take the steps of one, others go on with what they
wrote, and one that is killed is named. nbs/training/mesh.ipynb says how it is made"""
import json, os, signal, subprocess, sys, time
from pathlib import Path
import pytest
from helpers import root

worker = Path(__file__).parent/'mesh_worker.py'
config = dict(vocab_size=300, d_model=16, n_layers=2, n_heads=4, n_kv_heads=2, d_ff=24)

def texts(folder):
    (folder/'text.txt').write_text('i must go back to my ship and to my crew\n'*60)
    (folder/'other.txt').write_text('all that is gold does not glitter\n'*23)
    (folder/'config.json').write_text(json.dumps(config))
    mixed = config | dict(experts=dict(n=4, active=2, d_ff=24))
    (folder/'mixed.json').write_text(json.dumps(mixed))

@pytest.fixture(scope='module')
def found(tmp_path_factory):
    if not hasattr(os, 'fork'): pytest.skip('no fork here')
    folder = tmp_path_factory.mktemp('mesh')
    texts(folder)
    with open(folder/'log', 'w') as log:
        all_ = subprocess.Popen([sys.executable, str(worker), str(folder)], stdout=log, stderr=log,
                                start_new_session=True, env=os.environ | dict(OMP_NUM_THREADS='1'))
        try: code = all_.wait(300)
        finally:
            try: os.killpg(all_.pid, signal.SIGKILL)
            except ProcessLookupError: pass
            all_.wait()
    assert code == 0, (folder/'log').read_text()[-3000:]
    return json.loads((folder/'said.json').read_text())

def of(found, name):
    assert 'failed' not in found[name], found[name]['failed']
    return found[name]

@pytest.mark.parametrize('mesh', ['1x2x2', '2x2x1', '2x1x2', '1x1x3'])
def test_a_mesh_takes_the_steps_of_one_process(found, mesh):
    assert of(found, 'one')['code'] == 0 and found['one']['steps'] == 6
    one = of(found, mesh)
    assert not any(one['codes']) and one['differ'] < 1e-5
    assert {'config.json', 'model.safetensors', 'tokenizer.json', 'loss.svg'} <= {*one['files']}

def test_other_processes_go_on_with_it(found):
    one = of(found, 'elsewhere')
    assert not any(one['codes']) and len(one['codes']) == 7 and max(one['differ']) < 1e-5

def test_bfloat16_is_a_run_like_it(found):
    one = of(found, 'half')
    assert not any(one['codes']) and 1e-5 < one['differ'] < .02

def test_the_heads_of_a_model_with_experts_are_divided(found):
    one = of(found, 'experts')
    assert not any(one['codes']) and len(one['codes']) == 3 and one['differ'] < 1e-5

@pytest.mark.parametrize('name,said', [
    ('mixed rows', 'a model with experts can have a --mesh of heads alone, as 1x2x1; '
     'expert_parallel of attention_nb.distributed divides it by rows and tokens, in a program of '
     'your own'),
    ('heads', 'n_kv_heads=2 of decoder.blocks.0.attn does not divide among 4 processes'),
    ('batch', '--batch 3 does not divide among the 2 of --mesh'),
    ('mesh', "--mesh must be as 1x2x2, got '2x2'"),
    ('many', '--mesh 1x2x2 needs 4 processes, torchrun started 2')])
def test_what_cannot_be_divided_is_one_line(found, name, said):
    one = of(found, 'refused')[name]
    assert {*one['codes']} == {2} and one['said'] == [f'attention_nb.training: {said}']
    assert not one['quiet'] and not one['left']

def test_who_cannot_read_the_checkpoint_is_named(found):
    one = of(found, 'unseen')
    assert one['codes'] == [2, 2] and not one['quiet']
    assert one['said'] == 'attention_nb.training: process 1: the folder is gone'

@pytest.mark.skipif(not Path('/proc').is_dir(), reason='finds a process of torchrun in /proc')
def test_a_lost_process_is_named_and_torchrun_starts_again(tmp_path):
    texts(tmp_path)
    command = [sys.executable, '-m', 'torch.distributed.run', '--nproc-per-node', '3',
               '--max-restarts', '1', '--standalone', '-m', 'attention_nb.training',
               'text.txt', '--out', 'run', '--config', 'config.json', '--steps', '24', '--length',
               '16', '--batch', '4', '--save-every', '6', '--mesh', '1x1x3']
    path = os.pathsep.join([str(root), os.environ.get('PYTHONPATH', '')])
    log,lines = tmp_path/'said',tmp_path/'run'/'log.jsonl'
    with open(log, 'w') as said:
        all_ = subprocess.Popen(command, cwd=tmp_path, stdout=said, stderr=said,
                                start_new_session=True, env=os.environ | dict(PYTHONPATH=path))
        try:
            end = time.monotonic()+90
            def steps(): return lines.read_text().splitlines() if lines.exists() else []
            while len(steps()) < 8 and time.monotonic() < end: time.sleep(.02)
            os.kill(rank_of(all_.pid, 1), signal.SIGKILL)
            code = all_.wait(120)
        finally:
            try: os.killpg(all_.pid, signal.SIGKILL)
            except ProcessLookupError: pass
            all_.wait()
    text = log.read_text()
    assert code == 0, text[-3000:]
    assert text.count('process 1 of 3 ended while the others were at work') == 1
    found = [json.loads(line) for line in steps()]
    assert [s['step'] for s in found] == [*range(1, 25)]
    assert (tmp_path/'run'/'model.safetensors').exists()

def rank_of(parent, rank):
    "The process that torchrun has started as this rank"
    for p in Path('/proc').glob('[0-9]*'):
        try:
            told = (p/'stat').read_text().rsplit(')', 1)[1].split()
            env = (p/'environ').read_bytes().split(b'\0')
        except OSError: continue
        if int(told[1]) == parent and f'RANK={rank}'.encode() in env: return int(p.name)
    raise AssertionError('there is no such process')
