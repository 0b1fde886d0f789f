"Requests of mixed lengths with SmolLM2, one by one, in one batch and together; and single steps"
from measure import interleave

def tables(report, rounds):
    import torch
    from attention_nb.checkpoints.pretrained import load_pretrained
    from attention_nb.models.serving import Batcher
    model,generator = load_pretrained('smollm2'),torch.Generator().manual_seed(0)
    def number(low, high): return int(torch.randint(low, high, (1,), generator=generator))
    def prompt(n): return torch.randint(5, 20_000, (n,), generator=generator)
    prompts = [prompt(number(4, 60)) for _ in range(32)]
    lengths = [number(8, 72) for _ in prompts]
    total,longest = sum(lengths),max(map(len, prompts))
    # without a prefix cache, which would know the prompts from the second round on
    batcher = Batcher(model, slots=32, max_len=132, prefix_blocks=0)
    def alone():
        return [model.generate(p[None], n, eos_id=())[0,len(p):].tolist()
                for p,n in zip(prompts, lengths)]
    def together():
        return [[*t] for t in [batcher.submit(p, n, eos_id=()) for p,n in zip(prompts, lengths)]]
    padded = torch.stack([torch.cat([p.new_zeros(longest-len(p)), p]) for p in prompts])
    mask = torch.arange(longest) >= longest - torch.tensor([[len(p)] for p in prompts])
    def batch(): return model.generate(padded, max(lengths), mask=mask, eos_id=())
    same = sum(a == b for a,b in zip(alone(), together()))
    found = interleave({'ours': together, 'ours, one after another': alone,
                        'ours, a batch that waits for the longest': batch},
                       max(3, rounds//10), 'ours', patience=60)
    report.compare('32 requests of mixed lengths', {f'{total} tokens': found},
                   note=f'SmolLM2, float32; {same} of 32 texts are the same alone and together')
    speeds = [(by, total/seconds) for by,seconds,_ in found]
    report.show('32 requests of mixed lengths, tokens a second', speeds, ('by', 'tokens a second'),
                note=f'{batcher.nbytes/1e6:.0f} MB of keys and values, 32 slots of 132 tokens')
    steps = {f'16 requests of up to {n} tokens': _steps(model, prompt, n, rounds)
             for n in (100, 800)}
    report.compare('one decoding step', steps, note='SmolLM2, float32')

def _steps(model, prompt, n, rounds):
    "A step of the batcher, and the same rows in a cache of one length, without padding"
    import torch
    from attention_nb.models.serving import Batcher
    rounds = max(3, rounds//4)
    batcher = Batcher(model, slots=16, max_len=n+rounds+9, prefill_chunk=16*n, prefix_blocks=0)
    texts = [batcher.submit(prompt(n-3*i), rounds+9, eos_id=()) for i in range(16)]
    batcher.step()
    cache,ids = model.new_cache(16, n+rounds+9),torch.stack([prompt(n) for _ in texts])
    def step():
        with torch.inference_mode(): return model(ids[:,:1], cache=cache, last=1)
    with torch.inference_mode(): model(ids, cache=cache, last=1)
    return interleave({'ours': batcher.step, 'the model alone, rows of one length': step},
                      rounds, 'ours')
