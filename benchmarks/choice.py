"Is the choice right? What is taken by itself, beside the best of the others, on other shapes"
from measure import interleave, sized

def cases():
    "What, queries, keys, dtype, options: shapes that the numbers in `fast` do not come from"
    import torch
    from attention_nb.kernels.attention_mask import AttentionMask
    f,b = torch.float32,torch.bfloat16
    def docs(n, each): return AttentionMask(n, causal=True, q_doc=torch.arange(n)//each)
    for dtype in (f, b):
        for shape in ((2,6,200,48), (1,12,700,64), (4,16,300,80), (1,3,1500,128), (1,16,3000,96)):
            B,H,L,E = shape
            q,kv = (B,H,L,E),(B,H,L,E)
            yield 'no mask', q, kv, dtype, {}
            yield 'causal', q, kv, dtype, dict(causal=True)
            yield 'window of 100', q, kv, dtype, dict(causal=True, window=(99,0))
            yield 'window of half the length', q, kv, dtype, dict(causal=True, window=(L//2,0))
            yield 'documents of 150', q, kv, dtype, dict(mask=docs(L, 150))
            yield 'soft cap', q, kv, dtype, dict(causal=True, softcap=30.)
            yield 'sinks', q, kv, dtype, dict(causal=True, sinks=torch.zeros(H))
        for L in (1, 7, 33):
            q,kv = (1,8,L,64),(1,2,5000,64)
            yield 'behind a cache', q, kv, dtype, dict(causal=True)
            yield 'behind a cache, window of 300', q, kv, dtype, dict(causal=True, window=(299,0))
            yield 'behind a cache, soft cap', q, kv, dtype, dict(causal=True, softcap=30.)

TORCH = 'sdpa',    # torch's own kernel

def timed(q, kv, dtype, options, rounds):
    "The kernel chosen, and seconds and ratio of each"
    import torch
    from attention_nb.kernels.dispatch import (KERNELS, explain_choice,
                                               scaled_dot_product_attention as ours)
    torch.manual_seed(0)
    q,k,v = (torch.randn(s).to(dtype) for s in (q, kv, kv))
    chosen = explain_choice(q, k, v, **options)[0][0]
    calls = {}
    for row in KERNELS:
        if row.name == 'flex': continue    # a minute of compiling for each shape
        def call(kernel=None if row.name == chosen else row.name):
            return ours(q, k, v, kernel=kernel, **options)
        try: call()
        except NotImplementedError: continue
        calls[row.name] = call
    if len(calls) > 2 and chosen != 'eager': calls.pop('eager', None)    # always the slowest
    found = {name: (t, ratio) for name,t,ratio in interleave(calls, rounds, chosen)}
    return chosen, found

def beside(what, chosen, found, others, name):
    "The call with the two kernels, and the rows of a table: the one chosen and the best of others"
    best = min(others, key=lambda kernel: found[kernel][1])
    return f'{what} ({chosen}, not {best})', [('ours', *found[chosen]), (name, *found[best])]

def tables(report, rounds):
    import torch
    every,torchs = {},{}
    with torch.no_grad():
        for what,q,kv,dtype,options in cases():
            chosen,found = timed(q, kv, dtype, options, min(rounds, 9))
            B,H,L,E = q
            name = (f"{what}: {sized(B, H, L, E, Hkv=kv[1], S=kv[2])}, "
                    f"{str(dtype).removeprefix('torch.')}")
            for table,kernels,by in ((every, found, 'another kernel'), (torchs, TORCH, 'PyTorch')):
                if others := [n for n in kernels if n in found and n != chosen]:
                    task,rows = beside(name, chosen, found, others, by)
                    table[task] = rows
    for table,others in ((every, 'all others'), (torchs, "PyTorch's kernels")):
        report.compare(f'The kernel chosen beside {others}', table)
