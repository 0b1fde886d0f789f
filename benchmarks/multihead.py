"Multi-head attention: modules of one size, forward and backward"
from measure import interleave

sizes = (8,1024,768,12),(16,256,512,8),(1,4096,512,8),(32,64,256,8)
BY_HAND,NN = 'PyTorch by hand',"PyTorch's nn.MultiheadAttention"

def peers(D, H, L, dtype):
    "Modules by name, functions of x (B, L, D), causal; the first three are measured most"
    import torch, torch.nn.functional as F
    from torch import nn
    from x_transformers.x_transformers import Attention
    from attention_nb.layers.multihead import MultiHeadAttention, MultiHeadAttentionLoop
    class Fused(nn.Module):
        "Fused projection, attention, output projection, by hand"
        def __init__(self, attend):
            super().__init__()
            self.attend,self.qkv,self.out = attend,nn.Linear(D, 3*D),nn.Linear(D, D)
        def forward(self, x):
            q,k,v = self.qkv(x).unflatten(-1, (3, H, -1)).permute(2,0,3,1,4)
            return self.out(self.attend(q, k, v).transpose(1, 2).flatten(-2))
    future = torch.ones(L, L, dtype=torch.bool).triu(1)
    def kernel(q, k, v): return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    def naive(q, k, v):
        scores = (q @ k.mT * q.shape[-1]**-0.5).masked_fill(future, -torch.inf)
        return scores.softmax(-1) @ v
    modules = [Fused(kernel), Fused(kernel), MultiHeadAttention(D, H),
               nn.MultiheadAttention(D, H, batch_first=True),
               Attention(dim=D, heads=H, dim_head=D//H, causal=True, flash=True), Fused(naive),
               MultiHeadAttentionLoop(D, H)]
    limit,again,ours,theirs,x_transformers,by_hand,loop = (m.to(dtype) for m in modules)
    none = dict(attn_mask=future, need_weights=False)
    return {BY_HAND: limit, f'{BY_HAND} again': again,
            'ours': lambda x: ours(x, causal=True),
            'x-transformers': x_transformers,
            f'{NN}, causal hint':
                lambda x: theirs(x, x, x, is_causal=True, **none)[0],
            NN: lambda x: theirs(x, x, x, **none)[0],
            'PyTorch by hand, naive softmax': by_hand,
            'ours, a list of heads': lambda x: loop(x, causal=True)[0]}

def layer(B, L, D, H): return f'batch {B}, {L:,} tokens, width {D}, {H} heads'

def bound(fs, x, train):
    "Functions of nothing: `fs` on `x`, with gradients or without"
    import torch
    def call(f):
        if train: f(x).sum().backward()
        else:
            with torch.no_grad(): f(x)
    return {n: (lambda f=f: call(f)) for n,f in fs.items()}

def tables(report, rounds):
    import torch
    for dtype in (torch.float32, torch.bfloat16):
        found = {False: {}, True: {}}
        for B,L,D,H in sizes:
            torch.manual_seed(0)
            fs,x = peers(D, H, L, dtype),torch.randn(B, L, D, dtype=dtype, requires_grad=True)
            for train in (False, True):
                calls = bound(fs, x, train)
                first = dict(list(calls.items())[:3])
                rest = {n: f for n,f in calls.items() if n not in first or n == BY_HAND}
                rows = interleave(first, rounds, BY_HAND, patience=3)
                rows += interleave(rest, max(2, rounds//6), BY_HAND, patience=3)[1:]
                ours = next(ratio for name,_,ratio in rows if name == 'ours')
                found[train][layer(B, L, D, H)] = [(name, t, ratio/ours) for name,t,ratio in rows]
        for train,tables in found.items():
            what = 'forward and backward' if train else 'forward'
            report.compare(f'Multi-head layer, {what}, {str(dtype).removeprefix("torch.")}',
                           tables, 'causal')
