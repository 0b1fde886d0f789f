"""Runs of `python -m attention_nb.training`, alone and as several processes of a mesh, forked from
this one, which has imported everything; test_mesh.py starts run_worker.py FOLDER 1,CHECK,CHECK"""
import contextlib, functools, io, json, math, os, random, runpy, shutil, signal, socket, sys, time
import traceback
from pathlib import Path
from unittest import mock
import torch
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from attention_nb.training import command
from attention_nb.training.checkpoint import find_checkpoint
from helpers.processes import run_checks
# ruff: noqa: F401, what a run imports when it needs it, here once for all of them
import attention_nb.training.mesh
import matplotlib.backends.backend_svg, matplotlib.figure, matplotlib.style
import safetensors.torch, tokenizers, torch._dynamo, tqdm

folder = Path(sys.argv[1])
sizes = dict(vocab_size=300, d_model=16, n_layers=1, n_heads=4, n_kv_heads=2, d_ff=24)
STEPS,EVERY = 20,5                                          # of runs of one process
begin = [*(str(folder/'play'/name) for name in ('text.txt', 'other.txt')), '--length', '16']

config = ['--config', str(folder/'plain.json')]
one_plan = [*config, '--dtype', 'float32', '--batch', '2', '--steps', str(STEPS),
            '--save-every', str(EVERY)]
mesh_plan = [*config, '--dtype', 'float32', '--steps', '4', '--save-every', '2', '--batch', '4']

# %% processes
def work(out, argv, name):
    "Be a run; its exit code"
    with open(folder/f'{name}.txt', 'a') as said, contextlib.redirect_stderr(said), \
            contextlib.redirect_stdout(io.StringIO()):
        return command.training_command([*begin, '--out', str(folder/out), *argv])

def child(out, *argv, env={}, before=lambda: None):
    "Start a run in a process of its own; the number of the process"
    if pid := os.fork(): return pid
    code = 99
    try:
        os.environ.update(env)
        before()
        code = work(out, argv, f'{out}-{rank}' if (rank := env.get('RANK', '0')) != '0' else out)
    except SystemExit as e: code = e.code
    except BaseException: traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)

def ended(pid): return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def alone(out, *argv, **kw): return ended(child(out, *argv, **kw))

def meshed(out, mesh, *argv):
    "Run the processes of a mesh to their end; their exit codes"
    n = math.prod(map(int, mesh.split('x')))
    with socket.socket() as s:
        s.bind(('localhost', 0))
        port = s.getsockname()[1]
    shared = dict(WORLD_SIZE=str(n), MASTER_ADDR='localhost', MASTER_PORT=str(port))
    pids = [child(out, '--mesh', mesh, *argv,
                  env=shared | dict(RANK=str(r), LOCAL_RANK=str(r))) for r in range(n)]
    return [ended(pid) for pid in pids]

def signal_at(step, kind):
    "The run of this process gets a signal as it begins a step"
    real = command.train
    def train(*args, **kw):
        for s in real(*args, **kw):
            if s.step == step: os.kill(os.getpid(), kind)
            yield s
    command.train = train

def lines(out):
    log = folder/out/'log.jsonl'
    return log.read_text().splitlines() if log.exists() else []

def until(out, n):
    "Wait until a run has written `n` lines"
    end = time.monotonic()+120
    while len(lines(out)) < n and time.monotonic() < end: time.sleep(.003)
    assert len(lines(out)) >= n, said(out)

def said(out, rank=0): return (folder/(f'{out}-{rank}.txt' if rank else f'{out}.txt')).read_text()
def saved(out):
    found = find_checkpoint(folder/out/'checkpoints')
    return found.step if found else 0

@functools.cache
def reference(name):
    "A run of one process that nothing disturbs, to compare others with"
    plan = dict(one=one_plan, mesh_of_one=mesh_plan)[name]
    assert alone(name, *plan) == 0, said(name)
    equal(len(lines(name)), int(plan[plan.index('--steps')+1]))
    return name

def equal(got, want): assert got == want, f'{got} != {want}'

def same_losses(out): equal(*([json.loads(l)['loss'] for l in lines(n)]
                              for n in (out, reference('one'))))

def differ(out):
    "The largest difference of losses, norms of gradients, and held-out losses"
    a,b = ([json.loads(l) for l in lines(n)] for n in (out, reference('mesh_of_one')))
    equal((len(a), len(b)), (4, 4))
    return max(abs(x[key]-y[key]) for x,y in zip(a, b) for key in ('loss','grad_norm','held_out')
               if key in y)

# %% one process
def killed():
    "kill -9 at random moments costs no more than the steps since the last checkpoint"
    rng,n = random.Random(0),0
    for start in range(4):
        pid = child('killed', *one_plan, *(['--resume'] if start else []))
        until('killed', min(n + rng.randrange(2, EVERY), STEPS))
        time.sleep(rng.random()*.02)                     # any moment will do
        os.kill(pid, signal.SIGKILL)
        ended(pid)
        n = saved('killed')
        assert 0 <= len(lines('killed')) - n <= EVERY
    equal(alone('killed', *one_plan, '--resume'), 0)
    same_losses('killed')

def stopped(kind):
    "Ctrl-C, and the signal by which a system ends its processes: the step is saved"
    out = f'stopped{kind}'
    equal(alone(out, *one_plan, before=lambda: signal_at(8, kind)), 130)
    assert said(out).endswith('stopped after step 8; --resume goes on\n'), said(out)
    equal((saved(out), len(lines(out))), (8, 8))
    equal(alone(out, *one_plan, '--resume'), 0)
    same_losses(out)

def twice():
    "A second run into a folder in which one is running is refused"
    first = child('twice', *one_plan)
    until('twice', 1)
    os.kill(first, signal.SIGSTOP)
    equal(alone('twice', *one_plan, '--resume'), 2)
    os.kill(first, signal.SIGCONT)
    assert 'another run is writing into this folder' in said('twice').splitlines()[-1]
    equal(ended(first), 0)
    same_losses('twice')

def no_room():
    "No file may grow beyond a size: the first steps fit, a checkpoint does not"
    import resource
    def limit(): resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
    equal(alone('full', *one_plan, before=limit), 2)
    assert said('full').startswith('attention_nb.training: ') and said('full').count('\n') == 1
    equal([p.name for p in (folder/'full').rglob('*') if p.name.startswith('.')], [])
    equal(alone('full', *one_plan, '--resume'), 0)
    same_losses('full')

def damaged():
    "A bit of the last checkpoint is another; a line of the log is half written"
    equal(alone('damaged', *one_plan, before=lambda: signal_at(2*EVERY+2, signal.SIGKILL)), -9)
    file = folder/'damaged'/'checkpoints'/f'step-{saved("damaged"):08}'/'state.safetensors'
    file.write_bytes(file.read_bytes()[:-1] + b'?')
    with open(folder/'damaged'/'log.jsonl', 'a') as f: f.write('{"step": 2')
    equal(alone('damaged', *one_plan, '--resume'), 0)
    assert 'is damaged: going on from step' in said('damaged')
    same_losses('damaged')

def command_line():
    "As a user types it: a folder of texts, paths from here"
    def typed():
        os.chdir(folder)
        sys.argv = 'python play --out typed --config plain.json --steps 1 --length 16'.split()
        runpy.run_module('attention_nb.training', run_name='__main__')
    equal(alone('typed', before=typed), 0)
    assert len(lines('typed')) == 1 and (folder/'typed'/'model.safetensors').exists()

# %% a mesh
def elsewhere(first, then):
    """The steps are those of one process; from step 2, a run goes on with processes of another
    mesh, and then with one; others can open the folder"""
    last = folder/first/'checkpoints'/'step-00000004'
    for start in (lambda: meshed(first, first, *mesh_plan),
                  lambda: meshed(first, then, *mesh_plan, '--resume'),
                  lambda: [alone(first, *mesh_plan, '--resume')]):
        if last.exists(): shutil.rmtree(last)
        equal({*start()}, {0})
        assert differ(first) < 1e-5
    files = {p.name for p in (folder/first).iterdir()}
    assert {'config.json', 'model.safetensors', 'tokenizer.json', 'loss.svg'} <= files, files

def half():
    "bfloat16: not the same digits, but a run like it"
    equal(meshed('half', '1x1x2', *mesh_plan, '--dtype', 'bfloat16'), [0, 0])
    assert 1e-5 < differ('half') < .02

def refused():
    "What cannot be divided is one line, said once, and nothing is written; the notebook has others"
    for name,which,plan,why in (
            ('heads', '1x4x1', mesh_plan,
             'n_kv_heads=2 of decoder.blocks.0.attn does not divide among 4 processes'),
            ('batch', '2x1x1', [*mesh_plan, '--batch', '3'],
             '--batch 3 does not divide among the 2 of --mesh')):
        equal({*meshed(name, which, *plan)}, {2})
        equal((said(name), said(name, 1)), (f'attention_nb.training: {why}\n', ''))
        assert not (folder/name).exists()

def unseen():
    "Only the first of two processes looks for the checkpoint, and the other cannot read it"
    def failing(do, why):
        def tried(*args):
            if os.environ['RANK'] == '1': raise OSError(why)
            return do(*args)
        return tried
    read = failing(HuggingFaceStorageReader.read_metadata, 'the folder is gone')
    look = failing(command.find_checkpoint, 'asked once more')
    out = reference('mesh_of_one')
    with (mock.patch.object(HuggingFaceStorageReader, 'read_metadata', read),
          mock.patch.object(command, 'find_checkpoint', look)):
        codes = meshed(out, '2x1x1', *mesh_plan, '--resume')
    equal((codes, said(out, 1)), ([2, 2], 'attention_nb.training: process 1: the folder is gone\n'))
    assert 'folder is gone' not in said(out)

def failed():
    "An error that only one of two processes meets in a step is said by it; the other names it"
    real = command.train
    def train(*args, **kw):
        for s in real(*args, **kw):
            if s.step == 2 and os.environ['RANK'] == '1': raise TypeError('out of memory')
            yield s
    with mock.patch.object(command, 'train', train):
        equal(meshed('failed', '1x1x2', *mesh_plan), [2, 99])    # 99: it is raised
    equal(said('failed', 1), 'attention_nb.training: process 1: out of memory\n')
    equal(said('failed').count('process 1 of 2 ended while the others were at work'), 1)

def its_part(out, *argv):
    "Be one of the processes that torchrun's agent has started"
    first = os.environ['TORCHELASTIC_RESTART_COUNT'] == '0'
    if first and os.environ['RANK'] == '1': signal_at(3, signal.SIGKILL)
    if code := work(out, argv, out): sys.exit(code)

def lost():
    "One of two is gone: it is named, and what torchrun starts again takes the steps of one"
    launch = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, max_restarts=1, run_id='lost',
                          rdzv_backend='c10d', rdzv_endpoint='localhost:0', monitor_interval=.1,
                          start_method='fork')
    elastic_launch(launch, its_part)('lost', '--mesh', '1x1x2', *mesh_plan)
    equal(said('lost').count('process 1 of 2 ended while the others were at work'), 1)
    assert differ('lost') < 1e-5 and (folder/'lost'/'model.safetensors').exists()

checks = {f.__name__: f for f in (killed, twice, no_room, damaged, command_line,
                                  half, refused, unseen, failed, lost)} | {
    f'stopped_{kind.name}': functools.partial(stopped, kind)
    for kind in (signal.SIGINT, signal.SIGTERM)} | {
    f'elsewhere_{first}': functools.partial(elsewhere, first, then) for first,then in (
        ('2x2x1', '1x1x2'), ('2x1x2', '1x2x1'), ('1x2x2', '1x1x3'))}

if __name__ == '__main__':
    torch.set_num_threads(1)
    (folder/'play').mkdir()
    (folder/'play'/'text.txt').write_text('i must go back to my ship and to my crew\n'*60)
    (folder/'play'/'other.txt').write_text('all that is gold does not glitter\n'*23)
    (folder/'plain.json').write_text(json.dumps(sizes))
    run_checks(checks, sys.argv[2].split(',')[1:], folder/'1-0.json')
