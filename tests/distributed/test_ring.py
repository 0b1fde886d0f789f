"""Divided texts against whole ones: nbs/distributed/ring.ipynb and context.ipynb. On four processes
what two cannot show: a ring of several steps, two divisions at once, and what is sent"""
from pathlib import Path
import pytest, torch
from helpers import short
from helpers.processes import launch, passed

pytest.importorskip('torch.distributed.tensor')
if not torch.distributed.is_gloo_available():
    pytest.skip('torch has no gloo here', allow_module_level=True)

two = '''way_zigzag way_contiguous way_heads model_gpt2 model_llama model_gpt_oss model_gemma2
    model_deepseek model_bert model_heads odd_inputs refusals own_part experts
    only_experts refused_models split_text'''.split()
four = '''few_zigzag few_both model_both nothing_outside_a_window with_tensor_parallel
    with_fsdp'''.split()
two_more = 'way_both all_gpt2 all_llama all_gemma2 all_deepseek all_bert'.split()
four_more = '''way_zigzag way_contiguous way_heads way_both all_gpt_oss split_text
    experts'''.split()
def on(n, *names): return [(n, check) for check in names]
kept = on(2, *two) + on(4, *four)
cases = kept + on(2, *two_more) + on(4, *four_more)

@pytest.fixture(scope='module')
def results(request, tmp_path_factory):
    return launch(request, Path(__file__).parent/'ring_worker.py', tmp_path_factory.mktemp('ring'))

@pytest.mark.parametrize('n,check', short(kept, cases))
def test_several_processes_give_what_one_gives(results, n, check): passed(results[n], check)
