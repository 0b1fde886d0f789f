"An argument named as in another library is answered with our word, by each row of `checks.words`"
import inspect, re
import attention_nb as nb
import pytest, torch
from attention_nb.checks import words
from attention_nb.kernels.blocks import flash_attention

ids,x = torch.tensor([[1,2,3]]),torch.randn(1, 3, 8)
model = nb.Transformer(nb.TransformerConfig(30, d_model=8, n_layers=1, n_heads=2)).eval()
layer,one = nb.MultiHeadAttention(8, 2),nb.SelfAttention(8, 4)
latent = nb.LatentAttention(8, 2, kv_rank=4, nope_dim=4, rope_dim=2, v_dim=4)

# row of words -> who answers them, with the arguments that are right
answers = [
    ('module', nb.MultiHeadAttention, (8,2)), ('module', nb.SelfAttention, (8,4)),
    ('module', nb.LatentAttention, (8,2)),
    ('call', layer, (x,)), ('call', one, (x,)), ('call', latent, (x,)),
    ('function', nb.attention, (x,x,x)), ('function', nb.scaled_dot_product_attention, (x,x,x)),
    ('function', nb.attention_lse, (x,x,x)), ('function', nb.explain_choice, (x,x,x)),
    ('function', flash_attention, (x,x,x)),
    ('config', nb.TransformerConfig, (30,)), ('model', model, (ids,)),
    ('load', nb.load_pretrained, ('smollm2',)), ('load', nb.LLM.load, ('smollm2',)),
    ('rope', nb.Rope, (8,)), ('lora', nb.add_lora, (model,2)),
    ('documents', nb.document_mask, ([0,0,1],)),
    ('generate', model.generate, (ids,3)), ('generate', nb.generate, (model,ids,3)),
    ('generate', nb.stream, (model,ids,3))]

@pytest.mark.parametrize('row, call, args', answers, ids=lambda a: getattr(a, '__name__', None))
def test_every_word_is_answered(row, call, args):
    for word,say in words[row].items():
        if word in inspect.signature(call).parameters: continue    # it has the same name here
        with pytest.raises(TypeError, match=f'has no argument {word}: {re.escape(say)}'):
            call(*args, **{word: None})

def test_every_row_has_somebody_who_answers(): assert {row for row,_,_ in answers} == words.keys()

def test_processors_that_are_named_are_those_of_transformers():
    from transformers.generation import logits_process
    named = {say.split('=')[1].split('(')[0] for say in words['generate'].values()
             if say.startswith('give it as a processor')}
    assert len(named) > 5 and all(hasattr(logits_process, name) for name in named)

@pytest.mark.parametrize('call, word, ours', [
    (nb.TransformerConfig, 'hidden_size', 'd_model'), (model, 'attention_mask', 'mask'),
    (nb.load_pretrained, 'torch_dtype', 'dtype'), (nb.LLM.load, 'device_map', 'device'),
    (nb.Rope, 'theta', 'base'), (nb.add_lora, 'r', 'rank'), (nb.add_lora, 'lora_alpha', 'alpha'),
    (nb.add_lora, 'target_modules', 'names'), (nb.document_mask, 'cu_seqlens', 'doc_ids'),
    (layer, 'attn_mask', 'mask'), (layer, 'key_padding_mask', 'mask')])
def test_what_is_said_is_an_argument(call, word, ours):
    f = call.forward if isinstance(call, torch.nn.Module) else call
    assert ours in inspect.signature(f).parameters
    with pytest.raises(TypeError, match=rf'has no argument {word}: .*\b{ours}\b'):
        call(**{word: None})

def test_boundaries_of_flash_attn_become_ids():
    "The line of code that the answer gives"
    cu_seqlens = torch.tensor([0,2,3])
    code = words['documents']['cu_seqlens'].split(': ')[1]
    assert eval(code, dict(torch=torch, cu_seqlens=cu_seqlens)).tolist() == [0,0,1]
