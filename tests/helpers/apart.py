"Programs in processes of their own, forked from one that has imported the package and little else"
import atexit, functools, json, os, select, signal, subprocess, sys, tempfile
from pathlib import Path
import pytest
from helpers import root

server = """
import json, os, sys, traceback, attention_nb.checkpoints.pretrained, torch
for line in sys.stdin:
    said,code,argv,env = json.loads(line)
    if not (pid := os.fork()):
        status = 1
        try:
            for n,name in ((1, 'out'), (2, 'err')):
                os.dup2(os.open(f'{said}/{name}', os.O_CREAT | os.O_WRONLY), n)
            os.environ.update(env)
            sys.argv[1:] = argv
            exec(code, dict(__name__='__main__'))
            status = 0
        except SystemExit as e: print(e, file=sys.stderr)
        except BaseException: traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(os.waitpid(pid, 0)[1], flush=True)
"""

@functools.cache
def started():
    if not hasattr(os, 'fork'): pytest.skip('no fork here')
    env = os.environ | dict(PYTHONPATH=str(root), RUST_BACKTRACE='0', OMP_NUM_THREADS='1')
    process = subprocess.Popen([sys.executable, '-W', 'ignore', '-c', server], env=env, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               start_new_session=True)
    atexit.register(stop, process)
    return process

def stop(process):
    with process: pass                                  # who hears no more requests ends

opening = """
import re, sys
from pathlib import Path
from attention_nb.checkpoints.pretrained import load_pretrained
from attention_nb.checkpoints.source import locate, open_source
from attention_nb.checkpoints.tokenizers import load_tokenizer
def memory(name):
    status = Path('/proc/self/status')
    if not status.exists(): return 0
    return int(re.search(name + r':\\s*(\\d+)', status.read_text())[1])
before = memory('VmRSS')
for path in sys.argv[1:]:
    try: print(DO, flush=True)
    except (FileNotFoundError, ValueError) as e: print(' '.join(str(e).split()), flush=True)
print(memory('VmHWM') - before)
"""

def said_of(do, *paths, **more):
    "What an expression gives of each `path`, or why not; and how many KB of memory it took"
    *said,grown = apart(opening.replace('DO', do), *paths, **more).splitlines()
    assert len(said) == len(paths), said
    return said, int(grown)

def apart(code, *argv, timeout=120, **env):
    "What a program prints; it must end, and well"
    process = started()
    with tempfile.TemporaryDirectory() as said:
        print(json.dumps([said, code, [*map(str, argv)], env]), file=process.stdin, flush=True)
        if not select.select([process.stdout], [], [], timeout)[0]:
            os.killpg(process.pid, signal.SIGKILL)
            started.cache_clear()
            pytest.fail(f'it does not end in {timeout} seconds')
        status = int(process.stdout.readline())
        out,err = (Path(said, name).read_text() for name in ('out', 'err'))
    assert status == 0, f'status {status}\n{err[-2000:]}'
    return out
