"""Runs of `python -m attention_nb.training` in processes of their own, forked from this one, which
has imported everything: run_worker.py FOLDER. Results go to FOLDER/said.json"""
import contextlib, io, json, os, random, signal, sys, time, traceback
from pathlib import Path
import torch
from attention_nb.training.checkpoint import last_checkpoint
from attention_nb.training.command import training_command
# what a run imports when it needs it, here once for all of them
import matplotlib.figure, matplotlib.style, matplotlib.pyplot, safetensors.torch, tokenizers, tqdm

folder = Path(sys.argv[1])
STEPS,EVERY = 40,8
begin = [str(folder/'text.txt'), '--config', str(folder/'config.json'), '--steps', str(STEPS),
         '--length', '16', '--batch', '2', '--save-every', str(EVERY)]

def lines(out):
    log = folder/out/'log.jsonl'
    return log.read_text().splitlines() if log.exists() else []

def child(out, *more, before=lambda: None):
    "Start a run; its number"
    if pid := os.fork(): return pid
    code = 99
    try:
        before()
        with open(folder/f'{out}.txt', 'a') as said, contextlib.redirect_stderr(said), \
                contextlib.redirect_stdout(io.StringIO()):
            code = training_command([*begin, '--out', str(folder/out), *more])
    except BaseException: traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)

def ended(pid): return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def until(out, n, pid):
    "Wait until a run has written `n` lines"
    end = time.monotonic()+60
    while len(lines(out)) < n and time.monotonic() < end: time.sleep(.003)
    assert len(lines(out)) >= n, (folder/f'{out}.txt').read_text()
def losses(out): return [json.loads(line)['loss'] for line in lines(out)]
def saved(out):
    found = last_checkpoint(folder/out/'checkpoints')
    return found[0] if found else 0

def uninterrupted():
    return dict(code=ended(child('whole')), steps=len(losses('whole')))

def killed():
    "kill -9 at random moments; what each kill has cost"
    chance,cost,n = random.Random(0),[],0
    for round in range(4):
        pid = child('killed', *(['--resume'] if round else []))
        until('killed', n + chance.randrange(2, 9), pid)
        time.sleep(chance.random()*.02)
        os.kill(pid, signal.SIGKILL)
        ended(pid)
        n = saved('killed')
        cost.append(len(lines('killed')) - n)
    code = ended(child('killed', '--resume'))
    return dict(cost=cost, code=code, same=losses('killed') == losses('whole'))

def stopped():
    "Ctrl-C, and the signal by which a system ends its processes"
    found = {}
    for kind in (signal.SIGINT, signal.SIGTERM):
        out = f'stopped{kind.value}'
        pid = child(out)
        until(out, 10, pid)
        os.kill(pid, kind)
        code = ended(pid)
        at = len(lines(out))
        found[kind.name] = dict(code=code, saved=saved(out) == at, early=at < STEPS,
                                said=(folder/f'{out}.txt').read_text().splitlines()[-1],
                                then=ended(child(out, '--resume')),
                                same=losses(out) == losses('whole'))
    return found

def twice():
    "A second run into a folder in which one is running"
    first = child('twice')
    until('twice', 1, first)
    second = ended(child('twice', '--resume'))
    said = (folder/'twice.txt').read_text().splitlines()[-1]
    return dict(second=second, said=said, first=ended(first),
                same=losses('twice') == losses('whole'))

def no_room():
    "No file may grow beyond a size: the first steps fit, a checkpoint does not"
    import resource
    def limit(): resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
    code = ended(child('full', before=limit))
    said = (folder/'full.txt').read_text().splitlines()
    left = [p.name for p in (folder/'full').rglob('*') if p.name.startswith('.')]
    return dict(code=code, said=said, left=left, then=ended(child('full', '--resume')),
                same=losses('full') == losses('whole'))

def damaged():
    "A bit of the last checkpoint is another; a line of the log is half written"
    pid = child('damaged')
    until('damaged', 2*EVERY + 3, pid)
    os.kill(pid, signal.SIGKILL)
    ended(pid)
    file = folder/'damaged'/'checkpoints'/f'step-{saved("damaged"):08}'/'state.safetensors'
    file.write_bytes(file.read_bytes()[:-1] + b'?')
    with open(folder/'damaged'/'log.jsonl', 'a') as f: f.write('{"step": 2')
    code = ended(child('damaged', '--resume'))
    said = (folder/'damaged.txt').read_text()
    return dict(code=code, named='is damaged: going on from step' in said,
                same=losses('damaged') == losses('whole'))

if __name__ == '__main__':
    torch.set_num_threads(1)
    said = {}
    for check in (uninterrupted, killed, stopped, twice, no_room, damaged):
        try: said[check.__name__] = check()
        except Exception: said[check.__name__] = dict(failed=traceback.format_exc())
    (folder/'said.json').write_text(json.dumps(said))
