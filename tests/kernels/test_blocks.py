"""Blocks as they come: any shape, stride, size of block and memory that holds NaN; compilers,
autocast, transforms; calls without values"""
import contextlib
import hypothesis.strategies as st
import pytest, torch
from hypothesis import HealthCheck, given, settings
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close
from attention_nb.kernels import blocks
from attention_nb.kernels.reference import attention
from attention_nb.kernels.dispatch import (attention_lse, explain_choice,
                                           scaled_dot_product_attention)
from attention_nb.kernels.blocks import flash_attention
from attention_nb.layers.multihead import MultiHeadAttention
from attention_nb.kernels.attention_mask import AttentionMask
from helpers import spread

def in_blocks(*args, **kw): return scaled_dot_product_attention(*args, kernel='blocks', **kw)

@pytest.fixture
def poisoned():
    "Memory that nobody has written yet holds NaN"
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)

def laid(draw, *shape):
    "Numbers of a shape, in memory in some other order, or every second one, or expanded"
    order = draw(st.permutations(range(len(shape))))
    step = draw(st.sampled_from([1, 1, 2]))
    made = torch.randn([shape[i]*step for i in order], dtype=torch.float64)
    t = made[tuple(slice(None, None, step) for _ in order)]
    t = t.permute([order.index(i) for i in range(len(shape))])
    return t[:1].expand(shape) if shape[0] > 1 and draw(st.booleans()) else t

@st.composite
def calls(draw):
    "Queries, keys, values and options"
    torch.manual_seed(draw(st.integers(0, 2**16)))
    few = st.integers(1, 3)
    Hkv,rep,L,S = draw(few),draw(few),draw(st.integers(0, 11)),draw(st.integers(0, 11))
    lead = draw(st.lists(few, min_size=1, max_size=2))
    E,Ev = draw(st.integers(1, 5)),draw(st.integers(1, 5))
    q,k,v = (laid(draw, *lead, H, n, e) for H,n,e in ((Hkv*rep,L,E), (Hkv,S,E), (Hkv,S,Ev)))
    options = dict(causal=draw(st.booleans()))
    sides = st.none() | st.integers(0, 5)
    if draw(st.booleans()): options['window'] = draw(st.tuples(sides, sides))
    if draw(st.booleans()): options['softcap'] = draw(st.floats(.5, 9))
    if draw(st.booleans()): options['scale'] = draw(st.floats(-2, 2))
    if draw(st.booleans()): options['sinks'] = torch.randn(Hkv*rep, dtype=torch.float64)
    def table(): return [n if draw(st.booleans()) else 1 for n in (*lead, Hkv*rep, L, S)]
    if draw(st.booleans()): options['mask'] = torch.rand(table()).expand(*lead, -1, -1, -1) > .4
    if draw(st.booleans()): options['bias'] = torch.randn(table(), dtype=torch.float64)
    return (q,k,v),options

def attention_of(*args, **kw): return attention(*args, **kw)[0]

def results(f, tensors, options, g):
    given = [t.detach().requires_grad_() for t in (*tensors, *(options[n] for n in ('sinks','bias')
                                                                if n in options))]
    names = [n for n in ('sinks','bias') if n in options]
    out = f(*given[:3], **options | dict(zip(names, given[3:])))
    return out, *torch.autograd.grad(out, given, g, allow_unused=True, materialize_grads=True)

@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(calls(), st.integers(1, 9))
def test_any_call_with_blocks_of_any_size(poisoned, call, size):
    tensors,options = call
    g = torch.randn(*tensors[0].shape[:-1], tensors[2].shape[-1], dtype=torch.float64)
    want = results(attention_of, tensors, options, g)
    for a,b in zip(results(scaled_dot_product_attention, tensors, options, g), want):
        assert_close(a, b)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, 'BLOCK_SIZE', size)
        got = results(in_blocks, tensors, options, g)
        lse = flash_attention(*tensors, **options)[1]
    for a,b in zip(got, want): assert_close(a, b)
    assert_close(lse, attention_lse(*tensors, **options)[1])

def test_compiled_autocast_inference():
    torch.manual_seed(0)
    q,k,v = torch.randn(3, 1, 2, 40, 8)
    def call(q): return flash_attention(q*2, k, v, causal=True)[0] + 1
    assert_close(torch.compile(call, backend='aot_eager')(q), call(q))
    torch._dynamo.reset()
    with torch.autocast('cpu', torch.bfloat16):
        assert_close(in_blocks(q, k, v, softcap=2.), attention(q, k, v, softcap=2.)[0],
                     rtol=.02, atol=.02)
    with torch.inference_mode(): assert_close(in_blocks(q, k, v), attention(q, k, v)[0])

def test_what_blocks_lack_the_table_of_kernels_finds_elsewhere():
    q = torch.randn(1, 2, 9, 4).double()
    vmapped = torch.func.vmap(lambda t: scaled_dot_product_attention(t, t, t, softcap=2.))(q)
    assert_close(vmapped, attention(q, q, q, softcap=2.)[0])

@pytest.mark.parametrize('options', [{}, dict(window=(20,0)), dict(softcap=2.)], ids=str)
def test_gradients_in_bfloat16(options):
    tensors = torch.randn(3, 1, 2, 300, 16, generator=torch.Generator().manual_seed(0))
    got,want = (results(f, [t.to(dtype) for t in tensors], options | dict(causal=True),
                        torch.ones(1, 2, 300, 16, dtype=dtype))
                for f,dtype in ((in_blocks, torch.bfloat16), (attention_of, torch.float32)))
    for a,b in zip(got, want): assert (a-b).norm() < .02*b.norm()

@pytest.mark.parametrize('lead', [(1,2), (2,1,2)])
def test_the_block_map_is_computed_once_to_choose_to_run_and_backward(lead, monkeypatch):
    maps,blocks_of = [],AttentionMask.blocks
    monkeypatch.setattr(AttentionMask, 'blocks', lambda self, *args, **kw: (
        maps.append(self), blocks_of(self, *args, **kw))[1])
    tensors,table = torch.randn(3, *lead, 700, 8).double(),torch.rand(2, 3, 3) > .5
    table |= torch.eye(3).bool()
    masks = (AttentionMask(700, window=(9,9)),
             AttentionMask(700, q_doc=torch.arange(700)//300, doc_table=table[None]))
    for mask in masks:
        options = dict(causal=True, mask=mask)
        g = torch.randn(*lead, 700, 8, dtype=torch.float64)
        assert explain_choice(*tensors, **options)[0][0] == 'blocks'
        maps.clear()
        got = results(scaled_dot_product_attention, tensors, options, g)
        assert len(maps) == 1
        for a,b in zip(got, results(attention_of, tensors, options, g)): assert_close(a, b)

@pytest.mark.parametrize('mode', [torch.no_grad, torch.inference_mode])
def test_a_batch_that_is_written_to_again(mode):
    "Documents, masks and places change in place: blocks answer for what stands there now"
    torch.manual_seed(0)
    L = 300
    q,k,v = torch.randn(3, 1, 2, L, 8)
    with mode():
        doc,place,mask = torch.arange(L)//100,torch.arange(L),torch.rand(L, L) > .3
        rules = [AttentionMask(L, q_doc=doc), AttentionMask(L, window=(40,0), q_pos=place),
                 AttentionMask(L, mask=mask), AttentionMask(L, causal=True) & mask,
                 AttentionMask(L, window=(9,9)) | AttentionMask(L, q_doc=doc)]
        for change in (lambda: doc.copy_(doc.flip(0)), lambda: place.sub_(70),
                       lambda: mask.logical_not_(), lambda: doc.fill_(0), lambda: 0):
            for see in rules:
                assert_close(in_blocks(q, k, v, mask=see), attention_of(q, k, v, mask=see))
            change()

def shapes_of(options, L, device=None):
    "Shapes of what each function and two layers give, with gradients; and what the functions give"
    def rand(*n): return torch.randn(*n, device=device, requires_grad=True)
    def arange(): return torch.arange(L, device=device)
    made = dict(mask=lambda: rand(1, 1, L, L) > .3, q_pos=lambda: arange()+1,
                docs=lambda: AttentionMask(L, q_doc=arange()//9), sinks=lambda: rand(2))
    said = {n: made[n]() if o is True and n in made else o for n,o in options.items()}
    if 'docs' in said: said['mask'] = said.pop('docs')
    q,k,v = (rand(1, 2, L, 8) for _ in 'qkv')
    out,lse = flash_attention(q, k, v, **said)
    found = [out, attention_of(q, k, v, **said), scaled_dot_product_attention(q, k, v, **said),
             attention_lse(q, k, v, **said)[0], lse, attention_lse(q, k, v, **said)[1]]
    explain_choice(q, k, v, **said)
    gradients = torch.autograd.grad(sum(t.sum() for t in found), (q,k,v))
    of_layer = {n: options[n] for n in ('window','softcap','sinks') if n in options}
    with contextlib.nullcontext() if device is None else torch.device(device):
        layers = MultiHeadAttention(16, 2, **of_layer),MultiHeadAttention(16, 2)
    x = rand(1, L, 16)
    called = [layers[0](x, causal='causal' in options, need_weights=True)[1], layers[0](x)]
    if 'mask' in said: called.append(layers[1](x, mask=said['mask']))
    return [(t.shape, t.dtype) for t in (*found, *gradients, *called)], found

@pytest.mark.parametrize('options,L', spread([
    dict(window=(20,3)), dict(causal=True, window=(9,0)), dict(mask=True), dict(docs=True),
    dict(causal=True, q_pos=True), dict(sinks=True, window=(9,0)), dict(softcap=5.)],
    [40, 700]), ids=str)
def test_shapes_without_numbers(options, L):
    "Fake, on meta, with meta as the default: shapes; and nothing is left for a call with numbers"
    with FakeTensorMode(): fake = shapes_of(options, L)[0]
    meta = shapes_of(options, L, 'meta')[0]
    with torch.device('meta'): default,within = (shapes_of(options, L, d)[0] for d in (None, 'cpu'))
    shapes,(a,b,c,d,lse,other) = shapes_of(options, L)
    assert shapes == fake == meta == default == within
    for t in (a,c,d): assert_close(t, b)
    assert_close(lse, other)
