"""What a plan says of this machine, beside what its processes take. Its constants are measured with
as many processes, each of which trains a whole model of its own; then they divide one"""
import math, os, statistics, time
from pathlib import Path
from socket import socket
from ring import joined, together

D,F,V,LAYERS,HEADS = 512,1376,1024,4,8
LENGTH,ROWS = 2048,2
HELD = ['1x1x1', '1x1x2', '1x2x1', '2x1x1', '1x1x4', '1x2x2']

def processes(mesh): return math.prod(map(int, mesh.split('x')))

def config():
    from attention_nb import TransformerConfig
    return TransformerConfig(V, D, LAYERS, HEADS, d_ff=F, tied=False, max_len=None)

def step_of(model, length, strategy=None):
    "Seconds of a training step, the best of four"
    import torch
    from attention_nb import train
    ids = torch.randint(V, (ROWS, length+1))
    taken = [s.seconds for s in train(model, lambda n: ids, steps=5, strategy=strategy)]
    return min(taken[1:])

def seconds_of(rank, n, mesh, port, queue):
    "A training step that processes share"
    import torch
    os.environ |= dict(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(n),
                       MASTER_ADDR='localhost', MASTER_PORT=str(port))
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0))//n))
    from attention_nb import Transformer
    from attention_nb.training.mesh import MeshStrategy
    strategy = MeshStrategy(mesh)
    torch.manual_seed(0)
    queue.put(step_of(strategy.shard(Transformer(config())), LENGTH, strategy))
    strategy.close()

def rates_of(rank, n, folder, queue):
    "Operations a second that attention and everything else reach, while as many do the same"
    import torch, torch.distributed as dist, torch.nn.functional as F
    from attention_nb import Transformer
    joined(rank, n, Path(folder)/f'rates_{n}')
    length = LENGTH//2
    q,k,v = (torch.randn(ROWS, HEADS, length, D//HEADS, requires_grad=True) for _ in range(3))
    def attend():
        begun = time.perf_counter()
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out.backward(out.detach())
        return time.perf_counter()-begun
    attend()
    dist.barrier()
    one = min(attend() for _ in range(15))
    dist.barrier()
    step = step_of(Transformer(config()), length)
    from attention_nb.distributed.plan import Machines
    parts = cost(Machines(1, flops=1., matrices=1., attention=1.), '1x1x1', length).seconds
    queue.put((parts['attention']/LAYERS/one, (parts['matrices']+parts['words'])/(step-LAYERS*one)))
    dist.destroy_process_group()

def measured(mesh):
    with socket() as s:
        s.bind(('localhost', 0))
        port = s.getsockname()[1]
    return max(together(seconds_of, processes(mesh), mesh, port))

def link(rank, n, folder, queue):
    "Bytes a second of a large message, seconds of a small one"
    import torch, torch.distributed as dist
    joined(rank, n, Path(folder)/'link')
    def once(size, times):
        t,other = torch.zeros(size),torch.zeros(size)
        begun = time.perf_counter()
        for _ in range(times):
            for w in dist.batch_isend_irecv([dist.P2POp(dist.isend, t, 1-rank),
                                             dist.P2POp(dist.irecv, other, 1-rank)]): w.wait()
        return (time.perf_counter()-begun)/times
    once(2**20, 2)
    queue.put((2**24/once(2**22, 8), once(1, 200)))
    dist.destroy_process_group()

def cost(machines, mesh, length):
    from attention_nb.distributed.plan import Layout, cost_of, work_of
    data,tensor,ring = (int(n) for n in mesh.split('x'))
    at = Layout(tensor=tensor, ring=ring, data=data)
    return cost_of(work_of(config(), length, ROWS), machines, at, recompute=False)

def tables(report, rounds):
    import tempfile
    from attention_nb.distributed.plan import Machines
    with tempfile.TemporaryDirectory() as folder:
        many = sorted({*map(processes, HELD)})
        rates = {n: [max(x) for x in zip(*together(rates_of, n, folder))] for n in many}
        speed,latency = (statistics.median(x) for x in zip(*together(link, 2, folder)))
        # in turns, so that a noisy machine disturbs all alike
        taken = [min(x) for x in zip(*([measured(mesh) for mesh in HELD] for _ in range(2)))]
    rows = []
    for mesh,took in zip(HELD, taken):
        n = processes(mesh)
        attention,matrices = rates[n]
        # numbers have four bytes instead of two
        machines = Machines(n, flops=1., matrices=matrices, attention=attention, node=n,
                            inner=speed/2, reached=1., latency=latency)
        said = cost(machines, mesh, LENGTH).time
        rows.append((n, mesh, said, took, said/took))
    said = ', '.join(f'{m/1e9:.0f} and {a/1e9:.0f}' for a,m in rates.values())
    report.show('A training step, predicted and measured', rows,
                ('processes', 'rows x heads x tokens', 'predicted (s)', 'measured (s)',
                 'predicted / measured'),
                note=f'{LAYERS} layers, width {D}, {ROWS} texts of {LENGTH:,} tokens, float32. '
                     f'Measured before: billion operations a second of matrices and of attention '
                     f'in each of 1, 2 and 4 processes ({said}), {speed/1e9:.1f} GB a second and '
                     f'{1e6*latency:.0f} microseconds between two')
