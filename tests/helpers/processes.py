"Programs that run checks in several processes"
import json, os, signal, subprocess, sys, time

def launch(worker, folder, *groups, timeout=120, begun=None):
    """Run groups of checks of a program, '2,this,that'; no process is left when this returns. What
    the processes wrote, by their number. `begun`: the time counts once this file is there"""
    path = os.pathsep.join([str(worker.parent.parent), os.environ.get('PYTHONPATH', '')])
    env = os.environ | dict(OMP_NUM_THREADS='1', PYTHONPATH=path)
    command = [sys.executable, '-W', 'ignore', str(worker), str(folder), *groups]
    with open(folder/'log', 'w') as log:
        all_ = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic()+60
        try:
            while begun and not begun.exists() and all_.poll() is None and time.monotonic() < end:
                time.sleep(.05)
            code = all_.wait(timeout)
        except subprocess.TimeoutExpired: code = f'none after {timeout} s'
        finally:
            try: os.killpg(all_.pid, signal.SIGKILL)
            except ProcessLookupError: pass
            all_.wait()
    assert code == 0, f"exit code {code}\n{(folder/'log').read_text()[-3000:]}"
    def wrote(n): return [json.loads((folder/f'{n}-{r}.json').read_text()) for r in range(n)]
    return {n: wrote(n) for n in (int(g.split(',')[0]) for g in groups)}

def passed(results, check):
    for r,result in enumerate(results):
        assert check not in result['failed'], f"rank {r}\n{result['failed'][check]}"
    assert all(check in result['times'] for result in results)
