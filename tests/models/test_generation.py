"""Generation on grids: equal to transformers token for token, rows independent of their batch,
every option honoured or refused; threads, modes, autocast, interruptions, tokenizers of every kind
"""
import contextlib, functools, inspect, itertools, json, re, sys, threading, warnings
from dataclasses import replace
from fractions import Fraction
import numpy as np
import pytest, torch, transformers
from torch.testing import assert_close
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
                          LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor,
                          TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)
from attention_nb.models.generation import generate, stream
from attention_nb.models.sampling import (filter_logits, filter_min_p, filter_top_k, filter_top_p,
                                          penalize_repetition, sample)
from attention_nb.models.text_stream import TextStream
from attention_nb.checks import words
from attention_nb.recording.recorder import record
from attention_nb.text.bpe import BPETokenizer
from attention_nb.text.tokenizer import WordTokenizer
from attention_nb.checkpoints.tokenizers import byte_pairs, load_tokenizer
from attention_nb.models.config import ExpertsConfig
from attention_nb.layers.latent import LatentConfig
from attention_nb.models.config import TransformerConfig
from attention_nb.models.transformer import Transformer

N,PAD = 40,39

# ---- the same tiny model twice

def copy(ours, theirs, names, transposed=()):
    "Fill `ours` from a state dict; `names` leads from our names to theirs"
    state = {ours_: theirs[name].T if any(t in name for t in transposed) else theirs[name]
             for ours_,name in names.items()}
    ours.load_state_dict(state)
    return ours.eval()

@functools.cache
def llama(seed=0, std=0.5, **options):
    torch.manual_seed(seed)
    theirs = LlamaForCausalLM(LlamaConfig(vocab_size=N, hidden_size=32, intermediate_size=48,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=128, rms_norm_eps=1e-6, initializer_range=std,
        tie_word_embeddings=False, bos_token_id=None, eos_token_id=None,
        attn_implementation='eager')).eval()
    ours = Transformer(TransformerConfig(N, d_model=32, n_layers=2, n_heads=4, n_kv_heads=2,
                                         d_ff=48, max_len=128, tied=False, **options))
    names = {'embed.token.weight': 'model.embed_tokens.weight',
             'decoder.norm.weight': 'model.norm.weight', 'head.weight': 'lm_head.weight'}
    for i in range(2):
        a,b = f'decoder.blocks.{i}.',f'model.layers.{i}.'
        names |= {f'{a}attn.{x}_proj.weight': f'{b}self_attn.{y}_proj.weight'
                  for x,y in zip(('q','k','v','out'), 'qkvo')}
        names |= {f'{a}ffn.{x}.weight': f'{b}mlp.{x}_proj.weight' for x in ('up','gate','down')}
        names |= {f'{a}attn_add.before.weight': f'{b}input_layernorm.weight',
                  f'{a}ffn_add.before.weight': f'{b}post_attention_layernorm.weight'}
    return copy(ours, theirs.state_dict(), names),theirs

@functools.cache
def gpt2(seed=0, std=0.3, **options):
    torch.manual_seed(seed)
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=N, n_embd=32, n_layer=2, n_head=4,
                                        n_positions=64, initializer_range=std, bos_token_id=None,
                                        eos_token_id=None,
                                        attn_implementation='eager')).eval()
    ours = Transformer(TransformerConfig(N, d_model=32, n_layers=2, n_heads=4, max_len=64,
                                         positions='learned', norm='layer', norm_eps=1e-5,
                                         activation='gelu_tanh', gated=False,
                                         attn_bias=True, ffn_bias=True, **options))
    state = theirs.state_dict()
    names = {'embed.token.weight': 'transformer.wte.weight',
             'embed.position.weight': 'transformer.wpe.weight'}
    for kind in ('weight', 'bias'):
        names[f'decoder.norm.{kind}'] = f'transformer.ln_f.{kind}'
        for i in range(2):
            a,b = f'decoder.blocks.{i}.',f'transformer.h.{i}.'
            for x,part in zip('qkv', state[f'{b}attn.c_attn.{kind}'].chunk(3, -1)):
                state[f'{b}attn.c_{x}.{kind}'] = part
            names |= {f'{a}attn.{x}_proj.{kind}': f'{b}attn.c_{x}.{kind}' for x in 'qkv'}
            names |= {f'{a}attn.out_proj.{kind}': f'{b}attn.c_proj.{kind}'}
            names |= {f'{a}ffn.up.{kind}': f'{b}mlp.c_fc.{kind}',
                      f'{a}ffn.down.{kind}': f'{b}mlp.c_proj.{kind}'}
            names |= {f'{a}attn_add.before.{kind}': f'{b}ln_1.{kind}',
                      f'{a}ffn_add.before.{kind}': f'{b}ln_2.{kind}'}
    return copy(ours, state, names,
                transposed=[f'.{m}.weight' for m in ('c_q','c_k','c_v','c_proj','c_fc')]),theirs

def t5(seed=0, std=6.):
    torch.manual_seed(seed)
    theirs = transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=N, d_model=32,
        d_kv=8, d_ff=48, num_layers=2, num_heads=4, relative_attention_num_buckets=8,
        relative_attention_max_distance=16, initializer_factor=std, decoder_start_token_id=0,
        eos_token_id=None, pad_token_id=PAD)).eval()
    for w in theirs.parameters(): w.data.clamp_(-1.5, 1.5)
    ours = Transformer(TransformerConfig(N, d_model=32, n_layers=2, n_heads=4, head_dim=8, d_ff=48,
        kind='encoder-decoder', positions='relative', relative_buckets=8,
        relative_max_distance=16, scale=1., activation='relu', gated=False, logit_scale=32**-.5,
        decoder_start_id=0))
    names = {'embed.token.weight': 'shared.weight'}
    for part in ('encoder', 'decoder'):
        bias = f'{part}.block.0.layer.0.SelfAttention.relative_attention_bias.weight'
        names |= {f'{part}.norm.weight': f'{part}.final_layer_norm.weight',
                  f'{part}.relative': bias}
        for i in range(2):
            a,b = f'{part}.blocks.{i}.',f'{part}.block.{i}.layer.'
            layers = [('attn', 'SelfAttention'),
                      *[('cross', 'EncDecAttention')]*(part == 'decoder'),
                      ('ffn', 'DenseReluDense')]
            for j,(x,y) in enumerate(layers):
                names[f'{a}{x}_add.before.weight'] = f'{b}{j}.layer_norm.weight'
                inner = dict(up='wi', down='wo') if x == 'ffn' else dict(q_proj='q', k_proj='k',
                                                                         v_proj='v', out_proj='o')
                names |= {f'{a}{x}.{m}.weight': f'{b}{j}.{y}.{k}.weight' for m,k in inner.items()}
    return copy(ours, theirs.state_dict(), names),theirs

@pytest.fixture(scope='module', params=[llama, gpt2], ids=['llama', 'gpt2'])
def pair(request): return request.param()

def prompts(B=3, L=7, seed=6):
    "Tokens, none of them what tests fill up with, 0 or PAD, and a mask with filling on the left"
    ids = torch.randint(1, PAD, (B, L), generator=torch.Generator().manual_seed(seed))
    return ids,torch.arange(L) >= torch.arange(B)[:,None]*2

def same(ours, theirs):
    "Equal where both have tokens; what goes beyond is filling"
    n = min(ours.shape[1], theirs.shape[1])
    assert torch.equal(ours[:,:n], theirs[:,:n]), (ours, theirs)
    assert (ours[:,n:] == PAD).all() and (theirs[:,n:] == PAD).all()

def reference(theirs, ids, n, *, mask=None, eos_id=(), **options):
    "What transformers generates"
    mask = torch.ones_like(ids) if mask is None else mask.long()
    return theirs.generate(ids, attention_mask=mask, max_new_tokens=n, do_sample=False,
                           pad_token_id=PAD, eos_token_id=list(eos_id) or None, **options)

def test_the_two_models_are_one(pair):
    ours,theirs = pair
    ids,_ = prompts()
    with torch.no_grad(): assert_close(ours(ids), theirs(ids).logits, atol=1e-4, rtol=1e-4)

def test_logits_of_the_last_tokens_only(pair):
    ours,_ = pair
    ids,mask = prompts()
    with torch.no_grad():
        for n in (1, 3, 7, 9):
            assert_close(ours(ids, mask=mask, last=n), ours(ids, mask=mask)[:,-n:])

# ---- filters

def scores(seed=0, ties=False, rows=6):
    x = 3*torch.randn(rows, N, generator=torch.Generator().manual_seed(seed))
    return x.round() if ties else x

@pytest.mark.parametrize('ties', [False, True])
@pytest.mark.parametrize('seed', range(3))
def test_filters_are_those_of_transformers(seed, ties):
    x = scores(seed, ties)
    x[0,:5] = -torch.inf
    for k in (1, 2, 7, N-1, N, N+5):
        assert torch.equal(filter_top_k(x, k), TopKLogitsWarper(k)(None, x))
    for p in (0., 1e-6, .3, .9, .999, 1.):
        assert torch.equal(filter_top_p(x, p), TopPLogitsWarper(p)(None, x))
        assert torch.equal(filter_min_p(x, p), MinPLogitsWarper(p)(None, x))
    for t in (.1, .7, 1., 5.):
        assert torch.equal(filter_logits(x, temperature=t), TemperatureLogitsWarper(t)(None, x))

def test_top_p_keeps_the_fewest_tokens_that_are_enough():
    "Also where they have exactly that probability"
    for p,n in ((.25, 1), (.5, 2), (.51, 3), (.75, 3), (.76, 4), (1., 4)):
        assert filter_top_p(torch.zeros(1, 4), p).isfinite().sum() == n

@pytest.mark.parametrize('ties', [False, True])
@pytest.mark.parametrize('temperature,k,p,m',
                         [*itertools.product((None, .5, 2.), (None, 5), (None, .8), (None, .2))])
def test_their_order_is_that_of_transformers(temperature, k, p, m, ties):
    x = scores(1, ties)
    config = transformers.GenerationConfig(do_sample=True, temperature=temperature, top_k=k,
                                           top_p=p, min_p=m, repetition_penalty=1.3)
    _,theirs = llama()
    ids,_ = prompts(6)
    steps = theirs._get_logits_processor(config, input_ids_seq_length=7, device='cpu')
    assert isinstance(steps,
                      LogitsProcessorList) and len(steps) == 1 + sum(v is not None
                                                                     for v in (temperature, k, p,
                                                                               m))
    ours = filter_logits(penalize_repetition(x, ids, 1.3), temperature=temperature, top_k=k,
                         top_p=p, min_p=m)
    assert torch.equal(ours, steps(ids, x))

def test_a_row_of_a_filter_does_not_see_the_others():
    x = scores(2).view(2, 3, N)
    for f in (lambda x: filter_top_k(x, 3), lambda x: filter_top_p(x, .7),
              lambda x: filter_min_p(x, .1)):
        assert torch.equal(f(x)[1,2], f(x[1,2]))
        assert torch.equal(x, scores(2).view(2, 3, N))                     # nothing is written over

@pytest.mark.parametrize('penalty', [.5, 1., 1.7])
def test_repetition_penalty(penalty):
    x = scores(3)
    ids,_ = prompts(6)
    assert torch.equal(penalize_repetition(x, ids, penalty),
                       RepetitionPenaltyLogitsProcessor(penalty)(ids, x))
    mask = torch.arange(7) >= torch.arange(6)[:,None]
    hidden = penalize_repetition(x, ids, penalty, mask=mask)
    for b in range(6):
        assert torch.equal(hidden[b:b+1], penalize_repetition(x[b:b+1], ids[b:b+1,b:], penalty))

def test_scores_and_tokens_of_the_wrong_kind_are_named():
    x,ids = scores(rows=2),torch.tensor([[1],[2]])
    every = [sample, lambda x: filter_top_k(x, 2), lambda x: filter_top_p(x, .5),
             lambda x: filter_min_p(x, .5), lambda x: filter_logits(x, temperature=2.),
             lambda x: penalize_repetition(x, ids, 1.2)]
    for f in every:
        for odd in (x.long(), [1.]):
            with pytest.raises(TypeError, match='logits must be a tensor of floats'): f(odd)
        with pytest.raises(ValueError, match=r'logits must be \('): f(torch.tensor(1.))
    for f in (every[0], every[-1]):
        for odd in (x[0], x[None]):
            with pytest.raises(ValueError, match=r'logits must be \(B, N\)'): f(odd)
    for odd in (ids[:1], ids.float(), [[1],[2]], torch.tensor(3)):
        with pytest.raises(ValueError, match=r'ids must be integers \(2, L\)'):
            penalize_repetition(x, odd, 1.2)
    assert torch.equal(penalize_repetition(x, ids.to(torch.uint8), 1.2),
                       penalize_repetition(x, ids, 1.2))

def test_samples_have_the_right_distribution():
    "Chi-square of 20,000 draws among 40 tokens stays under its 99.9th percentile"
    x = scores(4, rows=1)
    for options,free in ((dict(), N-1), (dict(temperature=.6, top_k=10), 9), (dict(top_p=.9), None),
                         (dict(min_p=.05), None)):
        kept = filter_logits(x, **options)
        p = kept[0].softmax(-1)
        free = int((p > 0).sum())-1 if free is None else free
        drawn = sample(kept.expand(20_000, -1), generator=torch.Generator().manual_seed(5))
        draws = drawn.bincount(minlength=N)
        assert draws[p == 0].sum() == 0 and int((p > 0).sum()) == free+1
        # rarer tokens are taken together
        some = p > 2e-4
        seen = torch.cat([draws[some], draws[~some].sum()[None]]).double()
        expected = 20_000*torch.cat([p[some], p[~some].sum()[None]]).double()
        keep = expected > 0
        chi = ((seen-expected)[keep]**2/expected[keep]).sum()
        n = int(keep.sum())-1
        # Wilson and Hilferty's approximation
        assert chi < n*(1 - 2/(9*n) + 3.09*(2/(9*n))**.5)**3, (options, chi)

# ---- greedy

def test_greedy_is_that_of_transformers(pair):
    ours,theirs = pair
    ids,mask = prompts()
    for penalty,eos in itertools.product((None, 1.4), ((), (5,), (5, 11, 17))):
        same(ours.generate(ids, 20, eos_id=eos, pad_id=PAD, repetition_penalty=penalty),
             reference(theirs, ids, 20, eos_id=eos, repetition_penalty=penalty))
    for eos in ((), (5, 11, 17)):
        same(ours.generate(ids, 20, mask=mask, eos_id=eos, pad_id=PAD),
             reference(theirs, ids, 20, mask=mask, eos_id=eos))

def test_greedy_takes_the_likeliest_token_of_the_whole_text(pair):
    ours,_ = pair
    ids,_ = prompts()
    out = ours.generate(ids, 12)
    with torch.no_grad(): assert torch.equal(ours(out)[:,6:-1].argmax(-1), out[:,7:])

@pytest.mark.parametrize('options',
                         [{}, dict(repetition_penalty=1.3), dict(n_beams=3),
                          dict(n_beams=3, repetition_penalty=1.3),
                          dict(eos_id=(3, 11, 17), pad_id=0),
                          dict(eos_id=(3, 11, 17), pad_id=0, n_beams=2),
                          dict(stop=[[11], [17], [30]], pad_id=0)])
def test_a_row_is_its_own_unpadded_generation(pair, options):
    ours,_ = pair
    ids,mask = prompts(4, 9)
    whole = ours.generate(ids, 14, mask=mask, **options)
    for b in range(4):
        alone = ours.generate(ids[b:b+1,2*b:], 14, **options)
        n = alone.shape[1]
        assert torch.equal(whole[b,2*b:][:n], alone[0]) and (whole[b,2*b+n:] == 0).all()

def test_filling_has_no_influence(pair):
    ours,_ = pair
    ids,mask = prompts()
    other = ids.masked_fill(~mask, N-1)
    for options in ({}, dict(repetition_penalty=2.), dict(n_beams=2), dict(temperature=1., seed=4)):
        a,b = (ours.generate(i, 10, mask=mask, **options) for i in (ids, other))
        assert torch.equal(a[:,7:], b[:,7:])

@pytest.mark.parametrize('options',
                         [dict(window=(3, 0)), dict(window=(3, 0), layer_types=('full', 'window')),
                          dict(qk_norm='rms', sinks=True, softcap=5.), dict(positions='none')])
def test_cached_steps_are_whole_passes(options):
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(N, d_model=32, n_layers=2, n_heads=4, n_kv_heads=2,
                                          **options)).eval()
    for p in model.parameters(): p.data.mul_(8)
    ids,mask = prompts()
    out = model.generate(ids, 12, mask=mask)
    real = torch.cat([mask, torch.ones(3, 12, dtype=torch.bool)], 1)
    with torch.no_grad(): assert torch.equal(model(out, mask=real)[:,6:-1].argmax(-1), out[:,7:])
    assert len({*out[:,7:].flatten().tolist()}) > 5

# ---- beams

@pytest.mark.parametrize('penalty', [0., 1., 2., -.5])
@pytest.mark.parametrize('early', [False, True, 'never'])
def test_beams_are_those_of_transformers(pair, penalty, early):
    ours,theirs = pair
    ids,mask = prompts()
    ended = 0
    for n,eos,repetition in ((2,(),None), (3,(5,),None), (4,(5,11),1.2), (2,(5,11,17,20,30),None),
                             (5,(23,2),None)):
        both = dict(eos_id=eos, length_penalty=penalty, early_stopping=early,
                    repetition_penalty=repetition)
        out = ours.generate(ids, 10, n_beams=n, pad_id=PAD, **both)
        same(out, reference(theirs, ids, 10, num_beams=n, **both))
        ended += bool((out[:,7:] == PAD).any()) or out.shape[1] < 17
        if repetition is None:
            same(ours.generate(ids, 10, n_beams=n, mask=mask, pad_id=PAD, **both),
                 reference(theirs, ids, 10, num_beams=n, mask=mask, **both))
    assert ended

def test_enough_beams_find_the_likeliest_text():
    torch.manual_seed(0)
    V,n = 5,3
    model = Transformer(TransformerConfig(V, d_model=16, n_layers=2, n_heads=2)).eval()
    for p in model.parameters(): p.data.mul_(10)
    ids = torch.tensor([[1, 3], [2, 2]])
    every = torch.tensor([*itertools.product(range(V), repeat=n)])
    for eos in ((), (4,)):
        found = model.generate(ids, n, n_beams=V**n, eos_id=eos, pad_id=0, length_penalty=0.,
                               early_stopping='never')
        for b in range(2):
            best = None
            for length in (range(1, n+1) if eos else [n]):
                texts = every[:V**length,n-length:]
                if eos:
                    ends = texts[:,-1] == 4
                    if length == n: ends = torch.ones(len(texts), dtype=torch.bool)
                    texts = texts[ends & ~(texts[:,:-1] == 4).any(1)]
                whole = torch.cat([ids[b].expand(len(texts), -1), texts], 1)
                with torch.no_grad(): p = model(whole)[:,1:-1].log_softmax(-1)
                p = p.gather(-1, texts[...,None])[...,0].sum(1)
                if best is None or p.max() > best[0]: best = p.max(),texts[p.argmax()]
            assert torch.equal(found[b,2:2+len(best[1])], best[1]), (eos, found, best)

def test_more_beams_are_likelier():
    "On average, over many prompts; one beam is greedy"
    ours,_ = llama(1)
    ids,_ = prompts(20)
    def likelihood(out):
        with torch.no_grad():
            return ours(out)[:,6:-1].log_softmax(-1).gather(-1, out[:,7:,None]).sum().item()
    one,two,eight = (likelihood(ours.generate(ids, 8, n_beams=n)) for n in (1, 2, 8))
    assert one < two < eight
    assert torch.equal(ours.generate(ids, 8, n_beams=1), ours.generate(ids, 8))

# ---- ends

@pytest.fixture(scope='module')
def bpe():
    return BPETokenizer.train(['to be or not to be, that is the question: a ship, a crew and the '
                               'sea — ça va? 🚢🌊'], 280)

class Parrot(torch.nn.Module):
    "Says a text token by token, whatever it reads, and keeps no memory of it"
    def __init__(self, rows, N, **cfg):
        super().__init__()
        self.cfg = TransformerConfig(N, d_model=8, n_layers=1, n_heads=1, **cfg)
        self.rows,self.first = rows,1                                       # prompts have one token
        self.inner = Transformer(self.cfg)

    def new_cache(self, *args, **options): return self.inner.new_cache(*args, **options)

    def forward(self, ids, *, cache, last, **options):
        self.inner(ids, cache=cache, last=last, **options)
        step = len(cache)-self.first
        said = torch.tensor([[r[min(step, len(r)-1)]] for r in self.rows])
        return torch.nn.functional.one_hot(said, self.cfg.vocab_size).float()

def say(tokenizer, *texts): return Parrot([tokenizer.encode(t) for t in texts], len(tokenizer))

def test_a_stop_string_may_straddle_tokens(bpe):
    text = 'to be or not to be, that is the question'
    for stop in ('not', 'ot t', ', th', 'e', 't is the q', 'question'):
        model = say(bpe, text)
        ids = bpe.encode(text)
        out = model_generate(model, 1, len(ids), stop=stop, tokenizer=bpe)
        out = bpe.decode(out[0,1:])
        assert stop in out and out in text
        shorter = next(k for k in range(len(ids)+1) if stop in bpe.decode(ids[:k]))
        assert out == bpe.decode(ids[:shorter])

def model_generate(model, rows, n, **options):
    return generate(model, torch.zeros(rows, 1, dtype=torch.long), n, **options)

def test_each_row_stops_for_itself(bpe):
    texts = ['the ship and the crew', 'a sea, the question', 'no end of it at all, or so it is']
    out = model_generate(say(bpe, *texts), 3, 9, stop=['ship', 'sea'], tokenizer=bpe, pad_id=7)
    for row,text,stop in zip(out, texts, ('ship', 'sea', None)):
        ids = bpe.encode(text)
        n = next((k for k in range(10) if stop and stop in bpe.decode(ids[:k])), 9)
        assert row[1:1+n].tolist() == ids[:n] and (row[1+n:] == 7).all()
    assert out.shape == (3, 10)

def test_a_stop_string_ends_in_a_character_of_many_bytes(bpe):
    # bytes only: 4 tokens a ship
    small = BPETokenizer.train(['ab'], 257)
    text = 'ab🚢cd'
    out = model_generate(say(small, text), 1, 8, stop='🚢', tokenizer=small)
    assert small.decode(out[0,1:]) == 'ab🚢'
    special = BPETokenizer.train(['ab'], 259, special=['<end>'])
    out = model_generate(Parrot([special.encode('a<end>b', allow_special=True)], len(special)), 1,
                         3, stop='<end>', tokenizer=special)
    assert special.decode(out[0,1:], skip_special=False) == 'a<end>'

def test_stop_sequences_and_end_tokens():
    model = Parrot([[1, 2, 3, 4, 5, 6, 7, 8]], 10)
    for options,length in ((dict(stop=[[3, 4]]), 4), (dict(stop=[[4, 3]]), 8), (dict(stop=[6]), 6),
                           (dict(stop=[[1, 2, 3, 4, 5, 6, 7, 8, 8]]), 8), (dict(eos_id=5), 5),
                           (dict(eos_id=(7, 2)), 2), (dict(eos_id=7, stop=[(2, 3)]), 3),
                           (dict(eos_id=torch.tensor([6, 9]).tolist()), 6), ({}, 8)):
        assert model_generate(model, 1, 8, **options).tolist() == [[0, *range(1, length
                                                                              +1)]], options
    # the prompt does not count
    assert model_generate(Parrot([[1, 2, 3]], 10), 1, 3, stop=[[0, 1]]).shape[1] == 4
    assert model_generate(Parrot([[1, 2, 3]], 10, eos_id=2), 1, 3).tolist() == [[0, 1, 2]]
    assert model_generate(Parrot([[1, 2, 3]], 10, eos_id=2), 1, 3, eos_id=()).tolist() == [[0, 1, 2,
                                                                                            3]]

@pytest.mark.parametrize('cfg,options,pad',
                         [(dict(), dict(eos_id=4), 4), (dict(pad_id=9, eos_id=4), {}, 9),
                          (dict(pad_id=9, eos_id=4), dict(pad_id=8), 8),
                          (dict(), dict(stop=[[4]]), 0)])
def test_what_fills_finished_rows(cfg, options, pad):
    out = model_generate(Parrot([[4, 1, 1], [1, 2, 3]], 10, **cfg), 2, 3, **options)
    assert out.tolist() == [[0, 4, pad, pad], [0, 1, 2, 3]]

# ---- streams

@pytest.mark.parametrize('text',
                         ['to be or not to be', 'ça va — 🚢🌊🚢', '🚢', 'a', 'é'*60, '🌊 sea 🌊'*30])
@pytest.mark.parametrize('size', [257, 280])
def test_streamed_pieces_are_the_text(text, size, bpe):
    tokenizer = bpe if size == 280 else BPETokenizer.train(['ab'], 257)
    ids = tokenizer.encode(text)
    model = Parrot([ids], len(tokenizer))
    pieces = [*stream(model, torch.zeros(1, 1, dtype=torch.long), len(ids), tokenizer=tokenizer)]
    assert ''.join(pieces) == text and '' not in pieces
    assert all('\ufffd' not in p for p in pieces)

@pytest.mark.parametrize('seed', range(30))
def test_any_bytes_stream_to_what_decode_says(seed, bpe):
    "Broken characters too, and nothing is taken back"
    g = torch.Generator().manual_seed(seed)
    low,high = (0, len(bpe)) if seed % 2 else (128, 256)
    ids = torch.randint(low, high, (100,), generator=g).tolist()
    flow,text = TextStream(bpe),''
    for n,i in enumerate(ids, 1):
        text += flow.push(i)
        whole = bpe.decode(ids[:n])
        assert whole.startswith(text) and len(whole)-len(text) <= 1
    text += flow.flush()
    assert text == bpe.decode(ids)
    assert flow.push(bpe.encode('a')[0]) == 'a'                           # anew

def test_a_stream_goes_on_with_the_text_before(bpe):
    "Spaces and halves of characters at the seam"
    for tokenizer,text in ((bpe, 'to be 🚢 or'),
                           (BPETokenizer.train(['ab'], 257), 'to be 🚢 or ça'*4),
                           (WordTokenizer.train(['i must go back']), 'i must go back')):
        ids = tokenizer.encode(text)
        for n in range(len(ids)+1):
            for after in (ids[:n], torch.tensor(ids[:n])):
                flow = TextStream(tokenizer, after=after)
                before = tokenizer.decode(ids[:n]).removesuffix('\ufffd')
                assert before + ''.join([*map(flow.push, ids[n:]), flow.flush()]) == text
    words = WordTokenizer.train(['i must go back'])
    model = Parrot([words.encode('go back')], len(words))
    start = torch.tensor([words.encode('must')])
    assert [*stream(model, start, 2, tokenizer=words)] == [' go', ' back']
    assert generate(model, start, 2, stop=' go', tokenizer=words).shape[1] == 2
    left = torch.tensor([[0, start[0,0]], [start[0,0]]*2]),torch.tensor([[False, True],
                                                                         [True, True]])
    model = Parrot([words.encode('go back')]*2, len(words)); model.first = 2
    assert generate(model, left[0], 2, mask=left[1], stop=' go', tokenizer=words).shape[1] == 3

def test_words_stream_too():
    words = WordTokenizer.train(['i must go back to my ship and to my crew'])
    ids = words.encode('i must go back to my ship and to my crew '*8)
    flow = TextStream(words)
    assert ''.join([*map(flow.push, ids), flow.flush()]) == words.decode(ids)

def test_streams_of_tokens_are_the_generation(pair):
    ours,_ = pair
    ids,mask = prompts()
    for options in (dict(mask=mask), dict(temperature=1., seed=3, top_k=9),
                    dict(eos_id=(5, 11, 17), pad_id=0)):
        seen = []
        out = ours.generate(ids, 9, stream=seen.append, **options)
        assert torch.equal(torch.stack(seen, 1), out[:,7:])
        assert torch.equal(torch.stack([*stream(ours, ids, 9, **options)], 1), out[:,7:])
        found = *seen,out,ours.generate(ids, 2, n_beams=2)
        assert not any(t.is_inference() for t in found)

def test_a_stream_can_be_left_and_changes_no_mode(pair):
    ours,_ = pair
    ids,_ = prompts()
    it = stream(ours, ids, 9)
    next(it)
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    it.close()
    ours.train(); ours.decoder.blocks[0].eval()
    modes = [m.training for m in ours.modules()]
    def interrupt(column): raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt): ours.generate(ids, 9, stream=interrupt)
    assert [m.training for m in ours.modules()] == modes
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    ours.eval()

def test_dropout_does_not_act():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(N, d_model=32, n_layers=2, n_heads=4, dropout=.5,
                                          attn_dropout=.5))
    for p in model.parameters(): p.data.mul_(8)
    ids,_ = prompts()
    a = model.generate(ids, 8)
    assert model.training and torch.equal(a, model.generate(ids, 8))
    assert torch.equal(a, model.eval().generate(ids, 8))
    seen = []
    for _ in stream(model.train(), ids, 2): seen.append(model.training)
    assert seen == [True, True]
    # the result may be trained on
    assert model(a).requires_grad
    model(a).sum().backward()

# ---- chance

def test_seeds(pair):
    ours,_ = pair
    ids,_ = prompts()
    options = dict(temperature=1.3, top_p=.95)
    state = torch.get_rng_state()
    a,b,c = (ours.generate(ids, 12, seed=s, **options) for s in (1, 1, 2))
    assert torch.equal(a, b) and not torch.equal(a, c)
    assert torch.equal(a, ours.generate(ids, 12, generator=torch.Generator().manual_seed(1),
                                        **options))
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(1); d = ours.generate(ids, 12, **options)
    torch.manual_seed(1); e = ours.generate(ids, 12, **options)
    assert torch.equal(d, e) and not torch.equal(state, torch.get_rng_state())
    for narrow in (dict(top_k=1), dict(top_p=0.), dict(min_p=1.), dict(temperature=1e-4)):
        assert torch.equal(ours.generate(ids, 12, seed=0, **narrow), ours.generate(ids, 12))
    assert not torch.equal(ours.generate(ids, 12, seed=0, top_k=N), ours.generate(ids, 12))

# ---- caches

def test_going_on_with_a_cache(pair):
    ours,_ = pair
    ids,mask = prompts()
    for options in ({}, dict(mask=mask)):
        cache = ours.new_cache(3, 40)
        first = ours.generate(ids, 5, cache=cache, **options)
        # the last token is not read yet
        assert len(cache) == 11
        asked = torch.cat([first, ids[:,:3]], 1)
        real = torch.cat([mask, torch.ones(3, 8, dtype=torch.bool)], 1)
        more = dict(mask=real) if options else {}
        assert torch.equal(ours.generate(asked, 6, cache=cache, **more),
                           ours.generate(asked, 6, **more))
        assert len(cache) == 20
    cache = ours.new_cache(3, 40)
    whole = [int(c[0]) for c in itertools.islice(stream(ours, ids, 10, cache=cache), 4)]
    assert len(cache) == 10 and whole == ours.generate(ids, 4)[0,7:].tolist()

def test_one_forward_a_step_on_the_new_token_only(pair):
    ours,_ = pair
    ids,mask = prompts()
    read,masks,heads = [],[],[]
    hooks = [ours.register_forward_pre_hook(lambda m, args,
                                            kw: read.append(tuple(args[0].shape))
                                            or masks.append(kw['mask']), with_kwargs=True),
             ours.head.register_forward_pre_hook(lambda m, args: heads.append(args[0].shape[1]))]
    try:
        ours.generate(ids, 4, mask=torch.ones_like(mask))
        assert read == [(3, 7), (3, 1), (3, 1), (3, 1)] and heads == [1]*4 and masks == [None]*4
        read.clear()
        ours.generate(ids, 3, n_beams=2)
        assert read == [(3, 7), (6, 1), (6, 1)]
    finally:
        for h in hooks: h.remove()

# ---- encoder-decoders

@pytest.fixture(scope='module')
def both():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(N, d_model=32, n_layers=2, n_heads=4,
                                          kind='encoder-decoder', positions='sinusoidal',
                                          max_len=32, decoder_start_id=1)).eval()
    for p in model.parameters(): p.data.mul_(8)
    return model

def test_an_encoder_decoder_gives_the_decoders_tokens(both):
    ids,_ = prompts()
    for mask in (None, torch.arange(7) < torch.tensor([[7], [4], [6]]),
                 torch.arange(7) >= torch.tensor([[0], [4], [1]])):
        out = both.generate(ids, 8, mask=mask)
        assert out.shape == (3, 9) and (out[:,0] == 1).all()
        with torch.no_grad():
            assert torch.equal(both(ids, mask=mask, decoder_ids=out)[:,:-1].argmax(-1), out[:,1:])
        if mask is not None:
            for b in range(3): assert torch.equal(both.generate(ids[b:b+1,mask[b]], 8)[0], out[b])
            assert torch.equal(both.generate(ids.masked_fill(~mask, 0), 8, mask=mask), out)
    start = torch.tensor([[1, 5], [1, 6], [2, 7]])
    out = both.generate(ids, 6, decoder_ids=start)
    assert torch.equal(out[:,:2], start)
    with torch.no_grad():
        assert torch.equal(both(ids, decoder_ids=out)[:,1:-1].argmax(-1), out[:,2:])
    runs = []
    hook = both.encoder.register_forward_hook(lambda *a: runs.append(1))
    try: both.generate(ids, 8); both.generate(ids, 8, n_beams=2)
    finally: hook.remove()
    assert len(runs) == 2                                                    # once a call

def test_t5_writes_what_it_writes_in_transformers():
    ours,theirs = t5()
    ids,left = prompts()
    for mask,eos,options in itertools.product((None, left, left.flip(1)), ((), (5, 11)),
                                              ({}, dict(n=3),
                                               dict(n=3, early_stopping='never', length_penalty=2.),
                                               dict(repetition_penalty=1.4))):
        options = dict(options)
        n = options.pop('n', 1)
        out = ours.generate(ids, 10, mask=mask, eos_id=eos, pad_id=PAD, n_beams=n, **options)
        same(out, reference(theirs, ids, 10, mask=mask, eos_id=eos, num_beams=n, **options))
        assert len({*out.flatten().tolist()}) > 5

def test_beams_of_an_encoder_decoder(both):
    ids,_ = prompts()
    mask = torch.arange(7) < torch.tensor([[7], [4], [6]])
    out = both.generate(ids, 2, mask=mask, n_beams=N)
    every = torch.tensor([*itertools.product(range(N), repeat=2)])
    for b in range(3):
        cand = torch.cat([torch.ones(len(every), 1, dtype=torch.long), every], 1)
        with torch.inference_mode():
            logits = both(ids[b:b+1].expand(len(cand), -1), mask=mask[b:b+1].expand(len(cand), -1),
                          decoder_ids=cand)
            p = logits[:,:-1].log_softmax(-1).gather(-1, cand[:,1:,None])[...,0].sum(1)
        assert torch.equal(every[p.argmax()], out[b,1:])

integers = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.uint16, torch.uint32,
            torch.uint64]

@pytest.mark.parametrize('dtype', integers, ids=str)
def test_ids_of_any_integers(pair, both, dtype):
    ours,_ = pair
    ids,mask = prompts()
    narrow = ids.to(dtype)
    for options in (dict(mask=mask), dict(n_beams=2), dict(repetition_penalty=1.3)):
        out = ours.generate(narrow, 4, **options)
        assert out.dtype == torch.long and torch.equal(out, ours.generate(ids, 4, **options))
    assert torch.equal(torch.stack([*stream(ours, narrow, 4)], 1), ours.generate(ids, 4)[:,7:])
    assert torch.equal(both.generate(narrow, 4, decoder_ids=narrow[:,:2]),
                       both.generate(ids, 4, decoder_ids=ids[:,:2]))

def test_numbers_of_every_kind(pair):
    ours,_ = pair
    ids,_ = prompts()
    t = torch.tensor
    for odd,plain in ((dict(eos_id=t(5)), dict(eos_id=5)),
                      (dict(eos_id=t([5,11])), dict(eos_id=(5,11))),
                      (dict(eos_id=[t(5),np.int64(11)]), dict(eos_id=(5,11))),
                      (dict(stop=t(5)), dict(stop=5)),
                      (dict(stop=[t([5,11])]), dict(stop=[[5,11]])),
                      (dict(stop=np.array([5,11])), dict(stop=[5,11])),
                      (dict(eos_id=5, pad_id=t(3)), dict(eos_id=5, pad_id=3)),
                      (dict(top_k=np.int8(3), seed=np.int64(1)), dict(top_k=3, seed=1)),
                      (dict(top_p=Fraction(1,2), seed=1), dict(top_p=.5, seed=1)),
                      (dict(temperature=Fraction(3,2), seed=1), dict(temperature=1.5, seed=1)),
                      (dict(temperature=np.float32(1.5), seed=1), dict(temperature=1.5, seed=1)),
                      (dict(repetition_penalty=Fraction(3,2)), dict(repetition_penalty=1.5))):
        assert torch.equal(ours.generate(ids, 9, **odd), ours.generate(ids, 9, **plain)), odd
    assert ours.generate(ids, 2, temperature=1., seed=2**64-1).shape == (3,9)

@pytest.mark.parametrize('dtype', [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_the_coldest_temperature_is_the_likeliest_token(dtype):
    x = scores(5).to(dtype)
    for T in (1e-30, 1e-9, 1e-5):
        assert torch.equal(sample(filter_logits(x, temperature=T, top_p=.9)), x.argmax(-1))

# ---- filling that nobody masked

def test_filling_without_a_mask_is_hidden(pair, both):
    """By `pad_id`, of the call or of the config: what an unpadded text says, and what a mask says;
    filling in the middle and filling before an encoder too"""
    ours,_ = pair
    ids,mask = prompts(4, 9)
    ids = ids.masked_fill(~mask, PAD)
    own = Transformer(replace(ours.cfg, pad_id=PAD)).eval()
    own.load_state_dict(ours.state_dict())
    for model,given in ((ours, dict(pad_id=PAD)), (own, {})):
        for options in ({}, dict(n_beams=2), dict(temperature=1., seed=2),
                        dict(repetition_penalty=2.)):
            out = model.generate(ids, 8, **given, **options)
            assert torch.equal(out, ours.generate(ids, 8, mask=mask, pad_id=PAD, **options))
            if 'seed' in options: continue
            for b in range(4):
                assert torch.equal(out[b:b+1,2*b:], ours.generate(ids[b:b+1,2*b:], 8, **options))
        assert torch.equal(torch.stack([*stream(model, ids, 8, **given)], 1),
                           ours.generate(ids, 8, mask=mask)[:,9:])
        whole = torch.ones_like(mask)
        assert torch.equal(model.generate(ids, 8, mask=whole, **given), ours.generate(ids, 8))
        cache = model.new_cache(4, 30)
        never = torch.where(torch.arange(N) == PAD, -torch.inf, 0.)    # it would be filling next
        said = model.generate(ids, 3, cache=cache, logits_processor=lambda _, z: z+never, **given)
        more = torch.cat([said, ids[:,-2:]], 1)
        assert torch.equal(model.generate(more, 4, cache=cache, **given),
                           model.generate(more, 4, **given))
    hole = ids[:1].clone()
    hole[0,4] = PAD
    assert torch.equal(own.generate(hole, 8)[:,9:],
                       own.generate(torch.cat([hole[:,:4], hole[:,5:]], 1), 8)[:,8:])
    for seen in (mask, mask.flip(1)):
        source = prompts(4, 9)[0].masked_fill(~seen, PAD)
        out = both.generate(source, 6, pad_id=PAD)
        assert torch.equal(out, both.generate(source, 6, mask=seen))
        assert not torch.equal(out, both.generate(source, 6))

def test_filling_that_nobody_can_know(pair):
    "At the end it is refused; where its token begins or ends texts too, several are a warning"
    ours,_ = pair
    ids,_ = prompts()
    right,left = ids.clone(),ids.clone()
    right[1,-2:] = PAD
    left[1,:2] = PAD
    with pytest.raises(ValueError, match='without a mask ids must not be pad_id=39 in the last'):
        ours.generate(right, 3, pad_id=PAD)
    first = Transformer(replace(ours.cfg, pad_id=PAD, bos_id=PAD)).eval()
    first.load_state_dict(ours.state_dict())
    for model,options in ((ours, dict(eos_id=PAD)), (ours, dict(eos_id=(3,PAD), pad_id=PAD)),
                          (first, {})):
        with pytest.warns(UserWarning, match='ids begin with several 39.*give mask='):
            out = model.generate(left, 3, **options)
        text = torch.ones_like(left, dtype=torch.bool)
        one = left.clone()
        one[:,0] = PAD                       # a text may begin with it
        one[1,1] = 3
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            assert torch.equal(model.generate(left, 3, mask=text, **options), out)
            model.generate(one, 3, **options)
            model.generate(one[:,:1], 3, **options)

@pytest.mark.parametrize('call', [
    lambda model, ids: generate(model, ids, 3, eos_id=PAD),
    lambda model, ids: model.generate(ids, 3, eos_id=PAD),
    lambda model, ids: next(stream(model, ids, 3, eos_id=PAD)),
    lambda model, ids: generate(model, ids, 3, eos_id=PAD, n_beams=2)])
def test_a_warning_points_at_the_line_of_the_caller(pair, call):
    "As a function and as a method, where what was called has one frame more"
    ids,_ = prompts()
    ids[:,:2] = PAD
    with pytest.warns(UserWarning, match='ids begin with several') as said: call(pair[0], ids)
    code = call.__code__
    assert [(w.filename, w.lineno) for w in said] == [(code.co_filename, code.co_firstlineno)]

# ---- the words of transformers

def test_words_of_transformers_are_answered(pair):
    "By `generate`, as a method too, and by `stream`; the processors they name are there"
    ours,_ = pair
    ids,_ = prompts()
    partial = functools.partial
    for call in (partial(ours.generate, ids, 3), ours.generate, partial(generate, ours, ids, 3),
                 partial(stream, ours, ids, 3)):
        for word,say in words['generate'].items():
            with pytest.raises(TypeError, match=f'has no argument {word}: {re.escape(say)}'):
                call(**{word: None})
    assert not words['generate'].keys() & inspect.signature(generate).parameters.keys()
    theirs = {n for n in vars(transformers.GenerationConfig()) if n in words['generate']}
    assert len(theirs) > 15
    named = {say.split('=')[1].split('(')[0] for say in words['generate'].values() if
             say.startswith('give it as a processor')}
    assert len(named) > 5
    for name in named: assert hasattr(transformers.generation.logits_process, name), name

# ---- several texts, their scores, processors

def drawn_like(theirs, ids, n, **options):
    "What transformers draws, and the log-probabilities it drew by"
    out = theirs.generate(ids, max_new_tokens=n, pad_token_id=PAD, return_dict_in_generate=True,
                          output_scores=True, **options)
    beams = getattr(out, 'beam_indices', None)
    scores = theirs.compute_transition_scores(out.sequences, out.scores, beams,
                                              normalize_logits=beams is None)
    return out.sequences,scores

@pytest.mark.parametrize('penalty,eos', [(None,()), (1.3,(5,11)), (None,(5,11,17,20,30))])
def test_several_beams_and_their_scores_are_those_of_transformers(pair, penalty, eos):
    ours,theirs = pair
    ids,mask = prompts()
    for n,k,seen in ((4,4,None), (4,2,mask), (3,1,mask)):
        if penalty is not None and seen is not None: continue
        real = torch.ones_like(mask) if seen is None else seen
        out,scores = ours.generate(ids, 9, mask=seen, n_beams=n, num_return_sequences=k, pad_id=PAD,
                                   eos_id=eos, repetition_penalty=penalty, return_scores=True)
        want,theirs_ = drawn_like(theirs, ids, 9, attention_mask=real.long(), num_beams=n,
                                  num_return_sequences=k, eos_token_id=[*eos] or None,
                                  repetition_penalty=penalty, do_sample=False)
        same(out, want)
        new = scores.shape[1]
        assert out.shape == (3*k,7+new)
        there = (out[:,7:] != PAD) | (scores != 0)
        assert_close(scores, theirs_[:,:new].masked_fill(~there, 0.), atol=1e-4, rtol=1e-4)
        total = (scores.sum(1)/there.sum(1)).view(3,k)
        assert (total.diff() <= 1e-6).all()                          # the best stands first

def test_scores_are_log_probabilities_of_what_was_drawn_from(pair):
    "Greedy, drawn, penalized, filtered: those of a whole pass; 0 where a finished row is filled up"
    ours,_ = pair
    ids,mask = prompts()
    for options in ({}, dict(repetition_penalty=1.4), dict(temperature=.7, seed=0),
                    dict(temperature=1.5, top_k=9, top_p=.9, min_p=.01, seed=1,
                         repetition_penalty=1.2), dict(eos_id=(5,11,17), pad_id=0),
                    dict(temperature=1., seed=1, eos_id=(5,11,17), pad_id=0,
                         num_return_sequences=3)):
        options = dict(options)
        out,scores = ours.generate(ids, 12, mask=mask, return_scores=True, **options)
        assert torch.equal(out, ours.generate(ids, 12, mask=mask, **options))
        times,penalty = options.get('num_return_sequences', 1),options.get('repetition_penalty')
        assert scores.shape == (3*times,out.shape[1]-7) and scores.dtype == torch.float32
        assert not scores.is_inference() and (scores <= 0).all()
        real = torch.cat([mask.repeat_interleave(times, 0), torch.ones_like(scores).bool()], 1)
        with torch.no_grad(): logits = ours(out, mask=real)
        filters = {n: options[n] for n in ('temperature','top_k','top_p','min_p') if n in options}
        filled = 0
        for step in range(scores.shape[1]):
            z = logits[:,6+step]
            if penalty: z = penalize_repetition(z, out[:,:7+step], penalty, mask=real[:,:7+step])
            z = filter_logits(z, **filters).log_softmax(-1).gather(1, out[:,7+step,None])[:,0]
            if step:
                before = out[:,7:7+step]
                over = torch.isin(before, torch.tensor(options.get('eos_id', ()))).any(1)
                z = z.masked_fill(over, 0.)
                filled += int(over.sum())
            assert_close(scores[:,step], z, atol=1e-4, rtol=1e-4)
        assert bool(filled) == ('eos_id' in options)

def test_several_texts_of_a_prompt(pair, both):
    "Rows of a prompt stand together, each drawn for itself; the prompt is read once"
    ours,_ = pair
    ids,mask = prompts()
    read = []
    hook = ours.register_forward_pre_hook(lambda m, args: read.append(tuple(args[0].shape)))
    out = ours.generate(ids, 9, mask=mask, temperature=2., seed=0, num_return_sequences=4)
    hook.remove()
    assert read == [(3,7)] + [(12,1)]*8
    assert out.shape == (12,16) and torch.equal(out[:,:7], ids.repeat_interleave(4, 0))
    assert len({*map(tuple, out[:4,7:].tolist())}) == 4
    class Numbers:
        def decode(self, ids, skip_special=True): return ''.join(f' {i}' for i in ids)
    for options in ({}, dict(eos_id=(5,11,17)), dict(stop=[[8],[9,3]]),
                    dict(stop=[' 1','9 2'], tokenizer=Numbers())):
        options |= dict(temperature=2., seed=0, pad_id=PAD)
        out = ours.generate(ids, 9, mask=mask, num_return_sequences=4, **options)
        assert torch.equal(out, ours.generate(ids.repeat_interleave(4, 0), 9,
                                              mask=mask.repeat_interleave(4, 0), **options))
        assert (len(options) > 3) == bool((out[:,-2:] == PAD).all(1).any())
    seen = []
    ours.generate(ids, 5, top_k=9, seed=0, num_return_sequences=2, stream=seen.append)
    assert torch.equal(torch.stack(seen, 1), ours.generate(ids, 5, top_k=9, seed=0,
                                                           num_return_sequences=2)[:,7:])
    out = both.generate(ids, 5, mask=mask, temperature=1., seed=0, num_return_sequences=2)
    assert torch.equal(out, both.generate(ids.repeat_interleave(2, 0), 5, temperature=1., seed=0,
                                          mask=mask.repeat_interleave(2, 0)))
    for n in (1, 2):
        out,scores = ours.generate(ids, 0, temperature=1., num_return_sequences=n,
                                   return_scores=True)
        assert torch.equal(out, ids.repeat_interleave(n, 0)) and scores.shape == (3*n,0)
    with pytest.raises(ValueError, match='cache does not go with num_return_sequences'):
        ours.generate(ids, 2, temperature=1., num_return_sequences=2, cache=ours.new_cache(3, 9))
    few = Transformer(TransformerConfig(3, d_model=8, n_layers=1, n_heads=1)).eval()
    with pytest.raises(ValueError, match='5 beams found fewer texts than num_return_sequences=5'):
        few.generate(torch.zeros(1, 1, dtype=torch.long), 1, n_beams=5, num_return_sequences=5)

def test_processors_are_those_of_transformers(pair):
    "Greedy and beams with several of theirs; ours are called after the penalty, before the filters"
    ours,theirs = pair
    ids,mask = prompts()
    kinds = transformers.generation.logits_process
    each = [kinds.NoRepeatNGramLogitsProcessor(2),
            kinds.MinNewTokensLengthLogitsProcessor(7, 4, [5,11]),
            kinds.SuppressTokensLogitsProcessor([3,9])]
    for n,penalty in itertools.product((1, 3), (None, 1.3)):
        both = dict(eos_id=(5,11), repetition_penalty=penalty)
        want = reference(theirs, ids, 12, num_beams=n, logits_processor=LogitsProcessorList(each),
                         **both)
        for given in (each, tuple(each), LogitsProcessorList(each)):
            out = ours.generate(ids, 12, n_beams=n, pad_id=PAD, logits_processor=given, **both)
            same(out, want)
        assert not torch.equal(want, reference(theirs, ids, 12, num_beams=n, **both))
    seen = []
    def note(text, z):
        seen.append((text.clone(), z.clone()))
        text.fill_(0)                                               # its own
        return z.masked_fill_(torch.arange(N) > 20, -torch.inf)
    out = ours.generate(ids, 5, mask=mask, logits_processor=note, repetition_penalty=1.3, top_k=30,
                        seed=0)
    assert (out[:,7:] <= 20).all() and [t.shape[1] for t,_ in seen] == [7,8,9,10,11]
    real = torch.cat([mask, torch.ones(3, 5, dtype=torch.bool)], 1)
    with torch.no_grad(): logits = ours(out, mask=real)
    for step,(text,z) in enumerate(seen):
        assert torch.equal(text, out[:,:7+step])
        assert_close(z, penalize_repetition(logits[:,6+step], text, 1.3, mask=real[:,:7+step]),
                     atol=1e-4, rtol=1e-4)
    one = lambda _, z: z.index_fill(1, torch.tensor([4]), 1e4)      # noqa: E731
    for options in ({}, dict(n_beams=2), dict(temperature=1.), dict(top_p=.5)):
        assert (ours.generate(ids, 3, logits_processor=one, **options)[:,7:] == 4).all()
    assert all((c == 4).all() for c in stream(ours, ids, 3, logits_processor=[one]))

def test_what_a_processor_may_not_give(pair):
    ours,_ = pair
    ids,_ = prompts()
    inf = torch.inf
    for f,error in ((lambda _, z: None, TypeError), (lambda _, z: z[:1], TypeError),
                    (lambda _, z: z.long(), TypeError), (lambda _, z: z.fill_(-inf), ValueError),
                    (lambda _, z: z.index_fill(1, torch.tensor([4]), inf), ValueError),
                    (lambda _, z: z*torch.nan, ValueError)):
        for options in ({}, dict(n_beams=2), dict(temperature=1.)):
            cache = None if options else ours.new_cache(3, 20)
            with pytest.raises(error, match='logits_processor must'):
                ours.generate(ids, 3, logits_processor=f, cache=cache, **options)
            assert cache is None or not len(cache)
    half = ours.generate(ids, 5, logits_processor=lambda _, z: z.double())
    assert torch.equal(half, ours.generate(ids, 5))

# ---- misuse

def misuse():
    ids = torch.zeros(2, 3, dtype=torch.long)
    mask = torch.tensor([[True]*3, [True, True, False]])
    yield dict(ids=[[1, 2]]), TypeError, 'ids must be a tensor'
    for odd in (ids.float(), ids.bool(), ids+0j):
        yield dict(ids=odd), TypeError, 'ids must be a tensor of integers'
    yield dict(ids=ids[0]), ValueError, r'ids must be \(B, L\)'
    yield dict(ids=ids[:,:0]), ValueError, r'ids must be \(B, L\)'
    yield dict(ids=ids-100), ValueError, 'ids must be from 0 to 39, got -100'
    yield dict(ids=ids+N), ValueError, 'ids must be from 0 to 39'
    yield dict(mask=mask), ValueError, 'last column.*left'
    yield dict(mask=torch.zeros(2, 3, dtype=torch.bool)), ValueError, 'last column'
    yield dict(mask=mask.long()), TypeError, 'mask must be a bool'
    yield dict(mask=mask[:1]), ValueError, r'mask must be \(2, 3\)'
    yield dict(decoder_ids=ids), ValueError, 'encoder-decoder'
    for name in ('max_new_tokens', 'n_beams', 'num_return_sequences'):
        for value in (-1, 2**31, 2**64, 10**400):
            yield {name: value}, ValueError, f'{name} must be from [01] to 2147483647'
    yield dict(max_new_tokens=2.5), TypeError, 'max_new_tokens must be an integer'
    yield dict(max_new_tokens=True), TypeError, 'max_new_tokens must be an integer'
    yield dict(max_new_tokens=63), ValueError, '65 to read, more than max_len=64'
    for name in ('temperature', 'repetition_penalty'):
        for value in (0, -0., -1., float('nan'), float('inf'), 1e-45, 1e300, 10**400):
            yield {name: value}, ValueError, f'{name} must be above 0'
        yield {name: 'hot'}, TypeError, f'{name} must be a number'
    for name in ('top_p', 'min_p'):
        for value in (-.1, 1.1, float('nan')):
            yield {name: value}, ValueError, f'{name} must be from 0 to 1'
    yield dict(top_k=0), ValueError, 'top_k must be at least 1'
    yield dict(top_k=2.), TypeError, 'top_k must be an integer'
    yield dict(eos_id='x'), TypeError, 'eos_id must be an integer'
    for name in ('eos_id', 'pad_id'):
        for value in (-1, N, 2**70): yield {name: value}, ValueError, f'{name} must be from 0 to 39'
    yield dict(eos_id=b'a'), TypeError, 'eos_id must be an integer'
    yield dict(eos_id=torch.tensor(.5)), TypeError, 'eos_id must be an integer, got 0.5'
    yield dict(stop=[[2**70]]), ValueError, 'stop must be from 0 to 39'
    for value in (b'a', [b'a'], [bytearray(b'a')]):
        yield dict(stop=value), TypeError, 'stop must be strings or tokens'
    yield dict(stop='a', tokenizer=3), TypeError, 'tokenizer must have decode, got int'
    yield dict(stream=3), TypeError, 'stream must be a function'
    yield dict(stop='x'), ValueError, 'needs tokenizer='
    yield dict(stop=['x', [1]]), ValueError, 'needs tokenizer='
    yield dict(stop=['']), ValueError, 'empty'
    yield dict(stop=[[]]), ValueError, 'empty'
    yield dict(stop=[[.5]]), TypeError, 'stop must be an integer'
    yield dict(seed=1, generator=torch.Generator()), ValueError, 'not both'
    for value in (-1, 2**64): yield dict(seed=value), ValueError, 'seed must be from 0 to'
    yield dict(seed='x'), TypeError, 'seed must be an integer'
    yield dict(generator=3), TypeError, 'generator must be a torch.Generator'
    yield dict(n_beams=0), ValueError, 'n_beams must be from 1'
    yield dict(length_penalty=2.), ValueError, 'need n_beams'
    yield dict(early_stopping=True), ValueError, 'need n_beams'
    for value in ('soon', 1, None, ids, np.array([1,2])):
        yield dict(n_beams=2, early_stopping=value), ValueError, 'early_stopping must be'
    for value in (float('nan'), float('inf'), -1e3, 10**400):
        yield dict(n_beams=2, length_penalty=value), ValueError, 'length_penalty='
    yield dict(num_return_sequences=0), ValueError, 'num_return_sequences must be from 1'
    for name,value in itertools.product(('return_scores', 'progress'), (1, 'no', ids)):
        yield {name: value}, TypeError, f'{name} must be True or False'
    yield dict(num_return_sequences=2), ValueError, 'num_return_sequences=2 needs'
    yield dict(num_return_sequences=3, n_beams=2), ValueError, 'num_return_sequences=3 needs'
    for value in (3, ['x'], torch.tensor(3), 'x'):
        yield dict(logits_processor=value), TypeError, 'logits_processor must be'
    yield dict(n_beams=2, length_penalty='x'), TypeError, 'length_penalty must be a number'
    for name,value in dict(temperature=np.float32(1.), top_k=2, top_p=.5, min_p=.1, stop=[[1]],
                           stream=print).items():
        yield {'n_beams': 2, name: value}, ValueError, f'{name} does not go with n_beams'
    yield dict(top_pp=.3), TypeError, 'top_pp'

@pytest.mark.parametrize('options,error,message', [*misuse()],
                         ids=lambda x: str(x)[:40] if isinstance(x, dict) else '')
def test_misuse_has_an_error_of_its_own_before_anything_runs(options, error, message, monkeypatch):
    model,_ = gpt2()
    monkeypatch.setattr(model, 'forward', None)                              # nothing runs
    given = dict(ids=torch.zeros(2, 3, dtype=torch.long), max_new_tokens=4) | options
    with pytest.raises(error, match=message):
        model.generate(given.pop('ids'), given.pop('max_new_tokens'), **given)

def test_misuse_of_models_and_caches():
    ids = torch.zeros(2, 3, dtype=torch.long)
    cfg = dict(d_model=16, n_layers=1, n_heads=2)
    for options in (dict(kind='encoder'), dict(head=None), dict(kind='encoder', head='masked')):
        with pytest.raises(ValueError, match='needs a decoder with a head'):
            Transformer(TransformerConfig(N, **cfg, **options)).generate(ids, 2)
    with pytest.raises(TypeError, match='must be a Transformer'):
        generate(torch.nn.Linear(2, 2), ids, 2)
    model = Transformer(TransformerConfig(N, **cfg))
    with pytest.raises(ValueError, match='holds 5 tokens, and 6 will be read'):
        model.generate(ids, 4, cache=model.new_cache(2, 5))
    with pytest.raises(ValueError, match='batch of 2, got one for 3'):
        model.generate(ids, 2, cache=model.new_cache(3, 5))
    with pytest.raises(ValueError, match='cache does not go with'):
        model.generate(ids, 2, cache=model.new_cache(2, 5), n_beams=2)
    cache = model.new_cache(2, 9)
    model.generate(ids, 3, cache=cache)
    with pytest.raises(ValueError, match='the cache knows 5 tokens'):
        model.generate(ids, 2, cache=cache)
    two = Transformer(TransformerConfig(N, **cfg, kind='encoder-decoder', positions='learned',
                                        max_len=6))
    with pytest.raises(ValueError, match='no decoder_start_id'): two.generate(ids, 2)
    with pytest.raises(ValueError, match='must have 2 rows'):
        two.generate(ids, 2, decoder_ids=ids[:1])
    with pytest.raises(ValueError, match='ids hold 7 tokens'):
        two.generate(torch.zeros(2, 7, dtype=torch.long), 2, decoder_ids=ids)
    with pytest.raises(ValueError, match='one text'):
        stream(model, ids, 2, tokenizer=WordTokenizer.train(['a']))

def test_nothing_to_do_and_room_to_the_last_place(pair):
    ours,_ = pair
    ids,_ = prompts()
    for n in (1, 2): assert torch.equal(ours.generate(ids, 0, n_beams=n), ids)
    model,theirs = gpt2()
    # the 65th token is never read
    assert torch.equal(model.generate(ids, 58)[:,:64], reference(theirs, ids, 57))

def test_half_precision_and_compiled(pair):
    ours,_ = pair
    ids,mask = prompts()
    half = Transformer(ours.cfg).to(torch.bfloat16).eval()
    half.load_state_dict(ours.state_dict())
    out = half.generate(ids, 6, mask=mask)
    assert out.shape == (3, 13)
    for options in (dict(n_beams=2), dict(temperature=1., seed=0)):
        assert half.generate(ids, 6, **options).shape == (3, 13)

def test_progress_shows_and_counts(pair, capsys):
    ours,_ = pair
    ids,_ = prompts()
    for n in (1, 2):
        ours.generate(ids, 3, n_beams=n, progress=True)
        assert '3/3' in capsys.readouterr().err
        ours.generate(ids, 3, n_beams=n)
        assert not capsys.readouterr().err

@pytest.mark.parametrize('settings',
                         [{}, dict(window=(3,0)), dict(window=(3,0), layer_types=('full','window')),
                          dict(positions='learned')])
@pytest.mark.parametrize('padded', [False, True])
def test_a_recording_of_generate_holds_all_steps(settings, padded):
    "n prompt and m new tokens give rows and columns for n+m-1, as one call on the whole text does"
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(50, 32, n_layers=2, n_heads=4, n_kv_heads=2,
                                          **settings)).eval()
    for p in model.parameters(): torch.nn.init.normal_(p, std=.3)
    ids,mask = torch.randint(0, 50, (2,5)),torch.ones(2, 5, dtype=torch.bool)
    if padded: mask[0,:2] = False
    with record(model) as steps: out = model.generate(ids, 6, mask=mask)
    with record(model) as once, torch.no_grad():
        model(out[:,:-1], mask=torch.cat([mask, torch.ones(2, 5, dtype=torch.bool)], 1))
    assert len(steps) == 2
    for b in range(2):
        for a,w in zip(steps.weights(b), once.weights(b)):
            assert a.shape == (4,10,10)
            assert_close(a, w)

# ---- threads, modes, precision, interruptions

def restless(layers=2, **options):
    "A model in training mode, with so much dropout that no step survives it"
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(N, d_model=32, n_layers=layers, n_heads=4, dropout=.5,
                                          attn_dropout=.5, **options))
    for p in model.parameters(): p.data.mul_(8)
    return model.train()

def at_once(*jobs):
    "What each job gives, all at the same time, the threads taking turns as often as they can"
    found,before = [None]*len(jobs),sys.getswitchinterval()
    def work(n): found[n] = jobs[n]()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(jobs))]
    sys.setswitchinterval(1e-6)
    try:
        for t in threads: t.start()
        for t in threads: t.join()
    finally: sys.setswitchinterval(before)
    return found

def test_threads_generate_on_a_model_that_trains_and_set_no_mode():
    model = restless()
    ids,_ = prompts()
    want,modes = model.eval().generate(ids, 12),set()
    model.train()
    done = threading.Event()
    def watch():
        while not done.is_set(): modes.update(m.training for m in model.modules())
    def write(**options):
        return lambda: [model.generate(ids, 12, **options) for _ in range(8)]
    watcher = threading.Thread(target=watch)
    watcher.start()
    try: found = at_once(write(), write(n_beams=1), write(stream=lambda column: None))
    finally: done.set(); watcher.join()
    assert all(torch.equal(out, want) for outs in found for out in outs)
    assert modes == {True}

def test_what_is_set_during_a_stream_stays_set():
    model = restless()
    ids,_ = prompts()
    want = torch.stack([*stream(model, ids, 9)], 1)
    for first,then in ((model.train, model.eval), (model.eval, model.train)):
        first()
        it = stream(model, ids, 9)
        columns = [next(it) for _ in range(3)]
        then()
        columns += it
        assert {m.training for m in model.modules()} == {then == model.train}
        assert torch.equal(torch.stack(columns, 1), want)
    model.train()
    model.decoder.blocks[0].eval()
    modes = [m.training for m in model.modules()]
    assert torch.equal(model.generate(ids, 9), torch.cat([ids, want], 1))
    assert [m.training for m in model.modules()] == modes

def test_a_twin_has_the_parameters_hooks_and_compiled_modules_of_its_model():
    model = restless()
    ids,_ = prompts()
    want = model.eval().generate(ids, 6)
    model.train()
    seen = []
    hook = model.decoder.blocks[0].register_forward_hook(lambda m, args,
                                                         out: seen.append(m.training))
    assert torch.equal(model.generate(ids, 6), want) and seen == [False]*6
    hook.remove()
    it = stream(model, ids, 6)                                              # reads new weights
    first = next(it)
    assert torch.equal(first, want[:,7])
    for p in model.parameters(): p.data.zero_()
    assert not next(it).any()
    model = restless()
    model.decoder.blocks[0] = torch.compile(model.decoder.blocks[0], backend='eager')
    assert torch.equal(model.generate(ids, 2), want[:,:9])
    model = restless()
    model.decoder.blocks[1].compile(backend='eager')
    assert torch.equal(model.generate(ids, 2), want[:,:9])
    assert torch.equal(torch.compile(restless(), backend='eager').generate(ids, 2), want[:,:9])
    model = restless()
    with record(model) as steps: model.generate(ids, 6)
    model.eval()
    with record(model) as once: model.generate(ids, 6)
    for a,w in zip(steps.weights(0), once.weights(0)): assert_close(a, w)

@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize('options', [{}, dict(window=(3,0)), dict(positions='learned', max_len=64),
    dict(positions='alibi'), dict(qk_norm='rms', norm_offset=1.), dict(norm='layer'),
    dict(latent=LatentConfig(kv_rank=8, nope_dim=8, rope_dim=4, v_dim=8)), dict(sinks=True),
    dict(experts=ExpertsConfig(4, 2, 16), n_kv_heads=2, softcap=5.),
    dict(kind='encoder-decoder', positions='relative', decoder_start_id=1)], ids=str)
def test_autocast(options, dtype):
    "The tokens are those that a whole forward without a cache finds likeliest, up to rounding"
    model = restless(**options).eval()
    both = 'kind' in options
    ids,mask = prompts()
    for given in ({}, dict(mask=mask), dict(n_beams=2), dict(temperature=1., seed=0)):
        with torch.autocast('cpu', dtype=dtype):
            out = model.generate(ids, 8, **given)
            assert out.shape == (3, 9 if both else 15)
            if {*given} - {'mask'}: continue
            real = given.get('mask')
            if real is not None and not both:
                real = torch.cat([real, torch.ones(3, 8, dtype=torch.bool)], 1)
            with torch.no_grad():
                logits = model(ids, mask=real, decoder_ids=out) if both else model(out, mask=real)
        logits,new = logits[:,-9:-1].float(),out[:,-8:,None]
        gap = logits.amax(-1, keepdim=True) - logits.gather(-1, new)
        assert gap.max() <= 8*torch.finfo(dtype).eps*logits.abs().max()

def test_autocast_is_that_of_the_call():
    "A stream may be read where autocast is on or off; its cache is of one precision"
    model = restless().eval()
    ids,_ = prompts()
    plain = model.generate(ids, 6)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        lowered = model.generate(ids, 6)
        inside = stream(model, ids, 6)
    outside = stream(model, ids, 6)
    columns = [],[]
    for n in range(6):
        with torch.autocast('cpu', dtype=torch.bfloat16, enabled=bool(n % 2)):
            for it,found in zip((inside, outside), columns): found.append(next(it))
            assert torch.is_autocast_enabled('cpu') == bool(n % 2)
    assert torch.equal(torch.stack(columns[0], 1), lowered[:,7:])
    assert torch.equal(torch.stack(columns[1], 1), plain[:,7:])

def test_a_cache_and_autocast():
    "One made under it goes on under it; another is refused before anything runs"
    model = restless().eval()
    ids,_ = prompts()
    with torch.autocast('cpu', dtype=torch.bfloat16):
        cache = model.new_cache(3, 40)
        out = model.generate(ids, 4, cache=cache)
        assert torch.equal(model.generate(out, 4, cache=cache), model.generate(ids, 8))
        with pytest.raises(ValueError, match='the cache keeps torch.float32 and autocast computes'):
            model.generate(ids, 4, cache=model.new_cache(3, 40, dtype=torch.float32))

class Key(BaseException): "Like Ctrl-C, but no one else's"

@pytest.mark.parametrize('options',
                         [{}, dict(window=(3,0)),
                          dict(window=(3,0), layer_types=('full','window','full'))], ids=str)
@pytest.mark.parametrize('when', ['prompt', 'step', 'stream', 'head'])
@pytest.mark.parametrize('error', [KeyboardInterrupt, Key])
def test_after_an_interrupted_call_a_cache_is_as_before_or_refused(options, when, error):
    "Interrupted in layer 2 of 3, while reading the prompt or later, in a callback, or in the head"
    for seed in range(5):
        model = restless(3, **options).eval()
        ids,_ = prompts(2, 7, seed)
        cache = model.new_cache(2, 40)
        before = model.generate(ids[:,:3], 2, cache=cache) if seed % 2 else ids[:,:0]
        asked = torch.cat([before, ids], 1)
        calls = []
        def interrupt(*_):
            calls.append(1)
            if len(calls) == (1 if when == 'prompt' else 4): raise error
        where = model.head if when == 'head' else model.decoder.blocks[1].attn
        with contextlib.ExitStack() as stack:
            given = dict(stream=interrupt) if when == 'stream' else {}
            if not given: stack.callback(where.register_forward_pre_hook(interrupt).remove)
            stack.enter_context(pytest.raises(error))
            model.generate(asked, 9, cache=cache, **given)
        turn = torch.cat([before, prompts(2, 9, seed+10)[0]], 1)            # another text
        try: out = model.generate(turn, 6, cache=cache)
        except ValueError as e:
            assert 'reset it first' in str(e) and options
            cache.reset()
            out = model.generate(turn, 6, cache=cache)
        assert torch.equal(out, model.generate(turn, 6))

def test_an_interrupted_call_of_an_encoder_decoder_leaves_no_source(both):
    ids,_ = prompts(2)
    cache = both.new_cache(2, 20, memory_len=9)
    def interrupt(column): raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt): both.generate(ids, 5, cache=cache, stream=interrupt)
    other = torch.randint(N, (2, 9), generator=torch.Generator().manual_seed(1))
    assert torch.equal(both.generate(other, 5, cache=cache), both.generate(other, 5))

def test_a_left_stream_knows_what_it_gave_out(pair):
    ours,_ = pair
    ids,_ = prompts()
    cache = ours.new_cache(3, 40)
    it = stream(ours, ids, 9, cache=cache)
    said = torch.cat([ids, torch.stack([next(it) for _ in range(3)], 1)], 1)
    it.close()
    assert torch.equal(ours.generate(said, 6, cache=cache), ours.generate(ids, 9))

def test_a_callback_may_write_into_its_column(pair):
    ours,_ = pair
    ids,_ = prompts()
    for options in ({}, dict(eos_id=(5, 11), pad_id=0), dict(stop=[[11]])):
        want = ours.generate(ids, 9, **options)
        assert torch.equal(ours.generate(ids, 9, stream=lambda column: column.fill_(3), **options),
                           want)
        columns = []
        for column in stream(ours, ids, 9, **options):
            columns.append(column.clone())
            column.fill_(3)
        assert torch.equal(torch.stack(columns, 1), want[:,7:])

# ---- tokenizers of every kind

def theirs(tmp_path, kind):
    "A tokenizer as `load_tokenizer` gives it, or one of `transformers` around it"
    tokenizers = pytest.importorskip('tokenizers')
    texts = ['to be or not to be', 'the ship — ça va? 🚢🌊', 'a sea, the question']
    if kind in ('bytes', 'transformers'):
        tok = tokenizers.Tokenizer(tokenizers.models.BPE())
        tok.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tok.decoder = tokenizers.decoders.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(vocab_size=290, special_tokens=['<end>'],
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    elif kind == 'fallback':
        words = {f'<0x{b:02X}>': b for b in range(256)} | {'<end>': 256, '▁': 257}
        letters = sorted({c for t in texts for c in t if ord(c) < 128 and c != ' '})
        words |= {c: 258+n for n,c in enumerate(letters)}
        tok = tokenizers.Tokenizer(tokenizers.models.BPE(words, [], byte_fallback=True))
        tok.normalizer = tokenizers.normalizers.Replace(' ', '▁')
        tok.decoder = tokenizers.decoders.Sequence([tokenizers.decoders.Replace('▁', ' '),
            tokenizers.decoders.ByteFallback(), tokenizers.decoders.Fuse()])
        tok.add_special_tokens(['<end>'])
    else:
        tok = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token='[UNK]'))
        tok.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        tok.decoder = tokenizers.decoders.WordPiece(cleanup=False)
        trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=90, show_progress=False,
                                                       special_tokens=['[UNK]', '<end>'])
    if kind != 'fallback': tok.train_from_iterator(texts, trainer)
    (tmp_path/'tokenizer.json').write_text(tok.to_str(), encoding='utf-8')
    tok = load_tokenizer(tmp_path)
    if kind == 'transformers':
        tok = transformers.PreTrainedTokenizerFast(tokenizer_object=tok)
        return tok, lambda text: tok.encode(text, add_special_tokens=False), len(tok)
    return tok, lambda text: tok.encode(text).ids, tok.get_vocab_size()

@pytest.mark.parametrize('kind', ['bytes', 'fallback', 'words', 'transformers'])
def test_what_load_tokenizer_gives_streams_and_stops(kind, tmp_path):
    tok,encode,n = theirs(tmp_path, kind)
    text = 'the ship and the sea' if kind == 'words' else 'the ship 🚢 — ça va'
    ids = encode(text)
    spelled = tok.decode(ids)
    model = Parrot([ids], n)
    start = torch.zeros(1, 1, dtype=torch.long)
    pieces = [*stream(model, start, len(ids), tokenizer=tok)]
    assert ''.join(pieces).strip() == spelled.strip() and len(pieces) > 3
    assert not any('\ufffd' in p for p in pieces)
    out = generate(model, start, len(ids), stop='ship', tokenizer=tok)[0,1:].tolist()
    assert len(out) < len(ids) and 'ship' in tok.decode(out) and 'ship' not in tok.decode(out[:-1])
    end = tok.convert_tokens_to_ids('<end>') if kind == 'transformers' else tok.token_to_id('<end>')
    model = Parrot([[*ids[:3], end, *ids[3:]]], n)
    out = generate(model, start, len(ids), stop='<end>', tokenizer=tok)[0,1:].tolist()
    assert out == [*ids[:3], end]
    assert '<end>' not in ''.join(stream(model, start, len(ids), tokenizer=tok))

@pytest.mark.parametrize('kind',
                         ['bytes', 'fallback', 'words', 'transformers', 'ours', 'our words',
                          'byte_pairs'])
def test_ids_beyond_the_words_of_a_tokenizer_spell_nothing(kind, tmp_path, bpe):
    "Tables have more rows than tokenizers have words"
    if kind == 'ours': tok,encode,n = bpe,bpe.encode,len(bpe)
    elif kind == 'byte_pairs':
        tok = byte_pairs(theirs(tmp_path, 'bytes')[0])
        encode,n = tok.encode,len(tok)
    elif kind == 'our words':
        tok = WordTokenizer.train(['the ship and the sea'])
        encode,n = tok.encode,len(tok)
    else: tok,encode,n = theirs(tmp_path, kind)
    ids = encode('the ship and the sea')
    beyond = [n, n+7]
    mixed = [beyond[0], *ids[:2], beyond[1], *ids[2:], beyond[0]]
    model = Parrot([mixed], n+8)
    for start in (torch.tensor([[0]]), torch.tensor([[n+1]])):
        assert ''.join(stream(model, start, len(mixed),
                              tokenizer=tok)).strip() == tok.decode(ids).strip()
        out = generate(model, start, len(mixed), stop='never said', tokenizer=tok)
        assert out[0,1:].tolist() == mixed
        out = generate(model, start, len(mixed), stop='sea', tokenizer=tok)
        assert out[0,1:].tolist() == mixed[:-1]

# %% rows of a batch that a window reads
@pytest.mark.parametrize('options', [{}, dict(n_beams=2)], ids=str)
def test_filling_within_a_text_and_a_window(options):
    "A row that ended early and was filled up goes on as it would alone; ids come back as given"
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(30, d_model=32, n_layers=2, n_heads=4, max_len=128,
                                          pad_id=0, eos_id=3, window=(6,0))).eval()
    for w in model.parameters(): w.data.mul_(3)
    texts = torch.randint(4, 30, (2,20))
    texts[0,14:18] = 0
    out = model.generate(texts, 5, **options)
    assert torch.equal(out[:,:20], texts)
    real = [*range(14), 18, 19]
    alone = model.generate(texts[:1,real], 5, **options)
    assert torch.equal(out[:1,20:20+alone.shape[1]-16], alone[:,16:])

@pytest.mark.parametrize('said', [dict(eos_id=30), dict(pad_id=30), dict(eos_id=(3,31))], ids=str)
def test_ends_of_a_published_config_beyond_the_vocabulary(said):
    "Such a model never writes them; what the caller says is checked"
    model = Transformer(TransformerConfig(30, d_model=32, n_layers=1, n_heads=4, **said)).eval()
    assert model.generate(torch.tensor([[4,5]]), 2).shape == (1,4)
    with pytest.raises(ValueError, match='must be from 0 to 29'):
        model.generate(torch.tensor([[4,5]]), 2, **said)

def test_arrays_are_no_tensors():
    model = Transformer(TransformerConfig(30, d_model=8, n_layers=1, n_heads=1)).eval()
    with pytest.raises(TypeError, match='got ndarray'): model.generate(np.array([[4,5]]), 2)
