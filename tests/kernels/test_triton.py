"""The kernels for a GPU, where there is none: through Triton's interpreter, which is another
process because it must be chosen before Triton is imported, and through Triton's compiler"""
import json, os, sys
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

asked = ((90, 'bfloat16', 64, 'every'), (80, 'float16', 128, 'plain'),
         (90, 'bfloat16', 256, 'plain'), (80, 'float32', 64, 'plain'))

@full
@here
@pytest.mark.parametrize('arch,dtype,width,which', asked)
def test_compiles_for_a_gpu_that_is_not_there(arch, dtype, width, which, tmp_path):
    """Every kernel becomes code of the GPU, products of half precision go to tensor cores, and what
    it keeps in shared memory fits into the 99 KB of the smaller cards"""
    said = alone('-W', 'ignore', helpers/'compile_triton.py', arch, dtype, width,
                 which, TRITON_CACHE_DIR=str(tmp_path))
    made = [json.loads(line) for line in said.splitlines() if line.startswith('{')]
    names = {'_forward','_deltas','_backward_q','_backward_kv','_decode','_merge'}
    assert {m['name'] for m in made} == names
    for m in made:
        assert m['cubin'] > 1000 and m['shared'] <= 99*1024, m
        multiplies = dtype != 'float32' and m['name'] not in ('_deltas','_merge')
        assert (m['products'] > 0) == multiplies, m

def blocked(folder):
    "A folder in which Triton cannot be imported"
    (folder/'triton').mkdir()
    (folder/'triton'/'__init__.py').write_text('raise ImportError("not installed")')
    return str(folder)

@full
def test_without_triton_the_page_runs_and_calls_name_the_extra(tmp_path):
    said = alone('-c', '\n'.join((
        'import torch; from attention_nb.kernels.triton_flash import *',
        'q = torch.randn(1, 2, 3, 4); print(why_not_triton(q, q, q))',
        'for f in (triton_attention, triton_decode):',
        '    try: f(q, q, q)',
        '    except ImportError as e: print(e)')), first=blocked(tmp_path))
    assert said.splitlines() == ["Triton is missing: pip install 'attention-nb[gpu]'"]*3
    page = tmp_path/'page.ipynb'
    page.write_bytes((root/'nbs'/'kernels/triton_flash.ipynb').read_bytes())
    alone('-c', 'import sys; sys.path.insert(0, "nbs/_sphinx"); from pathlib import Path\n'
          f'from outputs import execute; done = execute(Path({str(page)!r}))\n'
          'assert done.error is None, done', first=str(tmp_path))

def test_the_table_of_kernels_waits_for_neither_ours_of_triton_nor_a_compiler():
    names = 'attention_nb.kernels.triton_flash','torch._dynamo'
    said = alone('-c', 'import sys, attention_nb.kernels.dispatch; '
                 f'print([n in sys.modules for n in {names}])')
    assert said.strip() == str([False, False])
