"Thirty-two texts of mixed lengths with SmolLM2: one after another, in one batch, and together"
from measure import interleave

def tables(report, rounds):
    import torch
    from attention_nb.checkpoints.pretrained import load_pretrained
    from attention_nb.models.serving import Batcher
    model,chance = load_pretrained('smollm2'),torch.Generator().manual_seed(0)
    def some(low, high): return int(torch.randint(low, high, (1,), generator=chance))
    prompts = [torch.randint(5, 20_000, (some(4, 60),), generator=chance) for _ in range(32)]
    lengths = [some(8, 72) for _ in prompts]
    total,longest = sum(lengths),max(map(len, prompts))
    batcher = Batcher(model, pages=32*9)
    def alone():
        return [model.generate(p[None], n, eos_id=())[0,len(p):].tolist()
                for p,n in zip(prompts, lengths)]
    def together():
        return [[*t] for t in [batcher.submit(p, n, eos_id=()) for p,n in zip(prompts, lengths)]]
    filled = torch.stack([torch.cat([p.new_zeros(longest-len(p)), p]) for p in prompts])
    mask = torch.arange(longest) >= longest - torch.tensor([[len(p)] for p in prompts])
    def batch(): return model.generate(filled, max(lengths), mask=mask, eos_id=())
    same = sum(a == b for a,b in zip(alone(), together()))
    found = interleave({'ours': together, 'ours, one after another': alone,
                        'ours, a batch that waits for the longest': batch},
                       max(3, rounds//10), 'ours', patience=60)
    report.compare('32 texts of mixed lengths', {f'{total} tokens': found},
                   note=f'SmolLM2, float32; {same} of 32 texts are the same alone and together')
    speeds = [(by, total/seconds) for by,seconds,_ in found]
    report.show('32 texts of mixed lengths, tokens a second', speeds, ('by', 'tokens a second'),
                note=f'a cache of {batcher.nbytes/1e6:.0f} MB in 288 pages of 16 places')
