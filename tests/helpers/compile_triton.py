"""Compiles the kernels of `attention_nb.kernels.triton_flash` for a GPU that need not be there.

`python compile_triton.py ARCH DTYPE WIDTH plain|every`, as in `90 bfloat16 64 every`, prints for
each kernel a line of JSON: its name, the bytes of shared memory it asks for, and how many of its
instructions go to tensor cores. `plain` is a causal call, `every` one with all options.
"""
import json, sys
import torch, triton
from triton.backends.compiler import GPUTarget
from attention_nb.kernels import triton_flash as kernels
from attention_nb.kernels.attention_mask import AttentionMask

class Absent:
    "What Triton asks of a driver before it launches: here nothing is launched"
    def __init__(self, arch): self.arch = arch
    def get_current_target(self): return GPUTarget('cuda', self.arch, 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device=None): return 0
    def get_active_torch_device(self): return torch.device('cpu')

def compiled(kernel, programs, *args, **said):
    made = kernel.warmup(*args, grid=(programs,), **said)
    ptx = made.asm['ptx']
    print(json.dumps(dict(name=kernel.fn.__name__, shared=made.metadata.shared,
                          products=ptx.count('wgmma.mma_async') + ptx.count('mma.sync'),
                          cubin=len(made.asm['cubin']))))

def main():
    arch,dtype,E,which = int(sys.argv[1]),getattr(torch, sys.argv[2]),int(sys.argv[3]),sys.argv[4]
    triton.runtime.driver.set_active(Absent(arch))
    kernels._launch,kernels._reason = compiled,lambda *a: None
    q,k,v = (torch.randn(2, H, L, E).to(dtype).requires_grad_()
             for H,L in ((4,100), (2,130), (2,130)))
    rules = AttentionMask(100, 130, q_doc=torch.arange(100)//9, k_doc=torch.arange(130)//9)
    learned = dict(bias=torch.zeros(4, 1, 130), sinks=torch.zeros(4))
    for t in learned.values(): t.requires_grad_()
    every = dict(mask=rules, window=(5,2), softcap=30., **learned)
    options = every if which == 'every' else dict(causal=True)
    kernels.triton_attention(q, k, v, **options).sum().backward()
    options = dict(softcap=3., sinks=torch.zeros(4)) if which == 'every' else {}
    with torch.no_grad():
        kernels.triton_decode(q[:,:,:1], k, v, k_len=torch.tensor([7,9]), splits=5, **options)

if __name__ == '__main__': main()
