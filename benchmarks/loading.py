"Loading SmolLM2 from its GGUF file: time and peak memory"
import statistics, sys, time
from measure import in_process, peak

def ours():
    from attention_nb.checkpoints.pretrained import load_pretrained
    return lambda: load_pretrained('smollm2')

def theirs():
    import torch
    from attention_nb.checkpoints.source import open_source
    from transformers import AutoModelForCausalLM
    folder = open_source('smollm2').folder
    file = next(folder.glob('*.gguf')).name
    return lambda: AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)

# each imports what it needs and gives the function that loads
loaders = dict(load_pretrained=ours, transformers=theirs)

def measured(name):
    "(kilobytes that loading adds, seconds, bytes of the model), in the process that asks"
    import torch                                                                # noqa: F401
    load = loaders[name]()
    before,start = peak(),time.perf_counter()
    model = load()
    taken = time.perf_counter()-start
    return peak()-before, taken, sum(p.nbytes for p in model.parameters())

def tables(report, rounds):
    if sys.platform != 'linux': return
    rows = []
    for name in loaders:
        runs = [in_process(measured, name) for _ in range(max(2, rounds//10))]
        kb,seconds,size = (statistics.median(r) for r in zip(*runs))
        rows.append((name, seconds, kb/1e3, 1e3*kb/size))
    report.show('Loading SmolLM2-135M from GGUF as float32', rows,
                ('', 'seconds', 'MB at the peak', 'times the model'))
