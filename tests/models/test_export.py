"""Every family leaves Python: torch.export with every input, of one shape and of any; ONNX for
a few; and runs where only shapes are known. `make test` takes few, where they can with one layer
"""
from dataclasses import replace
import pytest, torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim, export
from torch.testing import assert_close
from attention_nb.checkpoints.families.registry import FAMILIES, config_from_hf
from attention_nb.models.transformer import Transformer
from helpers import short
from helpers.tiny_models import said

two = {0: Dim('B', min=2, max=64), 1: Dim('L', min=2, max=60)}

def made(name, layers=None):
    cfg,_ = config_from_hf(said(name))
    torch.manual_seed(0)
    if layers: cfg = replace(cfg, n_layers=layers, layer_types=None, rope_layers=None)
    return Transformer(cfg).eval().requires_grad_(False)

def inputs(cfg, B, L):
    "Names of options -> what is given"
    torch.manual_seed(1)
    ids,mask = torch.randint(3, 50, (B, L)),torch.ones(B, L, dtype=torch.bool)
    mask[0,:2] = mask[0,4] = False
    both = cfg.kind == 'encoder-decoder'
    more = dict(decoder_ids=ids) if both else {}
    # a layer with a state reads each document in one piece
    n = 2 if {*cfg.block_types} <= {'full', 'window'} else L
    own = {} if both else dict(documents=torch.arange(L).expand(B, L)//3 % n,
                               positions=torch.arange(L).expand(B, L)*2)
    own |= dict(type_ids=ids % 2) if cfg.n_types > 1 else {}
    return ids, {'': more, 'mask': more | dict(mask=mask), **{n: {n: t} for n,t in own.items()}}

def same(f, model, ids, given):
    assert_close(f(ids, **given), model(ids, **given), atol=1e-4, rtol=1e-4)

# families share most of their way through the model: what each has of its own is tried with it
asked = {'llama': ['', 'mask', 'documents', 'positions'], 't5': ['', 'mask'],
         'bert': ['documents', 'type_ids']}
# layers with a state: a loop over chunks is of one length, and documents are compared
stateful = {'qwen3_next','olmo_hybrid','kimi_linear'}
every = [(name, option, None) for name in FAMILIES if name not in stateful
         for option in asked.get(name, ['mask', 'documents'])]
some = [('llama','documents',1), ('llama','positions',1), ('mixtral','mask',1), ('t5','',1),
        ('bert','type_ids',1)]

@pytest.mark.parametrize('name,option,layers', short(some, dict.fromkeys([*some, *every])))
def test_a_family_is_exported_for_any_batch_and_length(name, option, layers):
    model = made(name, layers)
    (ids,given),(others,more) = inputs(model.cfg, 2, 9),inputs(model.cfg, 3, 13)
    shapes = dict(ids=two) | dict.fromkeys(given[option], two)
    program = export(model, (ids,), given[option], dynamic_shapes=shapes, strict=False).module()
    same(program, model, ids, given[option])
    same(program, model, others, more[option])

@pytest.mark.parametrize('name,option,layers', short([('bert','type_ids',1)], [
    ('bert','type_ids',1), ('llama','documents',None), ('mixtral','mask',None),
    ('gemma3_text','documents',None), ('bert','type_ids',None)]))
def test_onnx_says_the_same(name, option, layers, tmp_path):
    runtime = pytest.importorskip('onnxruntime')
    pytest.importorskip('onnxscript')
    model = made(name, layers)
    ids,given = inputs(model.cfg, 2, 9)
    torch.onnx.export(model, (ids,), str(tmp_path/'m.onnx'), kwargs=given[option], dynamo=True,
                      dynamic_shapes={'ids': two, option: two}, verbose=False)
    session = runtime.InferenceSession(str(tmp_path/'m.onnx'))
    names = [i.name for i in session.get_inputs()]
    def program(ids, **given):
        tensors = [t.numpy() for t in (ids, *given.values())]
        return torch.from_numpy(session.run(None, dict(zip(names, tensors)))[0])
    for a,kw in ((ids,given), inputs(model.cfg, 3, 13)):
        # padding that sees nothing is left out: its attention is 0 here, a mean in ONNX's softmax
        real = kw[option]['mask'] if option == 'mask' else torch.ones_like(a, dtype=torch.bool)
        got,want = program(a, **kw[option]),model(a, **kw[option])
        assert_close(got[real], want[real], atol=1e-4, rtol=1e-4)

unlike = 'gemma3_text','deepseek_v3','t5'

@pytest.mark.parametrize('name', short(unlike, FAMILIES))
def test_a_family_runs_where_only_shapes_are_known_and_leaves_nothing_behind(name):
    model = made(name)
    ids,options = inputs(model.cfg, 2, 9)
    want = [model(ids, **given) for given in options.values()]
    with FakeTensorMode(allow_non_fake_inputs=True):
        for given,out in zip(options.values(), want): assert model(ids, **given).shape == out.shape
    empty = made(name).to('meta')
    for given,out in zip(options.values(), want):
        there = {n: t.to('meta') for n,t in given.items()}
        assert empty(ids.to('meta'), **there).shape == out.shape
    for given,out in zip(options.values(), want): assert torch.equal(model(ids, **given), out)
