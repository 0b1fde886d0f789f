"A draft changes how fast a text comes and not what it says"
import copy, itertools
import pytest, torch
from torch import nn
from torch.testing import assert_close
from attention_nb.layers.base import use_attention
from attention_nb.kernels.reference import attention
from attention_nb.models.config import TransformerConfig
from attention_nb.models.generation import generate, stream
from attention_nb.models.sampling import filter_logits
from attention_nb.models.transformer import Transformer
from attention_nb.recording.recorder import record
from attention_nb.text.bpe import BPETokenizer
from helpers import short, spread
from helpers.tiny_models import decoder as small

unlike = 'llama','gpt2','gemma3_text','gpt_oss','deepseek_v3','bloom'

def noisy(model, share=.05):
    "A draft that is mostly right"
    torch.manual_seed(3)
    draft = copy.deepcopy(model)
    with torch.no_grad():
        for p in draft.parameters(): p.add_(share*p.std(correction=0)*torch.randn_like(p))
    return draft

def prompts(filled=True):
    torch.manual_seed(1)
    ids,mask = torch.randint(3, 50, (3, 6)),torch.ones(3, 6, dtype=torch.bool)
    if filled: mask[0,:3] = mask[1,:1] = False
    return ids, mask

# ---- greedy text

@pytest.mark.parametrize('family', short(unlike, [
    *unlike, 'gemma2', 'qwen3', 'mistral', 'phi3', 'mixtral', 'smollm3']))
def test_greedy_text_is_the_models(family):
    model,(ids,mask) = small(family),prompts()
    draft = noisy(model)
    free,filled = dict(eos_id=()),dict(mask=mask, eos_id=())
    ended = dict(mask=mask, eos_id=[7, 9, 11], pad_id=0)
    for options,*ways in ((free, dict(draft=draft)), (filled, dict(draft=draft, draft_tokens=1),
                                                      dict(draft_layers=1)),
                          (ended, dict(draft=model, draft_tokens=50), dict(draft=draft))):
        want,scores = model.generate(ids, 18, return_scores=True, **options)
        for how in ways:
            got,found = model.generate(ids, 18, return_scores=True, **options, **how)
            assert torch.equal(got, want), how
            assert_close(found, scores, atol=1e-3, rtol=1e-3)

def test_a_good_draft_saves_passes_and_a_bad_one_none():
    model,(ids,_) = small('llama'),prompts()
    torch.manual_seed(9)
    calls,good,bad = [],copy.deepcopy(model),Transformer(model.cfg).eval()
    hook = model.register_forward_hook(lambda *a: calls.append(1))
    # the prompt alone; then 5 tokens a pass, and a last one that nobody guesses for
    for draft,n in ((good, 9), (bad, 40)):
        calls.clear()
        model.generate(ids[:1], 40, eos_id=(), draft=draft)
        assert len(calls) == n
    hook.remove()

def test_every_length_and_number_of_guesses():
    model,(ids,_) = small('llama'),prompts()
    draft,want = noisy(model, .1),model.generate(ids, 8, eos_id=())
    for new,k in itertools.product((0, 1, 2, 3, 5, 8), (1, 2, 3, 20)):
        out = model.generate(ids, new, eos_id=(), draft=draft, draft_tokens=k)
        assert torch.equal(out, want[:,:6+new])

def test_rows_end_at_different_places(monkeypatch):
    "What stands in the cache of a row that has ended is what the row is filled up with"
    model,(ids,_) = small('llama'),prompts()
    free = model.generate(ids, 20, eos_id=())[:,6:]
    eos = [int(free[0,4]), int(free[1,9])]
    for how in (dict(), dict(draft=copy.deepcopy(model)), dict(draft_layers=1)):
        cache = model.new_cache(3, 60)
        out = model.generate(ids, 20, eos_id=eos, pad_id=2, cache=cache, **how)
        assert len(cache) == out.shape[1] - 1
        keys = cache.self_attn[1].keys.clone()
        more = model.generate(out, 8, eos_id=(), cache=cache, **how)
        if not how: want = out,keys,more
        assert torch.equal(out, want[0]) and torch.equal(more, want[2])
        assert_close(keys, want[1], atol=1e-4, rtol=1e-4)

def test_strings_and_sequences_end_a_text():
    model,(ids,_) = small('llama'),prompts()
    tok,draft = BPETokenizer.train(['ship'], 257),noisy(model)
    said = model.generate(ids[:1], 24, eos_id=())[0,6:].tolist()
    for stop in (tok.decode(said[9:12]), said[7:9], said[3]):
        options = dict(stop=[stop], tokenizer=tok, eos_id=())
        want = model.generate(ids[:1], 24, **options)
        assert 6 < want.shape[1] < 30
        assert torch.equal(model.generate(ids[:1], 24, draft=draft, **options), want)

# ---- options beside it

def test_penalty_and_processors():
    "A processor is called once for each token that stays, in order"
    model,(ids,mask) = small('llama'),prompts()
    lengths = []
    def processor(ids, logits):
        lengths.append(ids.shape[1])
        return logits.index_fill(1, torch.tensor([5, 7]), -torch.inf)
    options = dict(mask=mask, repetition_penalty=1.7, logits_processor=processor, eos_id=())
    want = model.generate(ids, 20, **options)
    asked = lengths.copy()
    for how in (dict(draft=noisy(model)), dict(draft_layers=1)):
        lengths.clear()
        assert torch.equal(model.generate(ids, 20, **options, **how), want)
        assert lengths == asked == [*range(6, 26)]

def test_a_chat_goes_on_and_who_leaves_early_keeps_his_cache():
    model,(ids,_) = small('qwen3'),prompts()
    draft = noisy(model)
    for how in (dict(draft=draft), dict(draft_layers=1)):
        text,cache = ids,model.new_cache(3, 60)
        for _ in range(3):
            text = model.generate(text, 7, cache=cache, eos_id=(), **how)
            assert torch.equal(text, model.generate(ids, text.shape[1]-6, eos_id=()))
            assert len(cache) == text.shape[1] - 1
        for left in range(1, 6):
            cache = model.new_cache(3, 60)
            columns = stream(model, ids, 9, cache=cache, eos_id=(), **how)
            said = torch.cat([ids, torch.stack([next(columns) for _ in range(left)], 1)], 1)
            columns.close()
            assert len(cache) < said.shape[1]
            assert torch.equal(model.generate(said, 9-left, cache=cache, eos_id=()),
                               model.generate(ids, 9, eos_id=()))

def test_a_stream_that_fails_keeps_what_it_yielded():
    model,(ids,_) = small('llama'),prompts()
    for how in (dict(draft=noisy(model)), dict(draft_layers=1)):
        cache,said,calls = model.new_cache(3, 40),[ids],[]
        def no_padding(_, logits): return logits.index_fill(1, torch.tensor([0]), -torch.inf)
        def processor(_, logits):
            calls.append(logits)
            if len(calls) == 5: raise RuntimeError('stop')
            return no_padding(_, logits)
        with pytest.raises(RuntimeError, match='stop'):
            for column in stream(model, ids, 9, cache=cache, eos_id=(),
                                 logits_processor=processor, **how): said.append(column[:,None])
        text = torch.cat(said, 1)
        assert len(cache) < text.shape[1]
        options = dict(eos_id=(), logits_processor=no_padding)
        rest = ids.shape[1] + 9 - text.shape[1]
        assert torch.equal(model.generate(text, rest, cache=cache, **options),
                           model.generate(ids, 9, **options))

def test_interrupted_the_cache_knows_what_it_knew():
    model,(ids,_) = small('llama'),prompts()
    cache = model.new_cache(3, 40)
    first = model.generate(ids, 3, cache=cache, eos_id=())
    def interrupt(column): raise KeyboardInterrupt
    for how in (dict(draft=noisy(model)), dict(draft_layers=1)):
        with pytest.raises(KeyboardInterrupt):
            model.generate(first, 9, cache=cache, eos_id=(), stream=interrupt, **how)
        assert len(cache) == 8
        # in the middle of a pass, with the draft's own layers longer than the others
        hook = model.decoder.blocks[-1].register_forward_pre_hook(interrupt2 := _third_time())
        with pytest.raises(KeyboardInterrupt):
            model.generate(first, 9, cache=cache, eos_id=(), **how)
        hook.remove()
        assert len(cache) == 8 and interrupt2.n == 3
    assert torch.equal(model.generate(first, 6, cache=cache, eos_id=()),
                       model.generate(ids, 9, eos_id=()))

class _third_time:
    n = 0
    def __call__(self, *a):
        self.n += 1
        if self.n == 3: raise KeyboardInterrupt

def test_who_listens_hears_the_model_alone():
    model,(ids,_) = small('llama'),prompts()
    with record(model) as plain: want = model.generate(ids, 12, eos_id=())
    for how in (dict(draft=noisy(model)), dict(draft_layers=1)):
        with record(model) as r: assert torch.equal(model.generate(ids, 12, eos_id=(), **how), want)
        for one,two in zip(plain.layers, r.layers, strict=True):
            n = one.weights.shape[-1]
            assert_close(two.weights[:,:,:n,:n], one.weights, atol=1e-4, rtol=1e-4)
        with use_attention(model, lambda *a, **kw: attention(*a, **kw)[0]):
            assert torch.equal(model.generate(ids, 12, eos_id=(), **how), want)

def test_a_model_that_trains_and_another_dtype():
    model,(ids,_) = Transformer(TransformerConfig(50, d_model=32, n_layers=3, n_heads=4,
                                                  dropout=.5)),prompts()
    for w in model.parameters(): w.data.mul_(8)
    want = model.eval().generate(ids, 12)
    model.train()
    for how in (dict(draft=noisy(model)), dict(draft_layers=2)):
        assert torch.equal(model.generate(ids, 12, **how), want) and model.training
    half = copy.deepcopy(model).eval().bfloat16()
    assert torch.equal(model.generate(ids, 12, draft=half), want)
    with torch.autocast('cpu', torch.bfloat16):
        want = model.generate(ids, 12)
        got = model.generate(ids, 12, draft_layers=1)
    assert (got == want).float().mean() > .6    # passes of several tokens round otherwise

def test_a_border_of_frequencies_is_not_crossed():
    "Where rotations depend on the length of a text, also with the keys of the first layers"
    scalings = (dict(rope_type='longrope', short_factor=[1.]*4, long_factor=[3.]*4, factor=4.,
                     original_max_position_embeddings=16),
                dict(rope_type='dynamic', factor=4., original_max_position_embeddings=16))
    for scaling in scalings:
        torch.manual_seed(2)
        model = Transformer(TransformerConfig(50, d_model=32, n_layers=3, n_heads=4,
                                              rope_scaling=scaling)).eval()
        for w in model.parameters(): w.data.mul_(8)
        ids,mask = prompts()
        want = model.generate(ids, 30, mask=mask)
        for how in (dict(draft=noisy(model)), dict(draft_layers=2)):
            assert torch.equal(model.generate(ids, 30, mask=mask, **how), want)
        beyond = torch.randint(50, (1, 20))    # the prompt stands behind the border
        assert torch.equal(model.generate(beyond, 9, draft_layers=2), model.generate(beyond, 9))

class Step:
    "As a compiled one"
    def __init__(self, model, cache): self.model,self.cache = model,cache
    def __call__(self, ids, mask): return self.model(ids, cache=self.cache, mask=mask)[:,-1]

def test_the_drafts_steps_may_be_compiled(monkeypatch):
    model,(ids,_) = small('llama'),prompts()
    asked = []
    def step(self, cache, mask=None):
        asked.append(len(cache.self_attn))
        return Step(self, cache)
    monkeypatch.setattr(Transformer, 'compiled_step', step)
    want = model.generate(ids, 20, eos_id=())
    assert torch.equal(model.generate(ids, 20, eos_id=(), draft_layers=1, compiled=True), want)
    assert asked == [1]

# ---- drawn text

def chi_square(found, p):
    n = torch.bincount(found, minlength=len(p)).double()
    some = p > 0
    assert not n[~some].any()
    return float(((n[some] - n.sum()*p[some])**2/(n.sum()*p[some])).sum()), int(some.sum())-1

@pytest.fixture(scope='module')
def two_models():
    torch.manual_seed(1)
    cfg = TransformerConfig(4, d_model=8, n_layers=2, n_heads=1)
    one,two = (Transformer(cfg).eval() for _ in 'ab')
    for w in (*one.parameters(), *two.parameters()): w.data.mul_(4)
    return one,two

settings = [dict(temperature=1.), dict(temperature=.7, top_k=3), dict(top_p=.8), dict(min_p=.3)]

@torch.no_grad()
def probabilities(model, begin, filters):
    "Of all texts of three tokens"
    texts = torch.tensor([*itertools.product(range(4), repeat=3)])
    logits = model(torch.cat([begin.expand(64, -1), texts], 1))[:,1:-1]
    p = filter_logits(logits, **filters).double().softmax(-1)
    return p.gather(-1, texts[...,None])[...,0].prod(1)

@pytest.mark.parametrize('filters,how', spread(settings, ['draft', 'layers']), ids=str)
def test_drawn_text_has_the_models_distribution(filters, how, two_models):
    one,two = two_models
    begin = torch.tensor([[1, 3]])
    options = filters | (dict(draft=two) if how == 'draft' else dict(draft_layers=1))
    chance = torch.Generator().manual_seed(0)
    each = [one.generate(begin, 3, num_return_sequences=12, generator=chance, **options)[:,2:]
            for _ in range(45)]
    p = probabilities(one, begin, filters)
    x,n = chi_square(torch.cat(each) @ torch.tensor([16, 4, 1]), p)
    assert x < n + 6*(2*n)**.5

def test_scores_of_drawn_texts(two_models):
    one,two = two_models
    begin = torch.tensor([[1, 3], [2, 0]])
    out,scores = one.generate(begin, 8, temperature=1., seed=1, draft=two, return_scores=True,
                              num_return_sequences=2)
    with torch.no_grad(): p = one(out)[:,1:-1].log_softmax(-1)
    assert_close(scores, p.gather(-1, out[:,2:,None])[...,0], atol=1e-4, rtol=1e-4)
    again = one.generate(begin, 8, temperature=1., seed=1, draft=two, num_return_sequences=2)
    assert torch.equal(out, again)

# ---- refused by name

class NeverForgets(nn.Module):
    def forward(self, x, **told): return x
    def new_cache(self, batch, max_len, **kw): return Kept()
class Kept:
    def __len__(self): return 0
    def reset(self): pass
    def crop(self, n): raise NotImplementedError("a state cannot go back")
    def can_crop(self, n, length=None): return n == length
class Plain:
    "What `generate` needs of a model, and nothing else"
    def __init__(self, model): self.model,self.cfg = model,model.cfg
    def new_cache(self, *a, **kw): return self.model.new_cache(*a, **kw)
    def __call__(self, ids, **kw): return self.model(ids, **kw)

def test_what_a_draft_cannot_do_is_refused():
    model,(ids,_) = small('llama'),prompts()
    def of(**kw): return Transformer(TransformerConfig(50, d_model=32, n_layers=2, n_heads=4, **kw))
    both = of(kind='encoder-decoder', positions='relative', decoder_start_id=1)
    state = Transformer(TransformerConfig(50, d_model=32, n_layers=2, n_heads=4,
                                          layer_types=('full','state')),
                        mixers=dict(state=lambda cfg, layer: NeverForgets()))
    for error,match,who,options in (
            (TypeError, 'draft must be a Transformer, got str', model, dict(draft='small')),
            (ValueError, "draft must be a decoder with a head, got kind='encoder'", model,
             dict(draft=of(kind='encoder'))),
            (NotImplementedError, 'draft must be a decoder, got an encoder-decoder', model,
             dict(draft=both)),
            (ValueError, 'draft must read 8 tokens, more than its max_len=7', model,
             dict(draft=of(positions='learned', max_len=7))),
            (ValueError, 'draft_tokens must be', model, dict(draft=model, draft_tokens=0)),
            (TypeError, 'draft_tokens must be an integer', model,
             dict(draft=model, draft_tokens=1.5)),
            (TypeError, 'draft_layers needs a Transformer, got Plain', Plain(model),
             dict(draft_layers=1)),
            (NotImplementedError, 'compiled needs a Transformer', model,
             dict(draft=Plain(model), compiled=True)),
            (NotImplementedError, 'its positions are alibi', model,
             dict(draft=of(positions='alibi'), compiled=True)),
            (NotImplementedError, 'that of layer 1, a Kept, cannot after 9 tokens', state,
             dict(draft=model))):
        # at the call, also where tokens are yielded later
        for function in (generate, stream):
            with pytest.raises(error, match=match): function(who, ids, 4, **options)
