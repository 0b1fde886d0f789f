"""Every attention function of the package against the reference, over one grid.

The grid: options, shapes, dtypes, gradients.

A new function is one more row of `implementations`, and every kernel of the table of
`scaled_dot_product_attention` is one by itself. A row takes what `attention` takes; what it cannot
do it refuses with a `NotImplementedError` that says why.
"""
import functools, itertools
import pytest, torch
from torch.testing import assert_close
from attention_nb.kernels import blocks as by_blocks, flex as by_flex
from attention_nb.kernels.reference import attention
from attention_nb.kernels.blocks import flash_attention
from attention_nb.kernels.dispatch import (KERNELS, attention_lse, merge_attention,
                                           scaled_dot_product_attention)
from attention_nb.layers.multihead import MultiHeadAttention
from attention_nb.kernels.attention_mask import AttentionMask
from helpers import short

def pieces(q, k, v, *, mask=None, bias=None, q_pos=None, k_pos=None, sinks=None, **kw):
    "Attention in three pieces of the keys, one of them empty, and one for the sink"
    L,S = q.shape[-2],k.shape[-2]
    q_pos = torch.arange(L)+S-L if q_pos is None else q_pos
    k_pos = torch.arange(S) if k_pos is None else k_pos
    def cut(t, s):
        if isinstance(t, AttentionMask): return t.select(k=s)
        return t if t is None or t.dim() == 0 or t.shape[-1] == 1 else t[..., s]
    parts = [attention_lse(q, k[..., s, :], v[..., s, :], mask=cut(mask, s), bias=cut(bias, s),
                           q_pos=q_pos, k_pos=k_pos[..., s], **kw)
             for s in (slice(0, S//2), slice(S//2, S), slice(S, S))]
    if sinks is not None:
        out,lse = parts[0]
        parts.insert(1, (torch.zeros_like(out), sinks[:,None].expand_as(lse)))
    return merge_attention(*parts)[0]

module = MultiHeadAttention(8, 2)

def through_a_module(q, k, v, **options):
    "The one call of `MultiHeadAttention`"
    return module.call_attention(q, k, v, False, **options)

implementations = dict(
    fast=scaled_dot_product_attention, lse=lambda *a, **kw: attention_lse(*a, **kw)[0],
    pieces=pieces, module=through_a_module, flash=lambda *a, **kw: flash_attention(*a, **kw)[0])
kernels = {f'kernel {row.name}': functools.partial(scaled_dot_product_attention, kernel=row.name)
           for row in KERNELS if row.name != 'eager'}
implementations |= kernels

@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    "Blocks of three tokens, so that short texts have many; FlexAttention without its compiler"
    from torch.nn.attention.flex_attention import flex_attention
    monkeypatch.setattr(by_blocks, 'BLOCK_SIZE', 3)
    monkeypatch.setattr(by_flex, '_compiled_flex_attention', lambda dynamic: flex_attention)
    monkeypatch.setattr(by_flex, '_cpu_limit', lambda call: None)

def refuses(name, f, *args, **kw):
    "Whether a kernel alone refuses a call, in words"
    if name not in kernels: return False
    try: f(*args, **kw)
    except NotImplementedError as e:
        assert len(str(e).partition('does not apply: ')[2].split()) > 2
        return True
    return False

# (H, Hkv, L, S, E, Ev): lengths of no block, equal, more keys, more queries, one query, one key,
# shared heads, widths of 1
shapes = [(6,2,7,17,5,9), (4,4,5,5,8,8), (4,2,3,6,8,5), (4,1,6,3,8,8), (2,2,1,4,8,8), (2,1,4,1,3,2),
          (3,3,4,4,1,1)]

def choices(B, H, L, S, dtype):
    "Name -> what is passed; a row of the mask sees nothing"
    g = torch.Generator().manual_seed(L*100+S)
    def rand(*shape): return torch.randn(*shape, generator=g, dtype=torch.float64).to(dtype)
    mask = torch.rand(B, 1, L, S, generator=g) > .3
    mask[0,0,0] = False
    docs = dict(q_doc=torch.randint(0, 3, (B, L), generator=g),
                k_doc=torch.randint(0, 3, (S,), generator=g).sort().values)
    placed = AttentionMask(L, S, window=(3,1), k_pos=torch.randperm(S, generator=g), mask=mask)
    each = [torch.stack([torch.randperm(n, generator=g)[:m] for _ in range(B)]) for n,m in
            ((L+S, L), (S, S))]
    causal = AttentionMask(L, S, causal=True)
    rule = AttentionMask(L, S, rule=lambda q, k: (q-k) % 3 < 2, q_pos=each[0],
                         k_pos=torch.arange(S))
    union = AttentionMask(L, S, window=(1,0)) | rule | AttentionMask(L, S, q_doc=docs['q_doc'],
                                                                  k_doc=docs['k_doc'])
    table = torch.rand(B, H, -(-L//2), -(-S//3), generator=g) > .4
    by_table = AttentionMask.from_blocks(table, (2,3), L, S)
    return dict(union=dict(mask=union), rule=dict(mask=rule), table=dict(mask=by_table),
                both=dict(mask=by_table & union & mask & causal), mask=dict(mask=mask),
                heads=dict(mask=torch.rand(B, H, L, S, generator=g) > .2),
                keys=dict(mask=torch.rand(B, 1, 1, S, generator=g) > .3),
                bias=dict(bias=rand(H, 1, S)), full_bias=dict(bias=rand(B, H, L, S)),
                causal=dict(causal=True), window=dict(window=(2,1)), left=dict(window=(1,None)),
                places=dict(q_pos=torch.arange(L)+1, k_pos=torch.randperm(S, generator=g)),
                each=dict(q_pos=each[0], k_pos=each[1]),
                rules=dict(mask=AttentionMask(L, S, causal=True, **docs)), placed=dict(mask=placed),
                scale=dict(scale=.3), minus=dict(scale=-.7), zero=dict(scale=0.),
                softcap=dict(softcap=1.5), sinks=dict(sinks=rand(H)),
                no_batch=dict(mask=torch.rand(H, L, S, generator=g) > .2))

def combinations(options, whole, turn):
    """No option, each, each pair, and many at once; unless `whole` a third of the options and a
    ninth of the pairs, others in each `turn`"""
    yield {}
    yield from [o for n,o in enumerate(options.values()) if whole or (n+turn)%3 == 0]
    for n,(a,b) in enumerate(itertools.combinations(options.values(), 2)):
        if (whole or (n+turn)%9 == 0) and not a.keys() & b.keys(): yield a | b
    for names in (('mask','bias','causal','places','scale','softcap','sinks'),
                  ('heads','full_bias','window','each','minus','sinks')):
        yield {n:o for name in names for n,o in options[name].items()}

def run(f, q, k, v, kw):
    "Output and gradients of all that is learned"
    tensors = [t.detach().requires_grad_() for t in (q,k,v)]
    learned = {n: kw[n].detach().requires_grad_() for n in ('bias','sinks') if n in kw}
    out = f(*tensors, **kw | learned)
    out = out[0] if isinstance(out, tuple) else out
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    inputs = [*tensors, *learned.values()]
    return out, *torch.autograd.grad(out, inputs, weights, materialize_grads=True)

def described(kw):
    return ', '.join(f'{n}={tuple(o.shape) if isinstance(o, torch.Tensor) else o}'
                     for n,o in kw.items())

def graded(some, every):
    "Parameters: `make test` tries `some` cases with a part of the options, the long run all"
    kept = [(*case, False) for case in some]
    return short(kept, kept + [(*case, True) for case in every])

@functools.cache
def in_double(shape, whole=False):
    "Queries, keys, values, and for each combination the reference's output and gradients"
    (H,Hkv,L,S,E,Ev),B = shape,2
    torch.manual_seed(sum(shape))
    sizes = (H,L,E),(Hkv,S,E),(Hkv,S,Ev)
    q,k,v = (torch.randn(B, *s, dtype=torch.float64) for s in sizes)
    each = choices(B, H, L, S, torch.float64)
    return (q,k,v), [(kw, run(attention, q, k, v, kw))
                     for kw in combinations(each, whole, shapes.index(shape))]

two_each = [(name, shapes[(i+n)%len(shapes)]) for i,name in enumerate(implementations)
            for n in range(2)]

@pytest.mark.parametrize('name,shape,whole', graded(
    two_each, itertools.product(implementations, shapes)), ids=str)
def test_output_and_gradients(name, shape, whole):
    f,n = implementations[name],0
    (q,k,v),cases = in_double(shape, whole)
    for kw,reference in cases:
        if refuses(name, f, q, k, v, **kw): continue
        for got,want in zip(run(f, q, k, v, kw), reference, strict=True):
            assert_close(got, want, msg=lambda m: f'{name} {shape} with {described(kw)}: {m}')
        n += 1
    assert name in kernels or n > (100 if whole else 20)

@pytest.mark.parametrize('name', implementations)
def test_nan_comes_out_where_it_is_seen(name):
    "A model that has diverged must not look healthy"
    q,k,v = torch.randn(3, 1, 2, 7, 8)
    for t in (k,v):
        spoilt = t.clone()
        spoilt[:,:,2] = torch.nan
        out = implementations[name](q, *((spoilt,v) if t is k else (k,spoilt)), causal=True)
        out = out[0] if isinstance(out, tuple) else out
        assert out[:,:,2:].isnan().all()

@functools.cache
def in_lower(dtype, whole):
    "Queries, keys, values; for each combination the float64 result and the largest error"
    B,H,Hkv,L,S,E,Ev = 2,4,2,9,16,8,8
    torch.manual_seed(0)
    q,k,v = (torch.randn(B, *s).to(dtype) for s in ((H,L,E), (Hkv,S,E), (Hkv,S,Ev)))
    cases = []
    for kw in combinations(choices(B, H, L, S, dtype), whole, dtype.itemsize):
        doubled = {n: o.double() if isinstance(o, torch.Tensor) and o.is_floating_point() else o
                   for n,o in kw.items()}
        exact = attention(*(t.double() for t in (q,k,v)), **doubled)[0]
        error = (attention(q, k, v, **kw)[0].double()-exact).abs().max()
        cases.append((kw, exact, 2*error + 2*torch.finfo(dtype).eps*exact.abs().max()))
    return (q,k,v), cases

lower = torch.float32,torch.bfloat16,torch.float16
@pytest.mark.parametrize('name,dtype,whole', graded(
    [(name, lower[i%3]) for i,name in enumerate(implementations)],
    itertools.product(implementations, lower)), ids=str)
def test_precision(name, dtype, whole):
    "Against float64 on the same numbers: at most twice the reference's error, and one rounding"
    (q,k,v),cases = in_lower(dtype, whole)
    f = implementations[name]
    for kw,exact,limit in cases:
        if refuses(name, f, q, k, v, **kw): continue
        out = f(q, k, v, **kw)
        assert out.dtype == dtype and not out.isnan().any(), described(kw)
        error = (out.double()-exact).abs().max()
        assert error <= limit, f'{name} with {described(kw)}: {error:.2g} > {limit:.2g}'

# a layer's forward has checked what this one call gets
@pytest.mark.parametrize('name', [n for n in implementations if n != 'module'])
def test_a_wrong_argument_is_named(name):
    f = implementations[name]
    q = torch.randn(1, 2, 3, 4)
    for kw,error,message in (
            (dict(mask=torch.ones(3, 3)), TypeError, 'mask must be bool'),
            (dict(scale=1e39), ValueError, 'scale must be a finite number'),
            (dict(q_pos=torch.arange(2)), ValueError, 'q_pos must be'),
            (dict(window=3), ValueError, 'window must be'),
            (dict(mask=AttentionMask(2)), ValueError, 'mask is for L=2 queries')):
        with pytest.raises(error, match=message): f(q, q, q, **kw)
