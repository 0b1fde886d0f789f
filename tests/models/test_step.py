"The quick step of a model that writes: the long way's tokens, and how little it does"
import copy
import pytest, torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from attention_nb.layers import products
from attention_nb.models.config import TransformerConfig
from attention_nb.models.generation import stream
from attention_nb.models.step import TokenStep, why_not
from attention_nb.models.transformer import Transformer
from attention_nb.recording.recorder import record
from helpers import spread
from helpers.tiny_models import decoder

QUICK = ['llama', 'mistral', 'qwen2', 'qwen3', 'smollm3', 'olmo2', 'phi3', 'gemma2',
         'gemma3_text', 'mixtral', 'gpt_oss', 'gpt2', 'gpt_neox']
SLOW = {'bloom': 'its positions are alibi', 'deepseek_v3': 'layer 0 is a LatentAttention'}

def small(family): return copy.deepcopy(decoder(family))

@pytest.mark.parametrize('family,texts', spread(QUICK, ['one', 'several', 'filled up']))
def test_short_is_long(family, texts, monkeypatch):
    model,asked,rows = small(family),[],1 if texts == 'one' else 3
    torch.manual_seed(1)
    ids,mask = torch.randint(3, 50, (rows, 6)),None
    if texts == 'filled up':
        mask = torch.ones(rows, 6, dtype=torch.bool)
        mask[0,:3] = mask[1,:1] = False
    def write():
        return model.generate(ids, 14, mask=mask, eos_id=(), return_scores=True)
    with torch.no_grad(): short,scores = write()
    real = TokenStep.__call__
    def heard(self, *a):
        asked.append(self)
        return real(self, *a)
    monkeypatch.setattr(TokenStep, '__call__', heard)
    write()
    assert len(asked) == 13 and len({*asked}) == 1      # all but the prompt, by one step
    monkeypatch.setattr(Transformer, 'token_step', lambda *a: None)
    long,wanted = write()
    assert torch.equal(short, long)
    assert_close(scores, wanted, atol=1e-4, rtol=1e-4)
    assert len(asked) == 13

@pytest.mark.parametrize('family', SLOW)
def test_others_go_the_long_way(family):
    model = small(family)
    assert why_not(model, model.new_cache(1, 9)) == SLOW[family]
    assert model.token_step(model.new_cache(1, 9)) is None
    assert model.generate(torch.randint(3, 50, (1, 5)), 4, eos_id=()).shape == (1, 9)

class Calls(TorchDispatchMode):
    n = 0
    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        self.n += 1
        return f(*args, **(kwargs or {}))

@pytest.mark.parametrize('way,most', [('linear',600), ('halves',1200)])
def test_calls_of_a_token(way, most, monkeypatch):
    "Operators of torch that a token calls in 30 layers, as SmolLM2 has: 1,500 the long way"
    monkeypatch.setattr(products, 'way_for', lambda *a: products.ways[way])
    cfg = TransformerConfig(50, d_model=48, n_layers=30, n_heads=3, n_kv_heads=1)
    model,counts = Transformer(cfg).eval(),[]
    for n in (2, 3, 5):    # the first call moves matrices together
        with Calls() as calls: model.generate(torch.tensor([[5, 9, 23]]), n, eos_id=())
        counts.append(calls.n)
    assert (counts[2]-counts[1])/2 <= most

def test_somebody_comes_and_goes():
    "Between two tokens: a recorder; and weights that are trained on in their place"
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

@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16, torch.float64])
def test_other_dtypes(dtype):
    model = small('qwen3').to(dtype)
    ids,cache = torch.randint(3, 50, (2, 9)),model.new_cache(2, 9)
    with torch.inference_mode():
        whole = model(ids)
        model(ids[:,:5], cache=cache)
        step = TokenStep(model, cache)
        for t in range(5, 9): assert_close(step(ids[:,t:t+1]), whole[:,t], atol=.05, rtol=.05)

def test_training_goes_on_beside_it():
    "A model that trains is asked: no dropout acts, the mode stays, and gradients flow after it"
    model = small('gpt2').train()
    ids = torch.randint(3, 50, (1, 5))
    loss = model(ids).logsumexp(-1).sum()
    first = model.generate(ids, 6, eos_id=())
    assert model.training and torch.equal(first, model.eval().generate(ids, 6, eos_id=()))
    loss.backward()
    assert all(p.grad is not None for p in model.decoder.blocks[0].attn.q_proj.parameters())
