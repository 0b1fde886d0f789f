"A compiled step writes the text of the model, in every family that it knows"
import copy, os, pickle, subprocess, sys, warnings
import pytest, torch, transformers
from attention_nb.checkpoints.pretrained import from_hf
from attention_nb.layers.base import use_attention
from attention_nb.kernels.dispatch import scaled_dot_product_attention
from attention_nb.models import compiled_step
from attention_nb.models.compiled_step import CompiledStep, StaticStep
from attention_nb.models.config import TransformerConfig
from attention_nb.models.transformer import Transformer
from tests.helpers.tiny_models import latent, made

FAMILIES = ['llama', 'mistral', 'qwen3', 'phi3', 'gemma2', 'gemma3_text', 'mixtral', 'gpt_oss',
            'gpt2', 'deepseek_v3']
whole = os.environ.get('WHOLE') == '1'

def small(family):
    more = latent if family == 'deepseek_v3' else {}
    return from_hf(made(family, auto=transformers.AutoModelForCausalLM, **more)).eval()

def prompts(rows, filled):
    torch.manual_seed(1)
    ids,mask = torch.randint(3, 50, (rows, 6)),None
    if filled:
        mask = torch.ones(rows, 6, dtype=torch.bool)
        mask[0,:3] = mask[1,:1] = False
    return ids, mask

@pytest.fixture
def exported(monkeypatch):
    "Steps are exported and not compiled: seconds for a family, not half a minute"
    def load(model, cache):
        step = StaticStep(model, compiled_step._rings(cache))
        inputs,lengths = compiled_step._example(model, cache)
        with torch.no_grad():
            graph = torch.export.export(step, inputs, dynamic_shapes=lengths, strict=False)
        return graph.module(check_guards=False)     # compiled code has none
    monkeypatch.setattr(compiled_step, 'loaded', load)
    with warnings.catch_warnings():
        warnings.filterwarnings('error', '.*cannot be compiled here')
        yield

@pytest.mark.parametrize('rows,filled', [(1,False), (3,True)])
@pytest.mark.parametrize('family', FAMILIES)
def test_exported_text_is_the_models(family, rows, filled, exported):
    model,(ids,mask) = small(family),prompts(rows, filled)
    wanted = model.generate(ids, 14, mask=mask, eos_id=())
    assert torch.equal(model.generate(ids, 14, mask=mask, eos_id=(), compiled=True), wanted)
    # another length of text and of cache, by the same graph
    wanted = model.generate(ids[:,3:], 30, eos_id=())
    assert torch.equal(model.generate(ids[:,3:], 30, eos_id=(), compiled=True), wanted)
    assert len(model._compiled_steps) <= 2      # a window needs no ring in a short cache

@pytest.mark.parametrize('family', FAMILIES if whole else ['gemma3_text'])
def test_compiled_text_is_the_models(family, tmp_path, monkeypatch):
    "Also by the file that the first process has left"
    monkeypatch.setenv('TORCHINDUCTOR_CACHE_DIR', str(tmp_path))
    model,(ids,mask) = small(family),prompts(3, True)
    wanted = model.generate(ids, 40, mask=mask, eos_id=())
    assert torch.equal(model.generate(ids, 40, mask=mask, eos_id=(), compiled=True), wanted)
    files = [*(tmp_path/'attention_nb').iterdir()]
    assert len(files) == 1 and files[0].suffix == '.pt2'
    # weights that are trained on count at once; moved ones are handed over anew
    for change in (lambda p: p.mul_(1.1), lambda p: setattr(p, 'data', p*1.1)):
        with torch.no_grad():
            for p in model.parameters(): change(p)
        wanted = model.generate(ids, 9, mask=mask, eos_id=())
        assert torch.equal(model.generate(ids, 9, mask=mask, eos_id=(), compiled=True), wanted)
    # copies leave it behind and find the file
    made = []
    monkeypatch.setattr(compiled_step, '_compiled', lambda *a: made.append(a))
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert not twin._compiled_steps
        assert torch.equal(twin.generate(ids, 9, mask=mask, eos_id=(), compiled=True), wanted)
    assert not made

def test_listeners_are_heard(exported):
    model,(ids,_),heard = small('llama'),prompts(1, False),[]
    wanted = model.generate(ids, 9, eos_id=())
    def attend(q, k, v, **options):
        heard.append(q.shape)
        return scaled_dot_product_attention(q, k, v, **options)
    with use_attention(model, attend):
        assert torch.equal(model.generate(ids, 9, eos_id=(), compiled=True), wanted)
    assert len(heard) == 2*9

@pytest.mark.parametrize('kw,what', [
    (dict(positions='alibi'), 'its positions are alibi'),
    (dict(kind='encoder-decoder', decoder_start_id=1), 'a decoder, got a Transformer that is a'),
    (dict(layer_types=('own','full')), 'layer 0 is a Own')])
def test_refused_by_name(kw, what):
    class Own(torch.nn.Linear):
        def new_cache(self, batch, max_len, **kw): return Transformer(plain).new_cache(1, 9).own[0]
    plain = TransformerConfig(40, d_model=32, n_layers=2, n_heads=4)
    mixers = dict(mixers=dict(own=lambda cfg,i: Own(32, 32))) if 'layer_types' in kw else {}
    model = Transformer(TransformerConfig(40, d_model=32, n_layers=2, n_heads=4, **kw), **mixers)
    with pytest.raises(NotImplementedError, match=what):
        model.eval().generate(torch.ones(1, 4, dtype=torch.long), 4, compiled=True, eos_id=())

def test_beams_and_gaps_are_refused():
    model,(ids,mask) = small('llama'),prompts(3, True)
    with pytest.raises(NotImplementedError, match='compiled does not go with n_beams'):
        model.generate(ids, 4, n_beams=2, compiled=True)
    mask[1] = torch.tensor([True, False, True, True, True, True])
    cache = model.new_cache(3, 12)
    with pytest.raises(NotImplementedError, match='filling stands between its words'):
        model.generate(ids, 4, mask=mask, cache=cache, compiled=True)

def test_without_a_compiler(tmp_path, monkeypatch):
    "One line of warning, once, at the caller's line; the text is the same"
    monkeypatch.setenv('TORCHINDUCTOR_CACHE_DIR', str(tmp_path))
    monkeypatch.setenv('CXX', 'no-such-compiler')
    monkeypatch.setattr(torch._inductor.config.cpp, 'cxx', ('no-such-compiler',))
    model,(ids,_) = small('llama'),prompts(1, False)
    with pytest.warns(UserWarning, match='a step cannot be compiled here') as said:
        out = model.generate(ids, 6, eos_id=(), compiled=True)
    assert [w.filename for w in said if 'compiled here' in str(w.message)] == [__file__]
    assert '\n' not in next(str(w.message) for w in said if 'compiled here' in str(w.message))
    assert not [*(tmp_path/'attention_nb').glob('*')]
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert torch.equal(model.generate(ids, 6, eos_id=(), compiled=True), out)
    assert torch.equal(model.generate(ids, 6, eos_id=()), out)
