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
loaders = dict(ours=ours, transformers=theirs)

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
    runs = [{name: in_process(measured, name) for name in loaders}
            for _ in range(max(2, rounds//10))]
    times,memory = [],[]
    for name in loaders:
        kb,seconds,size = (statistics.median(r) for r in zip(*(run[name] for run in runs)))
        ratio = statistics.median(run[name][1]/run['ours'][1] for run in runs)
        times.append((name, seconds, ratio))
        memory.append((name, kb/1e3, 1e3*kb/size))
    report.compare('Loading SmolLM2-135M', {'': times}, 'from its GGUF file, as float32')
    report.show('Memory at the peak of loading', memory,
                ('by', 'MB', 'times the model'), ', '.join(f'{name} {times:.1f} times the model'
                                                           for name,_,times in memory))
