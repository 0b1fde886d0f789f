"Models of few bits: saved, loaded, copied, compiled, recorded, asked by many threads"
import copy, json, pickle
from concurrent.futures import ThreadPoolExecutor
import pytest, torch
from torch.testing import assert_close
from attention_nb.checkpoints.pretrained import load_pretrained, save_pretrained
from attention_nb.layers import quantized
from attention_nb.layers.base import use_attention
from attention_nb.layers.quantized import quantize
from attention_nb.kernels.reference import attention
from attention_nb.models.config import TransformerConfig
from attention_nb.models.transformer import Transformer
from attention_nb.recording.patching import remove_heads
from attention_nb.recording.recorder import record
from attention_nb.training.lora import add_lora, merge_lora
from helpers import full, short, spread
from helpers.tiny_models import decoder

def model_of(**kw):
    torch.manual_seed(0)
    kw = dict(d_model=64, n_layers=2, n_heads=4, n_kv_heads=2) | kw
    model = Transformer(TransformerConfig(64, **kw)).eval()
    for p in model.parameters():
        if p.dim() > 1: p.data.mul_(6)
    return model

ids = torch.arange(3, 12)[None]

unlike = 'llama','gpt2','gemma3_text','gpt_oss','deepseek_v3'

@pytest.mark.parametrize('family', short(unlike, [*unlike, 'qwen3', 'mixtral', 'phi3']))
def test_a_family_in_8_bits(family, tmp_path):
    "Close to what it was; saved and loaded with equal numbers; the step's text is the model's"
    model = copy.deepcopy(decoder(family))
    with torch.no_grad():
        before = model(ids)
        after = quantize(model)(ids)
    assert (after-before).abs().max() < .25*before.abs().max()
    save_pretrained(model, tmp_path)
    said = json.loads((tmp_path/'config.json').read_text())
    assert said['model_type'] == 'attention_nb' and said['quantized']
    with torch.no_grad():
        twin = load_pretrained(tmp_path)
        assert torch.equal(twin(ids), after)
        text = model.generate(ids, 8, eos_id=())
        whole = model(text)[:,ids.shape[1]-1:-1]
    best = whole.max(-1).values      # of equally good tokens rounding may take either
    assert (best - whole.gather(-1, text[:,ids.shape[1]:,None])[...,0]).max() < .05*whole.std()

@pytest.mark.parametrize('bits,dtype', spread([8, 4], [torch.float32, torch.bfloat16,
                                                       torch.float16]), ids=str)
def test_saved_loaded_copied_pickled(bits, dtype, tmp_path):
    model = quantize(model_of(tied=False).to(dtype), bits)
    model.generate(ids, 3, eos_id=())      # moves matrices together
    with torch.no_grad(): wanted = model(ids)
    save_pretrained(model, tmp_path, family='attention_nb')
    again = load_pretrained(tmp_path, dtype=dtype)
    for twin in (again, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with torch.no_grad(): assert torch.equal(twin(ids), wanted)
        assert twin.new_cache(1, 4).self_attn[0].dtype == dtype
        assert torch.equal(twin.generate(ids, 5, eos_id=()), model.generate(ids, 5, eos_id=()))
    twin.load_state_dict(model.state_dict())
    with torch.no_grad(): assert torch.equal(twin(ids), wanted)

@pytest.mark.parametrize('bits', [8, 4])
def test_quantized_while_it_is_loaded(bits, tmp_path):
    for kw in (dict(), dict(tied=False), dict(attn_bias=True, ffn_bias=True, head_bias=True)):
        model = model_of(**kw)
        save_pretrained(model, tmp_path/'own', family='attention_nb')
        save_pretrained(decoder('mixtral'), tmp_path/'hf', family='mixtral')
        for folder in ('own', 'hf'):
            loaded = load_pretrained(tmp_path/folder, bits=bits)
            wanted = quantize(load_pretrained(tmp_path/folder), bits)
            with torch.no_grad(): assert torch.equal(loaded(ids), wanted(ids))
            assert {*loaded.state_dict()} == {*wanted.state_dict()}
    with pytest.raises(ValueError, match='group needs bits=4'):
        load_pretrained(tmp_path/'own', group=32)

@pytest.mark.parametrize('bits', [None, 8])
def test_a_model_with_lora_is_merged_before_it_is_saved(bits, tmp_path):
    model = add_lora(model_of() if bits is None else quantize(model_of(), bits), 2)
    with pytest.raises(ValueError, match='call merge_lora'):
        save_pretrained(model, tmp_path, family='attention_nb')
    assert save_pretrained(merge_lora(model), tmp_path, family='attention_nb')

@full
def test_smollm2_keeps_to_its_bits():
    "Its file has 4 bits in groups of 32, which come back almost as they were, in 100 MB"
    loaded,wanted = load_pretrained('smollm2', bits=4),load_pretrained('smollm2')
    assert sum(t.nbytes for t in [*loaded.parameters(), *loaded.buffers()]) < 105e6
    for name,m in wanted.named_modules():
        if isinstance(m, torch.nn.Linear):
            off = loaded.get_submodule(name).weight - m.weight
            assert off.norm() < .02*m.weight.norm(), name

def test_what_a_file_says_must_fit(tmp_path):
    save_pretrained(quantize(model_of()), tmp_path, family='attention_nb')
    config = json.loads((tmp_path/'config.json').read_text())
    for change,what in ((lambda q: q.update(nowhere=[8, None]), 'quantized does not fit'),
                        (lambda q: q.popitem(), 'unexpected tensors|no tensor for'),
                        (lambda q: q.update({next(iter(q)): [5, None]}), 'bits must be 8 or 4')):
        said = json.loads(json.dumps(config))
        change(said['quantized'])
        (tmp_path/'config.json').write_text(json.dumps(said))
        with pytest.raises(ValueError, match=what): load_pretrained(tmp_path)
    with pytest.raises(NotImplementedError, match="family='attention_nb', got 'llama'"):
        save_pretrained(quantize(model_of()), tmp_path/'x', family='llama')

def test_recorded_and_changed():
    model = quantize(model_of())
    with torch.no_grad():
        with record(model) as r: out = model(ids)
        assert len(r.layers) == 2 and torch.equal(model(ids), out)
        with use_attention(model, attention): assert_close(model(ids), out)
        with remove_heads(model, [(0, 1)]): assert not torch.equal(model(ids), out)

def test_threads():
    model = quantize(model_of(), 4)
    wanted = model.generate(ids, 12, eos_id=())
    with ThreadPoolExecutor(4) as pool:
        for out in pool.map(lambda _: model.generate(ids, 12, eos_id=()), range(12)):
            assert torch.equal(out, wanted)

def test_odd_shapes():
    torch.manual_seed(0)
    for N,K in ((16,32), (5,32), (48,64), (130,96), (64,33), (1,1)):
        linear = torch.nn.Linear(K, N).eval()
        layer = quantize(torch.nn.Sequential(linear), 4)[0]
        assert layer.bits == (4 if K % 32 == 0 else 8)
        for rows in (1, 2, quantized.min_rows_dequantized[layer.bits]+1):
            x = torch.randn(rows, K)
            with torch.no_grad(): out = layer(x)
            assert_close(out, x @ layer.weight.T + linear.bias, atol=.03, rtol=.02)
        assert_close(layer.weight, linear.weight.detach(), atol=.05, rtol=0.)

def test_a_weight_that_has_4_bits_comes_back():
    codes = torch.stack([torch.randperm(32) for _ in range(64)])//2 - 8    # 16 numbers a group
    weight = (codes*torch.rand(64, 1)).view(16, 128)
    linear = torch.nn.Linear(128, 16, bias=False)
    linear.weight.data.copy_(weight)
    assert_close(quantize(torch.nn.Sequential(linear), 4)[0].weight, weight, atol=.03, rtol=.01)
