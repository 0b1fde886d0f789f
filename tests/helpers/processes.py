"Programs that run named checks in several processes, started once for all tests of a file"
import contextlib, json, os, signal, subprocess, sys, traceback

@contextlib.contextmanager
def group_of_one():
    "This process is a group of processes"
    import torch.distributed as dist
    dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    try: yield
    finally: dist.destroy_process_group()

def run_checks(checks, names, path, *args):
    "Run some checks; after each, a file says which ended, and with which error"
    ended = {}
    for name in names:
        try: ended[name] = checks[name](*args)
        except Exception: ended[name] = traceback.format_exc()
        path.write_text(json.dumps(ended))

def launch(request, worker, folder, first=(), timeout=600):
    """Run a worker program, `worker.py FOLDER 2,CHECK,CHECK 4,CHECK`, with the checks that the
    selected tests of this file have as parameters check and n, if any; those of `first` before
    them. What each process wrote, by number of processes; none is left when this returns"""
    params = [i.callspec.params for i in request.session.items
              if i.path == request.path and hasattr(i, 'callspec')]
    asked = [*first, *((p.get('n', 1), p['check']) for p in params if 'check' in p)]
    groups = {n: dict.fromkeys(check for m,check in asked if m == n)
              for n in sorted({n for n,_ in asked})}
    path = os.pathsep.join([str(worker.parent.parent), os.environ.get('PYTHONPATH', '')])
    env = os.environ | dict(OMP_NUM_THREADS='1', PYTHONPATH=path)
    command = [sys.executable, '-W', 'ignore', str(worker), str(folder),
               *(','.join([str(n), *checks]) for n,checks in groups.items())]
    with open(folder/'log', 'w') as log:
        all_ = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
        try: code = all_.wait(timeout)
        except subprocess.TimeoutExpired: code = f'none after {timeout} s'
        finally:
            try: os.killpg(all_.pid, signal.SIGKILL)
            except ProcessLookupError: pass
            all_.wait()
    assert code == 0, f"exit code {code}\n{(folder/'log').read_text()[-3000:]}"
    return {n: [json.loads((folder/f'{n}-{r}.json').read_text()) for r in range(n)] for n in groups}

def passed(results, check):
    "What each process says of a check: nothing"
    for r,ended in enumerate(results): assert ended[check] is None, f"rank {r}\n{ended[check]}"
