"""Runs of `python -m attention_nb.training --mesh` on several processes, forked from this one, that
has imported everything: mesh_worker.py FOLDER. Results go to FOLDER/said.json"""
import contextlib, io, json, math, os, shutil, socket, sys, time, traceback
from pathlib import Path
from unittest import mock
import torch
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from attention_nb.training import command
# what a run imports when it needs it, here once for all of them
import attention_nb.training.mesh
import matplotlib.figure, matplotlib.pyplot, matplotlib.style, safetensors.torch, tokenizers, tqdm

folder = Path(sys.argv[1])

def free_port():
    with socket.socket() as s:
        s.bind(('localhost', 0))
        return s.getsockname()[1]

def started(out, mesh, *more, n=None):
    "Run processes to their end; their exit codes"
    n = n or math.prod(map(int, mesh.split('x')))
    shared = dict(WORLD_SIZE=str(n), MASTER_ADDR='localhost', MASTER_PORT=str(free_port()))
    pids = [child(out, shared | dict(RANK=str(r), LOCAL_RANK=str(r)), '--mesh', mesh, *more)
            for r in range(n)]
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]

def child(out, env, *more):
    if pid := os.fork(): return pid
    code = 99
    try:
        os.environ.update(env)
        name = out if env.get('RANK', '0') == '0' else f'{out}-{env["RANK"]}'
        with open(folder/f'{name}.txt', 'a') as said, contextlib.redirect_stderr(said), \
                contextlib.redirect_stdout(io.StringIO()):
            argv = [str(folder/'text.txt'), str(folder/'other.txt'), '--out', str(folder/out),
                    '--save-every', '3', '--length', '16', *more]
            code = command.training_command(argv)
    except SystemExit as e: code = e.code
    except BaseException: traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)

def log(out): return [json.loads(line) for line in open(folder/out/'log.jsonl')]
def said(out, rank=0): return (folder/(f'{out}-{rank}.txt' if rank else f'{out}.txt')).read_text()
def alone(out, *more):
    pid = child(out, {}, *more)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def forget(out): shutil.rmtree(folder/out/'checkpoints'/'step-00000006')
def differ(out, want='one'):
    "The largest difference of losses, lengths of gradients, and held-out losses"
    a,b = log(out),log(want)
    assert len(a) == len(b), (len(a), len(b))
    return max(abs(x[key]-y[key]) for x,y in zip(a, b) for key in ('loss','gradient','held_out')
               if key in y)

new = ['--config', str(folder/'config.json'), '--batch', '4']
def steps(n): return ['--steps', str(n)]

def one():
    "One process, without a mesh"
    return dict(code=alone('one', *new, *steps(6)), steps=len(log('one')))

def mesh(which):
    codes = started(which, which, *new, *steps(6))
    return dict(codes=codes, differ=differ(which), files=[p.name for p in (folder/which).iterdir()])

def elsewhere():
    "A run of four processes goes on with two from step 3, and then again with one"
    codes = started('moved', '1x2x2', *new, *steps(6))
    forget('moved')
    codes += started('moved', '2x1x1', '--resume')
    far = [differ('moved')]
    forget('moved')
    codes.append(alone('moved', '--resume'))
    return dict(codes=codes, differ=[*far, differ('moved')])

def half():
    "bfloat16: not the same digits, but a run like it"
    codes = started('half', '1x1x2', *new, *steps(6), '--bfloat16')
    return dict(codes=codes, differ=differ('half'))

mixed = ['--config', str(folder/'mixed.json'), '--batch', '4']
def experts():
    "A model with experts, its heads and hidden numbers divided"
    codes = [alone('mixed', *mixed, *steps(4)), *started('parted', '1x2x1', *mixed, *steps(4))]
    return dict(codes=codes, differ=differ('parted', 'mixed'))

def refused():
    "What cannot be divided is one line, said once, and nothing is written"
    asked = {'heads': ('1x4x1', new), 'batch': ('2x1x1', [*new[:2], '--batch', '3']),
             'mesh': ('2x2', new), 'many': ('1x2x2', new), 'mixed rows': ('2x1x1', mixed)}
    found = {}
    for name,(which,more) in asked.items():
        n = dict(mesh=2, many=2).get(name)
        codes = started(name, which, *more, *steps(4), n=n)
        found[name] = dict(codes=codes, said=said(name).strip().splitlines(), quiet=said(name, 1),
                           left=(folder/name).exists())
    return found

def unseen():
    "Only the first of two processes looks for the checkpoint, and the other cannot read it"
    def failing(do, why):
        def tried(*args):
            if os.environ['RANK'] == '1': raise OSError(why)
            return do(*args)
        return tried
    read = failing(HuggingFaceStorageReader.read_metadata, 'the folder is gone')
    look = failing(command.find_checkpoint, 'asked once more')
    with (mock.patch.object(HuggingFaceStorageReader, 'read_metadata', read),
          mock.patch.object(command, 'find_checkpoint', look)):
        codes = started('one', '2x1x1', '--resume')
    return dict(codes=codes, said=said('one').splitlines()[-1], quiet=said('one', 1))

if __name__ == '__main__':
    torch.set_num_threads(1)
    results = {}
    checks = dict(one=one, elsewhere=elsewhere, half=half, experts=experts, refused=refused,
                  unseen=unseen) | {
        which: (lambda which=which: mesh(which)) for which in ('1x2x2','2x2x1','2x1x2','1x1x3')}
    for name,check in checks.items():
        begun = time.monotonic()
        try: results[name] = check()
        except Exception: results[name] = dict(failed=traceback.format_exc())
        results[name]['seconds'] = round(time.monotonic()-begun, 1)
    (folder/'said.json').write_text(json.dumps(results))
