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
    found = pkgutil.walk_packages(attention_nb.__path__, 'attention_nb.')
    modules = [m.name for m in found if not m.ispkg and not m.name.endswith('__')]
    rows = [(m, in_process(import_time, m)) for m in modules]
    report.show('What an import adds to `import torch`', rows, ('', 'milliseconds'))
