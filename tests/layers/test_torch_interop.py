"Who comes from torch's attention: names, states; see checks and layers/torch_interop"
import copy, inspect, pickle, sys
from collections import Counter
import pytest, torch
from torch import nn
from torch.testing import assert_close
from attention_nb.kernels.reference import attention
from attention_nb.layers.self_attention import SelfAttention
from attention_nb.kernels.dispatch import (attention_lse, scaled_dot_product_attention)
from attention_nb.kernels.blocks import flash_attention
from attention_nb.layers.latent import LatentAttention
from attention_nb.layers.multihead import MultiHeadAttention
from attention_nb.layers.position import alibi_bias

torch.manual_seed(0)
layer,x = MultiHeadAttention(16, 4).eval(),torch.randn(2, 5, 16)
heads = torch.randn(2, 4, 5, 8)

def names(f): return {n for n in inspect.signature(f).parameters if n != 'self'}

their_own = {'query', 'key', 'value', 'need_weights', 'bias', 'dropout', 'kdim', 'vdim', 'scale',
             'input', 'args', 'kwargs'}

@pytest.mark.parametrize('f, theirs', [
    (lambda **kw: MultiHeadAttention(**{'d_model': 16, 'n_heads': 4} | kw),
     nn.MultiheadAttention.__init__),
    (lambda **kw: layer(x, **kw), nn.MultiheadAttention.forward)])
def test_every_argument_of_torchs_module_is_taken_or_answered(f, theirs):
    for n in names(theirs)-their_own:
        with pytest.raises(TypeError, match=rf'MultiHeadAttention has no argument {n}: \w+'):
            f(**{n: None})

def test_an_option_that_an_attention_function_lacks_is_named():
    def attend(q, k, v): return q
    with pytest.raises(NotImplementedError, match='attend takes no causal'):
        MultiHeadAttention(16, 4, attend=attend)(x, causal=True)

@pytest.mark.parametrize('strict', [True, False])
@pytest.mark.parametrize('prefix, wrap', [('', lambda m: m), ('0.', nn.Sequential)])
def test_a_state_of_torchs_module(strict, prefix, wrap):
    for theirs in (nn.MultiheadAttention(16, 4), nn.MultiheadAttention(16, 4, kdim=8)):
        state = {prefix+n: t for n,t in theirs.state_dict().items()}
        place = prefix.rstrip('.') or 'the state'
        said = f'{place} has the parameters of a torch.nn.MultiheadAttention.*from_torch'
        with pytest.raises(RuntimeError, match=said):
            wrap(MultiHeadAttention(16, 4)).load_state_dict(state, strict=strict)
    mine = wrap(MultiHeadAttention(16, 4))
    mine.load_state_dict(wrap(layer).state_dict())
    assert torch.equal(mine(x), layer(x))

def test_nothing_else_changes():
    "Compilers, exporters, functorch, copies and pickles take the module as before"
    from torch.func import functional_call, grad, vmap
    want,raw = layer(x),MultiHeadAttention.forward.__wrapped__
    assert torch.equal(want, raw(layer, x))
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend='eager')
    for n in (2, 3, 5, 7):
        z = x[:1].expand(n, -1, -1)
        assert_close(compiled(z), layer(z))
    for strict in (True, False):
        B = torch.export.Dim('B')
        program = torch.export.export(layer, (x,), dynamic_shapes=({0: B},), strict=strict)
        program = program.module()
        y = torch.randn(4, 5, 16)
        assert_close(program(y), layer(y))
    p = dict(layer.named_parameters())
    assert set(grad(lambda p: functional_call(layer, p, (x,)).sum())(p)) == set(p)
    assert_close(vmap(layer)(x[None]), want[None])
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x), want)

@pytest.mark.parametrize('need_weights', [False, True])
@pytest.mark.parametrize('m', [layer, SelfAttention(16, 8), LatentAttention(16, 4, kv_rank=8,
    nope_dim=4, rope_dim=4, v_dim=4)], ids=lambda m: type(m).__name__)
def test_a_layer_checks_once(m, need_weights):
    "Its inputs, and then nobody looks again: not the function that it calls"
    counts,mask = Counter(),torch.ones(5, 5).bool().tril()
    sys.setprofile(lambda frame, event, _: event == 'call' and counts.update(
        [frame.f_code.co_name]))
    try: m(x, mask=mask, need_weights=need_weights)
    finally: sys.setprofile(None)
    assert counts['check_mask_and_bias'] == 1 and counts['check_attention'] == 0
    assert counts['check_inputs'] <= 1 and counts['check_call'] <= 1
    for wrong,error in ((mask.float(), TypeError), (mask[:4], ValueError), ([1.], TypeError)):
        with pytest.raises(error, match='mask must'): m(x, mask=wrong)

def test_numbers_that_are_infinite_in_a_layers_precision():
    for name in ('scale','softcap'):
        m = MultiHeadAttention(16, 4, **{name: 1e39})
        with pytest.raises(ValueError, match=f'{name} must be a .* number in torch.float32'): m(x)
        assert m.double()(x.double()).isfinite().all()

def test_a_compiler_has_room_for_every_function(monkeypatch):
    "One wrapper stands around all of them; what is compiled of one leaves room for the others"
    monkeypatch.setattr(torch._dynamo.config, 'recompile_limit', 2)
    torch._dynamo.reset()
    for f in (attention, scaled_dot_product_attention, attention_lse):
        compiled = torch.compile(f, fullgraph=True, backend='eager')
        for kw in (dict(causal=True), dict(window=(1,1), scale=.3)):
            assert_close(compiled(heads, heads, heads, **kw), f(heads, heads, heads, **kw))
    torch._dynamo.reset()

def test_a_bias_for_each_head_is_taken_as_it_comes():
    "(H, L, S) broadcasts to the scores, in functions and in layers, whatever the batch"
    bias = alibi_bias(4, 5)
    want = attention(heads, heads, heads, bias=bias[None], causal=True)[0]
    for f in (attention, scaled_dot_product_attention, attention_lse, flash_attention):
        out = f(heads, heads, heads, bias=bias, causal=True)
        assert_close(out if isinstance(out, torch.Tensor) else out[0], want)
    for z in (x, x[0], x[:1].expand(4, -1, -1)):
        for a,b in zip(*(layer(z, bias=each, need_weights=True) for each in (bias, bias[None]))):
            assert_close(a, b)
    with pytest.raises(ValueError, match=r'bias must broadcast to the scores \(2, 4, 5, 5\)'):
        layer(x, bias=alibi_bias(2, 5))
