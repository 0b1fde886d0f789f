"A compiled step writes the text of the model, in every family that it knows"
import copy, functools, gc, itertools, pickle, warnings, weakref
from dataclasses import replace
import pytest, torch
from attention_nb.layers.base import use_attention
from attention_nb.layers.cache import SlidingKVCache
from attention_nb.layers.quantized import QuantizedLinear, quantize
from attention_nb.kernels.dispatch import scaled_dot_product_attention
from attention_nb.models import compiled_step
from attention_nb.models.config import TransformerConfig
from attention_nb.models.generation import generate, stream
from attention_nb.models.model_state import derived_from
from attention_nb.models.transformer import Transformer
from attention_nb.training.lora import add_lora
from helpers import short
from helpers.tiny_models import decoder

FAMILIES = ['llama', 'mistral', 'qwen3', 'phi3', 'gemma2', 'gemma3_text', 'mixtral', 'gpt_oss',
            'gpt2', 'deepseek_v3', 'llama of 4 bits']

def small(family):
    "A model of its own, with no step compiled yet"
    if family == 'one layer':
        sizes = dict(d_model=32, n_layers=1, n_heads=4, n_kv_heads=2)
        model = Transformer(TransformerConfig(50, **sizes, window=(4,0))).eval()
        for w in model.parameters(): w.data.mul_(5)
        return model
    model = copy.deepcopy(decoder(family.removesuffix(' of 4 bits')))
    return quantize(model, 4) if family.endswith('bits') else model

def prompts(rows=1):
    "Of several rows, the first begin with padding"
    torch.manual_seed(1)
    ids,mask = torch.randint(3, 50, (rows, 6)),None
    if rows > 1:
        mask = torch.ones(rows, 6, dtype=torch.bool)
        mask[0,:3] = mask[1,:1] = False
    return ids, mask

@pytest.fixture
def exported(monkeypatch):
    "Steps are exported and not compiled: seconds for a family, not half a minute"
    loaded = []
    def load(model, cache):
        loaded.append(cache.self_attn[0].batch)
        graph = compiled_step._export(model, cache)
        return graph.module(check_guards=False)     # compiled code has none
    monkeypatch.setattr(compiled_step, 'load_or_compile', load)
    with warnings.catch_warnings():
        warnings.filterwarnings('error', '.*cannot be compiled here')
        yield loaded    # the batch size of each

unlike = [('llama',1), ('gemma3_text',3), ('deepseek_v3',3), ('llama of 4 bits',1)]

@pytest.mark.parametrize('family,rows', short(unlike, itertools.product(FAMILIES, (1, 3))))
def test_exported_text_is_the_models(family, rows, exported):
    model,(ids,mask) = small(family),prompts(rows)
    wanted = model.generate(ids, 9, mask=mask, eos_id=())
    assert torch.equal(model.generate(ids, 9, mask=mask, eos_id=(), compiled=True), wanted)
    # another length of text and of cache, by the same graph
    wanted = model.generate(ids[:,3:], 17, eos_id=())
    assert torch.equal(model.generate(ids[:,3:], 17, eos_id=(), compiled=True), wanted)
    assert len(exported) <= 2      # a short text needs no sliding cache

broken = dict(gpt_oss='of several rows some processors get masks that do not compile')

@pytest.mark.parametrize('family', short(['one layer'], ['one layer', *FAMILIES]))
def test_compiled_text_is_the_models(family, tmp_path, monkeypatch, request):
    "Also by the file that the first process has left"
    if family in broken: request.applymarker(pytest.mark.xfail(reason=broken[family]))
    monkeypatch.setenv('TORCHINDUCTOR_CACHE_DIR', str(tmp_path))
    # what it would ask by compiling, and what surrounds the step, which need not be quick
    monkeypatch.setattr(torch._inductor.config.cpp, 'vec_isa_ok', True)
    monkeypatch.setattr(torch._inductor.config.aot_inductor, 'compile_wrapper_opt_level', 'O0')
    model,(ids,mask) = small(family),prompts(3)
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
    monkeypatch.setattr(compiled_step, '_compile_to_file', lambda *a: made.append(a))
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert not derived_from(twin)[1]
        assert torch.equal(twin.generate(ids, 9, mask=mask, eos_id=(), compiled=True), wanted)
    assert not made

def same_text(model, ids):
    text = model.generate(ids, 9, eos_id=())
    assert torch.equal(model.generate(ids, 9, eos_id=(), compiled=True), text)
    return text

def test_settings_hooks_and_forwards_that_change_count(exported):
    "The alpha of LoRA, a soft cap, a scale; hooks that come and go; a forward of its own"
    model,(ids,_) = small('llama'),prompts()
    add_lora(model, 4, alpha=8.)
    for name,p in model.named_parameters():
        if name.endswith('.lora_B'): torch.nn.init.normal_(p, std=2.)
    block,texts,names = model.decoder.blocks[0],[same_text(model, ids)],set()
    names.add(compiled_step._disk_key(model, model.new_cache(1, 20)))
    again = copy.deepcopy(model)
    assert names == {compiled_step._disk_key(again, again.new_cache(1, 20))}
    for m,name,value in ((block.attn.q_proj,'scale',-2.), (block.attn,'softcap',.5),
                         (block.attn,'scale',3.), (block.ffn,'activation','relu'),
                         (block.attn_add.before,'eps',9.)):
        setattr(m, name, value)
        texts.append(same_text(model, ids))
        names.add(compiled_step._disk_key(model, model.new_cache(1, 20)))
    assert len(names) == 6
    own = block.ffn.forward
    for change in (lambda: block.ffn.register_forward_hook(lambda m, args, out: 3*out),
                   lambda: block.register_forward_pre_hook(lambda m, args: (2*args[0],)),
                   lambda: block.attn.register_attention_hook(lambda layer, call, out: 0*out)):
        hook = change()
        assert not torch.equal(same_text(model, ids), texts[-1])
        hook.remove()
        assert torch.equal(same_text(model, ids), texts[-1])
    class Sharper(Transformer):
        def forward(self, *args, **options): return -super().forward(*args, **options)
    class Other(Transformer):
        def _run(self, *args, **options): return -super()._run(*args, **options)
    for model.__class__ in (Sharper, Other):
        assert not torch.equal(same_text(model, ids), texts[-1])
    model.__class__ = Transformer
    register = torch.nn.modules.module.register_module_forward_hook
    with register(lambda m, args, out: -out if m is model.head else None):
        assert not torch.equal(same_text(model, ids), texts[-1])
    block.ffn.forward = lambda x: -own(x)
    assert not torch.equal(same_text(model, ids), texts[-1])
    assert sum(not torch.equal(a, b) for a,b in zip(texts, texts[1:])) >= 4

def test_parameters_where_none_was_count(exported):
    "The head of a tied model gets a table, a layer a bias; a shallow copy gets another head"
    model,(ids,_) = small('llama'),prompts()
    model.head.weight = None
    text,old = same_text(model, ids),[weakref.ref(f) for f in derived_from(model)[1].values()]
    same_text(model, ids.expand(2, -1))
    torch.manual_seed(2)
    model.head.weight = torch.nn.Parameter(torch.randn(50, model.cfg.d_model))
    other = same_text(model, ids)
    assert not torch.equal(other, text)
    gc.collect()
    # what was made before is dropped, of other batch sizes too
    assert len(derived_from(model)[1]) == 1 and old[0]() is None
    layer = model.decoder.blocks[1].ffn.down
    layer.bias = torch.nn.Parameter(10*torch.randn(len(layer.weight)))
    assert not torch.equal(same_text(model, ids), other)
    twin = copy.copy(model)
    twin._modules = {**model._modules, 'head': copy.deepcopy(model.head)}
    with torch.no_grad(): twin.head.weight.neg_()
    assert not torch.equal(same_text(twin, ids), same_text(model, ids))

def test_compiled_when_needed(exported):
    "For the batch that is decoded, not for a prompt; past max_len with the same warning"
    model,(ids,_) = small('llama'),prompts()
    model.generate(ids, 1, compiled=True, eos_id=())
    assert not exported
    model.generate(ids, 5, num_return_sequences=3, do_sample=True, compiled=True, eos_id=())
    assert exported == [3]
    model.cfg = replace(model.cfg, max_len=9)
    with pytest.warns(UserWarning, match='10 tokens are more than max_len=9'):
        model.generate(ids, 9, compiled=True, eos_id=())
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        model.generate(ids, 9, compiled=True, eos_id=())

def test_code_of_other_modules_counts():
    "Functions with other names, nested code or defaults; constants of a class"
    def module(forward, **members):
        return type('Own', (torch.nn.Module,), dict(forward=forward, **members))
    F = torch.nn.functional
    forwards = [lambda self, x: F.relu(x), lambda self, x: F.gelu(x), lambda self, x: F.silu(x),
                lambda self, x: [f for f in (lambda y: F.relu(y),)][0](x),
                lambda self, x: [f for f in (lambda y: F.gelu(y),)][0](x),
                lambda self, x, scale=2.: F.relu(x)*scale,
                lambda self, x, scale=3.: F.relu(x)*scale]
    def closing(factor): return lambda self, x: F.relu(x)*factor
    def doubled(f): return functools.wraps(f)(lambda self, x: 2*f(self, x))
    def negated(f): return functools.wraps(f)(lambda self, x: -f(self, x))
    forwards += closing(2.), closing(3.), doubled(forwards[0]), negated(forwards[0])
    classes = [*map(module, forwards), module(forwards[0], power=2), module(forwards[0], power=3)]
    hashes = [str(compiled_step._class_hashes(c)) for c in classes]
    assert len({*hashes}) == len(classes)
    # nested code is described without its address
    def nested(): return lambda self, x: [f for f in (lambda y: F.relu(y),)][0](x)
    assert compiled_step._function_hash(nested()) == compiled_step._function_hash(nested())
    assert '0x' not in str(compiled_step._code_parts(nested().__code__))

def test_a_hook_comes_between_two_tokens(exported):
    model,(ids,_) = small('llama'),prompts()
    want = model.generate(ids, 9, eos_id=())[0,6:].tolist()
    columns,seen = stream(model, ids, 9, eos_id=(), compiled=True),[]
    got = [int(next(columns)) for _ in range(3)]
    hook = model.decoder.blocks[0].register_forward_hook(lambda *_: seen.append(1))
    got += [int(next(columns)) for _ in range(3)]
    hook.remove()
    assert got + [int(c) for c in columns] == want and len(seen) == 3

def test_listeners_are_heard(exported):
    model,(ids,_),heard = small('llama'),prompts(),[]
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
    sizes = dict(d_model=32, n_layers=2, n_heads=4)
    plain = Transformer(TransformerConfig(40, **sizes))
    class Own(torch.nn.Linear):
        def new_cache(self, batch, max_len, **kw): return plain.new_cache(1, 9).self_attn[0]
    mixers = dict(mixers=dict(own=lambda cfg,i: Own(32, 32))) if 'layer_types' in kw else {}
    model = Transformer(TransformerConfig(40, **sizes, **kw), **mixers)
    for function in (generate, stream):    # at the call
        with pytest.raises(NotImplementedError, match=what):
            function(model.eval(), torch.ones(1, 4, dtype=torch.long), 4, compiled=True, eos_id=())

def test_beams_and_gaps_are_refused():
    model,(ids,mask) = small('llama'),prompts(3)
    with pytest.raises(NotImplementedError, match='compiled does not go with n_beams'):
        model.generate(ids, 4, n_beams=2, compiled=True)
    mask[1] = torch.tensor([True, False, True, True, True, True])
    cache = model.new_cache(3, 12)
    with pytest.raises(NotImplementedError, match='there is padding between its tokens'):
        model.generate(ids, 4, mask=mask, cache=cache, compiled=True)

def test_a_cache_that_keeps_more_than_the_window_is_refused():
    "A compiled step would read keys that the window does not reach"
    model,(ids,_) = small('one layer'),prompts()
    for left,reason in ((4, None), (5, 'layer 0 keeps more than its window')):
        cache = model.new_cache(1, 60)
        cache.self_attn[0] = SlidingKVCache(1, 2, left, 8)
        assert compiled_step.unsupported_reason(model, cache) == reason
    with pytest.raises(NotImplementedError, match='keeps more than its window'):
        model.generate(ids, 20, cache=cache, compiled=True, eos_id=())

@pytest.mark.parametrize('kw,message', [
    (dict(rope_scaling=dict(rope_type='longrope', short_factor=[1.]*4, long_factor=[9.]*4,
                            original_max_position_embeddings=8, factor=2.)),
     'keys in the cache were rotated for a text of 8 tokens'),
    (dict(positions='learned', max_len=8), 'sequence of 9 tokens is longer than max_len=8')])
def test_called_alone_it_refuses_what_the_model_refuses(kw, message, exported):
    model = Transformer(TransformerConfig(40, **dict(d_model=32, n_layers=2, n_heads=4) | kw))
    ids,cache = torch.arange(12)[None],model.eval().new_cache(1, 12)
    with torch.no_grad():
        model(ids[:,:6], cache=cache)
        step = model.compiled_step(cache)
        for t in (6, 7):
            torch.testing.assert_close(step(ids[:,t:t+1]), model(ids[:,:t+1])[:,-1])
        for call in (step, lambda column: model(column, cache=cache)):
            with pytest.raises(ValueError, match=message): call(ids[:,8:9])
    assert len(cache) == 8

def test_group_sizes_are_those_of_the_layers():
    "The compiler names them as it likes, so two sizes could not be told apart"
    def layers(*groups):
        return torch.nn.Sequential(*(QuantizedLinear(torch.nn.Linear(64, 32), 4, group=g)
                                     for g in groups))
    names,model = ['model.0.codes', 'any', 'other'],layers(64, 64)
    constants = compiled_step._graph_constants(model, names)
    assert constants[names[0]].data_ptr() == model[0].codes.data_ptr()
    assert [int(constants[name]) for name in names[1:]] == [64, 64]
    for model,known in ((layers(64, 32), names), (layers(64, 64), names[:2])):
        with pytest.raises(RuntimeError, match='that the model does not have: any'):
            compiled_step._graph_constants(model, known)

def test_without_a_compiler(tmp_path, monkeypatch):
    "One line of warning, once, at the caller's line; the text is the same"
    monkeypatch.setenv('TORCHINDUCTOR_CACHE_DIR', str(tmp_path))
    monkeypatch.setenv('CXX', 'no-such-compiler')
    monkeypatch.setattr(torch._inductor.config.cpp, 'cxx', ('no-such-compiler',))
    model,(ids,_) = small('one layer'),prompts()
    with pytest.warns(UserWarning, match='a step cannot be compiled here') as said:
        out = model.generate(ids, 6, eos_id=(), compiled=True)
    assert [w.filename for w in said if 'compiled here' in str(w.message)] == [__file__]
    assert '\n' not in next(str(w.message) for w in said if 'compiled here' in str(w.message))
    assert not [*(tmp_path/'attention_nb').glob('*')]
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert torch.equal(model.generate(ids, 6, eos_id=(), compiled=True), out)
    assert torch.equal(model.generate(ids, 6, eos_id=()), out)
    model.head.weight = torch.nn.Parameter(model.embed.token.weight.clone())    # another model
    with pytest.warns(UserWarning, match='a step cannot be compiled here'):
        model.generate(ids, 6, eos_id=(), compiled=True)
