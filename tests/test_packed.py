"Matrices in the order of oneDNN's kernels: the same products, whatever comes, and the ordinary way where that is right"
import copy
import pytest, torch, transformers
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close
from attention_nb.packing import pack_linears

@pytest.mark.parametrize('dtype,tol', [(torch.float32, 1e-5), (torch.bfloat16, .02)], ids=str)
@pytest.mark.parametrize('bias', [True, False])
def test_packed_matrices_give_the_same_products(dtype, tol, bias):
    "Whatever the shape and the order of the input, and of the matrix"
    layer = nn.Linear(48, 33, bias).to(dtype)
    shapes = (48,),(1,48),(2,3,48),(2,2,5,48),(0,48),(4,0,48)
    for _ in range(2):
        with pack_linears(layer), torch.no_grad():
            for x in (*(torch.randn(s).to(dtype) for s in shapes), torch.randn(48, 7).to(dtype).T, torch.randn(7, 96).to(dtype)[:,::2]):
                assert_close(layer(x), F.linear(x, layer.weight, layer.bias), rtol=tol, atol=tol)
            assert_close(copy.deepcopy(layer)(x), layer(x), rtol=tol, atol=tol)
            with pytest.raises(RuntimeError, match='7x47 and 48x33'): layer(x[:,1:])
            with pytest.raises(RuntimeError, match='dtype'): layer(x.double())
            for wrong in (torch.float32, torch.bfloat16):
                if wrong != dtype: pytest.raises(RuntimeError, layer, x.to(wrong))
        layer.weight.data = layer.weight.data.T.contiguous().T

def test_what_cannot_be_packed_goes_the_ordinary_way():
    net,x = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4)),torch.randn(3, 16)
    with torch.no_grad(): plain,double,half = net(x),copy.deepcopy(net).double()(x.double()),copy.deepcopy(net).half()(x.half())
    with pack_linears(net):
        assert torch.equal(net(x), plain) and net(x).requires_grad
        with torch.no_grad():
            assert_close(torch.compile(net)(x), plain)
            with torch.autocast('cpu', dtype=torch.bfloat16): assert net(x).dtype == torch.bfloat16
            assert_close(torch.func.vmap(net)(x), plain)
            assert torch.equal(net.half()(x.half()), half)
            assert net.double()(x.double()).dtype == torch.float64
            assert_close(net.float()(x), plain, rtol=1e-2, atol=1e-2)    # of weights that were half
    net[0].forward = lambda x: x    # of another library, such as one that moves weights
    with pack_linears(net): assert torch.equal(net[0](x), x)
    assert torch.equal(net[0](x), x)
    with pytest.raises(TypeError, match='model must be a module, got str'), pack_linears('gpt2'): pass

def test_other_libraries_layers_are_packed_too():
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)).eval()
    ids = torch.arange(12).view(2, 6)
    with torch.no_grad():
        plain = theirs(ids).logits
        with pack_linears(theirs) as model:
            assert_close(model(ids).logits, plain, rtol=1e-4, atol=1e-4)
            assert sum('forward' in m.__dict__ for m in model.modules()) == sum(isinstance(m, nn.Linear) for m in model.modules()) == 15
