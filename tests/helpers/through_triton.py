"""What Triton's interpreter proves of `attention_nb.kernels.triton_flash` beside its page;
test_triton.py runs it.

In a process of its own, because TRITON_INTERPRET must be set before anybody imports Triton:
`TRITON_INTERPRET=1 pytest tests/helpers/through_triton.py`. Rules of who sees whom, options and
shapes are tried in float64, where rounding is far below the tolerance and a mistake is not.
"""
import math, os
import pytest, torch
from torch.testing import assert_close
from attention_nb.kernels import triton_flash as kernels
from attention_nb.kernels.reference import attention
from attention_nb.kernels.triton_flash import triton_attention, triton_decode
from attention_nb.kernels.attention_mask import AttentionMask

assert os.environ.get('TRITON_INTERPRET') == '1' and kernels._interpreted
pytestmark = pytest.mark.filterwarnings('ignore:.*encountered in:RuntimeWarning')
tile = 16

def small(wide, dtype, back): return dict(M=tile, N=tile, num_warps=1, num_stages=1)

@pytest.fixture(autouse=True)
def small_tiles(monkeypatch): monkeypatch.setattr(kernels, '_sizes', small)

def results(f, q, k, v, options):
    "Output and gradients of all that is learned"
    tensors = [t.detach().requires_grad_() for t in (q,k,v)]
    learned = {n: options[n].detach().requires_grad_() for n in ('bias','sinks') if n in options}
    out = f(*tensors, **options | learned)
    out = out[0] if isinstance(out, tuple) else out
    g = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return out, *torch.autograd.grad(out, [*tensors, *learned.values()], g, materialize_grads=True)

def same(q, k, v, f=triton_attention, **options):
    got,want = (results(g, q, k, v, options) for g in (f, attention))
    said = {n: tuple(o.shape) if isinstance(o, torch.Tensor) else o for n,o in options.items()}
    for a,b in zip(got, want, strict=True): assert_close(a, b, msg=lambda m: f'with {said}: {m}')

def qkv(B, H, Hkv, L, S, E, Ev, dtype=torch.float64):
    torch.manual_seed(B+H+L+S+E)
    return [torch.randn(B, *n, dtype=dtype) for n in ((H,L,E), (Hkv,S,E), (Hkv,S,Ev))]

def test_windows_of_one_side_documents_in_disorder_and_all_at_once():
    H,L,S = 2,18,35
    g = torch.Generator().manual_seed(0)
    mixed = AttentionMask(L, S, window=(7,4), q_doc=torch.randint(0, 3, (1, L), generator=g),
                          k_doc=torch.randint(0, 3, (S,), generator=g))
    many = dict(causal=True, mask=mixed, bias=torch.randn(H, 1, S, generator=g).double(),
                scale=-.7, softcap=1.5, sinks=torch.randn(H, generator=g).double())
    for options in (dict(window=(5,None)), dict(window=(None,3)), dict(mask=mixed), dict(scale=0.),
                    many):
        same(*qkv(1, H, 1, L, S, 8, 8), **options)

def test_views_and_poison_around_them():
    "Any strides, and NaN in every number that is not an input"
    B,H,L,S,E = 2,2,19,21,5
    torch.manual_seed(0)
    def within(n, width):
        room = torch.full((B,n+3,H+1,width+2), math.nan, dtype=torch.float64)
        room[:,1:n+1,:H,1:width+1] = torch.randn(B, n, H, width, dtype=torch.float64)
        return room[:,1:n+1,:H,1:width+1].transpose(1, 2)
    q,k,v = within(L, E),within(S, E),within(S, 4)
    for options in ({}, dict(causal=True, sinks=torch.randn(H).double())): same(q, k, v, **options)
    same(q.mT.contiguous().mT, k, v)
    same(q, k[:,:1].expand(-1, H, -1, -1), v[:1,:1].expand(B, H, -1, -1))
    for view in (lambda t: t[0,0], lambda t: t[:,0], lambda t: t[None], lambda t: t[:,None]):
        same(view(q), view(k), view(v), causal=True)

def test_biases_of_all_shapes_and_documents_of_each_text():
    q,k,v = qkv(2, 2, 1, 18, 20, 8, 8)
    torch.manual_seed(0)
    for shape in ((), (2,1,1), (2,2,1,20), (20,), (1,), (1,20), (2,1,1,20)):
        same(q, k, v, bias=torch.randn(shape).double(), causal=True)
    q_doc,k_doc = torch.randint(0, 3, (2,18)),torch.randint(0, 3, (2,20))
    for docs in ((q_doc,k_doc), (q_doc[0],k_doc), (q_doc,k_doc[0]), (q_doc.to(torch.uint8),k_doc),
                 (q_doc + 2**40,k_doc + 2**40), (q_doc.sort().values,k_doc.sort().values)):
        rules = AttentionMask(18, 20, q_doc=docs[0], k_doc=docs[1])
        same(q, k, v, mask=rules, window=(7,2), sinks=torch.randn(2).double())
        same(q[:,0], k[:,0], v[:,0], mask=rules, bias=torch.randn(2, 1, 20).double())
    same(q, k, v, causal=True, q_pos=torch.arange(18)+2+5, k_pos=torch.arange(20)+5)

def test_infinite_biases_and_sinks():
    q,k,v = qkv(1, 2, 1, 18, 20, 8, 8)
    bias = torch.zeros(20).double().masked_fill(torch.arange(20) > 3, -math.inf)
    same(q, k, v, bias=bias)
    same(q, k, v, bias=bias, window=(4,0))
    same(q, k, v, sinks=torch.tensor([-math.inf,1.]).double(), causal=True)
    same(q*1e4, k, v, causal=True, softcap=2.)

@pytest.mark.parametrize('x,dtype', [
    (math.nan, torch.bfloat16), (math.inf, torch.float64), (-math.inf, torch.bfloat16),
    (1e30, torch.float64)], ids=str)
def test_what_is_hidden_may_be_anything_and_nan_is_seen(x, dtype):
    "Also in a tile of which others see something"
    B,H,L,S,j = 1,2,19,21,17
    q,k,v = (t.to(dtype) for t in qkv(B, H, 1, L, S, 8, 8))
    odd,one = torch.arange(S)%5 == 0,torch.arange(S) == j
    docs = AttentionMask(L, S, q_doc=torch.zeros(L).long(), k_doc=odd.long())
    def put(x, t, where): return t.masked_fill(where[:,None], x)
    for options in (dict(mask=docs), dict(mask=docs, causal=True, sinks=torch.ones(H).to(dtype))):
        got,want = (results(triton_attention, q, put(y, k, odd), put(y, v, odd), options)
                    for y in (x, 0.))
        for a,b in zip(got, want, strict=True): assert_close(a, b)
    for options in (dict(causal=True), dict(window=(4,0)), dict(mask=docs, window=(3,1))):
        seen = attention(q, k, v, **options)[1][...,j:j+1] > 0
        bare = triton_attention(q, put(0., k, one), v, **options)
        for keys,values in ((put(x, k, one),v), (k,put(x, v, one))):
            if x == 1e30 and values is v: continue    # a number among others
            out = triton_attention(q, keys, values, **options)
            assert_close(out.masked_fill(seen, 0.), bare.masked_fill(seen, 0.))
            if math.isnan(x): assert torch.equal(out.isnan(), seen.expand_as(out))
    if not math.isnan(x): return
    last = torch.arange(S) == S-1
    for splits,causal,keys,values in ((1, False, put(x, k, last), v),
                                      (4, True, k, put(x, v, last))):
        out = triton_decode(q[:,:,-3:], keys, values, splits=splits, causal=causal)
        rows = 2 if causal else 0
        assert out[:,:,rows:].isnan().all() and not out[:,:,:rows].isnan().any()

def test_what_nobody_sees_is_not_loaded(monkeypatch):
    "Of a causal text 36 tiles of 64, and rules are asked in 8; values behind a window are NaN"
    counts = dict(take=0, seen=0)
    def counted(name, f):
        def g(*a, **kw):
            counts[name] += 1
            return f(*a, **kw)
        return g
    for name in counts: monkeypatch.setattr(kernels, f'_{name}', counted(
        name, getattr(kernels, f'_{name}')))
    q,k,v = qkv(1, 1, 1, 128, 128, 4, 4)
    docs = AttentionMask(128, q_doc=torch.arange(128)//64, causal=True)
    windows = [AttentionMask(128, window=(n,0)) for n in (0, 1, 15, 16, 17, 300)]
    kinds = [see.blocks(tile, tile) for see in windows]
    of_windows = [(see, (n > 0).sum(), (n == 1).sum()) for see,n in zip(windows, kinds)]
    for rules,take,seen in ((AttentionMask(128, causal=True), 36, 8), (AttentionMask(128), 64, 0),
                            (docs, 20, 20), *of_windows):
        counts.update(take=0, seen=0)
        triton_attention(q, k, v, mask=rules)
        assert counts == dict(take=take, seen=seen), rules
    v[:,:,:64] = math.nan
    out = results(triton_attention, q[:,:,96:], k, v, dict(window=(30,0)))
    assert not out[0].isnan().any() and not out[1].isnan().any()
