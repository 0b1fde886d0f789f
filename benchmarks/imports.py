"What an import costs beside torch, ours and what others import"
import importlib, statistics, time
from measure import in_process

def import_time(module):
    "Seconds of the processor, in the process that asks; others that run do not count"
    import torch                                                                # noqa: F401
    start = time.process_time()
    importlib.import_module(module)
    return time.process_time()-start

NOTE = 'processor time, in a process that has imported torch'

# task: our module and the one that others import for it
peers = {'a multi-head layer': ('attention_nb.layers.multihead', 'x_transformers'),
         'a loader of models': ('attention_nb.checkpoints.pretrained',
                                'transformers.models.auto.modeling_auto'),
         'a picture of a head': ('attention_nb.views.attention_views', 'bertviz'),
         'byte pairs': ('attention_nb.text.bpe', 'tokenizers')}

def raced(ours, theirs, rounds):
    "Rows (name, seconds, ratio to ours); the two take turns"
    runs = [(in_process(import_time, ours), in_process(import_time, theirs))
            for _ in range(rounds)]
    a,b = (statistics.median(times) for times in zip(*runs))
    return [('ours', a, 1), (theirs.partition('.')[0], b, statistics.median(y/x for x,y in runs))]

def tables(report, rounds):
    "Each import has a process of its own, which has imported torch"
    report.compare('An import', {task: raced(*modules, min(rounds, 5))
                                 for task,modules in peers.items()},
                   NOTE)
