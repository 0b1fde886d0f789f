"Tiles against torch's own kernel and against the readable function: bfloat16, float32, options"
from measure import given_back, in_process, interleave, peak, sized

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
    import torch.nn.functional as F
    from attention_nb.kernels.dispatch import scaled_dot_product_attention as ours
    found = {}
    for B,H,Hkv,L,E in shapes:
        for causal in (True, False):
            q,k,v = made(B, H, Hkv, L, E, dtype)
            def torchs(q, k, v):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                      enable_gqa=H != Hkv)
            def own(q, k, v): return ours(q, k, v, causal=causal)
            calls = {'ours': own, 'PyTorch': torchs}
            shape = f'{sized(B, H, L, E, Hkv=Hkv)}{", causal" if causal else ""}'
            found[shape] = interleave({n: (lambda f=f: learned(f, q, k, v)) if back else
                                       (lambda f=f: f(q, k, v)) for n,f in calls.items()},
                                      rounds, 'ours')
    what = 'forward and backward' if back else 'forward'
    report.compare(f'Attention, {what}, {str(dtype).removeprefix("torch.")}', found)

def options(report, rounds):
    import torch
    from attention_nb.kernels.reference import attention
    from attention_nb.kernels.dispatch import scaled_dot_product_attention as ours
    found,L = {},2048
    for dtype in (torch.bfloat16, torch.float32):
        q,k,v = made(1, 8, 8, L, 64, dtype)
        bias,sinks = torch.randn(8, L, L),torch.randn(8)
        for name,kw in {'soft cap': dict(softcap=20.), 'float32 bias': dict(bias=bias),
                        'sinks': dict(sinks=sinks)}.items():
            for more in ({}, dict(causal=True)):
                calls = {'ours': lambda: ours(q, k, v, **kw, **more),
                         'ours, the readable form': lambda: attention(q, k, v, **kw, **more)}
                what = f'{name}{", causal" if more else ""}, {str(dtype).removeprefix("torch.")}'
                found[what] = interleave(calls, rounds, 'ours')
    report.compare('Soft cap, bias and sinks', found, sized(1, 8, L, 64))

def added(L, back):
    "Megabytes that a call of one head adds, in the process that asks"
    import torch
    from attention_nb.kernels.blocks import flash_attention
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
    with given_back():
        rows = [(L, *(in_process(added, L, back) for back in (False, True)))
                for L in (4096, 16_384, 65_536)]
    report.show('Memory of one head above its inputs', rows,
                ('tokens', 'forward, MB', 'forward and backward, MB'),
                f'{rows[-1][1]:.0f} MB for {rows[-1][0]:,} tokens', 'width 64, causal, float32')
