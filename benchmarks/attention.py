"The attention functions against torch's own"
from measure import interleave, sized

sizes = ((8,12,1024,64), True),((16,8,256,64), False),((1,8,4096,64), True)

def tables(report, rounds):
    import torch, torch.nn.functional as F
    from attention_nb.kernels.reference import attention as readable
    from attention_nb.kernels.dispatch import scaled_dot_product_attention as fast
    torch.manual_seed(0)
    found = {}
    for (B,H,L,E),causal in sizes:
        q,k,v = torch.randn(3, B, H, L, E)
        def theirs(): return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        contestants = {
            'ours': lambda: fast(q, k, v, causal=causal),
            'PyTorch': theirs, 'PyTorch again': theirs,
            'ours, the readable form': lambda: readable(q, k, v, causal=causal)}
        shape = f'{sized(B, H, L, E)}{", causal" if causal else ""}'
        found[shape] = interleave(contestants, rounds, 'ours')
    report.compare('Attention and its readable form, float32', found)
