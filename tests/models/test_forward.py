"One forward for reading and writing: hooks, subclasses and replaced forwards take part in both"
import copy, types
import pytest, torch
from torch import nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from attention_nb.layers import few_rows
from attention_nb.layers.multihead import MultiHeadAttention
from attention_nb.models.config import TransformerConfig
from attention_nb.models.generation import stream
from attention_nb.models.transformer import Transformer
from attention_nb.recording.recorder import record
from helpers import spread
from helpers.tiny_models import decoder

FAMILIES = ['llama', 'mistral', 'qwen2', 'qwen3', 'smollm3', 'olmo2', 'phi3', 'gemma2',
            'gemma3_text', 'mixtral', 'gpt_oss', 'gpt2', 'gpt_neox', 'bloom', 'deepseek_v3']

def small(family): return copy.deepcopy(decoder(family))

def slow(model, ids, n, mask=None):
    "Greedy text and its scores without a cache: everything is read again for each token"
    scores = []
    for _ in range(n):
        with torch.no_grad(): logits = model(ids, mask=mask)[:,-1].float()
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], 1)
        if mask is not None: mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
        scores.append(logits.log_softmax(-1).amax(-1))
    return ids, torch.stack(scores, 1)

@pytest.mark.parametrize('family,texts', spread(FAMILIES, ['one', 'several', 'padded']))
def test_writing_is_reading(family, texts):
    model,rows = small(family),1 if texts == 'one' else 3
    torch.manual_seed(1)
    ids,mask = torch.randint(3, 50, (rows, 6)),None
    if texts == 'padded':
        mask = torch.ones(rows, 6, dtype=torch.bool)
        mask[0,:3] = mask[1,:1] = False
    text,scores = model.generate(ids, 14, mask=mask, eos_id=(), return_scores=True)
    want,best = slow(model, ids, 14, mask)
    assert torch.equal(text, want)
    assert_close(scores, best, atol=1e-4, rtol=1e-4)

class Calls(TorchDispatchMode):
    n = 0
    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        self.n += 1
        return f(*args, **(kwargs or {}))

def test_calls_of_a_token(monkeypatch):
    "Operators of torch that a token calls in 30 layers, as SmolLM2 has; plain layers call 1,035"
    # its products take several operators, on some processors
    monkeypatch.setattr(few_rows, 'slow_dtype', None)
    cfg = TransformerConfig(50, d_model=48, n_layers=30, n_heads=3, n_kv_heads=1)
    model,counts = Transformer(cfg).eval(),[]
    for n in (2, 3, 5):
        with Calls() as calls: model.generate(torch.tensor([[5, 9, 23]]), n, eos_id=())
        counts.append(calls.n)
    assert (counts[2]-counts[1])/2 <= 1300

def test_hooks_and_weights_may_change_between_two_tokens():
    model = small('llama')
    ids = torch.randint(3, 50, (1, 5))
    wanted = model.generate(ids, 6, eos_id=())[0,5:].tolist()
    columns = stream(model, ids, 6, eos_id=())
    got = [int(next(columns)) for _ in range(2)]
    with record(model) as r: got += [int(next(columns)) for _ in range(2)]
    assert len(r.layers) and r.layers[0].weights.shape[-1] > 5
    assert got + [int(column) for column in columns] == wanted
    columns,cache = stream(model, ids, 3, eos_id=()),model.new_cache(1, 9)
    first = next(columns)
    model(ids, cache=cache)
    with torch.no_grad():
        for p in model.parameters(): p.copy_(torch.randn_like(p))
    assert torch.equal(next(columns), model(first[:,None], cache=cache)[:,-1].argmax(-1))

class Turned(MultiHeadAttention):
    "A subclass with a forward of its own"
    def forward(self, query, *args, **options): return -5*super().forward(query, *args, **options)

def hooked(model):
    model.decoder.blocks[1].ffn.register_forward_hook(lambda m, args, out: -5*out)
def attention_hooked(model):
    model.decoder.blocks[1].attn.register_attention_hook(lambda layer, call, out: -5*out)
def replaced(model):
    own = model.decoder.blocks[0].attn.forward
    model.decoder.blocks[0].attn.forward = lambda x, **options: -5*own(x, **options)
def subclass(model): model.decoder.blocks[0].attn.__class__ = Turned
def whole(model):
    own = type(model).forward
    model.forward = types.MethodType(lambda self, ids, **kw: own(self, ids, **kw).flip(-1), model)
def in_the_slot(model):
    model.decoder.blocks[0].attn.attend = lambda q, k, v, **options: v[:,:,-1:].expand_as(q)

changes = hooked,attention_hooked,replaced,subclass,whole,in_the_slot

@pytest.mark.parametrize('change', changes)
def test_what_a_user_changes_counts_while_a_model_writes(change):
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(50, d_model=32, n_layers=2, n_heads=4)).eval()
    for p in model.parameters(): p.data.mul_(8)
    ids = torch.randint(3, 50, (1, 5))
    before = model.generate(ids, 9, eos_id=())
    change(model)
    text = model.generate(ids, 9, eos_id=())
    assert torch.equal(text, slow(model, ids, 9)[0]) and not torch.equal(text, before)
    assert torch.equal(model.generate(ids, 9, eos_id=(), draft=small_draft()), text)

def small_draft():
    return Transformer(TransformerConfig(50, d_model=16, n_layers=1, n_heads=2)).eval()

def test_a_decoder_with_token_types_writes_with_type_0():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(50, d_model=32, n_layers=2, n_heads=4, n_types=2)).eval()
    for p in model.parameters(): p.data.mul_(8)
    ids = torch.randint(3, 50, (2, 5))
    assert torch.equal(model.generate(ids, 9, eos_id=()), slow(model, ids, 9)[0])
    nn.init.zeros_(model.embed.token_type.weight)
    assert torch.equal(model.generate(ids, 9, eos_id=()), slow(model, ids, 9)[0])

@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16, torch.float64])
def test_other_dtypes(dtype):
    model = small('qwen3').to(dtype)
    ids,cache = torch.randint(3, 50, (2, 9)),model.new_cache(2, 9)
    with torch.inference_mode():
        whole = model(ids)
        model(ids[:,:5], cache=cache)
        for t in range(5, 9):
            assert_close(model(ids[:,t:t+1], cache=cache)[:,0], whole[:,t], atol=.05, rtol=.05)

def test_training_goes_on_beside_it():
    "No dropout acts on the text, each module keeps its mode, and gradients flow after it"
    model = small('gpt2').train()
    ids = torch.randint(3, 50, (1, 5))
    loss = model(ids).logsumexp(-1).sum()
    first = model.generate(ids, 6, eos_id=())
    assert model.training and torch.equal(first, model.eval().generate(ids, 6, eos_id=()))
    loss.backward()
    assert all(p.grad is not None for p in model.decoder.blocks[0].attn.q_proj.parameters())
    model.train()
    model.decoder.blocks[0].register_forward_pre_hook(lambda m, args: 1/0)
    with pytest.raises(ZeroDivisionError): model.generate(ids, 6)
    assert all(m.training for m in model.modules())

def test_a_sinusoidal_table_is_made_once(monkeypatch):
    "It was made anew at each call: 196 ms a token at 8,192 positions"
    from attention_nb.models import transformer
    model = Transformer(TransformerConfig(50, d_model=16, n_layers=1, n_heads=2, max_len=64,
                                          positions='sinusoidal')).eval()
    ids = torch.randint(50, (1, 9))
    want = model(ids)
    monkeypatch.setattr(transformer, 'sinusoidal_positions', None)
    assert torch.equal(model(ids), want)
    assert [*model.state_dict()] == [*copy.deepcopy(model).state_dict()]
    assert torch.equal(model.double().float()(ids), want)
    assert torch.equal(model.to(torch.bfloat16).embed._sinusoids, model.float().embed._sinusoids)
