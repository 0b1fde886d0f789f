"Recording many families of models: a wide net beside the proofs in nbs/recording"
import threading, warnings
import pytest, torch
from torch.testing import assert_close

transformers = pytest.importorskip('transformers')
from transformers import AutoModelForCausalLM, DynamicCache
from attention_nb.kernels.reference import attention
from attention_nb.models.config import TransformerConfig
from attention_nb.models.transformer import Transformer
from attention_nb.recording.look import look
from attention_nb.recording.recorder import record
from attention_nb.text.tokenizer import WordTokenizer
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
    "The output is untouched, the weights are the model's own, the options give them"
    theirs = {}
    for kernel in ('eager',) if kind in only_eager else ('eager', 'sdpa'):
        model = made(kind, kernel)
        for padded in (False, True):
            given = inputs(model, padded)
            with torch.no_grad():
                want = model(**given)
                with warnings.catch_warnings(), record(model) as r:
                    warnings.simplefilter('error', UserWarning)
                    got = model(**given)
                assert torch.equal(got[0], want[0])
                agree(r)
                if kernel == 'eager': theirs[padded] = model(**given, output_attentions=True)
            parts = dict(self='attentions')
            if model.config.is_encoder_decoder:
                parts = {part: f'{part}_attentions' for part in ('encoder','decoder','cross')}
            assert r.kinds() == list(parts) and not r.missing
            for part,name in parts.items():
                rows = [n.weights for n in r.layers if n.kind == part]
                if kind == 'diffllama': rows = rows[::2]    # the same queries and keys twice
                for ours,their in zip(rows, theirs[padded][name], strict=True):
                    seen = torch.ones(1, 1, 1, 1)           # rows of filling are nobody's concern
                    if padded and part in ('self','encoder') and 'attention_mask' in given:
                        seen = given['attention_mask'][:,None,:,None]
                    assert_close(ours*seen, their*seen, rtol=1e-4, atol=2e-5)

def at_once(model, text, real):
    places = (real.cumsum(1)-1).clamp(min=0)
    with record(model) as r, torch.no_grad(): model(text, attention_mask=real, position_ids=places)
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

def test_beams_of_a_translation():
    "Beams change places; encoder and cross-attention stay with them"
    model = made('bart', 'sdpa', transformers.AutoModelForSeq2SeqLM, forced_eos_token_id=None)
    ids = inputs(model)['input_ids']
    asked = dict(max_new_tokens=5, do_sample=False, num_beams=2, num_return_sequences=2)
    with record(model) as r: got = model.generate(ids, **asked)
    with record(model) as whole, torch.no_grad():
        model(input_ids=ids.repeat_interleave(2, 0), decoder_input_ids=got[:,:-1])
    assert [n.name for n in r.layers] == [n.name for n in whole.layers]
    for ours,their in zip(r.layers, whole.layers):
        for w in their.weights: assert min((w-x).abs().max() for x in ours.weights) < 1e-4
    assert [w.shape for w in r.weights(kind='cross')] == [(4, 5, 7)]*2

def test_a_cache_that_rounds():
    "Keys that come back changed are known by their cache"
    class Rounds(DynamicCache):
        def update(self, key_states, value_states, layer_idx, *args, **kw):
            k,v = super().update(key_states, value_states, layer_idx, *args, **kw)
            n = k.shape[2]-key_states.shape[2]
            return torch.cat([(k[:,:,:n]*8).round()/8, k[:,:,n:]], 2), v
    model,ids = made('llama', auto=AutoModelForCausalLM),torch.randint(3, 50, (1, 6))
    cache = Rounds()
    with record(model) as r, torch.no_grad():
        for part in ids[:,:4],ids[:,4:5],ids[:,5:]: model(part, past_key_values=cache)
    assert [n.weights.shape for n in r.layers] == [(1, 4, 6, 6)]*2

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

def test_an_attention_function_of_ones_own():
    "What is registered is recorded if it does what its options say, else refused by name"
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask
    def cools(module, query, *args, **kw):
        return sdpa_attention_forward(module, query/5, *args, **kw)
    for name,f in dict(plain_for_test=sdpa_attention_forward, cools_for_test=cools).items():
        AttentionInterface.register(name, f)
        AttentionMaskInterface.register(name, sdpa_mask)
    model = made('llama', 'plain_for_test')
    with record(model) as r, torch.no_grad(): model(**inputs(model))
    assert len(r) == 2
    model = made('llama', 'cools_for_test')
    with pytest.raises(NotImplementedError, match='LlamaAttention attends in a way of its own'):
        with record(model), torch.no_grad(): model(**inputs(model))
    assert AttentionInterface()['cools_for_test'] is cools
    assert not transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS._local_mapping

def test_a_table_of_its_own():
    "A model whose file has put a function of its own into the table gets it back"
    from transformers.models.bert.modeling_bert import ALL_ATTENTION_FUNCTIONS as table
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    def own(*args, **kw): return sdpa_attention_forward(*args, **kw)
    model = made('bert', 'sdpa')
    table['sdpa'] = own
    try:
        with record(model) as r, torch.no_grad(): model(**inputs(model))
        assert len(r) == 2 and table['sdpa'] is own
    finally: del table['sdpa']

from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

class OwnAttention(torch.nn.Module):
    "Asks the table with what it is told"
    def __init__(self):
        super().__init__()
        self.config,self.is_causal = transformers.BertConfig(attn_implementation='sdpa'),False
    def forward(self, q, k, mask=None, **kw):
        f = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, None)
        return f(self, q, k, k, mask, **kw)[0]

def test_what_a_kernel_is_told():
    "Learned queries serve a whole batch; a mask that is none is refused by name"
    m,q,k = OwnAttention(),torch.randn(1, 2, 3, 8),torch.randn(5, 2, 4, 8)
    with record(m) as r: m(q, k)
    assert r.layers[0].weights.shape == (5, 2, 3, 4)
    mask = torch.rand(5, 1, 3, 4) > 0.3
    with record(m) as r: m(k[:,:,:3], k, mask)
    assert_close(r.layers[0].weights, attention(k[:,:,:3], k, k, mask=mask)[1])
    with record(m) as r: m(k[:,:,:3], k, torch.randn(5, 1, 3, 4), scaling=2.)
    assert r.layers[0].options['scale'] == 2 and r.layers[0].options['bias'] is not None
    with record(m) as r: m(k[:,:,:3], k, is_causal=True)
    assert not r.weights()[0][0].triu(1).any()
    m.config._attn_implementation = 'flash_attention_2'
    said = r'OwnAttention was given a mask \(5, 4\) that cannot be recorded'
    with record(m) as r, pytest.raises(NotImplementedError, match=said):
        m(k[:,:,:3], k, torch.ones(5, 4))
    assert not r.missing
    m.config._attn_implementation = 'eager'
    said = 'OwnAttention has an eager attention that cannot be found'
    with record(m) as r, pytest.raises(NotImplementedError, match=said):
        m(q, k)
    m.config._attn_implementation = 'sdpa'
    mapping = transformers.AttentionInterface._global_mapping
    monkeys = pytest.MonkeyPatch.context()
    with record(m) as r, pytest.warns(UserWarning, match='OwnAttention'), monkeys as patch:
        # changed meanwhile: nobody listens there, and that is said
        m.config._attn_implementation = 'flash_attention_2'
        patch.setitem(mapping, 'flash_attention_2', lambda m, q, k, v, *_, **kw: (q, None))
        m(q, k)
    assert list(r.missing) == ['OwnAttention']

def test_not_of_the_cache():
    "More keys than queries, and not because of a cache: none is cut off"
    class Model(torch.nn.Module):
        def __init__(self): super().__init__(); self.pool = OwnAttention()
        def forward(self, q, k, past_key_values): return self.pool(q, k)
    model,q,k = Model(),torch.randn(1, 2, 3, 8),torch.randn(1, 2, 7, 8)
    with record(model) as r: model(q, k, past_key_values=DynamicCache())
    assert_close(r.layers[0].weights, attention(q, k, k)[1])

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

def all_at_once(jobs, times=6):
    "What each job gives in a thread of its own, `times` times, beside the others"
    found,start = [[] for _ in jobs],threading.Barrier(len(jobs))
    def work(n):
        start.wait()
        for _ in range(times): found[n].append(jobs[n]())
    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(jobs))]
    for t in threads: t.start()
    for t in threads: t.join()
    assert [len(f) for f in found] == [times]*len(jobs), 'a thread failed'
    return found

def test_threads_that_record_two_models_of_one_family_see_their_own():
    models = [made('llama', 'sdpa') for _ in range(2)]
    texts = [torch.ones(1, n).long() for n in (5, 9)]
    def shapes(n):
        with record(models[n]) as r, torch.no_grad(): models[n](texts[n])
        return [tuple(x.weights.shape) for x in r.layers]
    found = all_at_once([lambda n=n: shapes(n) for n in range(2)])
    assert found == [[[(1, 4, n, n)]*2]*6 for n in (5, 9)]
    assert not transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS._local_mapping

def ours(vocab_size):
    torch.manual_seed(0)
    return Transformer(TransformerConfig(vocab_size, d_model=32, n_layers=2, n_heads=4)).eval()

def heard(): return made('bert', 'sdpa'), lambda model, text: model(text)
def told(): return made('llama', 'sdpa'), lambda model, text: model(text)

def torchs():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 48, batch_first=True)
    layers = torch.nn.TransformerEncoder(layer, 2).eval()
    words = torch.randn(50, 32)
    return layers, lambda model, text: model(words[text], src_key_padding_mask=text == 3)

@pytest.mark.parametrize('make', [heard, told, torchs])
def test_threads_that_record_one_model_hear_their_own_text(make):
    """Some of one length, so that another's rows would fit; one runs the model and records nothing.
    Other models are in nbs/recording/recorder.ipynb"""
    model,run = make()
    torch.manual_seed(1)
    texts = [torch.randint(4, 50, (1, n)) for n in (5, 5, 5, 8)]
    texts[3][:,6:] = 3                                      # the end of one is filling, for torchs
    def weights(text):
        ask = True if make is told else None
        with record(model, ask=ask) as r, torch.no_grad(): run(model, text)
        assert len(r) == 2 and not r.missing and (r.layers[0].q is None) == (make is told)
        return torch.stack([n.weights for n in r.layers])
    def plain():
        with torch.no_grad(): out = run(model, texts[0])
        return out if torch.is_tensor(out) else out[0]
    wants,out = [weights(t) for t in texts],plain()
    *found,outs = all_at_once([*(lambda t=t: weights(t) for t in texts), plain])
    close = dict(rtol=1e-4, atol=1e-5) if make is torchs else dict(rtol=0, atol=0)
    for one in outs: assert_close(one, out, **close)        # of torch's there is a fast path, too
    for want,several in zip(wants, found):
        for got in several: assert_close(got, want)
    assert not transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS._local_mapping
    hooks = [h for m in model.modules()
             for h in (*m._forward_hooks.values(), *m._forward_pre_hooks.values())]
    assert not [h for h in hooks if h.__module__.startswith('attention_nb')]

def test_threads_that_look_through_one_model_see_their_own_text():
    "Weights, tokens and hidden states"
    texts = ['time flies like an arrow', 'an arrow flies like time', 'fruit flies like a time']
    words = WordTokenizer.train(texts)
    model = ours(len(words))
    def seen(text):
        s = look(text, model, words)
        ids = torch.tensor(words.encode(' '.join(s.tokens)))
        return ids, s.hidden, s.recording.weights()
    wants = [seen(t) for t in texts]
    for want,several in zip(wants, all_at_once([lambda t=t: seen(t) for t in texts])):
        for got in several: assert_close(got, want)

def test_answers_of_one_model_in_several_threads():
    "What a decoder reads while it writes is noted in its own thread"
    from attention_nb.recording.look import _written
    model = made('bart', 'sdpa', transformers.AutoModelForSeq2SeqLM, forced_eos_token_id=None)
    texts = [torch.randint(3, 50, (1, n)) for n in (5, 6, 7)]
    def written(text): return _written(model, dict(input_ids=text), 4)[0].tolist()
    wants = [written(t) for t in texts]
    for want,several in zip(wants, all_at_once([lambda t=t: written(t) for t in texts], 5)):
        assert several == [want]*5

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
