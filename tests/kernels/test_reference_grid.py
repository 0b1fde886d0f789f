"""Every attention function of the package against the oracle, over one grid.

The grid: options, shapes, dtypes, gradients; and what is hidden, or seen, may be no number.

A new function is one more row of `implementations`, and every kernel of the table of
`scaled_dot_product_attention` is one by itself. A row takes what `attention` takes; what it cannot
do it refuses with a `NotImplementedError` that says why.
"""
import functools, itertools, math
import pytest, torch
from torch.testing import assert_close
from attention_nb.kernels import dispatch as fast, flash
from attention_nb.kernels.reference import attention
from attention_nb.kernels.dispatch import (KERNELS, attention_lse, attention_with_weights,
                                           merge_attention, scaled_dot_product_attention)
from attention_nb.kernels.flash import flash_attention
from attention_nb.layers.multihead import MultiHeadAttention
from attention_nb.kernels.attention_mask import AttentionMask, mask_of_options
from helpers import short, spread

def blocks(q, k, v, *, mask=None, bias=None, q_pos=None, k_pos=None, sinks=None, **kw):
    "Attention in three blocks of keys, one of them empty, and a block for the sink"
    L,S = q.shape[-2],k.shape[-2]
    q_pos = torch.arange(L)+S-L if q_pos is None else q_pos
    k_pos = torch.arange(S) if k_pos is None else k_pos
    def cut(t, s):
        if isinstance(t, AttentionMask): return t.part(k=s)
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
    blocks=blocks, weights=lambda *a, **kw: attention_with_weights(*a, **kw)[0],
    module=through_a_module, flash=lambda *a, **kw: flash_attention(*a, **kw)[0])
# each kernel alone; blocks of two or three queries, so that short texts have many
kernels = {f'kernel {row.name}': functools.partial(scaled_dot_product_attention, kernel=row.name)
           for row in KERNELS if row.name not in ('oracle','triton')}    # the latter in test_triton
implementations |= kernels

@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(flash, '_sizes', (2, 3))
    monkeypatch.setattr(flash, '_room', 200)    # one or two tiles at a time: most rows are split
    monkeypatch.setattr(fast, '_least_merged', 0)

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
                softcap=dict(softcap=1.5), sinks=dict(sinks=rand(H)))

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
    "Queries, keys, values, and for each combination the oracle's output and gradients"
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
    for kw,oracle in cases:
        if refuses(name, f, q, k, v, **kw): continue
        for got,want in zip(run(f, q, k, v, kw), oracle, strict=True):
            assert_close(got, want, msg=lambda m: f'{name} {shape} with {described(kw)}: {m}')
        n += 1
    assert name in kernels or n > (100 if whole else 20)

def hiding(B, H, L, S):
    "Options that hide keys, some from everybody"
    g = torch.Generator().manual_seed(L)
    keys,each = torch.rand(B, 1, 1, S, generator=g) > .4,torch.rand(B, H, L, S, generator=g) > .3
    docs = AttentionMask(L, S, causal=True, q_doc=torch.zeros(L).long(), k_doc=torch.arange(S)%2)
    bias = torch.zeros(H, 1, S).double().masked_fill(torch.arange(S)%3 == 0, -math.inf)
    yield from (dict(mask=keys), dict(mask=each & keys), dict(mask=docs), dict(bias=bias),
                dict(window=(1,0), q_pos=torch.arange(L)+1), dict(window=(1,0), mask=keys),
                dict(causal=True, q_pos=torch.arange(L)-1), dict(causal=True), dict(window=(0,2)))
    for more in (dict(sinks=torch.ones(H).double()), dict(softcap=2.), dict(scale=-.7)):
        yield dict(mask=each & keys) | more
        yield dict(causal=True) | more

def table(q, k, kw):
    "Bool (B, H, L, S): who sees whom"
    said = {n: kw[n] for n in ('mask','causal','window','q_pos','k_pos') if n in kw}
    see = mask_of_options(q, k, **said)
    seen = torch.ones(*q.shape[:-1], k.shape[-2]).bool()
    if see is not None and (dense := see.dense()) is not None: seen = seen & dense
    return seen & (kw['bias'] > -math.inf) if 'bias' in kw else seen

no_numbers = [math.nan, math.inf, -math.inf, 1e30, torch.finfo(torch.float64).max]

def with_each(numbers):
    "Parameters: `make test` tries with each name one that is infinite or NaN, every second finite"
    kept = [(name, x) for i,name in enumerate(implementations)
            for x in (numbers[i%3], numbers[3 + i//2%2])[:1 + i%2]]
    return short(kept, itertools.product(implementations, numbers))

def as_value(x): return 1e30 if 1e30 < x < math.inf else x    # a gradient is multiplied by it

def spoilt(dtype=torch.float64):
    "Queries, keys and values of 4 heads in 2 groups, for each set of options"
    B,H,Hkv,L,S,E = 2,4,2,7,9,8
    torch.manual_seed(0)
    q,k,v = (torch.randn(B, *s).to(dtype) for s in ((H,L,E), (Hkv,S,E), (Hkv,S,E)))
    for kw in hiding(B, H, L, S):
        if 'bias' in kw: kw['bias'] = kw['bias'].to(dtype)
        yield (q,k,v), kw, table(q, k, kw)

@pytest.mark.parametrize('name,x', with_each(no_numbers), ids=str)
def test_what_nobody_sees_may_be_anything(name, x):
    "Output and gradients are those of zeros in its place, and nothing is asked of it"
    f,n = implementations[name],0
    for (q,k,v),kw,seen in spoilt():
        unseen = ~seen.any(-2).unflatten(1, (2,2)).any(2)[...,None]    # (B, Hkv, S, 1)
        if not unseen.any() or refuses(name, f, q, k, v, **kw): continue
        bare = k.masked_fill(unseen, 0.),v.masked_fill(unseen, 0.)
        want = run(attention, q, *bare, kw)
        spoilt_k,spoilt_v = k.masked_fill(unseen, x),v.masked_fill(unseen, as_value(x))
        for keys,values in ((spoilt_k,bare[1]), (bare[0],spoilt_v), (spoilt_k,spoilt_v)):
            for got,right in zip(run(f, q, keys, values, kw), want, strict=True):
                assert_close(got, right, msg=lambda m: f'{name} with {described(kw)}: {m}')
        n += 1
    assert n > 5 or name == 'kernel fused'

# of a score above 1e16 the rounding is larger than 1: on an old processor torch's kernel then finds
# other weights in its backward pass than in its forward pass, and their ratio may be infinite
smaller = [1e7 if x == 1e30 else x for x in no_numbers]
@pytest.mark.parametrize('name,x', with_each(smaller), ids=str)
def test_what_some_do_not_see_is_nothing_to_them(name, x):
    "A key that others see: no part in the rest, nor in gradients when only the rest is asked for"
    f = implementations[name]
    def gradients(g, *tensors, **kw):
        tensors = [t.detach().requires_grad_() for t in tensors]
        out = g(*tensors, **kw)
        out = out[0] if isinstance(out, tuple) else out
        return out.masked_fill(spoils, 0.), *torch.autograd.grad(out, tensors, weights)
    for (q,k,v),kw,seen in spoilt():
        if refuses(name, f, q, k, v, **kw): continue
        j = [4,8]
        spoils = seen[...,j].any(-1, keepdim=True).expand(*q.shape[:-1], v.shape[-1]).clone()
        spoils[...,1,:] = True    # and a query
        weights = torch.linspace(-1, 1, spoils.numel()).double().view_as(spoils)
        weights = weights.masked_fill(spoils, 0.)
        def put(x, t, i): return t.index_fill(-2, torch.tensor(i), x)
        want = gradients(attention, put(0., q, 1), put(0., k, j), put(0., v, j), **kw)
        given = put(x, q, 1),put(x, k, j),put(as_value(x), v, j)
        for got,right in zip(gradients(f, *given, **kw), want):
            assert_close(got, right, msg=lambda m: f'{name} with {described(kw)}: {m}')
            if name == 'blocks': break    # to merge is to multiply by NaN, gradients of 0 too

precisions = torch.float64,torch.float32,torch.bfloat16

@pytest.mark.parametrize('name,dtype', spread(implementations, precisions), ids=str)
def test_who_sees_no_number_says_so(name, dtype):
    "NaN comes out where it goes in, in each row that sees it and no other, and in gradients"
    f = implementations[name]
    for ((q,k,v),kw,seen),spoils in itertools.product(spoilt(dtype), ('key','value','all')):
        if refuses(name, f, q, k, v, **kw): continue
        j = slice(None) if spoils == 'all' else slice(5, 6)
        keys,values = k.clone(),v.clone()
        if spoils != 'value': keys[...,j,0] = math.nan
        if spoils != 'key': values[...,j,2] = math.nan
        rows = seen[...,j].any(-1, keepdim=True).expand(*q.shape[:-1], v.shape[-1])
        if spoils == 'value': rows = rows & (torch.arange(v.shape[-1]) == 2)
        got = run(f, q, keys, values, kw)
        assert torch.equal(got[0].isnan(), rows), f'{name} with {described(kw)}'
        if rows.any(): assert all(t.isnan().any() for t in got[1:4]), (name, described(kw))

@pytest.mark.parametrize('name,dtype', spread(implementations, precisions[::-1]), ids=str)
def test_large_keys_whose_scores_are_small(name, dtype):
    "Keys of 2^80 and queries of 2^-80 are other numbers of the same scores, to the bit"
    for (q,k,v),kw,_ in spoilt(dtype):
        f = implementations[name]
        if refuses(name, f, q, k, v, **kw): continue
        assert torch.equal(f(q*2.**-80, k*2.**80, v, **kw), f(q, k, v, **kw)), described(kw)

@pytest.mark.parametrize('name', ['fast', 'weights', 'kernel table'])
def test_compiled_too(name):
    "There nobody looks at numbers: a key that no query sees is 0, others are as large as they are"
    f,seen = implementations[name],torch.arange(9) < 7
    (q,k,v),*_ = next(spoilt(torch.float32))
    torch._dynamo.reset()
    compiled = torch.compile(f, backend='eager')
    masks = seen,seen.expand(7, 9),seen.expand(2, 4, 7, 9)
    for see in masks if name == 'fast' else masks[:1]:
        want = f(q, k.masked_fill(~seen[:,None], 0.), v, mask=see)
        for x in (math.nan, math.inf, 3e38):
            assert_close(compiled(q, k.masked_fill(~seen[:,None], x), v, mask=see), want)
        assert_close(compiled(q*2.**-80, k*2.**80, v, mask=see), want)
    torch._dynamo.reset()

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
    "Against float64 on the same numbers: at most twice the oracle's error, and one rounding"
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
            (dict(mask=AttentionMask(2)), ValueError, 'mask is an AttentionMask of 2 queries')):
        with pytest.raises(error, match=message): f(q, q, q, **kw)
