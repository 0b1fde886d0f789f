"""Our choice of kernel on a GPU: first is it right, then how fast, beside torch's own backends.

TFLOP/s counts the products that a call needs: 4 L S E for a head forward, 10 backward, half of it
where causality hides half. A share is that of the device's peak in half precision without
sparsity, from its data sheet; a device that is not in the table gets none.
"""
import statistics

PEAKS = {'A100': 312, 'H100 PCIe': 756, 'H100': 989, 'H200': 989, 'B200': 2250, 'L40S': 362,
         'L4': 121, '4090': 165, '3090': 71}    # TFLOP/s
LENGTHS = 1024,2048,4096,8192,16384

def peak_of(name): return next((n for key,n in PEAKS.items() if key in name), None)

def operations(B, H, L, E, causal, back):
    "Additions and multiplications of the products, in 10^12"
    return (10 if back else 4)*B*H*L*L*E/(2 if causal else 1)/1e12

def clocked(contestants, rounds):
    "Name -> median seconds on the device; contestants take turns, the cache is emptied before each"
    import torch
    times = {name: [] for name in contestants}
    flushed = torch.empty(256*2**20, dtype=torch.int8, device='cuda')
    for r in range(rounds+3):
        for name,f in contestants.items():
            begin,end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flushed.zero_()
            begin.record()
            f()
            end.record()
            end.synchronize()
            if r > 2: times[name].append(begin.elapsed_time(end)/1e3)
    return {name: statistics.median(t) for name,t in times.items()}

def peers(causal):
    "Name -> attention function of torch's, each held to one backend"
    import torch, torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    compiled = torch.compile(flex_attention, dynamic=False)
    def backend(which):
        def f(q, k, v):
            with sdpa_kernel(which):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return f
    masks = {}
    def flex(q, k, v):
        L = q.shape[2]
        if causal and L not in masks:
            masks[L] = create_block_mask(lambda b, h, i, j: i >= j, None, None, L, L, device='cuda')
        return compiled(q, k, v, block_mask=masks.get(L))
    return {"torch's flash": backend(SDPBackend.FLASH_ATTENTION),
            "torch's cuDNN": backend(SDPBackend.CUDNN_ATTENTION), 'FlexAttention, compiled': flex}

def works(f, *args):
    "Can it do this call here?"
    try: f(*args)
    except Exception as e:
        print(f'  left out: {str(e).splitlines()[0][:90]}', flush=True)
        return False
    return True

def errors(report):
    "Largest error of output and gradients against float64, ours and torch's"
    import torch, torch.nn.functional as F
    from attention_nb.kernels.reference import attention
    from attention_nb.kernels.dispatch import scaled_dot_product_attention as ours
    rows = []
    def results(f, tensors):
        tensors = [t.detach().requires_grad_() for t in tensors]
        out = f(*tensors)
        return out, *torch.autograd.grad(out, tensors, torch.ones_like(out))
    def worst(f, tensors, exact):
        return [(a.double()-b).abs().max().item() for a,b in zip(results(f, tensors), exact)]
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for E in (32, 64, 80, 128, 256):
            qkv = [torch.randn(2, H, 1000, E, device='cuda').to(dtype) for H in (8,2,2)]
            exact = results(lambda *t: attention(*t, causal=True)[0], [t.double() for t in qkv])
            for name,f in {'ours': lambda *t: ours(*t, causal=True),
                           'ours, kernel=flex': lambda *t: ours(*t, causal=True, kernel='flex'),
                           "torch's own": lambda q, k, v: F.scaled_dot_product_attention(
                               q, k, v, is_causal=True, enable_gqa=True)}.items():
                rows.append((f'{name}, {dtype}, {E}', *worst(f, qkv, exact)))
    report.show('largest error against float64, 8 heads share 2, L=1000, causal', rows,
                ('', 'output', 'queries', 'keys', 'values'))

def race(report, rounds, E, causal, back):
    "A table of lengths: TFLOP/s of each, and ours as a share of the peak and of the best"
    import torch
    from attention_nb.kernels.dispatch import scaled_dot_product_attention as ours
    contestants = {'ours': lambda q, k, v: ours(q, k, v, causal=causal),
                   **peers(causal)}
    rows,peak = [],peak_of(torch.cuda.get_device_name())
    for L in LENGTHS:
        B,H = max(1, 16384//L),2048//E
        q,k,v = (torch.randn(B, H, L, E, device='cuda', dtype=torch.bfloat16).requires_grad_(back)
                 for _ in range(3))
        calls = {name: f for name,f in contestants.items() if works(f, q, k, v)}
        if back:
            outs = {name: f(q, k, v) for name,f in calls.items()}
            g = torch.randn_like(q)
            def again(out): return lambda: torch.autograd.grad(out, (q,k,v), g, retain_graph=True)
            timed = {name: again(out) for name,out in outs.items()}
        else: timed = {name: (lambda f=f: f(q, k, v)) for name,f in calls.items()}
        seconds = clocked(timed, rounds)
        speed = {name: operations(B, H, L, E, causal, back)/s for name,s in seconds.items()}
        mine = speed['ours']
        best = max([s for name,s in speed.items() if name != 'ours'], default=mine)
        rows.append((f'L={L} B={B} H={H}', *(speed.get(name, '') for name in contestants),
                     mine/best, mine/peak if peak else ''))
    way = 'backward' if back else 'forward'
    report.show(f'{way}, E={E}, causal={causal}, bfloat16, TFLOP/s', rows,
                ('', *contestants, 'ours / best', 'share of peak'))

def tables(report, rounds):
    import torch
    if not torch.cuda.is_available():
        report.say('gpu: no CUDA device here, nothing is measured')
        return
    torch.manual_seed(0)
    report.say(f'{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA '
               f'{torch.version.cuda}')
    errors(report)
    for E in (64, 128):
        for causal in (True, False):
            for back in (False, True): race(report, rounds, E, causal, back)
