"What importing a module of the package costs beside torch"
import importlib, pkgutil, time
from measure import in_process

def import_time(module):
    "Milliseconds, in the process that asks"
    import torch                                                                # noqa: F401
    start = time.perf_counter()
    importlib.import_module(module)
    return 1e3*(time.perf_counter()-start)

def tables(report, rounds):
    "`rounds` is not used, each module has a process of its own"
    import attention_nb
    names = (m.name for m in pkgutil.iter_modules(attention_nb.__path__))
    modules = [f'attention_nb.{n}' for n in names if not n.startswith('_')]
    rows = [(m, in_process(import_time, m)) for m in modules]
    report.show('What an import adds to `import torch`', rows, ('', 'milliseconds'))
