"Multi-head attention that returns its weights"
from measure import interleave
from multihead import NN, bound, layer, sizes

def weighted(D, H, L):
    "By mask; torch's module also in evaluation, where it has a path of its own"
    import torch
    from torch import nn
    from attention_nb.layers.multihead import MultiHeadAttention
    future,ours = torch.ones(L, L, dtype=torch.bool).triu(1),MultiHeadAttention(D, H)
    training,evaluation = (nn.MultiheadAttention(D, H, batch_first=True).train(mode)
                           for mode in (True, False))
    def own(kw): return lambda x: ours(x, need_weights=True, **kw)[0]
    def other(m, kw): return lambda x: m(x, x, x, **kw)[0]
    rows = {}
    for kind,kw,theirs in (('causal', dict(causal=True), dict(attn_mask=future)),
                           ('no mask', {}, {})):
        rows[kind] = {'ours': own(kw), 'ours again': own(kw)}
        for mode,m in (('training', training), ('evaluation', evaluation)):
            for what,average in (('each head', False), ('averaged', True)):
                f = other(m, dict(average_attn_weights=average, **theirs))
                rows[kind][f'{NN}, {mode}, {what}'] = f
    return rows

def tables(report, rounds):
    import torch
    found = {}
    for B,L,D,H in sizes:
        torch.manual_seed(0)
        x = torch.randn(B, L, D, requires_grad=True)
        for kind,fs in weighted(D, H, L).items():
            for train in (False, True):
                calls = {n: f for n,f in bound(fs, x, train).items()
                         if not train or 'evaluation' not in n}
                rows = interleave(calls, rounds, 'ours', patience=4)
                what = f'{kind}, {"forward and backward" if train else "forward"}'
                found.setdefault(what, {})[layer(B, L, D, H)] = rows
    for what,tables in found.items():
        report.compare(f'With weights, {what}', tables, 'float32')
