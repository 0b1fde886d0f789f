"Caches of integers in every precision that a layer computes in"
import pytest, torch
from torch.testing import assert_close
from attention_nb.layers.cache import KVCache, SlidingKVCache
from attention_nb.layers.multihead import MultiHeadAttention
from helpers.tiny_models import decoder

@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_choosing_sequences_again_and_again_rounds_nothing_twice(dtype):
    torch.manual_seed(0)
    for cache in (KVCache(3, 2, 9, 16, dtype=torch.int8), SlidingKVCache(3, 2, 4, 16,
                                                                         dtype=torch.int8)):
        k,v = torch.randn(2, 3, 2, 7, 16).to(dtype)
        for i in range(7): cache.update(k[:,:,i:i+1], v[:,:,i:i+1])
        keys,values = cache.keys.clone(),cache.values.clone()
        assert keys.dtype == values.dtype == dtype
        for _ in range(60): cache.select(torch.tensor([1, 2, 0]))
        assert torch.equal(cache.keys, keys) and torch.equal(cache.values, values)

@pytest.mark.parametrize('past,lengths', [(10, (3, 5, 20)), (8, (1, 3, 20))])
def test_an_interrupted_call_leaves_a_sliding_cache_as_it_was(past, lengths):
    "Its codes too: nothing is quantized a second time; just full, it can still be cropped"
    torch.manual_seed(0)
    cache = SlidingKVCache(1, 2, 7, 16, dtype=torch.int8)
    def tokens(n): return torch.randn(1, 2, n, 16).bfloat16()
    def interrupt(*_, **options): raise KeyboardInterrupt
    cache.update(tokens(past), tokens(past))
    before = [t.clone() for buffer in (cache._k, cache._v) for t in buffer.tensors]
    for n in lengths:
        with pytest.raises(KeyboardInterrupt): cache.attend(interrupt, *(tokens(n) for _ in 'qkv'))
        after = [t for buffer in (cache._k, cache._v) for t in buffer.tensors]
        assert len(cache) == past and all(map(torch.equal, before, after))

@pytest.mark.parametrize('dtype', [torch.int4, torch.int2])
def test_a_grouped_cache_that_is_emptied_or_reordered(dtype):
    "What the last call has rounded is not kept; buffers stay where they are"
    cache = KVCache(2, 2, 200, 16, dtype=dtype)
    nbytes,buffers = cache.nbytes,cache.buffers
    for n in (40, 60):
        k,v = torch.randn(2, 2, 2, n, 16)
        cache.update(k, v)
    cache.select(torch.tensor([1, 0]))
    assert all(a is b for a,b in zip(cache.buffers, buffers))
    cache.update(k, v)
    cache.reset()
    assert cache.nbytes == nbytes

@pytest.mark.parametrize('family', ['llama', 'gemma3_text', 'deepseek_v3'])
def test_autocast_and_halves(family):
    "Windows and latents too; each precision is near what it is with a cache of its own"
    model = decoder(family)
    torch.manual_seed(1)
    ids = torch.randint(3, 50, (2, 12))
    def read(cache):
        with torch.no_grad(): return torch.cat([model(p, cache=cache) for p in ids.split(5, 1)], 1)
    for lowered in (False, True):
        with torch.autocast('cpu', torch.bfloat16, enabled=lowered):
            want = read(model.new_cache(2, 20)).float()
            got = read(model.new_cache(2, 20, dtype=torch.int8)).float()
            assert 0 < (got-want).norm()/want.norm() < .05

def test_what_is_added_to_scores_has_the_dtype_of_the_layer():
    torch.manual_seed(2)
    layer,x = MultiHeadAttention(32, 4).eval(),torch.randn(1, 5, 32)
    bias = torch.randn(5, 5)
    with torch.no_grad():
        got = layer(x, cache=layer.new_cache(1, 9, dtype=torch.int8), bias=bias)
        assert_close(got, layer(x, bias=bias), atol=.02, rtol=.02)
        with pytest.raises(TypeError, match='bias'):
            layer(x, cache=layer.new_cache(1, 9, dtype=torch.int8), bias=bias.double())

def test_scales_are_not_rounded_to_half_precision():
    torch.manual_seed(0)
    keys = (1e-5*torch.randn(1, 2, 5, 16)).half()
    cache = KVCache(1, 2, 5, 16, dtype=torch.int8)
    cache.update(keys, keys)
    assert (cache.keys-keys).float().norm() < .02*keys.float().norm()

@pytest.mark.parametrize('dtype', [torch.int4, torch.int2])
@pytest.mark.parametrize('n_new', [1, 20, 90])
def test_a_call_that_breaks_off_quantizes_nothing(dtype, n_new):
    "The newest tokens are in full again in all layers, and the same call gives the same"
    model = decoder('llama')
    torch.manual_seed(0)
    ids = torch.randint(3, 50, (2, 95+n_new))
    cache,other = (model.new_cache(2, 200, dtype=dtype) for _ in range(2))
    def interrupt(*_): raise KeyboardInterrupt
    with torch.no_grad():
        for c in (cache, other): model(ids[:,:95], cache=c)
        with model.decoder.blocks[-1].ffn.register_forward_hook(interrupt):
            with pytest.raises(KeyboardInterrupt): model(ids[:,95:], cache=cache)
        for a,b in zip(cache.self_attn, other.self_attn):
            assert torch.equal(a.keys, b.keys) and torch.equal(a.values, b.values)
        assert torch.equal(model(ids[:,95:], cache=cache), model(ids[:,95:], cache=other))
