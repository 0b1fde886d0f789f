"Tiles against torch's own kernel and against the readable function: bfloat16, float32, options"
from measure import in_process, interleave, peak

shapes = (8,12,12,1024,64),(1,8,8,4096,128),(1,32,8,2048,128)

def made(B, H, Hkv, L, E, dtype):
    import torch
    torch.manual_seed(0)
    return (torch.randn(B, H, L, E).to(dtype), *(torch.randn(B, Hkv, L, E).to(dtype) for _ in 'kv'))

def learned(f, *tensors):
    "A step forward and back"
    import torch
    given = [t.detach().requires_grad_() for t in tensors]
    out = f(*given)
    return torch.autograd.grad(out, given, torch.ones_like(out))

def against_torch(report, rounds, dtype, shapes, back=False):
    import torch, torch.nn.functional as F
    from attention_nb.kernels.dispatch import scaled_dot_product_attention as ours
    rows = []
    for B,H,Hkv,L,E in shapes:
        for causal in (True, False):
            q,k,v = made(B, H, Hkv, L, E, dtype)
            def torchs(q, k, v):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                      enable_gqa=H != Hkv)
            def own(q, k, v): return ours(q, k, v, causal=causal)
            calls = {'ours': own, "torch's": torchs}
            found = interleave({n: (lambda f=f: learned(f, q, k, v)) if back else
                                (lambda f=f: f(q, k, v)) for n,f in calls.items()}, rounds, 'ours')
            (_,a,_),(_,b,ratio) = found
            heads = f'{H}' if H == Hkv else f'{H} heads, {Hkv} of keys'
            rows.append((f'{B} x {heads} x {L} x {E}{", causal" if causal else ""}', a, b, ratio))
    what = 'forward and back' if back else 'forward'
    name = str(dtype).removeprefix('torch.')
    report.show(f'{name}, {what}, {torch.get_num_threads()} threads',
                sorted(rows, key=lambda r: r[-1]), ('', 'ours', "torch's", "torch's / ours"))

def options(report, rounds):
    import torch
    from attention_nb.kernels.reference import attention
    from attention_nb.kernels.dispatch import scaled_dot_product_attention as ours
    rows,L = [],2048
    for dtype in (torch.bfloat16, torch.float32):
        q,k,v = made(1, 8, 8, L, 64, dtype)
        bias,sinks = torch.randn(8, L, L),torch.randn(8)
        for name,kw in {'soft cap': dict(softcap=20.), 'float32 bias': dict(bias=bias),
                        'sinks': dict(sinks=sinks)}.items():
            for more in ({}, dict(causal=True)):
                calls = {'ours': lambda: ours(q, k, v, **kw, **more),
                         'readable': lambda: attention(q, k, v, **kw, **more)}
                (_,a,_),(_,b,ratio) = interleave(calls, rounds, 'ours')
                what = f'{name}{", causal" if more else ""}, {str(dtype).removeprefix("torch.")}'
                rows.append((what, a, b, ratio))
    report.show(f'Options, 8 heads, L = {L}, E = 64', sorted(rows, key=lambda r: r[-1]),
                ('', 'ours', 'readable', 'readable / ours'))

def added(L, back):
    "Megabytes that a call of one head adds, in the process that asks"
    import torch
    from attention_nb.kernels.flash import flash_attention
    def step(L):
        q,k,v = (t.requires_grad_(back) for t in torch.randn(3, 1, 1, L, 64))
        out = flash_attention(q, k, v, causal=True)[0]
        if back: out.sum().backward()
    step(64)
    given = 3*L*64*4/1e6
    before = peak()
    step(L)
    return (peak()-before)/1e3 - given

def tables(report, rounds):
    import torch
    rounds = min(rounds, 9)
    against_torch(report, rounds, torch.bfloat16, shapes)
    against_torch(report, min(rounds, 5), torch.bfloat16, shapes, back=True)
    long = (8,12,12,1024,64),(1,8,8,4096,64),(1,8,2,8192,64)
    against_torch(report, rounds, torch.float32, long)
    options(report, min(rounds, 5))
    report.show('MB above the inputs, one head of 64, causal, float32',
                [(f'{L:,} tokens', *(in_process(added, L, back) for back in (False, True)))
                 for L in (4096, 16_384, 65_536)], ('', 'forward', 'forward and back'))
