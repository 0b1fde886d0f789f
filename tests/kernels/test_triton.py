"""The kernels for a GPU, where there is none: through Triton's interpreter, which is another
process because it must be chosen before Triton is imported"""
import os, sys
from importlib.util import find_spec
import pytest
from helpers import full, root, run

here = pytest.mark.skipif(find_spec('triton') is None,
                          reason="Triton is missing: pip install 'attention-nb[gpu]'")
helpers = root/'tests'/'helpers'

def alone(*command, **extra):
    "What Python prints in a process with the package of this repository"
    keep = {k: v for k,v in os.environ.items() if not k.startswith(('PYTEST', 'TRITON'))}
    paths = [extra.pop('first', ''), str(root), keep.get('PYTHONPATH', '')]
    path = os.pathsep.join(filter(None, paths))
    return run(sys.executable, *command, cwd=root, env=keep | extra | dict(PYTHONPATH=path))

@full
@here
def test_through_the_interpreter():
    said = alone('-m', 'pytest', '-q', '-p', 'no:cacheprovider', helpers/'through_triton.py',
                 TRITON_INTERPRET='1', OMP_NUM_THREADS='1')
    assert ' passed' in said and 'skipped' not in said

def test_the_table_of_kernels_waits_for_neither_ours_of_triton_nor_a_compiler():
    names = 'attention_nb.kernels.triton_flash','torch._dynamo'
    said = alone('-c', 'import sys, attention_nb.kernels.dispatch; '
                 f'print([n in sys.modules for n in {names}])')
    assert said.strip() == str([False, False])
