"Peak memory of forward and backward, by option and length"
from measure import given_back, in_process, peak

lengths = 1024,2048,4096,8192

def padding(L):
    from attention_nb.kernels.mask import padding_mask
    return padding_mask([L-9], L)

def zeros(L):
    import torch
    return torch.zeros(1, 1, L, L)

# name: (options of the module, of the call, of the call by length)
options = {
    'no option': ({}, {}, {}), 'causal': ({}, dict(causal=True), {}),
    'padding': ({}, {}, dict(mask=padding)),
    'causal, sinks': (dict(sinks=True), dict(causal=True), {}),
    'causal and padding': ({}, dict(causal=True), dict(mask=padding)),
    'window=(64,0)': (dict(window=(64,0)), {}, {}),
    'causal, add_zero_attn': (dict(add_zero_attn=True), dict(causal=True), {}),
    'bias of every pair': ({}, {}, dict(bias=zeros)), 'softcap': (dict(softcap=5.), {}, {}),
    'need_weights': ({}, dict(need_weights=True), {})}
short = 'softcap', 'need_weights'                       # not at the last length

def growth(name, L):
    "Megabytes that a step of length `L` adds to one of 64, in the process that asks"
    import torch
    from attention_nb import MultiHeadAttention
    from attention_nb.layers.torch_interop import AppendedAttention
    make,call,by_length = options[name]
    layer = AppendedAttention if 'add_zero_attn' in make else MultiHeadAttention
    def step(L):
        torch.manual_seed(0)
        m,x = layer(512, 8, **make),torch.randn(1, L, 512)
        out = m(x, **call, **{k: f(L) for k,f in by_length.items()})
        (out[0] if isinstance(out, tuple) else out).sum().backward()
    step(64)
    before = peak()
    step(L)
    return (peak()-before)/1e3

def tables(report, rounds):
    "`rounds` is not used, since one process measures once"
    with given_back():
        rows = [(name, *(in_process(growth, name, L) for L in lengths
                         if L < lengths[-1] or name not in short)) for name in options]
    report.show('Memory that a training step of a layer adds', rows,
                ('option', *(f'{L:,} tokens, MB' for L in lengths)),
                f'{rows[0][-1]:.0f} MB for {lengths[-1]:,} tokens without options',
                'batch 1, width 512, 8 heads, float32')
