"""Generation: equal to transformers token for token, rows independent of their batch, every option
honoured or refused; threads, modes, autocast, interruptions
"""
import contextlib, functools, itertools, warnings
from dataclasses import replace
from fractions import Fraction
import numpy as np
import pytest, torch, transformers
from torch.testing import assert_close
from attention_nb.checkpoints.pretrained import from_hf
from attention_nb.distributed.expert_parallel import expert_parallel
from attention_nb.distributed.tensor_parallel import parallelize
from attention_nb.layers.latent import LatentConfig
from attention_nb.models.config import ExpertsConfig, TransformerConfig
from attention_nb.models.generation import generate, stream
from attention_nb.models.sampling import (filter_logits, filter_min_p, filter_top_k, filter_top_p,
                                          penalize_repetition, sample)
from attention_nb.models.transformer import Transformer
from attention_nb.recording.recorder import record
from attention_nb.text.bpe import BPETokenizer
from attention_nb.text.tokenizer import WordTokenizer
from helpers import short, spread
from helpers.parrot import Parrot
from helpers.processes import group_of_one
from helpers.tiny_models import made

N,PAD = 40,39

@functools.cache
def models(family):
    "A random model of `transformers`, and before it ours with the same weights"
    if family == 't5':
        theirs = made('t5', auto=transformers.AutoModelForSeq2SeqLM, vocab_size=N, pad_token_id=PAD,
                      decoder_start_token_id=0)
        for w in theirs.parameters(): w.data.clamp_(-1.5, 1.5)
    else:
        theirs = made(family, auto=transformers.AutoModelForCausalLM, vocab_size=N,
                      pad_token_id=None, bos_token_id=None, initializer_range=.2)
    return from_hf(theirs).eval(), theirs

@pytest.fixture(params=['llama', 'gpt2'])
def pair(request): return models(request.param)

@pytest.fixture
def ours(): return models('llama')[0]

@pytest.fixture(scope='module')
def both():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(N, d_model=32, n_layers=2, n_heads=4, max_len=32,
                                          kind='encoder-decoder', positions='sinusoidal',
                                          decoder_start_id=1)).eval()
    for p in model.parameters(): p.data.mul_(8)
    return model

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

# ---- filters

def scores(seed=0, ties=False, rows=6):
    x = 3*torch.randn(rows, N, generator=torch.Generator().manual_seed(seed))
    return x.round() if ties else x

def test_top_p_keeps_the_fewest_tokens_that_are_enough():
    "Also where they have exactly that probability"
    for p,n in ((.25, 1), (.5, 2), (.51, 3), (.75, 3), (.76, 4), (1., 4)):
        assert filter_top_p(torch.zeros(1, 4), p).isfinite().sum() == n

def test_a_row_of_a_filter_does_not_see_the_others():
    x = scores(2).view(2, 3, N)
    for f in (lambda x: filter_top_k(x, 3), lambda x: filter_top_p(x, .7),
              lambda x: filter_min_p(x, .1)):
        assert torch.equal(f(x)[1,2], f(x[1,2]))
        assert torch.equal(x, scores(2).view(2, 3, N))                     # nothing is written over

def test_scores_and_tokens_of_the_wrong_kind_are_named():
    x,ids = scores(rows=2),torch.tensor([[1],[2]])
    def penalized(x, ids=ids): return penalize_repetition(x, ids, 1.2)
    for f in (sample, penalized, lambda x: filter_top_k(x, 2), lambda x: filter_top_p(x, .5),
              lambda x: filter_min_p(x, .5), lambda x: filter_logits(x, temperature=2.)):
        for odd in (x.long(), [1.]):
            with pytest.raises(TypeError, match='logits must be a tensor of floats'): f(odd)
        with pytest.raises(ValueError, match=r'logits must be \('): f(torch.tensor(1.))
    for f,odd in itertools.product((sample, penalized), (x[0], x[None])):
        with pytest.raises(ValueError, match=r'logits must be \(B, N\)'): f(odd)
    for odd in (ids[:1], torch.tensor(3)):
        with pytest.raises(ValueError, match=r'ids must be \(2, L\)'): penalized(x, odd)
    for odd in (ids.float(), [[1],[2]]):
        with pytest.raises(TypeError, match='ids must be a tensor of integers'): penalized(x, odd)

# ---- greedy

def test_greedy_is_that_of_transformers(pair):
    ours,theirs = pair
    ids,mask = prompts()
    for seen,penalty,eos in ((None,None,()), (None,1.4,(5, 11, 17)), (mask,None,(5,))):
        options = dict(mask=seen, repetition_penalty=penalty, eos_id=eos)
        same(ours.generate(ids, 20, pad_id=PAD, **options),
             reference(theirs, ids, 20, **options))

def test_a_row_is_its_own_unpadded_generation(pair):
    "Whatever stands under its filling"
    ours,_ = pair
    ids,mask = prompts(3, 9)
    other = ids.masked_fill(~mask, N-1)
    for options in (dict(repetition_penalty=1.3), dict(n_beams=3),
                    dict(n_beams=2, repetition_penalty=1.3, eos_id=(3, 11, 17), pad_id=0),
                    dict(eos_id=(3, 11, 17), pad_id=0), dict(stop=[[11], [17], [30]], pad_id=0),
                    dict(temperature=1., seed=4)):
        whole = ours.generate(ids, 10, mask=mask, **options)
        assert torch.equal(ours.generate(other, 10, mask=mask, **options)[:,9:], whole[:,9:])
        if 'seed' in options: continue
        for b in range(3):
            alone = ours.generate(ids[b:b+1,2*b:], 10, **options)
            n = alone.shape[1]
            assert torch.equal(whole[b,2*b:][:n], alone[0]) and (whole[b,2*b+n:] == 0).all()

# ---- beams

some = (0.,'never'),(1.,False),(2.,True),(-.5,'never')

@pytest.mark.parametrize('penalty,early', short(some, itertools.product((0., 1., 2., -.5),
                                                                        (False, True, 'never'))))
def test_beams_are_those_of_transformers(pair, penalty, early):
    ours,theirs = pair
    ids,mask = prompts()
    ended = 0
    for n,eos,repetition in ((2,(),None), (3,(5,),None), (4,(5,11),1.2), (2,(5,11,17,20,30),None),
                             (5,(23,2),None)):
        options = dict(eos_id=eos, length_penalty=penalty, early_stopping=early,
                       repetition_penalty=repetition, mask=mask if n == 2 else None)
        out = ours.generate(ids, 10, n_beams=n, pad_id=PAD, **options)
        same(out, reference(theirs, ids, 10, num_beams=n, **options))
        ended += bool((out[:,7:] == PAD).any()) or out.shape[1] < 17
    assert ended

# ---- ends

@pytest.fixture(scope='module')
def bpe():
    return BPETokenizer.train(['to be or not to be, that is the question: a ship, a crew and the '
                               'sea — ça va? 🚢🌊'], 280)

def said(model, n, **options):
    "What a parrot writes after a prompt of one token"
    ids = torch.zeros(len(model.rows), 1, dtype=torch.long)
    return generate(model, ids, n, **options)[:,1:].tolist()

def test_a_stop_string_may_straddle_tokens(bpe):
    text = 'to be or not to be, that is the question'
    ids = bpe.encode(text)
    for stop in ('not', 'ot t', ', th', 'e', 't is the q', 'question'):
        out, = said(Parrot([ids], len(bpe)), len(ids), stop=stop, tokenizer=bpe)
        shorter = next(k for k in range(len(ids)+1) if stop in bpe.decode(ids[:k]))
        assert out == ids[:shorter]

def test_a_stop_string_ends_in_a_character_of_many_bytes_or_is_a_special_token():
    special = BPETokenizer.train(['ab'], 258, special=['<end>'])    # no merges: 4 tokens a ship
    for text,stop,says in (('ab🚢cd', '🚢', 'ab🚢'), ('a<end>b', '<end>', 'a<end>')):
        model = Parrot([special.encode(text, allow_special=True)], len(special))
        out, = said(model, 8, stop=stop, tokenizer=special)
        assert special.decode(out, skip_special=False) == says

def test_stop_sequences_and_end_tokens():
    for options,length in ((dict(stop=[[3, 4]]), 4), (dict(stop=[[4, 3]]), 8), (dict(stop=[6]), 6),
                           (dict(stop=[[1, 2, 3, 4, 5, 6, 7, 8, 8]]), 8), (dict(eos_id=5), 5),
                           (dict(eos_id=(7, 2)), 2), (dict(eos_id=7, stop=[(2, 3)]), 3), ({}, 8),
                           (dict(stop=[[0, 1]]), 8)):    # the prompt, 0, does not count
        assert said(Parrot([[*range(1, 9)]], 10), 8, **options) == [[*range(1, length+1)]], options
    for options,want in (({}, [1, 2]), (dict(eos_id=()), [1, 2, 3])):
        assert said(Parrot([[1, 2, 3]], 10, eos_id=2), 3, **options) == [want]

def test_what_fills_finished_rows():
    for cfg,options,pad in ((dict(), dict(eos_id=4), 4), (dict(pad_id=9, eos_id=4), {}, 9),
                            (dict(pad_id=9, eos_id=4), dict(pad_id=8), 8),
                            (dict(), dict(stop=[[4]]), 0)):
        out = said(Parrot([[4, 1, 1], [1, 2, 3]], 10, **cfg), 3, **options)
        assert out == [[4, pad, pad], [1, 2, 3]]

# ---- streams

def test_a_stream_and_a_string_to_stop_at_go_on_with_the_text_before():
    "With the space between two words"
    words = WordTokenizer.train(['i must go back'])
    goes = words.encode('go back')
    model,start = Parrot([goes], len(words)),torch.tensor([words.encode('must')])
    assert [*stream(model, start, 2, tokenizer=words)] == [' go', ' back']
    assert generate(model, start, 2, stop=' go', tokenizer=words).shape[1] == 2
    two = torch.tensor([[0, start[0,0]], [start[0,0]]*2])
    out = generate(Parrot([goes]*2, len(words), first=2), two, 2, stop=' go', tokenizer=words,
                   mask=torch.tensor([[False, True], [True, True]]))
    assert out.shape[1] == 3

def test_streams_of_tokens_are_the_generation_and_columns_belong_to_their_reader(ours):
    ids,mask = prompts()
    seen = []
    def note(column):
        seen.append(column.clone())
        column.fill_(3)                                             # its own
    for options in (dict(mask=mask), dict(temperature=1., seed=3, top_k=9),
                    dict(eos_id=(5, 11, 17), pad_id=0), dict(stop=[[11]])):
        want = ours.generate(ids, 9, **options)
        seen.clear()
        out = ours.generate(ids, 9, stream=note, **options)
        assert torch.equal(out, want) and torch.equal(torch.stack(seen, 1), want[:,7:])
        seen.clear()
        for column in stream(ours, ids, 9, **options): note(column)
        assert torch.equal(torch.stack(seen, 1), want[:,7:])
        assert not any(t.is_inference() for t in (*seen, out, ours.generate(ids, 2, n_beams=2)))

def test_a_stream_can_be_left_and_changes_no_mode(ours):
    ids,_ = prompts()
    cache = ours.new_cache(3, 40)
    it = stream(ours, ids, 9, cache=cache)
    text = torch.cat([ids, torch.stack([next(it) for _ in range(3)], 1)], 1)
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    it.close()
    assert torch.equal(ours.generate(text, 6, cache=cache), ours.generate(ids, 9))

# ---- chance

def test_chance_comes_from_a_seed_a_generator_or_torch(ours):
    ids,_ = prompts()
    options = dict(temperature=1.3, top_p=.95)
    state = torch.get_rng_state()
    want = ours.generate(ids, 12, seed=1, **options)
    assert torch.equal(want, ours.generate(ids, 12, generator=torch.Generator().manual_seed(1),
                                           **options))
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(1)
    assert torch.equal(want, ours.generate(ids, 12, **options))
    assert not torch.equal(state, torch.get_rng_state())
    for narrow in (dict(top_k=1), dict(top_p=0.), dict(min_p=1.), dict(temperature=1e-4)):
        assert torch.equal(ours.generate(ids, 12, seed=0, **narrow), ours.generate(ids, 12))
    assert not torch.equal(ours.generate(ids, 12, seed=0, top_k=N), ours.generate(ids, 12))

@pytest.mark.parametrize('dtype', [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_the_coldest_temperature_is_the_likeliest_token(dtype):
    x = 20*scores(5).to(dtype)    # over 1e-3 some overflow in half precision
    for T in (1e-30, 1e-9, 1e-5, 1e-3):
        assert torch.equal(sample(filter_logits(x, temperature=T, top_p=.9)), x.argmax(-1))

# ---- encoder-decoders

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
    assert torch.equal(both.generate(ids[0], 6, decoder_ids=start[0]), out[:1])
    assert torch.equal(out[:,:2], start)
    with torch.no_grad():
        assert torch.equal(both(ids, decoder_ids=out)[:,1:-1].argmax(-1), out[:,2:])
    runs = []
    hook = both.encoder.register_forward_hook(lambda *a: runs.append(1))
    for n in (1, 2): both.generate(ids, 8, n_beams=n)
    hook.remove()
    assert len(runs) == 2                                                    # once a call

@pytest.mark.parametrize('filled,eos', spread(['not', 'left', 'right'], [(), (5, 11)]))
def test_t5_writes_what_it_writes_in_transformers(filled, eos):
    ours,theirs = models('t5')
    ids,left = prompts()
    mask = dict(left=left, right=left.flip(1)).get(filled)
    for n,options in ((1, dict(repetition_penalty=1.4)), (3, {}),
                      (3, dict(early_stopping='never', length_penalty=2.))):
        out = ours.generate(ids, 10, mask=mask, eos_id=eos, n_beams=n, **options)
        same(out, reference(theirs, ids, 10, mask=mask, eos_id=eos, num_beams=n, **options))
        assert len({*out.flatten().tolist()}) > 5

# ---- arguments of every kind

def test_ids_of_any_integers(ours, both):
    ids,mask = prompts()
    def written(ids):
        yield both.generate(ids, 4, decoder_ids=ids[:,:2])
        for options in (dict(mask=mask), dict(n_beams=2), dict(repetition_penalty=1.3)):
            yield ours.generate(ids, 4, **options)
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.uint16, torch.uint32,
                  torch.uint64):
        for out,want in zip(written(ids.to(dtype)), written(ids)):
            assert out.dtype == torch.long and torch.equal(out, want)

def test_numbers_of_every_kind(ours):
    ids,_ = prompts()
    t,half = torch.tensor,Fraction(1,2)
    for odd,plain in ((dict(eos_id=t(5), pad_id=t(3)), dict(eos_id=5, pad_id=3)),
                      (dict(eos_id=t([5,11])), dict(eos_id=(5,11))),
                      (dict(eos_id=[t(5),np.int64(11)]), dict(eos_id=(5,11))),
                      (dict(stop=t(5)), dict(stop=5)),
                      (dict(stop=[t([5,11])]), dict(stop=[[5,11]])),
                      (dict(stop=np.array([5,11])), dict(stop=[5,11])),
                      (dict(top_k=np.int8(3), top_p=half), dict(top_k=3, top_p=.5)),
                      (dict(temperature=3*half), dict(temperature=1.5)),
                      (dict(temperature=np.float32(1.5)), dict(temperature=1.5)),
                      (dict(repetition_penalty=3*half), dict(repetition_penalty=1.5))):
        got,want = (ours.generate(ids, 9, seed=seed, **options)
                    for options,seed in ((odd, np.int64(1)), (plain, 1)))
        assert torch.equal(got, want), odd
    assert ours.generate(ids, 2, temperature=1., seed=2**64-1).shape == (3,9)

# ---- filling that nobody masked

def with_config(model, **changes):
    "The same weights, other settings"
    other = Transformer(replace(model.cfg, **changes)).eval()
    other.load_state_dict(model.state_dict())
    return other

def test_filling_without_a_mask_is_hidden(ours, both):
    """By `pad_id`, of the call or of the config: what an unpadded text says, and what a mask says;
    filling in the middle and filling before an encoder too"""
    ids,mask = prompts(4, 9)
    ids = ids.masked_fill(~mask, PAD)
    own = with_config(ours, pad_id=PAD)
    never = torch.where(torch.arange(N) == PAD, -torch.inf, 0.)    # it would be filling next
    def without(_, z): return z+never
    for model,given in ((ours, dict(pad_id=PAD)), (own, {})):
        for options in ({}, dict(n_beams=2), dict(temperature=1., seed=2),
                        dict(repetition_penalty=2.)):
            out = model.generate(ids, 8, **given, **options)
            assert torch.equal(out, ours.generate(ids, 8, mask=mask, pad_id=PAD, **options))
        assert torch.equal(torch.stack([*stream(model, ids, 8, **given)], 1),
                           ours.generate(ids, 8, mask=mask)[:,9:])
        assert torch.equal(model.generate(ids, 8, mask=torch.ones_like(mask), **given),
                           ours.generate(ids, 8))
        cache = model.new_cache(4, 30)
        first = model.generate(ids, 3, cache=cache, logits_processor=without, **given)
        more = torch.cat([first, ids[:,-2:]], 1)
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

def test_a_pad_token_that_begins_or_ends_texts_is_text_and_several_are_a_warning(ours):
    ids,_ = prompts()
    left,one = ids.clone(),ids.clone()
    left[1,:2] = PAD
    one[:,0] = PAD                           # a text may begin with it
    for model,options in ((ours, dict(eos_id=PAD)), (ours, dict(eos_id=(3,PAD), pad_id=PAD)),
                          (with_config(ours, pad_id=PAD, bos_id=PAD), {})):
        with pytest.warns(UserWarning, match='ids begin with several tokens 39.*pass mask='):
            out = model.generate(left, 3, **options)
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            text = torch.ones_like(left, dtype=torch.bool)
            assert torch.equal(model.generate(left, 3, mask=text, **options), out)
            model.generate(one, 3, **options)
            model.generate(one[:,:1], 3, **options)
    with pytest.warns(UserWarning, match='ids begin with token 39, which may be padding'):
        with_config(ours, bos_id=1).generate(one, 3, eos_id=PAD)    # its texts begin otherwise

def test_filling_within_a_text_and_a_window():
    "A row that ended early and was filled up goes on as it would alone; ids come back as given"
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(30, d_model=32, n_layers=2, n_heads=4, max_len=128,
                                          pad_id=0, eos_id=3, window=(6,0))).eval()
    for w in model.parameters(): w.data.mul_(3)
    texts = torch.randint(4, 30, (2,20))
    texts[0,14:18] = 0
    real = [*range(14), 18, 19]
    for options in ({}, dict(n_beams=2)):
        out = model.generate(texts, 5, **options)
        assert torch.equal(out[:,:20], texts)
        alone = model.generate(texts[:1,real], 5, **options)
        assert torch.equal(out[:1,20:20+alone.shape[1]-16], alone[:,16:])

@pytest.mark.parametrize('own', [dict(eos_id=30), dict(pad_id=30), dict(eos_id=(3,31))], ids=str)
def test_ends_of_a_published_config_beyond_the_vocabulary(own):
    "Such a model never writes them; what the caller says is checked"
    model = Transformer(TransformerConfig(30, d_model=32, n_layers=1, n_heads=4, **own)).eval()
    assert model.generate(torch.tensor([[4,5]]), 2).shape == (1,4)
    with pytest.raises(ValueError, match='must be from 0 to 29'):
        model.generate(torch.tensor([[4,5]]), 2, **own)

# ---- several texts, their scores, processors

@pytest.mark.parametrize('penalty,eos', [(None,()), (1.3,(5,11)), (None,(5,11,17,20,30))])
def test_several_beams_and_their_scores_are_those_of_transformers(pair, penalty, eos):
    ours,theirs = pair
    ids,mask = prompts()
    for n,k,seen in ((4,4,None), (4,2,mask), (3,1,mask)):
        if penalty is not None and seen is not None: continue
        options = dict(num_return_sequences=k, repetition_penalty=penalty)
        out,scores = ours.generate(ids, 9, mask=seen, n_beams=n, pad_id=PAD, eos_id=eos,
                                   return_scores=True, **options)
        want = reference(theirs, ids, 9, mask=seen, num_beams=n, eos_id=eos, output_scores=True,
                         return_dict_in_generate=True, **options)
        same(out, want.sequences)
        new = scores.shape[1]
        assert out.shape == (3*k,7+new)
        there = (out[:,7:] != PAD) | (scores != 0)
        each = theirs.compute_transition_scores(want.sequences, want.scores, want.beam_indices)
        assert_close(scores, each[:,:new].masked_fill(~there, 0.), atol=1e-4, rtol=1e-4)
        total = (scores.sum(1)/there.sum(1)).view(3,k)
        assert (total.diff() <= 1e-6).all()                          # the best stands first

def test_scores_are_log_probabilities_of_what_was_drawn_from(ours):
    "Drawn, penalized, filtered: those of a whole pass; 0 where a finished row is filled up"
    ids,mask = prompts()
    for options in (dict(repetition_penalty=1.4),
                    dict(temperature=1.5, top_k=9, top_p=.9, min_p=.01, seed=1,
                         repetition_penalty=1.2),
                    dict(temperature=1., seed=1, eos_id=(5,11,17), pad_id=0,
                         num_return_sequences=3)):
        out,scores = ours.generate(ids, 12, mask=mask, return_scores=True, **options)
        assert torch.equal(out, ours.generate(ids, 12, mask=mask, **options))
        times,penalty = options.get('num_return_sequences', 1),options.get('repetition_penalty')
        assert scores.shape == (3*times,out.shape[1]-7) and scores.dtype == torch.float32
        assert not scores.is_inference() and (scores <= 0).all()
        real = torch.cat([mask.repeat_interleave(times, 0), torch.ones_like(scores).bool()], 1)
        with torch.no_grad(): logits = ours(out, mask=real)
        filters = {n: options[n] for n in ('temperature','top_k','top_p','min_p') if n in options}
        over = torch.zeros(3*times, dtype=torch.bool)
        for step in range(scores.shape[1]):
            z,new = logits[:,6+step],out[:,7+step]
            if penalty: z = penalize_repetition(z, out[:,:7+step], penalty, mask=real[:,:7+step])
            z = filter_logits(z, **filters).log_softmax(-1).gather(1, new[:,None])[:,0]
            assert_close(scores[:,step], z.masked_fill(over, 0.), atol=1e-4, rtol=1e-4)
            over |= torch.isin(new, torch.tensor(options.get('eos_id', ())))
        assert over.any() == ('eos_id' in options)

def test_several_texts_of_a_prompt(ours, both):
    "Rows of a prompt stand together, each drawn for itself; the prompt is read once"
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
    for ends in ({}, dict(eos_id=(5,11,17)), dict(stop=[[8],[9,3]]),
                 dict(stop=[' 1','9 2'], tokenizer=Numbers())):
        options = ends | dict(temperature=2., seed=0, pad_id=PAD)
        out = ours.generate(ids, 9, mask=mask, num_return_sequences=4, **options)
        assert torch.equal(out, ours.generate(ids.repeat_interleave(4, 0), 9,
                                              mask=mask.repeat_interleave(4, 0), **options))
        assert bool(ends) == bool((out[:,-2:] == PAD).all(1).any())
    seen,options = [],dict(top_k=9, seed=0, num_return_sequences=2)
    out = ours.generate(ids, 5, stream=seen.append, **options)
    assert torch.equal(torch.stack(seen, 1), out[:,7:])
    out = both.generate(ids, 5, mask=mask, **options)
    assert torch.equal(out, both.generate(ids.repeat_interleave(2, 0), 5, top_k=9, seed=0,
                                          mask=mask.repeat_interleave(2, 0)))
    few = Transformer(TransformerConfig(3, d_model=8, n_layers=1, n_heads=1)).eval()
    with pytest.raises(ValueError, match='5 beams found fewer texts than num_return_sequences=5'):
        few.generate(torch.zeros(1, 1, dtype=torch.long), 1, n_beams=5, num_return_sequences=5)

def test_a_processor_is_called_after_the_penalty_and_before_the_filters(ours):
    ids,mask = prompts()
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
    def one(_, z): return z.index_fill(1, torch.tensor([4]), 1e4)
    for options in ({}, dict(n_beams=2), dict(temperature=1.), dict(top_p=.5)):
        assert (ours.generate(ids, 3, logits_processor=one, **options)[:,7:] == 4).all()
    assert all((c == 4).all() for c in stream(ours, ids, 3, logits_processor=[one]))
    half = ours.generate(ids, 5, logits_processor=lambda _, z: z.double())
    assert torch.equal(half, ours.generate(ids, 5))

# ---- misuse

def misuse():
    "An option, the error and what it says"
    ids,mask = torch.zeros(2, 3, dtype=torch.long),torch.ones(2, 3, dtype=torch.bool)
    gap,inf,nan,huge = mask.clone(),float('inf'),float('nan'),10**400
    gap[1,2] = False
    alone = (
        ('ids', TypeError, '{} must be a tensor of integers',
         ([[1, 2]], np.array([[4, 5]]), ids.float(), ids.bool(), ids+0j)),
        ('ids', ValueError, r'{} must have shape \(B, L\) or \(L,\)',
         (ids[None], ids[0,0], ids[:,:0])),
        ('ids', ValueError, '{} must be from 0 to 39, got -100', (ids-100,)),
        ('mask', ValueError, 'last column.*left', (gap, ~mask)),
        ('mask', TypeError, '{} must be a bool', (mask.long(),)),
        ('mask', ValueError, r'{} must have shape \(2, 3\)', (mask[:1], mask[0])),
        ('decoder_ids', ValueError, 'encoder-decoder', (ids,)),
        ('max_new_tokens n_beams num_return_sequences', ValueError,
         '{} must be from [01] to 2147483647', (-1, 2**31, 2**64, huge)),
        ('max_new_tokens n_beams num_return_sequences top_k eos_id seed', TypeError,
         '{} must be an integer', (2.5, True, 'x')),
        ('n_beams num_return_sequences', ValueError, '{} must be from 1', (0,)),
        ('max_new_tokens', ValueError, '65 to read, more than max_len=64', (63,)),
        ('temperature repetition_penalty', ValueError, '{} must be above 0',
         (-1., nan, inf, 1e-45, 1e300, huge)),
        ('repetition_penalty', ValueError, '{} must be above 0', (0, -0.)),
        ('temperature repetition_penalty', TypeError, '{} must be a number', ('hot',)),
        ('top_p min_p', ValueError, '{} must be from 0 to 1', (-.1, 1.1, nan)),
        ('top_k', ValueError, '{} must be at least 1', (0,)),
        ('eos_id pad_id stop', ValueError, '{} must be from 0 to 39', (-1, N, 2**70)),
        ('eos_id', TypeError, '{} must be an integer', (b'a', torch.tensor(.5))),
        ('stop', TypeError, '{} must be strings or tokens', (b'a', [b'a'], [bytearray(b'a')])),
        ('stop', ValueError, 'needs tokenizer=', ('x', ['x', [1]])),
        ('stop', ValueError, 'empty', ([''], [[]])), ('stop', TypeError, 'integer', ([[.5]],)),
        ('tokenizer', TypeError, '{} must have decode, got int', (3,)),
        ('stream', TypeError, '{} must be a function', (3,)),
        ('seed', ValueError, '{} must be from 0 to', (-1, 2**64)),
        ('generator', TypeError, '{} must be a torch.Generator', (3,)),
        ('length_penalty', ValueError, 'need n_beams', (2.,)),
        ('early_stopping', ValueError, 'need n_beams', (True, 'never')),
        ('return_scores progress', TypeError, '{} must be True or False', (1, 'no', ids)),
        ('logits_processor', TypeError, '{} must be', (3, ['x'], torch.tensor(3), 'x')),
        ('top_pp', TypeError, '{}', (.3,)))
    with_beams = (
        ('early_stopping', ValueError, '{} must be', ('soon', 1, None, ids, np.array([1,2]))),
        ('length_penalty', ValueError, '{}=', (nan, inf, -1e3, huge)),
        ('length_penalty', TypeError, '{} must be a number', ('x',)),
        ('num_return_sequences', ValueError, '{}=3 needs', (3,)),
        ('temperature', ValueError, '{} does not go with n_beams', (np.float32(1.),)),
        ('stream', ValueError, '{} does not go with n_beams', (print,)),
        ('top_p min_p', ValueError, '{} does not go with n_beams', (.5,)),
        ('stop', ValueError, '{} does not go with n_beams', ([[1]],)))
    for given,table in (({}, alone), (dict(n_beams=2), with_beams)):
        for names,error,message,values in table:
            for name,value in itertools.product(names.split(), values):
                yield given | {name: value}, error, message.format(name)

def test_misuse_has_an_error_of_its_own_before_anything_runs(monkeypatch):
    model,_ = models('gpt2')
    monkeypatch.setattr(model, 'forward', None)                              # nothing runs
    for options,error,message in misuse():
        given = dict(ids=torch.zeros(2, 3, dtype=torch.long), max_new_tokens=4) | options
        with pytest.raises(error, match=message):
            model.generate(given.pop('ids'), given.pop('max_new_tokens'), **given)
            pytest.fail(f'accepted: {options}')

@pytest.mark.parametrize('zero', [0, 0., -0., np.float32(0), Fraction(0)])
def test_temperature_zero_is_greedy_whatever_filters_stand_beside_it(zero):
    model,_ = models('gpt2')
    ids = torch.randint(N, (2, 3), generator=torch.Generator().manual_seed(0))
    options = dict(eos_id=(), return_scores=True)
    got = model.generate(ids, 6, temperature=zero, top_p=.5, top_k=3, min_p=.1, **options)
    for a,b in zip(got, model.generate(ids, 6, **options)): assert torch.equal(a, b)

def test_misuse_of_models_and_caches():
    ids = torch.zeros(2, 3, dtype=torch.long)
    cfg = dict(d_model=16, n_layers=1, n_heads=2)
    for options in (dict(kind='encoder'), dict(head=None), dict(kind='encoder', head='masked')):
        with pytest.raises(ValueError, match='needs a decoder with a head'):
            Transformer(TransformerConfig(N, **cfg, **options)).generate(ids, 2)
    with pytest.raises(TypeError, match='must be a Transformer'):
        generate(torch.nn.Linear(2, 2), ids, 2)
    model = Transformer(TransformerConfig(N, **cfg))
    cache = model.new_cache(2, 9)
    model.generate(ids, 3, cache=cache)
    small = model.new_cache(2, 5)
    for new,cache,options,message in (
            (2, cache, {}, 'the cache knows 5 tokens'),
            (2, model.new_cache(3, 5), {}, 'batch of 2, got one for 3'),
            (2, small, dict(n_beams=2), 'cache does not go with n_beams')):
        with pytest.raises(ValueError, match=message):
            model.generate(ids, new, cache=cache, **options)
    with pytest.raises(ValueError, match='takes one prompt'):
        stream(model, ids, 2, tokenizer=WordTokenizer.train(['a']))
    two = Transformer(TransformerConfig(N, **cfg, kind='encoder-decoder', positions='learned',
                                        max_len=6))
    for given,start,message in ((ids, None, 'no decoder_start_id'), (ids, ids[:1], 'have 2 rows'),
                                (torch.cat([ids]*3, 1), ids, 'ids hold 9 tokens')):
        with pytest.raises(ValueError, match=message): two.generate(given, 2, decoder_ids=start)

def test_nothing_to_do_and_room_to_the_last_place():
    model,theirs = models('gpt2')
    ids,_ = prompts()
    for options in ({}, dict(n_beams=2), dict(temperature=1., num_return_sequences=2)):
        out,scores = model.generate(ids, 0, return_scores=True, **options)
        rows = 3*options.get('num_return_sequences', 1)
        assert torch.equal(out, ids.repeat_interleave(rows//3, 0)) and scores.shape == (rows,0)
    # the 65th token is never read
    assert torch.equal(model.generate(ids, 58)[:,:64], reference(theirs, ids, 57))

def test_progress_shows_and_counts(ours, capsys):
    ids,_ = prompts()
    for n in (1, 2):
        ours.generate(ids, 3, n_beams=n, progress=True)
        assert '3/3' in capsys.readouterr().err
        ours.generate(ids, 3, n_beams=n)
        assert not capsys.readouterr().err

# ---- threads, modes, precision, interruptions

def restless(layers=2, **options):
    "A model in training mode, with so much dropout that no step survives it"
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(N, d_model=32, n_layers=layers, n_heads=4, dropout=.5,
                                          attn_dropout=.5, **options))
    for p in model.parameters(): p.data.mul_(8)
    return model.train()

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

def test_do_sample_of_transformers():
    "False is greedy whatever else is said, True draws"
    model = restless().eval()
    ids,_ = prompts()
    want = model.generate(ids, 9)
    for kw in ({}, dict(temperature=2.), dict(top_k=5, top_p=.9)):
        assert torch.equal(model.generate(ids, 9, do_sample=False, **kw), want)
    drawn = model.generate(ids, 9, do_sample=True, seed=0)
    assert torch.equal(drawn, model.generate(ids, 9, temperature=1., seed=0))
    assert not torch.equal(drawn, want)
    with pytest.raises(ValueError, match='do_sample=True does not go with temperature=0'):
        model.generate(ids, 9, do_sample=True, temperature=0)
    with pytest.raises(TypeError, match='do_sample must be'): model.generate(ids, 9, do_sample=1)

def test_recordings_and_compiled_modules_of_a_model_that_trains():
    model = restless()
    ids,_ = prompts()
    with record(model.eval()) as once: want = model.generate(ids, 6)
    with record(model.train()) as steps: assert torch.equal(model.generate(ids, 6), want)
    for a,w in zip(steps.weights(0), once.weights(0)): assert_close(a, w)
    model.decoder.blocks[0] = torch.compile(model.decoder.blocks[0], backend='eager')
    model.decoder.blocks[1].compile(backend='eager')
    assert torch.equal(model.generate(ids, 2), want[:,:9])
    assert torch.equal(torch.compile(restless(), backend='eager').generate(ids, 2), want[:,:9])

lowered = dict(
    plain={}, window=dict(window=(3,0)), learned=dict(positions='learned', max_len=64),
    alibi=dict(positions='alibi'), offset=dict(qk_norm='rms', norm_offset=1.),
    layer=dict(norm='layer'), sinks=dict(sinks=True),
    latent=dict(latent=LatentConfig(kv_rank=8, nope_dim=8, rope_dim=4, v_dim=8)),
    experts=dict(experts=ExpertsConfig(4, 2, 16), n_kv_heads=2, softcap=5.),
    both=dict(kind='encoder-decoder', positions='relative', decoder_start_id=1))

@pytest.mark.parametrize('name,dtype', spread(lowered, [torch.bfloat16, torch.float16]), ids=str)
def test_autocast(name, dtype):
    "The tokens are those that a whole forward without a cache finds likeliest, up to rounding"
    model,both = restless(**lowered[name]).eval(),name == 'both'
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
        quantized = model.new_cache(3, 40, dtype=torch.int8)    # of keys in any precision
        assert model.generate(ids, 4, cache=quantized).shape == out.shape

class Key(BaseException): "Like Ctrl-C, but no one else's"

windows = {}, dict(window=(3,0)), dict(window=(3,0), layer_types=('full','window','full'))

@pytest.mark.parametrize('when', ['prompt', 'step', 'stream', 'head'])
@pytest.mark.parametrize('options', windows, ids=str)
def test_after_an_interrupted_call_a_cache_is_as_before_or_refused(options, when):
    "Interrupted in layer 2 of 3, while reading the prompt or later, in a callback, or in the head"
    for seed,error in ((0, KeyboardInterrupt), (1, Key)):
        model = restless(3, **options).eval()
        ids,_ = prompts(2, 7, seed)
        cache = model.new_cache(2, 40)
        before = model.generate(ids[:,:3], 2, cache=cache) if seed else ids[:,:0]
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
            assert 'call reset()' in str(e) and options
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

def test_processes_share_the_tokens_of_a_model_that_is_split_over_them(monkeypatch):
    "Those that only share experts have texts of their own"
    from torch.distributed.device_mesh import init_device_mesh
    cfg = TransformerConfig(20, 16, 1, 2, experts=ExpertsConfig(n=2, active=1, d_ff=8))
    calls = []
    with group_of_one():
        mesh = init_device_mesh('cpu', (1,))
        monkeypatch.setattr(torch.distributed, 'broadcast', lambda *a, **kw: calls.append(1))
        for split,n in ((expert_parallel, 0), (parallelize, 3)):
            model = split(Transformer(cfg).eval(), mesh)
            model.generate(torch.ones(1, 4, dtype=torch.long), 3, temperature=1., eos_id=())
            assert len(calls) == n
