"What importing a module of the package costs beside torch"
import importlib, pkgutil, statistics, time
from measure import in_process

def import_time(module):
    "Milliseconds, in the process that asks"
    import torch                                                                # noqa: F401
    start = time.perf_counter()
    importlib.import_module(module)
    return 1e3*(time.perf_counter()-start)

def tables(report, rounds):
    import attention_nb
    names = (m.name for m in pkgutil.iter_modules(attention_nb.__path__))
    modules = [f'attention_nb.{n}' for n in names if not n.startswith('_')]
    few = min(rounds, 3) if rounds < 31 else 1          # a process for each takes seconds
    rows = [(m, statistics.median(in_process(import_time, m) for _ in range(few)))
            for m in modules]
    report.show('What an import adds to `import torch`', rows, ('', 'milliseconds'))
