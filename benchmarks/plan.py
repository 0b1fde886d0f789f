"""What a plan says of this machine, beside what its processes take: constants are fitted to one
process at two lengths, and everything else is predicted"""
import math, os, statistics, time
from pathlib import Path
from socket import socket
from ring import joined, together

D,F,V,LAYERS,HEADS = 512,1376,1024,4,8
FITTED = 512,2048    # tokens, one process
HELD = [(1024, '1x1x1'), (2048, '1x1x2'), (2048, '1x2x1'), (2048, '2x1x1'), (2048, '1x1x4'),
        (2048, '1x2x2')]

def processes(mesh): return math.prod(map(int, mesh.split('x')))

def config():
    from attention_nb import TransformerConfig
    return TransformerConfig(V, D, LAYERS, HEADS, d_ff=F, tied=False, max_len=None)

def seconds_of(rank, n, folder, mesh, length, rows, port, steps, queue):
    "Median of a training step"
    import torch
    os.environ |= dict(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(n),
                       MASTER_ADDR='localhost', MASTER_PORT=str(port))
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0))//n))
    from attention_nb import Transformer, train
    from attention_nb.training.mesh import MeshTeam
    team = MeshTeam(mesh)
    torch.manual_seed(0)
    model = team.divide(Transformer(config()))
    ids = torch.randint(V, (rows, length+1))
    taken = [s.seconds for s in train(model, lambda n: ids, steps=steps, team=team)]
    queue.put(statistics.median(taken[1:]))
    team.end()

def measured(folder, mesh, length, rows, steps=3):
    with socket() as s:
        s.bind(('localhost', 0))
        port = s.getsockname()[1]
    return max(together(seconds_of, processes(mesh), folder, mesh, length, rows, port, steps))

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

def cost(machines, mesh, length, rows):
    from attention_nb.distributed.plan import Layout, cost_of, work_of
    data,tensor,ring = (int(n) for n in mesh.split('x'))
    at = Layout(tensor=tensor, ring=ring, data=data)
    return cost_of(work_of(config(), length, rows), machines, at, recompute=False)

def fitted(taken):
    "The rates of matrices and of attention that give what one process took at two lengths"
    import torch
    from attention_nb.distributed.plan import Machines
    one = Machines(1, flops=1., matrices=1., attention=1.)
    parts = [cost(one, '1x1x1', length, 2).seconds for length in FITTED]
    of = torch.tensor([[p['matrices']+p['words'], p['attention']] for p in parts]).double()
    return (1/torch.linalg.solve(of, torch.tensor(taken).double())).tolist()

def tables(report, rounds):
    import tempfile
    from attention_nb.distributed.plan import Machines
    with tempfile.TemporaryDirectory() as folder:
        # in turns, so that a noisy machine disturbs all alike
        runs = [(length, '1x1x1') for length in FITTED] + HELD
        found = [[measured(folder, mesh, length, 2) for length,mesh in runs] for _ in range(2)]
        taken = [min(x) for x in zip(*found)]
        matrices,attention = fitted(taken[:len(FITTED)])
        speed,latency = (statistics.median(x) for x in zip(*together(link, 2, folder)))
        rows = []
        for (length,mesh),took in zip(HELD, taken[len(FITTED):]):
            n = processes(mesh)
            # the cores are the same, and numbers have four bytes instead of two
            machines = Machines(n, flops=1., matrices=matrices/n, attention=attention/n, node=n,
                                inner=speed/2, reached=1., latency=latency)
            said = cost(machines, mesh, length, 2).time
            rows.append((n, mesh, length, said, took, said/took))
        report.show('A training step, predicted and measured', rows,
                    ('processes', 'rows x heads x tokens', 'tokens', 'predicted (s)',
                     'measured (s)', 'predicted / measured'),
                    note=f'{LAYERS} layers, width {D}, 2 texts, float32; rates of matrices '
                         f'({matrices/1e9:.0f} billion operations a second) and of attention '
                         f'({attention/1e9:.0f}) fitted to one process at {FITTED[0]} and '
                         f'{FITTED[1]} tokens, link {speed/1e9:.1f} GB a second, '
                         f'{1e6*latency:.0f} microseconds')
