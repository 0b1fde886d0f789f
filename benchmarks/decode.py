"Whole models: greedy decoding and prefill against transformers"
import time
from measure import interleave

def pairs():
    "The same two models as ours and theirs, float32: a random small GPT-2, and SmolLM2"
    import torch, transformers
    from attention_nb.checkpoints.source import open_source
    from attention_nb.checkpoints.pretrained import from_hf, load_pretrained
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    yield 'GPT-2 small, random', from_hf(theirs), theirs
    folder = open_source('smollm2').folder
    file = next(folder.glob('*.gguf')).name
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file,
                                                               dtype=torch.float32)
    yield 'SmolLM2-135M', load_pretrained('smollm2'), theirs.eval()

def read_speed():
    "Bytes a second that this machine reads from memory: the sum of 400 MB, the best of 5"
    import torch
    x,best = torch.zeros(100_000_000),0.
    for _ in range(5):
        start = time.perf_counter()
        x.sum()
        best = max(best, x.nbytes/(time.perf_counter()-start))
    return best

def timed(ours, theirs, B, L, new, rounds):
    "Rows (name, seconds, ratio to ours)"
    import torch
    ids = torch.randint(5, 20_000, (B,L))
    def own(model): return model.generate(ids, new, eos_id=())
    def other(model):
        with torch.inference_mode():
            return model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False,
                                  max_new_tokens=new, min_new_tokens=new, pad_token_id=0)
    contestants = {'ours': lambda: own(ours), 'transformers': lambda: other(theirs)}
    shapes = {f().shape for f in contestants.values()}
    if shapes != {(B, L+new)}: raise RuntimeError(f'the models wrote {shapes}')
    return interleave(contestants, rounds, 'ours')

def tables(report, rounds):
    import torch
    n,limit,rounds = 32,read_speed(),max(3, rounds//6)
    report.say(f'memory is read at {limit/1e9:.1f} GB/s; a token of one text cannot come faster '
               'than all weights are read')
    found,shares = {},[]
    for name,ours,theirs in pairs():
        for dtype in (torch.float32, torch.bfloat16):
            ours,theirs = ours.to(dtype),theirs.to(dtype)
            least = sum(p.nbytes for p in ours.parameters())/limit
            for B,L,new in ((1, 16, n), (8, 16, n), (1, 1024-n, 1)):
                rows = timed(ours, theirs, B, L, new, rounds)
                texts = '1 text' if B == 1 else f'{B} texts'
                what = f'a token of {texts}' if new > 1 else f'reading {L} tokens'
                task = f'{name}, {what}, {str(dtype).removeprefix("torch.")}'
                found[task] = [(by, seconds/new, ratio) for by,seconds,ratio in rows]
                if new > 1 and B == 1: shares.append((task, 100*least/found[task][0][1]))
    report.compare('Decoding and reading', found)
    report.show('Part of a token that reading the weights needs', shares,
                ('task', '%'), f'{min(s for _,s in shares):.0f} to '
                f'{max(s for _,s in shares):.0f} %')
