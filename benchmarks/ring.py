"""A text divided among processes: attention over gloo beside one process with all cores, bytes
that are sent, and the memory of a training step. The cores are the same, however many share them"""
import contextlib, multiprocessing, os
from datetime import timedelta
from pathlib import Path
from measure import given_back, in_process, interleave, peak

SIZES = {'8 heads of 64, 8,192 tokens': (8, 8192), '8 heads of 64, 16,384 tokens': (8, 16384)}
WAYS = {'ours': (2, 'zigzag'), 'ours, first part and last': (2, 'contiguous'),
        'ours, heads are traded': (2, 'heads'), 'ours, 4 processes': (4, 'zigzag')}

def joined(rank, n, file):
    "Be one of `n` processes with its share of the cores; their mesh"
    import torch, torch.distributed as dist
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0))//n))
    dist.init_process_group('gloo', init_method=f'file://{file}', rank=rank, world_size=n,
                            timeout=timedelta(minutes=5))
    return dist.init_device_mesh('cpu', (n,))

def attention_of(mesh, way):
    from attention_nb import ring_attention, ulysses_attention
    return ulysses_attention(mesh) if way == 'heads' else ring_attention(mesh, order=way)

def step(attend, q, k, v, back, **options):
    out = attend(q, k, v, **options)
    if back: out.backward(out.detach())

def worker(rank, n, file, way, pipe):
    "Does what it is told, until it is told nothing"
    import torch, torch.distributed as dist
    attend = attention_of(joined(rank, n, file), way)
    while (said := pipe.recv()) is not None:
        heads,length,back = said
        size = len(attend.split(torch.arange(length), -1))
        q,k,v = (torch.randn(1, heads, size, 64, requires_grad=back) for _ in range(3))
        pipe.send('ready')
        while pipe.recv():
            step(attend, q, k, v, back, causal=True)
            pipe.send('done')
    dist.destroy_process_group()

@contextlib.contextmanager
def team(folder, way):
    "Processes that wait for work"
    n,order = WAYS[way]
    spawn,pipes,all_ = multiprocessing.get_context('spawn'),[],[]
    for rank in range(n):
        mine,theirs = spawn.Pipe()
        p = spawn.Process(target=worker, args=(rank, n, Path(folder)/way.replace(' ', '_'), order,
                                               theirs), daemon=True)
        p.start()
        pipes.append(mine)
        all_.append(p)
    def tell(said):
        for pipe in pipes: pipe.send(said)
    def ask(said):
        tell(said)
        for pipe in pipes: pipe.recv()
    try: yield tell,ask
    finally:
        tell(None)
        for p in all_: p.join(30)

def in_one(heads, length, back):
    import torch, torch.nn.functional as F
    q,k,v = (torch.randn(1, heads, length, 64, requires_grad=back) for _ in range(3))
    return lambda: step(F.scaled_dot_product_attention, q, k, v, back, is_causal=True)

def times(report, rounds, folder):
    found = {}
    with contextlib.ExitStack() as stack:
        teams = {way: stack.enter_context(team(folder, way)) for way in WAYS}
        for back in (False, True):
            for name,(heads,length) in SIZES.items():
                if back and length > 8192: continue    # minutes
                each = {}
                for way,(_,ask) in teams.items():
                    ask((heads, length, back))
                    each[way] = lambda ask=ask: ask(True)
                each['PyTorch, one process'] = in_one(heads, length, back)
                task = f'{name}, {"with gradients" if back else "forward"}'
                found[task] = interleave(each, max(3, rounds//5), 'ours', patience=30)
                for tell,_ in teams.values(): tell(False)
    report.compare('A causal text over processes', found, note='ours: a ring in zigzag order over '
                   '2 processes; all share the cores that PyTorch has')

def sent(rank, n, way, folder, queue):
    "Bytes that a process sends, forward and with the way back"
    import torch, torch.distributed as dist
    attend = attention_of(joined(rank, n, Path(folder)/f'sent_{n}_{way}'), way)
    count,send,exchange = [0],dist.batch_isend_irecv,dist.all_to_all_single
    def counted(ops):
        count[0] += sum(op.tensor.nbytes for op in ops if op.op is dist.isend)
        return send(ops)
    def counted_rows(out, rows, out_sizes, in_sizes, **kw):
        count[0] += rows.nbytes - rows.split(in_sizes)[rank].nbytes
        return exchange(out, rows, out_sizes, in_sizes, **kw)
    dist.batch_isend_irecv,dist.all_to_all_single = counted,counted_rows
    size = len(attend.split(torch.arange(8192), -1))
    q,k,v = (torch.randn(1, 8, size, 64, requires_grad=True) for _ in range(3))
    found = []
    for back in (False, True):
        count[0] = 0
        step(attend, q, k, v, back, causal=True)
        found.append(count[0]/1e6)
    queue.put(found)
    dist.destroy_process_group()

def together(target, n, *args):
    "What each of `n` processes puts into a queue"
    spawn = multiprocessing.get_context('spawn')
    queue = spawn.Queue()
    all_ = [spawn.Process(target=target, args=(r, n, *args, queue), daemon=True) for r in range(n)]
    for p in all_: p.start()
    found = [queue.get(timeout=600) for _ in all_]
    for p in all_: p.join(30)
    return found

def model():
    import torch
    from attention_nb import Transformer, TransformerConfig
    torch.manual_seed(0)
    return Transformer(TransformerConfig(256, 512, 4, 8, d_ff=1376, max_len=8192))

def train_step(model, ids, target, whole):
    import torch.nn.functional as F
    before = peak()
    logits = model(ids)
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction='sum')/whole
    loss.backward()
    return (peak()-before)/1024

def of_one():
    import torch
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    ids = torch.randint(256, (1, 8192))
    return train_step(model(), ids, ids, 8192)

def of_each(rank, n, folder, queue):
    import torch, torch.distributed as dist
    from attention_nb import context_parallel, ring_attention
    mesh = joined(rank, n, Path(folder)/f'memory_{n}')
    ring = ring_attention(mesh)
    divided = context_parallel(model(), mesh, gather=False, attend=ring)
    ids = torch.randint(256, (1, 8192))
    queue.put(train_step(divided, ids, ring.split(ids, -1), 8192))
    dist.destroy_process_group()

def tables(report, rounds):
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        times(report, rounds, folder)
        rows = []
        for n in (2, 4):
            for way in ('contiguous', 'zigzag', 'heads'):
                found = together(sent, n, way, folder)
                name = dict(contiguous='in the order of the text', heads='heads are traded')
                rows += [(n, name.get(way, way), *map(max, zip(*found)))]
        report.show('Most that a process sends for 8,192 tokens of 8 heads of 64', rows,
                    ('processes', 'by', 'forward (MB)', 'with the way back (MB)'))
        with given_back():
            one = in_process(of_one)
            found = [(1, one, 1.)]
            for n in (2, 4):
                most = max(together(of_each, n, folder))
                found.append((n, most, most/one))
        report.show('Memory of a training step of 8,192 tokens', found,
                    ('processes', 'MB of each, at most', 'of one process'),
                    note='beside the parameters; 4 layers, width 512, float32, a ring in zigzag '
                         'order')
