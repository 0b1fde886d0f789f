"""One of several processes that prove nbs/distributed/tensor_parallel.ipynb; they are started by
test_tensor_parallel.py. `python parallel_worker.py FOLDER 2,CHECK,CHECK 4,CHECK` runs some checks
on two processes, then one on four. Each compares with the same model on one process, in float64
where nothing else is said: rounding is then far below the tolerance, and an error is not. What
failed is written to FOLDER/N-RANK.json"""
import copy, faulthandler, os, re, sys, traceback
from datetime import timedelta
from pathlib import Path
from unittest import mock
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close
from attention_nb.models.config import ExpertsConfig, TransformerConfig
from attention_nb.models.generation import stream
from attention_nb.recording.patching import remove_heads
from attention_nb.layers.latent import LatentAttention, LatentConfig
from attention_nb.layers.multihead import MultiHeadAttention
from attention_nb.distributed.tensor_parallel import load_shard, parallelize
from attention_nb.models.transformer import Transformer
from attention_nb.kernels.attention_mask import AttentionMask
from helpers.processes import run_checks

# 51: an uneven split
small = dict(vocab_size=51, d_model=16, n_layers=2, n_heads=4, d_ff=24, max_len=32)
layer = dict(norm='layer', gated=False, activation='gelu', attn_bias=True, ffn_bias=True)
configs = dict(
    gpt2=dict(positions='learned', **layer),
    llama=dict(n_kv_heads=2, tied=False),
    gpt_oss=dict(n_kv_heads=2, sinks=True, window=(3,0), layer_types=('window','full'),
                 attn_bias=True, tied=False, experts=ExpertsConfig(
                     4, 2, 8, router='top_softmax', router_bias=True, bias=True, clamp=7.)),
    # its heads divide among four too
    gpt_oss4=dict(n_kv_heads=4, sinks=True, window=(3,0), tied=False),
    gemma2=dict(n_kv_heads=2, norm_offset=1., norm_style='sandwich', softcap=5., logit_softcap=3.,
                embed_scale=4., window=(3,0), layer_types=('window','full'), head_dim=6),
    qwen3=dict(n_kv_heads=2, qk_norm='rms'),
    olmo2=dict(n_kv_heads=2, qk_norm='rms', qk_norm_over='width', norm_style='output'),
    bloom=dict(positions='alibi', embed_norm=True, **layer),
    neox=dict(parallel=True, rotary_dim=2, tied=False, head_bias=True, **layer),
    deepseek=dict(latent=LatentConfig(q_rank=10, kv_rank=6, nope_dim=4, rope_dim=2, v_dim=5),
                  dense_layers=1, rope_interleaved=True, experts=ExpertsConfig(
                      4, 2, 8, router='sigmoid', n_groups=2, active_groups=1, n_shared=1)),
    latent_lite=dict(latent=LatentConfig(kv_rank=6, nope_dim=4, rope_dim=2, v_dim=5, bias=True)),
    bert=dict(kind='encoder', positions='learned', n_types=2, embed_norm=True, norm_style='post',
              final_norm=False, head='masked', head_bias=True, **layer),
    t5=dict(kind='encoder-decoder', positions='relative', relative_buckets=8,
            relative_max_distance=6, activation='relu', gated=False, scale=1., logit_scale=.25,
            n_decoder_layers=1))

def rank(): return dist.get_rank()
def mesh(n=None):
    return init_device_mesh('cpu', (n or dist.get_world_size(),), mesh_dim_names=('tp',))
def full(t): return t.full_tensor() if isinstance(t, DTensor) else t
def same(a, b, what='', tol=1e-9):
    assert_close(full(a).detach(), b.detach(), atol=tol, rtol=tol, msg=lambda m: f'{what}: {m}')
def same_parameters(many, one, of=lambda p: p, what=''):
    "Those of two models, or what `of` gives of them; names of a wrapper are passed over"
    named = {n.removeprefix('module.'): p for n,p in many.named_parameters()}
    for n,p in one.named_parameters():
        assert named[n].requires_grad == p.requires_grad, n
        assert (of(named[n]) is None) == (of(p) is None), n
        if of(p) is not None: same(of(named[n]), of(p), f'{n} {what}')
def gradient(p): return p.grad

def randomize(model):
    "Every parameter matters: none is zero, none the same everywhere"
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=torch.float64)*.4 + .1)
    return model

def made(name, **more):
    return randomize(Transformer(TransformerConfig(**small | configs[name] | more)).double())

def batch(model, rows=2):
    "Two texts, the first padded on the left, and what comes after each token"
    g = torch.Generator().manual_seed(2)
    ids,target = (torch.randint(0, 51, (rows, 7), generator=g) for _ in range(2))
    real = torch.ones(rows, 7, dtype=torch.bool); real[0,:2] = False
    more = dict(decoder_ids=target.roll(1, 1)) if model.cfg.kind == 'encoder-decoder' else {}
    if model.cfg.n_types: more['type_ids'] = torch.arange(7).expand(rows, 7) % 2
    return dict(ids=ids, mask=real, **more), target

def loss_of(model, inputs, target):
    return F.cross_entropy(model(**inputs).flatten(0, 1), target.flatten())

def trained(model, inputs, target, steps=3):
    "Losses and gradient norms of some steps of AdamW; the model is changed"
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    seen = []
    for _ in range(steps):
        opt.zero_grad()
        loss = loss_of(model, inputs, target)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.)
        opt.step()
        seen += [loss.detach(), full(norm)]
    return torch.stack(seen)

def same_steps(one, given, many, mine):
    "The lengths of gradients in three steps, and the parameters after them"
    want,got = trained(one, *given),trained(many, *mine)
    same(got[1::2], want[1::2], 'norms of gradients')
    same_parameters(many, one, what='after three steps')

def greedy(model, inputs, new=4):
    "Token after token through a cache; the window of some configs is passed"
    both = model.cfg.kind == 'encoder-decoder'
    ids,mask = inputs['ids'],inputs['mask']
    cache = model.new_cache(len(ids), 16, memory_len=ids.shape[1] if both else None)
    out = [ids[:,:1]] if both else [ids]
    with torch.no_grad():
        for _ in range(new):
            if both: logits = model(ids, mask=mask, cache=cache, decoder_ids=out[-1])
            else: logits = model(out[-1], mask=mask, cache=cache)
            out.append(logits[:,-1:].argmax(-1))
            if not both: mask = torch.cat([mask, mask.new_ones(len(ids), 1)], 1)
    return torch.cat(out, 1), cache

# %% tensor parallel
def tp(family, trains=False):
    "Logits, gradients and greedy text, or three steps, of a model and the same on all processes"
    def check(folder):
        one = made(family).train()
        many,(inputs,target) = parallelize(copy.deepcopy(one), mesh()),batch(one)
        if trains: return same_steps(one, (inputs, target), many, (inputs, target))
        same(many(**inputs), one(**inputs), 'logits')
        for model in (one, many): loss_of(model, inputs, target).backward()
        same_parameters(many, one, gradient, 'gradient')
        if one.cfg.kind != 'encoder':
            assert torch.equal(greedy(many, inputs)[0], greedy(one, inputs)[0]), 'greedy text'
    return check

def everything_is_split(folder):
    """A process keeps about half, the same parameters as before by name and whole shape, and half
    of the cache"""
    one = made('llama')
    many = parallelize(copy.deepcopy(one), mesh())
    shapes = [{n: p.shape for n,p in m.named_parameters()} for m in (many, one)]
    assert shapes[0] == shapes[1]
    assert all(isinstance(p, DTensor) for p in many.parameters())
    def kept(model): return sum(getattr(p, '_local_tensor', p).nbytes for p in model.parameters())
    assert .5 <= kept(many)/kept(one) < .52, kept(many)/kept(one)
    with mock.patch.object(collectives, 'all_reduce', wraps=collectives.all_reduce) as sums:
        loss = many(**batch(one)[0]).sum()
        forward = sums.call_count
        loss.backward()
    # two a block and one of the table forward; two a block and one of the head backward
    assert (forward, sums.call_count-forward) == (5, 5), sums.call_args_list
    caches = [greedy(m, batch(one)[0])[1] for m in (one, many)]
    assert caches[0].nbytes == 2*caches[1].nbytes
    assert [many.decoder.blocks[0].attn.n_heads, many.decoder.blocks[0].attn.n_kv_heads] == [2, 1]

def attention_alone(folder):
    """Masks and biases with and without heads, weights of all heads or their mean,
    cross-attention; all gradients"""
    torch.manual_seed(0)
    x,memory,bias = torch.randn(2,5,16),torch.randn(2,7,12),torch.randn(1,4,5,7)
    mask = torch.rand(2,4,5,7) > .3
    one = randomize(MultiHeadAttention(16, 4, n_kv_heads=2, kdim=12, vdim=12, sinks=True,
                                       qk_norm='layer'))
    many = parallelize(copy.deepcopy(one), mesh())
    for shape,weights in (((1,4,5,7), False), ((2,1,5,7), True), ((5,7), 'mean')):
        found = []
        for m in (one, many):
            cut = tuple(slice(n) for n in shape)
            some = bias.expand(2,4,5,7)[cut] if len(shape) == 4 else bias[0,0]
            a,b,c = (t.clone().requires_grad_() for t in (x, memory, some))
            m.zero_grad()
            out = m(a, b, bias=c, mask=mask[:,:1] if weights else mask, need_weights=weights)
            out = out if weights else (out,)
            sum((o**2).sum() for o in out).backward()
            found.append([*out, a.grad, b.grad, c.grad, *(full(p.grad) for p in m.parameters())])
        for a,b in zip(*found, strict=True): same(b, a, f'{shape}, {weights}', 1e-5)
    found = [m(x[0], memory[0], need_weights=True) for m in (one, many)]
    for a,b in zip(*found, strict=True): same(b, a, 'no batch', 1e-5)

def latent_alone(folder):
    torch.manual_seed(0)
    x = torch.randn(2,5,16)
    one = randomize(LatentAttention(16, 4, kv_rank=6, nope_dim=4, rope_dim=2, v_dim=5, bias=True,
                                    absorbed=True))
    many = parallelize(copy.deepcopy(one), mesh())
    both = [m(x, causal=True, need_weights=True) for m in (one, many)]
    for a,b in zip(*both, strict=True): same(b, a, tol=1e-5)

def heads_taken_out(folder):
    "Each head that is named, wherever it lives, and no other; weights keep their rows"
    for name in ('llama', 'deepseek'):
        one = made(name).eval()
        many,inputs = parallelize(copy.deepcopy(one), mesh()),batch(one)[0]
        whole = one(**inputs)
        for heads in ([(0,1)], [(0,0),(1,3)], [(1,n) for n in range(4)]):
            with remove_heads(one, heads), remove_heads(many, heads):
                want = one(**inputs)
                same(many(**inputs), want, f'{name} without {heads}')
            assert (want-whole).abs().max() > 1e-3, heads
        same(many(**inputs), whole, 'given back')
        fails(ValueError, 'got (0, 4)', lambda: remove_heads(many, [(0,4)]).__enter__())

def drawn_together(folder):
    """One text on all processes, whatever chance each of them has: with seeds of torch's own, with
    generators that differ, with none; another text the next time; and greedy and beams as one"""
    one = made('llama', n_layers=1)
    # torch asks again what to do at each new shape: one token of as many rows as there are beams
    many,ids = parallelize(copy.deepcopy(one), mesh()),batch(one, rows=6)[0]['ids'][:,:1]
    torch.manual_seed(rank())
    texts = [many.generate(ids, 3, temperature=3., **kw) for kw in ({}, {}, dict(top_k=40), dict(
        generator=torch.Generator().manual_seed(rank())))]
    texts.append(torch.stack([*stream(many, ids, 3, temperature=3.)], 1))
    for text in texts:
        each = [torch.empty_like(text) for _ in range(dist.get_world_size())]
        dist.all_gather(each, text)
        assert all(torch.equal(text, other) for other in each), text
    assert not torch.equal(texts[0], texts[1])
    for rows,kw in ((6, {}), (2, dict(n_beams=3)), (6, dict(temperature=1., seed=3))):
        want = one.generate(ids[:rows], 3, **kw)
        assert torch.equal(many.generate(ids[:rows], 3, **kw), want), kw

def rules_of_heads(folder):
    "Rules say the same of all heads; a mask among them is each head's own"
    torch.manual_seed(0)
    x,mask = torch.randn(2,6,16),torch.rand(2,4,6,6) > .3
    one = randomize(MultiHeadAttention(16, 4, n_kv_heads=2))
    many = parallelize(copy.deepcopy(one), mesh())
    inner = AttentionMask(6, causal=True, mask=mask)
    for see in (AttentionMask(6, window=(2,0)), inner, AttentionMask(6, window=(2,0)) & inner):
        same(many(x, mask=see), one(x, mask=see), tol=1e-5)

def rank_zero_decides(folder):
    "Models that differ before are one after"
    def drawn(seed):
        torch.manual_seed(seed)
        model = Transformer(TransformerConfig(**small | configs['gpt_oss']))
        for p in model.parameters(): nn.init.normal_(p)
        return model
    many = parallelize(drawn(rank()), mesh())
    for p,q in zip(many.parameters(), drawn(0).parameters(), strict=True): same(p, q)

def fails(kind, message, f):
    try: f()
    except kind as e: assert message in str(e), e
    else: raise AssertionError(f'no {kind.__name__}: {message}')

def refused(folder):
    def split(**kw): return parallelize(Transformer(TransformerConfig(**small | kw)), mesh())
    uneven = 'of decoder.blocks.0.{} does not divide among 2 processes'
    for name,wrong in (('attn',dict(n_heads=3, d_model=12)), ('attn',dict(n_kv_heads=1)),
                       ('ffn',dict(d_ff=25))):
        what,n = next(iter(wrong.items()))
        fails(ValueError, f'{what}={n} {uneven.format(name)}', lambda: split(**wrong))
    fails(ValueError, 'n_heads=3 of MultiHeadAttention',
          lambda: parallelize(MultiHeadAttention(12, 3), mesh()))
    fails(ValueError, 'one dimension, got 2',
          lambda: parallelize(made('llama'), init_device_mesh('cpu', (1,2))))
    many = split()
    fails(ValueError, 'split already', lambda: parallelize(many, mesh()))

def loads_in_little_memory(folder):
    "What a process needs to load its share is that share, and not the file"
    cfg = TransformerConfig(vocab_size=6144, d_model=512, n_layers=1, n_heads=8, tied=False)
    if rank() == 0: save_file(Transformer(cfg).state_dict(), folder/'large.safetensors')
    dist.barrier()
    status = Path('/proc/self/status')
    if not status.exists(): return
    def memory(): return int(re.search(r'RssAnon:\s*(\d+)', status.read_text())[1])*1024
    with torch.device('meta'): model = Transformer(cfg)
    parallelize(model, mesh())
    before,size = memory(),(folder/'large.safetensors').stat().st_size
    load_shard(model.to_empty(device='cpu'), folder/'large.safetensors')
    grown = (memory()-before)/size
    assert grown < .8, grown     # its share is half of the file

# %% data parallel
def data_parallel(wrap, config):
    "Each process reads its rows; gradients, steps, parameters are those of all rows on one process"
    def check(folder):
        one = made(config)
        many = wrap(copy.deepcopy(one))
        inputs,target = batch(one, rows=4)
        own = slice(rank()*2, rank()*2+2)
        mine = {n: t[own] for n,t in inputs.items()}
        with torch.no_grad(): same(many(**mine), one(**inputs)[own], 'logits')
        loss_of(one, inputs, target).backward()
        loss_of(many, mine, target[own]).backward()
        same_parameters(many, one, gradient, 'gradient')
        same_steps(one, (inputs, target), many, (mine, target[own]))
        raw = getattr(many, 'module', many)
        writer = raw if isinstance(many, DistributedDataParallel) else many
        assert torch.equal(greedy(writer, inputs)[0], greedy(one, inputs)[0])
        mine = {n: t for n,t in mine.items() if n in ('ids','mask')}
        text = raw.train().generate(**mine, max_new_tokens=4)
        assert torch.equal(text, one.generate(inputs['ids'], 4, mask=inputs['mask'])[own])
    return check

def sharded(model, on=None):
    on = on or init_device_mesh('cpu', (dist.get_world_size(),))
    for block in model.decoder.blocks: fully_shard(block, mesh=on)
    return fully_shard(model, mesh=on)

# %% files
def writes(folder):
    "A checkpoint of the split model, a file of the whole one, and what it computes"
    one = made('gpt_oss4')
    many = parallelize(copy.deepcopy(one), mesh())
    dcp.save(many.state_dict(), checkpoint_id=str(folder/'checkpoint'))
    if rank() == 0:
        save_file(one.state_dict(), folder/'whole.safetensors')
        with torch.no_grad(): torch.save(one(**batch(one)[0]), folder/'logits.pt')

def on_meta(name):
    with torch.device('meta'):
        model = Transformer(TransformerConfig(**small | configs[name])).double()
    return model

def filled_with(model, value=float('nan')):
    model = model.to_empty(device='cpu')
    with torch.no_grad():
        for p in model.parameters(): p.fill_(value)
    return model

def reads_its_share(folder):
    "Half of a model, read from a file; what does not fit changes nothing"
    name = 'gpt_oss4'
    model = filled_with(parallelize(on_meta(name), mesh()))
    want = torch.load(folder/'logits.pt')
    load_shard(model, folder/'whole.safetensors')
    with torch.no_grad(): same(model(**batch(model)[0]), want)
    if rank() == 0:
        whole = made(name).state_dict()
        names = sorted(whole)
        (folder/'two').mkdir(exist_ok=True)
        save_file({n: whole[n] for n in names[:9]}, folder/'two'/'a.safetensors')
        save_file({n: whole[n] for n in names[9:]}, folder/'two'/'b.safetensors')
        save_file({n: whole[n] for n in names[9:]}, folder/'less.safetensors')
        save_file(whole | {names[-1]: whole[names[-1]][:1].clone()}, folder/'odd.safetensors')
    dist.barrier()
    filled_with(model)
    fails(ValueError, ' missing: [', lambda: load_shard(model, folder/'less.safetensors'))
    fails(ValueError, f'{sorted(model.state_dict())[-1]} must be',
          lambda: load_shard(model, folder/'odd.safetensors'))
    assert all(full(p).isnan().all() for p in model.parameters())
    load_shard(model, folder/'two')
    with torch.no_grad(): same(model(**batch(model)[0]), want)

families = [name for name in configs if name != 'gpt_oss4']
checks = {f'tp_{name}': tp(name) for name in families} | {
    f'trains_{name}': tp(name, trains=True) for name in families} | {
    f'{kind}_{name}': data_parallel(wrap, name) for name in ('gpt2', 'llama')
    for kind,wrap in dict(ddp=DistributedDataParallel, fsdp=sharded).items()} | {
    f.__name__: f for f in (
        everything_is_split, attention_alone, latent_alone, heads_taken_out, drawn_together,
        rules_of_heads, loads_in_little_memory, rank_zero_decides, refused, writes,
        reads_its_share)}

# %% processes
def run(me, n, folder, names):
    "Be process `me` of `n`"
    faulthandler.dump_traceback_later(500, exit=True)      # whatever happens, this process ends
    store = f'file://{folder}/store{n}'
    dist.init_process_group('gloo', init_method=store, rank=me, world_size=n,
                            timeout=timedelta(seconds=120))
    run_checks(checks, names, folder/f'{n}-{me}.json', folder)
    dist.destroy_process_group()

def start(n, folder, names):
    "Run checks on `n` processes, copies of this one: what is imported is imported once"
    children = []
    for me in range(n):
        if pid := os.fork():
            children.append(pid)
            continue
        code = 1
        try: run(me, n, folder, names); code = 0
        except BaseException: traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return not any([os.waitpid(pid, 0)[1] for pid in children])

def main():
    torch.set_num_threads(1)
    for group in sys.argv[2:]:
        n,*names = group.split(',')
        if not start(int(n), Path(sys.argv[1]), names): sys.exit(1)

if __name__ == '__main__': main()
