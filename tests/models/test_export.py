"""Every family leaves Python: torch.export with every input, of one shape and of any; ONNX for
a few; and runs where only shapes are known. Families that are built alike run with WHOLE=1 alone
"""
import os
import pytest, torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim, export
from torch.testing import assert_close
from attention_nb.checkpoints.families.registry import FAMILIES, config_from_hf
from attention_nb.models.transformer import Transformer
from helpers.tiny_models import said

some = 'llama', 'gemma3_text', 'deepseek_v3', 'bert', 'modernbert', 't5'
whole = bool(os.environ.get('WHOLE'))
families = FAMILIES if whole else some
on_onnx = [('llama', 'documents'), ('mixtral', 'mask'), ('gemma3_text', 'documents'),
           ('bert', 'type_ids')]

def made(name):
    cfg,_ = config_from_hf(said(name))
    torch.manual_seed(0)
    return Transformer(cfg).eval().requires_grad_(False)

def inputs(cfg, B, L):
    "Names of options -> what is given"
    torch.manual_seed(1)
    ids,mask = torch.randint(3, 50, (B, L)),torch.ones(B, L, dtype=torch.bool)
    mask[0,:2] = mask[0,4] = False
    both = cfg.kind == 'encoder-decoder'
    more = dict(decoder_ids=ids) if both else {}
    own = {} if both else dict(documents=torch.arange(L).expand(B, L)//3 % 2,
                               positions=torch.arange(L).expand(B, L)*2)
    own |= dict(type_ids=ids % 2) if cfg.n_types > 1 else {}
    return ids, {'': more, 'mask': more | dict(mask=mask), **{n: {n: t} for n,t in own.items()}}

@pytest.mark.parametrize('name', families)
def test_a_family_is_exported_with_every_input_for_any_batch_and_length(name):
    model = made(name)
    two = {0: Dim('B', min=2, max=64), 1: Dim('L', min=2, max=60)}
    (ids,options),(others,more) = inputs(model.cfg, 2, 9),inputs(model.cfg, 3, 13)
    # those that share their way through the model once
    for said in options if name in ('llama','t5') else (*options,)[1:3]:
        given,shapes = options[said],dict(ids=two) | dict.fromkeys(options[said], two)
        program = export(model, (ids,), given, dynamic_shapes=shapes, strict=False).module()
        assert_close(program(ids, **given), model(ids, **given), atol=1e-4, rtol=1e-4)
        assert_close(program(others, **more[said]), model(others, **more[said]),
                     atol=1e-4, rtol=1e-4)

@pytest.mark.parametrize('name', ['mixtral', 'gpt_oss', 'deepseek_v3'])
def test_experts_are_exported_strictly_and_of_one_shape(name):
    model = made(name)
    ids,options = inputs(model.cfg, 2, 9)
    program = export(model, (ids,), options['mask'], strict=True).module()
    given = options['mask']
    assert_close(program(ids, **given), model(ids, **given), atol=1e-4, rtol=1e-4)

@pytest.mark.parametrize('name,said', on_onnx if whole else on_onnx[1::2])
def test_onnx_says_the_same(name, said, tmp_path):
    runtime = pytest.importorskip('onnxruntime')
    pytest.importorskip('onnxscript')
    model = made(name)
    ids,options = inputs(model.cfg, 2, 9)
    two = {0: Dim('B', min=2, max=64), 1: Dim('L', min=2, max=60)}
    torch.onnx.export(model, (ids,), str(tmp_path/'m.onnx'), kwargs=options[said], dynamo=True,
                      dynamic_shapes={'ids': two, said: two}, verbose=False)
    session = runtime.InferenceSession(str(tmp_path/'m.onnx'))
    others,more = inputs(model.cfg, 3, 13)
    for a,given in ((ids,options[said]), (others,more[said])):
        names = [i.name for i in session.get_inputs()]
        out = session.run(None, dict(zip(names, [t.numpy() for t in (a, *given.values())])))[0]
        assert_close(torch.from_numpy(out), model(a, **given), atol=1e-4, rtol=1e-4)

@pytest.mark.parametrize('name', families)
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
