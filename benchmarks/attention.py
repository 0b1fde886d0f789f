"The attention functions against torch's own"
from measure import interleave

sizes = ((8,12,1024,64), True),((16,8,256,64), False),((1,8,4096,64), True)

def tables(report, rounds):
    import torch, torch.nn.functional as F
    from attention_nb.kernels.reference import attention as readable
    from attention_nb.kernels.dispatch import scaled_dot_product_attention as fast
    torch.manual_seed(0)
    for (B,H,L,E),causal in sizes:
        q,k,v = torch.randn(3, B, H, L, E)
        def theirs(): return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        contestants = {
            'scaled_dot_product_attention': lambda: fast(q, k, v, causal=causal),
            "torch's own": theirs, 'the same again': theirs,
            'attention (readable)': lambda: readable(q, k, v, causal=causal)}
        rows = interleave(contestants, rounds, 'scaled_dot_product_attention')
        report.show(f'B={B} H={H} L={L} E={E} causal={causal}, float32, '
                    f'{torch.get_num_threads()} threads', rows)
