"Recording many families of models: a wide net beside the proofs in nbs/recording"
import pytest, torch
from torch.testing import assert_close

transformers = pytest.importorskip('transformers')
from transformers import AutoModelForCausalLM
from attention_nb.kernels.reference import attention
from attention_nb.models.config import TransformerConfig
from attention_nb.models.transformer import Transformer
from attention_nb.recording.recorder import record
from helpers import short
from helpers.processes import group_of_one
from helpers.tiny_models import inputs, made, tiny

def agree(r):
    for n in r.layers: assert torch.equal(attention(n.q, n.k, n.k, **n.options)[1], n.weights)

families = '''bert roberta distilbert albert electra esm modernbert vit gpt2 gpt_neox gpt_bigcode
    opt llama mistral mixtral qwen2 qwen3 qwen3_moe gemma gemma2 gemma3_text phi3 gpt_oss
    olmo2 cohere2 smollm3 diffllama llama4_text t5 bart whisper switch_transformers'''.split()
only_eager = {'gemma2', 'gpt_oss', 'switch_transformers'}
# in `make test`: an encoder, a decoder, both; of pictures, of sounds; windows, sinks, caps, experts
some = '''bert albert modernbert vit gpt2 gpt_bigcode opt llama qwen3_moe gemma2 gpt_oss cohere2
    diffllama llama4_text t5 whisper'''.split()

@pytest.mark.parametrize('kind', short(some, families))
def test_family(kind):
    "The output is the same, the weights are the model's own, the options give them"
    theirs = {}
    for kernel in ('eager',) if kind in only_eager else ('eager', 'sdpa'):
        model = made(kind, kernel)
        for padded in (False, True):
            given = inputs(model, padded)
            with torch.no_grad():
                want = model(**given)
                with record(model) as r: got = model(**given)
                assert model.config._attn_implementation == kernel
                real = torch.ones(1)    # rows of padding do not matter
                if padded and 'attention_mask' in given and not model.config.is_encoder_decoder:
                    real = given['attention_mask'][...,None]
                assert_close(got[0]*real, want[0]*real, rtol=1e-4, atol=1e-4)
                agree(r)
                if kernel == 'eager': theirs[padded] = model(**given, output_attentions=True)
            parts = dict(self='attentions')
            if model.config.is_encoder_decoder:
                parts = {part: f'{part}_attentions' for part in ('encoder','decoder','cross')}
            assert r.kinds() == list(parts)
            for part,name in parts.items():
                rows = [n.weights for n in r.layers if n.kind == part]
                if kind == 'diffllama': rows = rows[::2]    # the same queries and keys twice
                for ours,their in zip(rows, theirs[padded][name], strict=True):
                    seen = torch.ones(1, 1, 1, 1)           # rows of padding do not matter
                    if padded and part in ('self','encoder') and 'attention_mask' in given:
                        seen = given['attention_mask'][:,None,:,None]
                    assert_close(ours*seen, their*seen, rtol=1e-4, atol=2e-5)

def at_once(model, text, real):
    positions = (real.cumsum(1)-1).clamp(min=0)
    with record(model) as r, torch.no_grad():
        model(text, attention_mask=real, position_ids=positions)
    return r

sliding = dict(layer_types=['sliding_attention', 'full_attention'])
writers = dict(gpt2={}, llama={}, mistral={}, gemma3_text=sliding, gpt_oss=sliding)

@pytest.mark.parametrize('kind', short(['gpt2', 'gpt_oss'], writers))
def test_generate(kind):
    "The rows of all steps are those of one call on the finished text, padded on the left too"
    kernel = 'eager' if kind in only_eager else 'sdpa'
    model = made(kind, kernel, AutoModelForCausalLM, **writers[kind])
    text,real = torch.randint(3, 50, (2, 6)),torch.ones(2, 6, dtype=torch.long)
    text[1,:2] = real[1,:2] = 0
    asked = dict(input_ids=text, attention_mask=real, max_new_tokens=6, do_sample=False)
    for more in ({}, dict(cache_implementation='static')):
        want = model.generate(**asked, **more)
        with record(model) as r: got = model.generate(**asked, **more)
        assert torch.equal(got, want)
        agree(r)
        after = torch.cat([real, torch.ones(2, 5, dtype=torch.long)], 1)
        seen = after.bool()[:,None,:,None]
        for ours,whole in zip(r.layers, at_once(model, got[:,:-1], after).layers, strict=True):
            assert ours.weights.shape == (2, 4, 11, 11)
            assert_close(ours.weights*seen, whole.weights*seen, rtol=1e-4, atol=1e-5)

def test_beams_are_refused():
    "Beams change their order between two steps; several samples of one text do not"
    model = made('bart', 'sdpa', transformers.AutoModelForSeq2SeqLM, forced_eos_token_id=None)
    ids = inputs(model)['input_ids']
    with record(model), pytest.raises(NotImplementedError, match='record one text at a time'):
        model.generate(ids, max_new_tokens=9, do_sample=False, num_beams=4)
    assert model.config._attn_implementation == 'sdpa'
    with record(model) as r:
        model.generate(ids, max_new_tokens=5, do_sample=True, num_return_sequences=2)
    assert [w.shape for w in r.weights(3, 'cross')] == [(4, 5, 7)]*2

@pytest.mark.parametrize('settings', [{}, dict(window=(3,0), layer_types=('full','window'))])
def test_samples_of_our_own_model(settings):
    "Rows are repeated once after the prompt; what its steps have seen is what one call sees"
    model,ids = ours(50, **settings),torch.randint(3, 50, (2, 5))
    mask = torch.arange(5) >= torch.tensor([[2], [0]])
    options = dict(temperature=2., seed=0, num_return_sequences=3, eos_id=(), mask=mask)
    with record(model) as r: out = model.generate(ids, 6, **options)
    mask = torch.cat([mask.repeat_interleave(3, 0), torch.ones(6, 5, dtype=torch.bool)], 1)
    with record(model) as whole, torch.no_grad(): model(out[:,:-1], mask=mask)
    for a,b in zip(r.layers, whole.layers, strict=True): assert_close(a.weights, b.weights)
    with record(model), pytest.raises(NotImplementedError, match='record one text at a time'):
        model.generate(ids, 9, n_beams=3, eos_id=())

def test_encoder_and_decoder_of_two_kinds():
    "The parts of a model made of a BERT and a GPT-2 are told apart"
    config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(
        tiny('bert'), tiny('gpt2', add_cross_attention=True, is_decoder=True))
    model = transformers.EncoderDecoderModel(config).eval()
    ids = torch.randint(3, 50, (2, 7))
    with record(model) as r, torch.no_grad(): model(input_ids=ids, decoder_input_ids=ids[:,:4])
    assert r.kinds() == ['encoder', 'decoder', 'cross'] and len(r) == 6
    assert [w.shape for w in r.weights(kind='cross')] == [(4, 4, 7)]*2
    with record(model.decoder) as r, torch.no_grad():
        model(input_ids=ids, decoder_input_ids=ids[:,:4])
    assert r.kinds() == ['self', 'cross']

def test_what_a_kernel_is_given():
    "Learned queries serve a whole batch; masks are booleans or numbers; others are refused"
    from attention_nb.recording.third_party import _options_from_hf
    m,q,k = torch.nn.Identity(),torch.randn(5, 2, 3, 8),torch.randn(5, 2, 4, 8)
    mask = torch.rand(5, 1, 3, 4) > 0.3
    least = torch.finfo(torch.float32).min
    for given in (mask, torch.zeros(mask.shape).masked_fill(~mask, least)):
        options = _options_from_hf(m, q, k, given, dict(scaling=2., position_bias=None))
        assert torch.equal(options['mask'], mask) and options['bias'] is None
        assert options['scale'] == 2
    bias = torch.randn(5, 1, 3, 4)
    assert torch.equal(_options_from_hf(m, q, k, bias, dict(position_bias=bias))['bias'], 2*bias)
    assert not _options_from_hf(m, q, k, None, dict(is_causal=True))['mask'].triu(1).any()
    assert _options_from_hf(m, q, k, None, {})['mask'] is None
    with pytest.raises(NotImplementedError, match=r'its mask must be a tensor \(B, H, L, S\)'):
        _options_from_hf(m, q, k, torch.ones(5, 4), {})

def test_half():
    "Halves are recorded in float32, and their rounding is no reason to refuse"
    for dtype in (torch.bfloat16, torch.float16):
        for kernel in ('sdpa', 'eager'):
            model = made('llama', kernel).to(dtype)
            with record(model) as r, torch.no_grad(): model(**inputs(model))
            assert r.layers[0].q.dtype == r.weights()[0].dtype == torch.float32
    model = made('llama')
    with record(model) as r, torch.no_grad(), torch.autocast('cpu', torch.bfloat16):
        model(**inputs(model))
    agree(r)
    with torch.inference_mode(), record(model) as r: model(**inputs(model))
    assert not r.layers[0].q.is_inference()
    agree(r)

def test_compiled_generate():
    "A compiled model that writes with a fixed cache is recorded"
    model = made('llama', 'sdpa', AutoModelForCausalLM)
    ids = inputs(model)['input_ids']
    asked = dict(max_new_tokens=4, do_sample=False, cache_implementation='static')
    want = model.generate(ids, **asked)
    model.compile(backend='eager')
    with record(model) as r: got = model.generate(ids, **asked)
    assert torch.equal(got, want) and [n.weights.shape for n in r.layers] == [(2, 4, 10, 10)]*2

def ours(vocab_size, **settings):
    torch.manual_seed(0)
    cfg = TransformerConfig(vocab_size, d_model=32, n_layers=2, n_heads=4, **settings)
    return Transformer(cfg).eval()

def test_a_model_split_over_processes_is_refused():
    "It has some of the heads; the whole is recorded before"
    from attention_nb.distributed.tensor_parallel import parallelize
    model = ours(50)
    with record(model) as r: model(torch.ones(1, 3).long())
    assert len(r) == 2
    with group_of_one():
        parallelize(model, torch.distributed.init_device_mesh('cpu', (1,)))
        said = r'decoder.blocks.0.attn \(MultiHeadAttention\) is split over processes'
        with pytest.raises(NotImplementedError, match=said):
            with record(model): pass
