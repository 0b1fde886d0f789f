"Windows and packed documents against a mask as a tensor, and against FlexAttention compiled"
from functools import partial
from flash import learned, made
from measure import interleave

L,H = 16_384,8
FLEX = 'FlexAttention, compiled'

def peers(see, rule):
    "Calls that compute the same; FlexAttention is compiled before it is timed"
    import torch, torch.nn.functional as F
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    from attention_nb.kernels.dispatch import scaled_dot_product_attention as ours
    mask,blocks = see.dense(),create_block_mask(rule, None, None, see.L, see.S, device='cpu')
    flex = torch.compile(flex_attention, dynamic=False)
    return {'ours': lambda q, k, v: ours(q, k, v, mask=see),
            FLEX: lambda q, k, v: flex(q, k, v, block_mask=blocks),
            'PyTorch with a mask':
                lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask),
            'PyTorch, full causal (another result)':
                lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)}

def window(width):
    return lambda b, h, q, k: (q >= k) & (q-k < width)

def document(ids):
    return lambda b, h, q, k: (q >= k) & (ids[q] == ids[k])

def growth(report, rounds):
    import math, torch
    from attention_nb.kernels.dispatch import scaled_dot_product_attention as ours
    lengths = 4096,8192,16_384,32_768,65_536
    calls = {}
    for n in lengths:
        q,k,v = made(1, H, H, n, 64, torch.float32)
        calls[n] = lambda q=q, k=k, v=v: ours(q, k, v, causal=True, window=(511,0))
    rows = [(n, t) for n,t,_ in interleave(calls, rounds, lengths[0])]
    power = math.log(rows[-1][1]/rows[0][1])/math.log(lengths[-1]/lengths[0])
    report.show('A window of 512, by length', rows, ('tokens', 'seconds'),
                f'the time grows with the length to the power of {power:.2f}',
                f'{H} heads of width 64, causal, float32')

def prefill(report, rounds):
    import torch
    from attention_nb.models.config import TransformerConfig
    from attention_nb.kernels.dispatch import scaled_dot_product_attention as ours
    from attention_nb.layers.base import use_attention
    from attention_nb.models.transformer import Transformer
    cfg = TransformerConfig(vocab_size=1000, d_model=512, n_layers=2, n_heads=8, n_kv_heads=2,
                            window=(511,0), max_len=8192)
    model,ids = Transformer(cfg).eval(),torch.randint(0, 1000, (1, 8192))
    def run(attend):
        with torch.no_grad(), use_attention(model, attend): return model(ids)
    calls = {'ours': lambda: run(None),
             "ours, torch's kernel": lambda: run(partial(ours, kernel='sdpa'))}
    report.compare('Two blocks of Mistral with a window of 512',
                   {'reading 8,192 tokens': interleave(calls, rounds, 'ours')})

def tables(report, rounds):
    import torch
    from attention_nb.kernels.attention_mask import AttentionMask
    rounds = min(rounds, 3)
    q,k,v = made(1, H, H, L, 64, torch.float32)
    ids = torch.arange(L)//1024
    forward,back = {},{}
    for name,see,rule in (
            ('window of 512', AttentionMask(L, causal=True, window=(511,0)), window(512)),
            ('16 documents of 1,024 tokens', AttentionMask(L, causal=True, q_doc=ids),
             document(ids))):
        calls = peers(see, rule)
        with torch.no_grad():
            forward[name] = interleave({n: partial(f, q, k, v) for n,f in calls.items()}, rounds,
                                       'ours')
        del calls[FLEX]                         # it has no backward on a CPU
        back[name] = interleave({n: partial(learned, f, q, k, v) for n,f in calls.items()},
                                min(rounds, 1), 'ours')
    for what,found in (('forward', forward), ('forward and backward', back)):
        report.compare(f'Windows and documents, {what}', found,
                       f'{L:,} tokens, {H} heads of width 64, causal, float32')
    growth(report, rounds)
    prefill(report, rounds)
