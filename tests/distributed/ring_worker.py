"""One of several processes that prove nbs/distributed/ring.ipynb and context.ipynb; they are
started by test_ring.py, as parallel_worker.py is by its test, and compare with one process"""
import copy
from unittest import mock
import pytest, torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
import parallel_worker
from parallel_worker import gradient, made, mesh, rank, same, same_parameters, small
from attention_nb.distributed.context import context_parallel
from attention_nb.distributed.expert_parallel import expert_parallel
from attention_nb.distributed.ring import ring_attention, ulysses_attention
from attention_nb.distributed.split_cache import split_cache
from attention_nb.distributed.tensor_parallel import parallelize
from attention_nb.kernels.reference import attention
from attention_nb.kernels.attention_mask import AttentionMask
from attention_nb.layers.base import use_attention
from attention_nb.models.config import TransformerConfig
from attention_nb.models.transformer import Transformer

def grid():
    n = dist.get_world_size()
    return init_device_mesh('cpu', (n//2, 2), mesh_dim_names=('ring','heads'))

ways = dict(zigzag=lambda: ring_attention(mesh()),
            contiguous=lambda: ring_attention(mesh(), order='contiguous'),
            heads=lambda: ulysses_attention(mesh()), both=lambda: ulysses_attention(grid()))

def drawn(L, S, H=4, Hkv=2, dtype=torch.float64, B=2):
    g = torch.Generator().manual_seed(L+S)
    q,k,v,grad = (torch.randn(B, h, n, 8, generator=g, dtype=torch.float64).to(dtype)
                  for h,n in ((H,L), (Hkv,S), (Hkv,S), (H,L)))
    return q.requires_grad_(), k.requires_grad_(), v.requires_grad_(), grad

def split_rules(attend, options, L, S):
    "Options about the whole text as those of a process"
    told = dict(options)
    for name in ('q_pos','k_pos'):
        if name in told: told[name] = attend.split(told[name], -1)
    see = told.get('mask')
    if isinstance(see, torch.Tensor) and see.shape[-1] == S:
        told['mask'] = attend.split(see, -1)
    if isinstance(see, AttentionMask):
        own = lambda t: None if t is None else attend.split(t, -1)
        told['mask'] = AttentionMask(len(attend.split(torch.arange(L), -1)),
                                     len(attend.split(torch.arange(S), -1)), causal=see.causal,
                                     window=see.window, q_doc=own(see.q_doc), k_doc=own(see.k_doc))
    return told

def compare(attend, L=19, S=None, H=4, Hkv=2, dtype=torch.float64, tol=1e-9, **options):
    "Output and gradients of a divided text and of the whole one"
    S = S or L
    q,k,v,g = drawn(L, S, H, Hkv, dtype)
    sinks = options.pop('sinks', None)
    if sinks is not None: sinks = options['sinks'] = sinks.detach().to(dtype).requires_grad_()
    given = [q,k,v] if sinks is None else [q,k,v,sinks]
    want = attention(q, k, v, **options)[0]
    wanted = torch.autograd.grad(want, given, g)
    told = split_rules(attend, options, L, S)
    got = attend(*(attend.split(t) for t in (q,k,v)), **told)
    same(attend.join(got), want, 'output', tol)
    found = torch.autograd.grad(got, given, attend.split(g))
    for t in found: dist.all_reduce(t)    # `split` gives each the gradient of its own part
    for name,a,b in zip(('q','k','v','sinks'), found, wanted):
        same(a, b, f'gradient of {name}', tol)

docs = torch.arange(19)//5
filling = (torch.arange(19) < torch.tensor([[14],[19]]))[:,None,None]
places = torch.randperm(19, generator=torch.Generator().manual_seed(0))
cases = dict(plain={}, causal=dict(causal=True), window=dict(causal=True, window=(3,None)),
             two_sides=dict(window=(2,4)), softcap=dict(causal=True, softcap=2., scale=.7),
             sinks=dict(causal=True, sinks=torch.linspace(-1, 2, 4)),
             documents=dict(mask=AttentionMask(19, causal=True, q_doc=docs)),
             filling=dict(causal=True, mask=filling),
             by_head=dict(mask=filling | (torch.arange(4) % 2 == 0)[:,None,None]),
             one_text=dict(mask=torch.tensor([True, False])[:,None,None,None]),
             single=dict(L=4, mask=torch.tensor([True, False, True, True])),
             longer=dict(causal=True, L=5, S=19),
             places=dict(causal=True, q_pos=places, k_pos=places), short=dict(causal=True, L=2),
             one=dict(L=1), equal_heads=dict(causal=True, Hkv=4))

few = 'causal','window','sinks','documents','by_head','longer','one','equal_heads'

def way(name, only=None):
    def check(folder):
        attend = ways[name]()
        for case in only or cases:
            try: compare(attend, **cases[case])
            except Exception as e: raise AssertionError(f'{case}: {e}') from e
        if only: return
        compare(attend, L=64, causal=True, dtype=torch.float32, tol=1e-5)
        compare(attend, L=64, causal=True, dtype=torch.bfloat16, tol=5e-2)
    return check

def nothing_outside_a_window(folder):
    "Who is out of reach is sent nothing, and nothing is computed with it"
    sent = []
    real = dist.batch_isend_irecv
    def count(ops):
        sent.extend(op.tensor.numel() for op in ops if op.op is dist.isend)
        return real(ops)
    q = torch.randn(1, 2, 16, 8)
    def numbers(order, **options):
        sent.clear()
        ring = ring_attention(mesh(), order=order)
        with mock.patch.object(dist, 'batch_isend_irecv', count), torch.no_grad():
            ring(*(ring.split(q) for _ in 'qkv'), **options)
        total = torch.tensor(sum(sent))
        dist.all_reduce(total)
        return int(total)
    each = 2*2*4*8    # keys and values of four tokens
    assert numbers('contiguous') == 12*each
    assert numbers('contiguous', causal=True) == 6*each
    assert numbers('contiguous', causal=True, window=(4,0)) == 3*each
    assert numbers('contiguous', window=(0,0)) == 0
    assert numbers('zigzag', causal=True) == 9*each    # the late chunk of the early ones stays

def odd_inputs(folder):
    "A scale below 0, strided queries, sinks without a dimension of heads"
    ring = ring_attention(mesh())
    compare(ring, causal=True, scale=-.5)
    g = torch.Generator().manual_seed(3)
    x = torch.randn(16, 8, generator=g, dtype=torch.float64).requires_grad_()
    sinks = torch.zeros(1, dtype=torch.float64).requires_grad_()
    options = dict(causal=True, sinks=sinks)
    want = torch.autograd.grad(attention(x, x, x, **options)[0].sum(), [x, sinks])
    own = ring.split(x)
    got = torch.autograd.grad(ring(own, own, own, **options).sum(), [x, sinks])
    for a,b,name in zip(got, want, ('x','sinks')):
        dist.all_reduce(a)
        same(a, b, f'gradient of {name}')
    q = torch.randn(1, 2, 16, 8, generator=g)
    strided = ring.split(q).mT.contiguous().mT
    with torch.no_grad(): out = ring.join(ring(strided, strided, strided, causal=True))
    torch.testing.assert_close(out, attention(q, q, q, causal=True)[0])

def refusals(folder):
    "All processes say the same, also where one alone has something wrong"
    ring,q = ring_attention(mesh()),torch.randn(1, 2, 4, 8)
    with pytest.raises(NotImplementedError, match='bias is a table'): ring(q, q, q, bias=q[...,:4])
    kind = TypeError if rank() else RuntimeError
    with pytest.raises(kind, match='raised an error' if not rank() else 'k must'):
        ring(q, q.half() if rank() else q, q)
    with pytest.raises(ValueError, match='make the same call'): ring(q, q, q, causal=rank() == 0)
    odd = q[:,:,:4-rank()]
    with pytest.raises(ValueError, match='as split makes them'): ring(odd, odd, odd)
    with pytest.raises(ValueError, match='3 heads'):
        ulysses_attention(mesh())(*[torch.randn(1, 3, 4, 8)]*3)
    with pytest.raises(ValueError, match='order must be'): ring_attention(mesh(), order='best')

# %% models
def inputs_of(model, kind):
    g = torch.Generator().manual_seed(2)
    ids = torch.randint(0, 51, (2, 13), generator=g)
    real = torch.arange(13) >= torch.tensor([[3],[0]])
    if kind == 'mask': return dict(ids=ids, mask=real)
    if kind == 'documents': return dict(ids=ids, documents=torch.arange(13).expand(2, 13)//5)
    if kind == 'positions': return dict(ids=ids, positions=torch.arange(13)*2)
    return dict(ids=ids[:,:dict(short=5, tiny=2).get(kind, 13)])

def loss_of(logits, ids): return F.cross_entropy(logits.flatten(0, 1), ids.roll(-1, 1).flatten())

def same_model(many, one, inputs, what=''):
    "Logits and all gradients; those logits"
    want,got = one(**inputs),many(**inputs)
    real = inputs.get('mask', torch.ones_like(inputs['ids'], dtype=torch.bool))
    same(got[real], want[real], f'{what}: logits')
    for logits in (want, got): loss_of(logits, inputs['ids']).backward()
    same_parameters(many, one, gradient, f'{what}: gradient')
    return want

kinds = 'plain','mask','documents','positions','short','tiny'

def model_check(name, attend='zigzag', kinds=kinds):
    def check(folder):
        for kind in kinds:
            one = made(name)
            where = grid() if attend == 'both' else mesh()
            many = context_parallel(copy.deepcopy(one), where, attend=ways[attend]())
            inputs = inputs_of(one, kind)
            want = same_model(many, one, inputs, kind)
            same(many(**inputs, last=2), want[:,-2:], f'{kind}: last')
    return check

def own_part(folder):
    """With gather=False each takes the loss of its own tokens; `autograd.grad` gives sums too, and
    an error in the backward pass changes no gradient"""
    one = made('llama')
    many = copy.deepcopy(context_parallel(copy.deepcopy(one), mesh(), gather=False))
    inputs,split = inputs_of(one, 'plain'),ring_attention(mesh()).split
    target = inputs['ids'].roll(-1, 1)
    loss_of(one(**inputs), inputs['ids']).backward()
    mine = split(target, -1)
    def loss():
        logits = many(**inputs).flatten(0, 1)
        return F.cross_entropy(logits, mine.flatten(), reduction='sum')/target.numel()
    loss().backward()
    same_parameters(many, one, gradient)
    for p,g in zip(one.parameters(), torch.autograd.grad(loss(), [*many.parameters()])):
        same(g, p.grad, 'autograd.grad')
    def fail(grad): raise RuntimeError('stopped')
    many.embed.register_forward_hook(lambda module, args, out: out.register_hook(fail) and None)
    with pytest.raises(RuntimeError, match='stopped'): loss().backward()
    same_parameters(many, one, gradient, 'after an error')

def with_tensor_parallel(folder):
    "Some heads and some tokens on each of four"
    two = init_device_mesh('cpu', (2,2), mesh_dim_names=('context','tensor'))
    one = made('llama')
    many = parallelize(copy.deepcopy(one), two['tensor'])
    many = context_parallel(many, two['context'])
    same_model(many, one, inputs_of(one, 'plain'))

def with_fsdp(folder):
    "Parameters divided among the processes that divide the text, and among others with other texts"
    two = init_device_mesh('cpu', (2,2), mesh_dim_names=('data','context'))
    one = made('llama')
    many = context_parallel(copy.deepcopy(one), two['context'])
    flat = two._flatten('all')
    for block in many.decoder.blocks: fully_shard(block, mesh=flat)
    fully_shard(many, mesh=flat)
    inputs = inputs_of(one, 'plain')
    mine = inputs['ids'][two['data'].get_local_rank()][None]
    loss_of(one(**inputs), inputs['ids']).backward()
    (4*loss_of(many(mine), mine)/2).backward()    # it takes the mean over four
    same_parameters(many, one, gradient)

def experts(folder):
    "Experts divided, each process with tokens of its own; where one chose no expert of another too"
    for name,kinds in dict(gpt_oss=('documents','tiny'), deepseek=('plain',)).items():
        for kind in kinds:
            one = made(name)
            many = expert_parallel(context_parallel(copy.deepcopy(one), mesh()), mesh())
            inputs = inputs_of(one, kind)
            want,got = one(**inputs),many(**inputs)
            same(got, want, f'{name}, {kind}: logits')
            for logits in (want, got): loss_of(logits, inputs['ids']).backward()
            found,want = ({n: p.grad for n,p in m.named_parameters() if p.grad is not None}
                          for m in (many, one))
            for n in want.keys() & found.keys():
                same(found[n], want[n], f'{name}, {kind}: gradient of {n}')
            # each expert has its gradient on one of them
            own = torch.tensor(sum('.experts.' in n for n in want.keys() & found.keys()))
            dist.all_reduce(own)
            assert own == sum('.experts.' in n for n in want) > 0
            kept = {n.split('.experts.')[1].split('.')[0] for n,_ in many.named_parameters()
                    if '.experts.' in n}
            assert len(kept) == 4//dist.get_world_size()
            # and one that nobody asked has none, as in one process
            assert {n for n in want if '.experts.' not in n} <= found.keys() <= want.keys()
    with pytest.raises(ValueError, match='4 experts do not divide'):
        small_ = init_device_mesh('cpu', (dist.get_world_size(),))
        with mock.patch.object(type(small_), 'size', lambda m: 3): expert_parallel(one, small_)

def only_experts(folder):
    "Experts alone are trained, and all tokens choose those of the first process"
    one = made('gpt_oss')
    for n,p in one.named_parameters(): p.requires_grad_('.experts.' in n)
    with torch.no_grad():
        for block in one.decoder.blocks: block.ffn.router.bias.copy_(torch.tensor([99., 98, 0, 0]))
    many = expert_parallel(context_parallel(copy.deepcopy(one), mesh()), mesh())
    inputs = inputs_of(one, 'plain')
    for model in (one, many): loss_of(model(**inputs), inputs['ids']).backward()
    want = dict(one.named_parameters())
    found = {n: p for n,p in many.named_parameters() if p.grad is not None}
    assert len(found) == (0 if rank() else sum(p.grad is not None for p in want.values()))
    for n,p in found.items(): same(p.grad, want[n].grad, f'gradient of {n}')

def refused_models(folder):
    model = context_parallel(made('llama'), mesh())
    ids = torch.zeros(1, 4, dtype=torch.long)
    with pytest.raises(NotImplementedError, match='cache does not go'):
        model(ids, cache=model.new_cache(1, 8))
    with pytest.raises(ValueError, match='already'): context_parallel(model, mesh())
    with pytest.raises(ValueError, match='last must be at least 1'): model(ids, last=0)
    gemma = context_parallel(made('gemma2'), mesh())
    with pytest.raises(NotImplementedError, match='padding between'):
        gemma(ids, mask=torch.tensor([[True, False, True, True]]))
    model = context_parallel(made('llama'), mesh(), gather=False)
    with pytest.raises(NotImplementedError, match='last does not go'): model(ids, last=1)
    alone = init_device_mesh('cpu', (dist.get_world_size(), 1), mesh_dim_names=('all','one'))['one']
    with pytest.raises(ValueError, match='attend must be of the processes'):
        context_parallel(made('llama'), mesh(), attend=ring_attention(alone))
    model = expert_parallel(context_parallel(made('gpt_oss'), mesh()), alone)
    with pytest.raises(NotImplementedError, match='among all processes'): model(ids)
    drops = context_parallel(Transformer(TransformerConfig(**small, attn_dropout=.1)), mesh())
    drops.eval()(ids)
    with pytest.raises(NotImplementedError, match='dropout'): drops.train()(ids)

# %% a cache that is split
def written(model, cache, ids, mask, new=9):
    "Logits of all steps, and the tokens they make"
    logits = []
    with torch.no_grad():
        for _ in range(new):
            logits.append(model(ids[:,len(cache):], mask=mask, cache=cache))
            ids = torch.cat([ids, logits[-1][:,-1:].argmax(-1)], 1)
            if mask is not None: mask = torch.cat([mask, mask.new_ones(len(ids), 1)], 1)
    return torch.cat(logits, 1), ids

def split_text(folder):
    "Every logit and token of a text with filling; a cache that forgets, turns, and is full"
    for name,filled in dict(llama=True, gpt_oss=False, gemma2=True, bloom=True).items():
        one,(given,_) = made(name),parallel_worker.batch(made(name))
        cache,whole = split_cache(one, 2, 18, mesh(), chunk=2),one.new_cache(2, 18)
        mask = given['mask'] if filled else None
        got,want = (written(one, c, given['ids'], mask) for c in (cache, whole))
        same(got[0], want[0], f'{name}: logits')
        assert torch.equal(got[1], want[1])
    for c in (cache, whole):
        c.crop(5)
        c.select(torch.tensor([1, 0]))
    got,want = (written(one, c, given['ids'].flip(0), None, 3)[0] for c in (cache, whole))
    same(got, want, 'after crop and select')
    with torch.no_grad(), pytest.raises(ValueError, match='room for'):
        one(torch.zeros(2, 30, dtype=torch.long), cache=cache)
    n,llama = dist.get_world_size(),made('llama')
    large = split_cache(llama, 2, 64*n, mesh(), chunk=4).nbytes
    assert large*n == llama.new_cache(2, 64*n).nbytes
    rounded = (split_cache(llama, 2, 18, mesh(), dtype=torch.int8),
               llama.new_cache(2, 18, dtype=torch.int8))
    got,want = (written(llama, c, given['ids'], None, 3)[0] for c in rounded)
    same(got, want, 'in eight bits')
    cache = split_cache(llama, 2, 18, mesh())
    with torch.no_grad(), use_attention(llama, attention), pytest.raises(
            NotImplementedError, match='computes attention itself'):
        llama(given['ids'], cache=cache)
    with pytest.raises(NotImplementedError, match='no_grad'): llama(given['ids'], cache=cache)
    cache.reset()
    assert len(cache) == 0
    with pytest.raises(NotImplementedError, match='LatentAttention'):
        split_cache(made('deepseek'), 1, 8, mesh())

# each kind with some model, and each model with some kinds
some = dict(gpt2=('positions','mask'), llama=('plain','short'), gpt_oss=kinds,
            gemma2=('documents','tiny'), deepseek=('plain','mask'), bert=('mask','documents'))
checks = {f'way_{name}': way(name) for name in ways} | {
    f'few_{name}': way(name, few) for name in ways} | {
    f'model_{name}': model_check(name, kinds=its) for name,its in some.items()} | {
    f'all_{name}': model_check(name) for name in some} | {
    f'model_{a}': model_check('gpt_oss4', a, ('mask',)) for a in ('heads','both')} | {
    f.__name__: f for f in (nothing_outside_a_window, odd_inputs, refusals, own_part, experts,
                            only_experts, refused_models, split_text, with_tensor_parallel,
                            with_fsdp)}

if __name__ == '__main__':
    parallel_worker.checks = checks
    parallel_worker.main()
