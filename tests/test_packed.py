"""Matrices in the order of oneDNN's kernels: the same products, whatever comes and whatever is
written, and the ordinary way where that is right. nbs/10d_packing.ipynb has the ways to write.
"""
import copy, io, pickle, threading
from contextlib import ExitStack
import pytest, torch, transformers
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close
from attention_nb import packing
from attention_nb.packing import PackedLinear, pack_linears
from attention_nb.transformer import Transformer, TransformerConfig

@pytest.fixture
def counted(monkeypatch):
    "Grows by one with each packed product"
    seen = []
    class Kernels:
        _reorder_linear_weight = torch.ops.mkldnn._reorder_linear_weight
        _is_mkldnn_bf16_supported = torch.ops.mkldnn._is_mkldnn_bf16_supported
        @staticmethod
        def _linear_pointwise(*args):
            seen.append(1)
            return torch.ops.mkldnn._linear_pointwise(*args)
    monkeypatch.setattr(packing, '_kernels', Kernels)
    return seen

@pytest.mark.parametrize('dtype,tol', [(torch.float32, 1e-5), (torch.bfloat16, .02)], ids=str)
@pytest.mark.parametrize('bias', [True, False])
@pytest.mark.parametrize('run', [True, False])
def test_packed_matrices_give_the_same_products(dtype, tol, bias, run, counted):
    "Whatever the shape and the order of the input, and of the matrix; in a run all are packed"
    layer = nn.Linear(48, 33, bias).to(dtype)
    shapes = (48,),(1,48),(2,3,48),(2,2,5,48),(0,48),(4,0,48),(200,48),(2,100,48)
    for _ in range(2):
        given = [*(torch.randn(s).to(dtype) for s in shapes), torch.randn(48, 7).to(dtype).T,
                 torch.randn(7, 96).to(dtype)[:,::2], torch.randn(48, 300).to(dtype).T]
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            fast = stack.enter_context(pack_linears(layer))
            assert type(fast) is PackedLinear and fast.weight is layer.weight
            if run: stack.enter_context(packing._undisturbed(layer, 16))
            counted.clear()
            for x in given:
                assert_close(fast(x), F.linear(x, layer.weight, layer.bias), rtol=tol, atol=tol)
            large = 3*(dtype == torch.float32)
            assert len(counted) == (len(given) if run else large)
            assert_close(copy.deepcopy(fast)(x), layer(x), rtol=tol, atol=tol)
            with pytest.raises(RuntimeError, match='300x47 and 48x33'): fast(x[:,1:])
            with pytest.raises(RuntimeError, match='dtype'): fast(x.double())
            for wrong in (torch.float32, torch.bfloat16):
                if wrong != dtype: pytest.raises(RuntimeError, fast, x.to(wrong))
        layer.weight.data = layer.weight.data.T.contiguous().T

def test_what_cannot_be_packed_goes_the_ordinary_way(counted):
    net,x = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4)),torch.randn(300, 16)
    with torch.no_grad():
        plain,half = net(x),copy.deepcopy(net).half()(x.half())
        exact = copy.deepcopy(net).double()(x.double())
    with pack_linears(net):
        assert torch.equal(net(x), plain) and net(x).requires_grad
        with torch.no_grad():
            assert_close(torch.compile(net, backend='eager')(x), plain)
            with torch.autocast('cpu', dtype=torch.bfloat16): assert net(x).dtype == torch.bfloat16
            assert_close(torch.func.vmap(net)(x), plain)
            assert torch.equal(net.half()(x.half()), half)
            assert net.double()(x.double()).dtype == exact.dtype
            assert not counted
            # of weights that were half
            assert_close(net.float()(x), plain, rtol=1e-2, atol=1e-2)
            assert len(counted) == 2
    net[0].forward = lambda x: x    # of another library, such as one that moves weights
    with pack_linears(net): assert torch.equal(net[0](x), x)
    assert torch.equal(net[0](x), x)
    with pytest.raises(TypeError, match='model must be a module, got str'), pack_linears('gpt2'):
        pass

def test_other_libraries_layers_are_packed_too(counted):
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64)).eval()
    ids = torch.arange(150).view(3, 50) % 60
    with torch.no_grad():
        plain = theirs(ids).logits
        with pack_linears(theirs) as model:
            assert model is theirs
            assert_close(model(ids).logits, plain, rtol=1e-4, atol=1e-4)
            assert sum(type(m) is PackedLinear for m in model.modules()) == len(counted) == 15
        assert not any(type(m) is PackedLinear for m in theirs.modules())

def test_blocks_may_end_in_any_order_and_what_others_put_in_place_stays(counted):
    net,x = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16)),torch.randn(300, 16)
    net.again = net[0]    # one layer in two places
    layers,hooks = [*net],[]
    one,two = pack_linears(net),pack_linears(net)
    one.__enter__(); two.__enter__()
    assert net.again is net[0] is not layers[0]
    net[1] = nn.Identity()
    net[0].register_forward_hook(lambda *_: hooks.append(1))
    net[0].weight = nn.Parameter(torch.ones(16, 16))
    one.__exit__(None, None, None); two.__exit__(None, None, None)
    assert net.again is net[0] is layers[0] and type(net[1]) is nn.Identity
    with torch.no_grad(): net(x)
    assert hooks and layers[0].weight.sum() == 256
    with pytest.raises(KeyError), pack_linears(net): raise KeyError
    assert net[0] is layers[0]

def test_copies_and_files_are_ordinary_models_of_their_own():
    model = Transformer(TransformerConfig(20, 16, n_layers=1, n_heads=2)).eval()
    ids = torch.randint(20, (2, 80))
    with torch.no_grad(), pack_linears(model):
        want = model(ids)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)),
                      torch.load(file, weights_only=False)):
            assert not any(type(m) is PackedLinear for m in again.modules())
            assert {*again.state_dict()} == {*model.state_dict()}
            assert again.decoder.blocks[0].attn.q_proj.weight is not (
                model.decoder.blocks[0].attn.q_proj.weight)
            assert_close(again(ids), want, rtol=1e-4, atol=1e-4)
            for p in again.parameters(): p.data.zero_()
            assert not again(ids).any() and torch.equal(model(ids), want)
        # and the other way: what the original becomes does not reach a copy
        again = copy.deepcopy(model)
        for p in model.parameters(): p.data.zero_()
        assert not model(ids).any() and again(ids).any()
        with pack_linears(again): assert_close(again(ids), want, rtol=1e-4, atol=1e-4)

def test_threads_share_packed_matrices_and_each_sees_what_is_written():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(40, 32, n_layers=2, n_heads=4)).eval()
    for p in model.parameters(): p.data.mul_(8)
    ids = torch.randint(40, (3, 7))
    wrong = []
    def work(want):
        for _ in range(5):
            if not torch.equal(model.generate(ids, 16), want): wrong.append(1)
    with pack_linears(model):
        for _ in range(3):
            want = copy.deepcopy(model).generate(ids, 16)
            threads = [threading.Thread(target=work, args=(want,)) for _ in range(3)]
            for t in threads: t.start()
            for t in threads: t.join()
            for p in model.parameters(): p.data.copy_(p.data.flip(0).clone())
    assert not wrong

def test_weights_of_inference_mode_in_a_whole_model():
    with torch.inference_mode():
        torch.manual_seed(0)
        model = Transformer(TransformerConfig(40, 32, n_layers=2, n_heads=4)).eval()
        for p in model.parameters(): p.mul_(8)
        ids = torch.randint(40, (3, 7))
        for _ in range(2):
            want = model.generate(ids, 16)
            with pack_linears(model): assert torch.equal(model.generate(ids, 16), want)
            for p in model.parameters(): p.copy_(p.flip(0))
