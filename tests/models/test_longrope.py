"""A text that outgrows training while it is generated: LongRoPE turns all of its words otherwise
then, and the kept keys of the old turn are read anew, as transformers does
"""
import pytest, torch, transformers
from attention_nb.models import decoding
from attention_nb.checkpoints.pretrained import from_hf
from attention_nb.models.generation import generate, stream
from helpers import spread

N,new = 16,14
sizes = dict(vocab_size=97, hidden_size=32, intermediate_size=40, num_hidden_layers=3,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
             pad_token_id=0, bos_token_id=None, eos_token_id=None)
longrope = dict(rope_type='longrope', rope_theta=100., original_max_position_embeddings=N,
                short_factor=[1., 1.5, 2., 3.], long_factor=[9., 4., 8., .1])

def models(window=None, kind='Phi3', **more):
    "Sharp random numbers, theirs and ours"
    torch.manual_seed(0)
    given = sizes | dict(rope_parameters=longrope, original_max_position_embeddings=N) | more
    if kind == 'Phi3': given['sliding_window'] = window
    else: del given['original_max_position_embeddings']
    config = getattr(transformers, f'{kind}Config')(**given)
    config._attn_implementation = 'eager'
    theirs = getattr(transformers, f'{kind}ForCausalLM')(config).eval()
    for p in theirs.parameters():
        if p.dim() > 1: p.data.mul_(12)
    return theirs, from_hf(theirs)

def texts(length):
    ids,mask = torch.randint(4, 97, (3, length)),torch.ones(3, length, dtype=torch.bool)
    mask[1,:3] = False
    return ids.masked_fill(~mask, 0), mask

def without_cache(model, ids, mask):
    for _ in range(new):
        with torch.no_grad(): column = model(ids, mask=mask)[:,-1:].argmax(-1)
        ids,mask = torch.cat([ids, column], 1),torch.cat([mask, mask[:,-1:]], 1)
    return ids

@pytest.mark.parametrize('length,window', spread([N-6, N-1, N, N+1, N+9], [None, 5]))
def test_cached_texts_are_those_of_transformers_and_of_no_cache(length, window, monkeypatch):
    monkeypatch.setattr(decoding, '_SLIDING_PREFILL_CHUNK', 4)    # a window's text comes in chunks
    theirs,model = models(window)
    ids,mask = texts(length)
    want = theirs.generate(ids, attention_mask=mask.long(), max_new_tokens=new, do_sample=False)
    got = generate(model, ids, new, mask=mask)
    assert torch.equal(got, want) and torch.equal(got, without_cache(model, ids, mask))
    columns = torch.stack([*stream(model, ids, new, mask=mask)], 1)
    assert torch.equal(columns, want[:,length:])
    if window: return
    want = theirs.generate(ids, attention_mask=mask.long(), max_new_tokens=new, do_sample=False,
                           num_beams=3)
    assert torch.equal(generate(model, ids, new, mask=mask, n_beams=3), want)

@pytest.mark.parametrize('window', [None, 5])
def test_a_cache_that_is_given_crosses_the_border_and_comes_back(window):
    _,model = models(window)
    ids,_ = texts(N-6)
    cache,want = model.new_cache(3, 64),generate(model, ids, new)
    half = generate(model, ids, 4, cache=cache)
    assert torch.equal(generate(model, half, new-4, cache=cache), want)
    if window is None:    # kept for a long text, asked for a short one
        cache.crop(N-4)
        assert torch.equal(generate(model, want[:,:N-3], 3, cache=cache), want[:,:N])

def test_what_breaks_off_behind_the_border_is_read_anew_before_it():
    _,model = models()
    ids,_ = texts(N-2)
    cache = model.new_cache(3, 64)
    generate(model, ids[:,:-2], 1, cache=cache)
    def stop(column):
        if len(cache) > N+1: raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt): generate(model, ids, new, cache=cache, stream=stop)
    assert torch.equal(generate(model, ids, 2, cache=cache), generate(model, ids, 2))

@pytest.mark.parametrize('length', [N-6, N+9])
def test_dynamic_keeps_its_keys_as_transformers_does(length, monkeypatch):
    monkeypatch.setattr(decoding, '_SLIDING_PREFILL_CHUNK', 4)
    scaling = dict(rope_type='dynamic', rope_theta=100., factor=3.)
    for kind,more in (('Llama', {}), ('Mistral', dict(sliding_window=5))):
        more |= dict(rope_parameters=scaling, max_position_embeddings=N)
        theirs,model = models(kind=kind, **more)
        ids,mask = texts(length)
        want = theirs.generate(ids, attention_mask=mask.long(), max_new_tokens=new,
                               do_sample=False)
        assert torch.equal(generate(model, ids, new, mask=mask), want)

def test_a_cached_call_beyond_the_border_is_refused_and_changes_nothing():
    "The model alone cannot read the text again; in silence its logits would be wrong"
    _,model = models()
    ids,_ = texts(N+2)
    cache = model.new_cache(3, 64)
    with torch.no_grad():
        model(ids[:,:N-1], cache=cache)
        with pytest.raises(ValueError, match=f'text of {N-1} tokens, LongRoPE rotates {N+2}'):
            model(ids[:,N-1:], cache=cache)
        assert len(cache) == N-1
        model(ids[:,N-1:N], cache=cache)
        cache.reset()
        again = torch.cat([model(part, cache=cache) for part in (ids[:,:N+1], ids[:,N+1:])], 1)
        torch.testing.assert_close(again, model(ids))
        model(ids[:,:0], cache=cache)                # nothing is read, nothing forgotten
        assert cache.rope_length == N+2
