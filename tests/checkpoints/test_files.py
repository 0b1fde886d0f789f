"Damaged, cut, foreign and hostile model files: beside the proofs in nbs/checkpoints"
import contextlib, dataclasses, errno, json, os, pickle, re, shutil, struct
from types import SimpleNamespace
import numpy as np, pytest, torch
from hypothesis import HealthCheck, given, settings, strategies as st
from safetensors.torch import load_file, save_file
from torch.testing import assert_close
from attention_nb.checkpoints import gguf as gguf_files, tensors as tensor_files
from attention_nb.checkpoints.source import open_source
from attention_nb.checkpoints.gguf import read_gguf
from attention_nb.checkpoints.pretrained import from_hf, load_pretrained
from attention_nb.checkpoints.save import save_tensors
from attention_nb.checkpoints.tokenizers import load_tokenizer
from helpers.apart import apart, said_of
from helpers.gguf_model import E, H, KV, N, V, said, shapes, write

gguf = pytest.importorskip('gguf')
tokenizers = pytest.importorskip('tokenizers')
transformers = pytest.importorskip('transformers')
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
few = settings(deadline=None, max_examples=60, derandomize=True,
               suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
config = dict(model_type='llama', vocab_size=12)

@pytest.fixture
def tensors():
    torch.manual_seed(0)
    return {'a.weight': torch.randn(6, 4), 'b.weight': torch.randn(5, 4).bfloat16(),
            'c': torch.arange(7), 'd': torch.tensor(2.), 'e': torch.zeros(0, 3)}

@pytest.fixture
def folder(tmp_path, tensors):
    save_tensors(tensors, config, tmp_path/'model')
    return tmp_path/'model'

@pytest.fixture
def shards(tmp_path, tensors):
    save_tensors(tensors, config, tmp_path/'shards', max_shard_size=60)
    return tmp_path/'shards'

def refused(path, *says, error=ValueError):
    with pytest.raises(error) as e: open_source(path)
    for text in says: assert text in str(e.value), str(e.value)
    assert len(str(e.value)) < 1000

# %% folders
def test_no_config_an_empty_folder(folder, tmp_path):
    (folder/'config.json').unlink()
    refused(folder, str(folder), 'no config.json', error=FileNotFoundError)
    (tmp_path/'empty').mkdir()
    refused(tmp_path/'empty', 'no config.json', error=FileNotFoundError)
    (tmp_path/'empty'/'config.json').write_text('{}')
    refused(tmp_path/'empty', 'no model.safetensors', error=FileNotFoundError)

@pytest.mark.parametrize('text,says', [
    (b'', 'not a JSON'), (b'[1]', 'must hold a JSON object {...}, got list'), (b'null', 'NoneType'),
    (b'{"a": ', 'not a JSON'), (b'"x"', 'got str'), (b'['*100_000, 'nested too deep'),
    (b'{"a": "\xff"}', 'is not a text')], ids=lambda x: x if isinstance(x, str) else 'text')
def test_config_is_no_object(folder, text, says):
    (folder/'config.json').write_bytes(text)
    refused(folder, str(folder/'config.json'), says)

class Bomb:
    def __reduce__(self): return exec, ("import pathlib; pathlib.Path(BOMB).touch()",)

def test_a_pickle_is_never_opened(folder, tmp_path, monkeypatch):
    import builtins
    monkeypatch.setattr(builtins, 'BOMB', str(tmp_path/'exploded'), raising=False)
    for name in ('pytorch_model.bin', 'model.pt', 'model.ckpt'):
        other = tmp_path/name.replace('.', '_')
        other.mkdir(); (other/'config.json').write_text('{}')
        (other/name).write_bytes(pickle.dumps(Bomb()))
        refused(other, name, 'a pickle', 'save_pretrained')
        refused(other/name, 'not a GGUF file', 'begins like a pickle')
    (folder/'model.safetensors').write_bytes(pickle.dumps(Bomb()))
    refused(folder, 'model.safetensors', 'begins like a pickle')
    torch.save({'a': torch.ones(2)}, folder/'model.safetensors')
    refused(folder, 'model.safetensors', "torch.save")
    assert not (tmp_path/'exploded').exists()

def lying(end=16, **changes):
    "A safetensors file whose header is changed, and bytes behind it"
    head = {'a': dict(dtype='F32', shape=[2, 2], data_offsets=[0, 16]) | changes}
    text = json.dumps(head).encode()
    return struct.pack('<Q', len(text)) + text + bytes(end)

@pytest.mark.parametrize('data,says', [
    (b'', 'it is empty'), (b'hello', 'safetensors'),
    (b'version https://git-lfs.github.com/spec/v1\n', 'Git LFS'),
    (b'<!DOCTYPE html>', 'web page'), (b'GGUF' + bytes(40), 'open it by its own path'),
    (struct.pack('<Q', 2**62) + b'{}', 'safetensors'),
    (struct.pack('<Q', 3) + b'[1]', 'safetensors'), (struct.pack('<Q', 2) + b'{x', 'safetensors'),
    *((lying(**{name: x}), '') for name,values in dict(
        shape=([2, 3], [2**40, 2**40], [-2, -2], 'x'), dtype=('F99', 'F64'),
        data_offsets=([0, 32], [16, 0], [-4, 12], [4, 20])).items() for x in values),
    # of sizes that torch cannot have
    *((lying(0, shape=shape, data_offsets=[0, 0]), f"'a' is {tuple(shape)}")
      for shape in ([0, 2**63], [2**40, 0, 2**40]))])
def test_a_file_that_is_not_what_its_name_or_header_says(folder, data, says):
    file = folder/'model.safetensors'
    file.write_bytes(lying())
    assert open_source(folder).tensors.shape('a') == (2, 2)
    file.write_bytes(data)
    refused(folder, str(file), says)

@few
@given(st.data())
def test_cut_short_or_changed_at_random(folder, data):
    file = folder/'model.safetensors'
    whole = file.read_bytes()
    try:
        file.write_bytes(whole[:data.draw(st.integers(0, len(whole)-1))])
        refused(folder, str(file))
        changed = bytearray(whole)
        changed[data.draw(st.integers(0, 300))] = data.draw(st.integers(0, 255))
        file.write_bytes(bytes(changed))
        try: read = dict(open_source(folder).tensors)
        except ValueError as e: assert str(file) in str(e)
        else: assert all(isinstance(t, torch.Tensor) for t in read.values())
    finally: file.write_bytes(whole)

# %% shards
def edit(shards, change):
    index = shards/'model.safetensors.index.json'
    said = json.loads(index.read_text()); change(said); index.write_text(json.dumps(said))

def test_a_damaged_shard_and_a_missing_one_are_named(shards):
    file = shards/'model-00002-of-00003.safetensors'
    file.write_bytes(file.read_bytes()[:-1])
    refused(shards, str(file))
    file.unlink()
    refused(shards, 'lacks 1 of 3', 'model-00002-of-00003', error=FileNotFoundError)

@pytest.mark.parametrize('weight_map', [None, {}, [], {'a': 1}, 'x'])
def test_an_index_without_a_map(shards, weight_map):
    edit(shards, lambda said: said.update(weight_map=weight_map))
    refused(shards, 'index.json has no weight_map')

@pytest.mark.parametrize('changes,says', [
    (dict(ghost='model-00001-of-00003.safetensors'), "only one of them has ['ghost']"),
    (dict(c=None), "only one of them has ['c']"), *(
        (dict(c=name), f'names what is no safetensors file beside it: [{name!r}]')
        for name in ('../model.safetensors', '/etc/passwd', 'x.bin', '', '..', 'a/b.safetensors'))])
def test_an_index_that_says_what_is_not_so(shards, changes, says):
    def change(said):
        kept = {**said['weight_map'], **changes}
        said['weight_map'] = {n: file for n,file in kept.items() if file is not None}
    edit(shards, change)
    refused(shards, 'model.safetensors', says)

@pytest.mark.parametrize('name', ['..\\\\m.safetensors', 'C:m.safetensors', False])
def test_settings_that_name_weights_elsewhere(folder, name):
    "A backslash and a colon lead there on some systems; the notebook has other names"
    (folder/'config.json').write_text(json.dumps({**config, 'transformers_weights': name}))
    refused(folder, str(folder/'config.json'), 'transformers_weights')

@pytest.mark.parametrize('name', ['x'*300 + '.safetensors', 'x\0.safetensors'])
def test_a_name_that_no_file_can_have(shards, folder, name):
    edit(shards, lambda said: said['weight_map'].update(c=name))
    refused(shards, 'lacks 1 of 4 files', repr(name)[:99], error=FileNotFoundError)
    (folder/'config.json').write_text(json.dumps(config | dict(transformers_weights=name)))
    refused(folder, name[:99], 'is missing', error=FileNotFoundError)

def test_names_of_a_million_letters_make_no_long_error(shards, folder):
    edit(shards, lambda said: said['weight_map'].update({'a'*10**6: said['weight_map']['c']}))
    refused(shards, "only one of them has ['aaa")
    edit(shards, lambda said: said['weight_map'].update(c='c'*10**6))
    refused(shards, 'names what is no safetensors file')
    (folder/'config.json').write_text(json.dumps(config | dict(transformers_weights='x'*10**6)))
    refused(folder, 'names what is no safetensors file')
    (folder/'config.json').write_text(json.dumps(config))
    save_file({'a'*10**6: torch.ones(1, dtype=torch.uint16)}, folder/'model.safetensors')
    refused(folder, "'aaa")

@pytest.mark.parametrize('name,text', [
    ('config.json', '{"n": 1, "m": 2, "n": 3}'), ('config.json', '{"n": {"a": 1, "a": null}}'),
    ('generation_config.json', '{"n": 1, "n": 2}'), ('tokenizer_config.json', '{"n": 1, "n": 2}'),
    ('model.safetensors.index.json', '{"weight_map": {"n": "a", "n": "b"}}')])
def test_a_name_with_two_values(folder, name, text):
    "Which of them counts is for no reader to guess; the same value twice is no question"
    if 'index' in name: (folder/'model.safetensors').unlink()
    (folder/name).write_text(text)
    refused(folder, str(folder/name), 'stands there twice')
    if name.startswith(('config', 'model')): return
    (folder/name).write_text('{"n": 1, "n": 1}')
    assert open_source(folder).config['vocab_size'] == 12

@pytest.mark.skipif(os.name == 'nt', reason='links')
@pytest.mark.parametrize('name', ['config.json', 'model.safetensors', 'generation_config.json',
                                  'model.safetensors.index.json', 'tokenizer_config.json',
                                  'chat_template.jinja'])
def test_a_link_to_nothing_is_missing_not_absent(folder, name):
    "A half download: without it the model would stop elsewhere, or have no template"
    if 'index' in name: (folder/'model.safetensors').unlink()
    (folder/name).unlink(missing_ok=True)
    (folder/name).symlink_to(folder/'nowhere')
    refused(folder, str(folder/name), error=FileNotFoundError)
    (folder/'nowhere').mkdir()
    refused(folder, str(folder/name))

# %% saving
class Stop(BaseException): "Nobody catches it"

def both(n, size=60): return {f'w{i}': torch.full((9,), float(n)) for i in range(size//20)}

def names(folder): return {p.name for p in folder.iterdir()}

def which(folder):
    "The one model that a folder holds, also by the rules of transformers"
    source = open_source(folder)
    assert {float(x) for t in source.tensors.values() for x in t} == {source.config['n']}
    named = source.config.get('transformers_weights', 'model.safetensors')
    if not (folder/named).exists(): named = 'model.safetensors.index.json'
    index = json.loads((folder/named).read_text()) if named.endswith('.json') else {}
    files = {*index.get('weight_map', {'': named}).values()}
    assert {name for file in files for name in load_file(folder/file)} == {*source.tensors}
    return source.config['n']

@contextlib.contextmanager
def stopping(at, error, changes=('replace', 'link', 'mkdir', 'unlink', 'rmdir', 'fsync')):
    "Whatever changes a folder fails once, at one of its steps; how many steps there were"
    steps = [0]
    def counted(do):
        def step(*args, **kw):
            steps[0] += 1
            if steps[0] == at: raise error
            return do(*args, **kw)
        return step
    with pytest.MonkeyPatch.context() as m:
        for name in changes: m.setattr(os, name, counted(getattr(os, name)))
        yield steps

@pytest.mark.parametrize('error', [OSError(28, 'the disk is full'), Stop()])
def test_a_save_that_stops_anywhere_leaves_the_old_model_or_the_new(tmp_path, error):
    "At each of its places; the next save makes all as new"
    at,steps,found = 0,[0],[]
    while steps[0] >= at:
        at += 1
        folder = tmp_path/f'{at}'
        save_tensors(both(1), dict(n=1), folder, max_shard_size=40)
        (folder/'notes.txt').write_text('mine')
        new = tmp_path/f'new{at}'
        with contextlib.suppress(OSError, Stop), stopping(at, error):
            save_tensors(both(2), dict(n=2), new, max_shard_size=80)
        assert isinstance(error, Stop) or not new.exists() or which(new) == 2
        with stopping(at, error) as steps:
            try: save_tensors(both(2), dict(n=2), folder, max_shard_size=80)
            except (OSError, Stop): found.append(which(folder))
            else: assert which(folder) == 2
        save_tensors(both(3), dict(n=3), folder)
        assert which(folder) == 3
        assert names(folder) == {'config.json', 'model.safetensors', 'notes.txt'}
    assert at > 30 and len(found) > 8 and found == sorted(found) and {*found} == {1, 2}

def saved_until_the_switch(tensors, config, folder, **more):
    "Save, and be stopped when config.json points to the staged files"
    def stops(a, b, replace=os.replace):
        replace(a, b)
        raise Stop
    with pytest.MonkeyPatch.context() as m, contextlib.suppress(Stop):
        m.setattr(os, 'replace', stops)
        save_tensors(tensors, config, folder, **more)

def test_an_error_in_reading_config_json_deletes_no_staged_weights(tmp_path, monkeypatch):
    folder = tmp_path/'model'
    saved_until_the_switch(both(1), dict(n=1), folder)
    def fails(path): raise OSError(errno.EMFILE, 'too many open files')
    with monkeypatch.context() as m, pytest.raises(ValueError, match='too many open files'):
        m.setattr(tensor_files, 'open_file', fails)
        save_tensors(both(2), dict(n=2), folder)
    assert which(folder) == 1

def test_a_save_deletes_only_what_is_its_own(folder, shards, tensors):
    "Files that others named nearly like it, and shards that no index names, stay"
    others = ['model.safetensors.bak', 'model-best-of-run.safetensors', 'tokenizer.json',
              'model-00007-of-00009.safetensors', 'model-1-of-2.safetensors', 'pytorch_model.bin',
              '.saving-notes', 'model.safetensors.index.json.old', 'model.fp16.safetensors']
    index = 'model.safetensors.index.json'
    sharded = {*(f'model-0000{i}-of-00003.safetensors' for i in (1, 2, 3)), index}
    for where in (folder, shards):
        for name in others: (where/name).write_text(name)
        (where/'.saving-mine').mkdir(); (where/'.saving-mine'/'x').write_text('x')
        for size in (60, 10**6, 60):
            save_tensors(tensors, config, where, max_shard_size=size)
            weights = sharded if size == 60 else {'model.safetensors'}
            assert names(where) == {*others, '.saving-mine', 'config.json'} | weights
        for name in others: assert (where/name).read_text() == name
        lies = dict(a='tokenizer.json', b='../model-00001-of-00003.safetensors',
                    c='model-best-of-run.safetensors', d=7)
        (where/index).write_text(json.dumps(dict(weight_map=lies)))
        save_tensors(tensors, config, where)
        for name in others: assert (where/name).read_text() == name
        assert (where/'.saving-mine'/'x').read_text() == 'x'

def beside_of(folder):
    "Which model the files beside the weights are of"
    source,tokenizer = open_source(folder),load_tokenizer(folder)
    assert source.tokenizer_file.read_text() == tokenizer_json(source.config['n'])
    return (source.generation_config.get('n'), len(tokenizer),
            (source.chat_template or '').count('a'))

def test_a_source_that_was_opened_during_a_save_finds_its_tokenizer_afterwards(tmp_path):
    folder,extra_files = tmp_path/'model',{'tokenizer.json': tokenizer_json(1).encode()}
    saved_until_the_switch(both(1), dict(n=1), folder, extra_files=extra_files)
    source = open_source(folder)
    save_tensors(both(1), dict(n=1), folder)
    assert not source.tokenizer_file.exists() and len(load_tokenizer(source)) == 1

def tokenizer_json(n):
    words = {str(i): i for i in range(int(n))}
    return tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token='0')).to_str()

@pytest.mark.parametrize('settled', [True, False], ids=['whole', 'stopped before'])
def test_what_stands_beside_is_of_the_same_model_at_every_step(tmp_path, settled):
    "Tokenizer, template and ends: all of the old model or of the new, which has no template"
    def extra_files(n):
        more = {'chat_template.jinja': b'a'*n} if n != 2 else {'chat_template.jinja': None}
        return {'tokenizer.json': tokenizer_json(n).encode(),
                'generation_config.json': json.dumps(dict(n=n)).encode(), **more}
    wants,found,at = {1: (1, 1, 1), 2: (2, 2, 0), 5: (5, 5, 5)},[],0
    while not found or found[-1] is not None:
        at += 1 if settled else 3
        folder = tmp_path/f'{at}'
        save_tensors(both(5), dict(n=5), folder, extra_files=extra_files(5))
        (folder/'README.md').write_text('mine')
        # or the model before this one was stopped behind its switch
        save = save_tensors if settled else saved_until_the_switch
        save(both(1), dict(n=1), folder, extra_files=extra_files(1))
        assert beside_of(folder) == wants[1]
        with stopping(at, Stop()):
            try: save_tensors(both(2), dict(n=2), folder, extra_files=extra_files(2))
            except Stop: found.append(which(folder))
            else: found.append(None)
        assert beside_of(folder) == wants[found[-1] or 2]
        # who says nothing about them leaves them as they are
        save_tensors(both(which(folder)), dict(n=which(folder)), folder)
        assert beside_of(folder) == wants[found[-1] or 2]
        assert names(folder) == {'config.json', 'model.safetensors', 'README.md', 'tokenizer.json',
                                 'generation_config.json',
                                 *(['chat_template.jinja'] if found[-1] == 1 else [])}
    assert {*found[:-1]} == {1, 2} and found[:-1] == sorted(found[:-1]) and at > 15

def test_a_folder_in_the_place_of_a_file_is_refused_before_anything_is_written(folder, tensors):
    (folder/'tokenizer.json').mkdir()
    before = names(folder)
    with pytest.raises(ValueError, match='tokenizer.json is a folder, not a file'):
        save_tensors(tensors, config, folder)
    assert names(folder) == before

racing = """if True:
    import os, signal, sys, time, torch
    from attention_nb.checkpoints.save import save_tensors
    from attention_nb.checkpoints.source import open_source
    def saver(n):
        if pid := os.fork(): return pid
        while True:
            weights = {f'w{i}': torch.full((9,), n) for i in range(3)}
            try: save_tensors(weights, dict(n=n), folder, max_shard_size=size)
            except RuntimeError as e:
                if 'another save' not in str(e): os._exit(1)
    def which():
        source = open_source(folder)
        found, = {float(x) for t in source.tensors.values() for x in t}
        assert found == source.config['n']
        return found
    folder,size = sys.argv[1],int(sys.argv[2])
    pids,seen,end = [saver(1.), saver(2.)],[],time.monotonic()+60
    try:
        while len(seen) < 40 or {*seen} != {1., 2.}:
            seen.append(which())
            assert time.monotonic() < end, {*seen}
    finally:
        for pid in pids: os.kill(pid, signal.SIGKILL)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [9, 9]"""

def test_kill_9_while_two_save_and_one_reads(tmp_path):
    "Always one whole model, for a reader beside them, and after the end of both"
    folder = tmp_path/'model'
    save_tensors(both(1), dict(n=1.), folder)
    for size in (40, 10**6):
        apart(racing, folder, size)
        assert which(folder) in (1., 2.)
    save_tensors(both(3), dict(n=3), folder)
    assert names(folder) == {'config.json', 'model.safetensors'}

def test_transformers_loads_what_a_killed_save_leaves(tmp_path):
    "After the switch and before the end, in one file and in several"
    load = transformers.AutoModelForCausalLM.from_pretrained
    def save(n, folder, size):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=40, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=4, rope_theta=100.*n))
        with torch.no_grad():
            for p in model.parameters(): p.fill_(n/8)
        config = {**model.config.to_dict(), 'architectures': ['LlamaForCausalLM']}
        save_tensors(model.state_dict(), config, folder, max_shard_size=size)
    for size,last in ((10**9, 2), (10**9, 3), (20_000, 2), (20_000, 3)):
        folder = tmp_path/f'{size}-{last}'
        save(1, folder, 30_000)
        with pytest.raises(Stop), stopping(last, Stop(), ['replace']): save(2, folder, size)
        assert 'transformers_weights' in json.loads((folder/'config.json').read_text())
        for loaded in (load(folder), load_pretrained(folder)):
            assert {float(p.detach().unique()) for p in loaded.parameters()} == {2/8}
        assert from_hf(load(folder)).cfg.rope_base == 200.
        load_pretrained(folder).save_pretrained(folder)
        assert names(folder) == {'config.json', 'generation_config.json', 'model.safetensors'}
        assert 'transformers_weights' not in json.loads((folder/'config.json').read_text())

def test_a_folder_without_links_or_locks_is_saved_too(tmp_path, monkeypatch):
    import attention_nb.checkpoints.save as module
    def no(*args, **kw): raise OSError(95, 'Operation not supported')
    for name in ('link', 'fsync'): monkeypatch.setattr(os, name, no)
    monkeypatch.setattr(module, '_lock', no)
    for size in (40, 10**6):
        save_tensors(both(size), dict(n=size), tmp_path/'m', max_shard_size=size)
    assert which(tmp_path/'m') == 10**6 and len([*(tmp_path/'m').iterdir()]) == 2

def test_saving_over_the_files_one_reads_from(folder, tensors):
    source = open_source(folder)
    save_tensors(source.tensors, source.config, folder, max_shard_size=60)
    assert not (folder/'model.safetensors').exists()
    again = open_source(folder)
    for n,t in tensors.items():
        assert torch.equal(again.tensors[n], t) and torch.equal(source.tensors[n], t)

def test_tied_weights_are_written_once_and_overlapping_ones_whole(tmp_path):
    base = torch.arange(12.)
    tied = dict(embed=base, head=base, part=base[2:6], turned=base.view(3, 4).t(),
                same=base.clone(), both=base.view(3, 4), wide=torch.ones(1).expand(5))
    save_tensors(tied, {}, tmp_path/'m')
    read = open_source(tmp_path/'m').tensors
    assert {*read} == {*tied} - {'head'}
    for n in read: assert torch.equal(read[n], tied[n]), n
    assert (tmp_path/'m'/'model.safetensors').stat().st_size < 1200

@pytest.mark.parametrize('tensors,error,says', [
    ({}, ValueError, 'no tensors'), ({1: torch.ones(1)}, TypeError, 'names must be'),
    ({'__metadata__': torch.ones(1)}, ValueError, '__metadata__'),
    ({'a': [1.]}, TypeError, 'got list'),
    ({'a': torch.ones(2, device='meta')}, TypeError, 'on meta'),
    ({'a': torch.eye(2).to_sparse()}, TypeError, 'sparse')])
def test_what_cannot_be_saved(tmp_path, tensors, error, says):
    with pytest.raises(error, match=says): save_tensors(tensors, {}, tmp_path/'m')
    assert not (tmp_path/'m').exists()

def test_a_config_that_cannot_be_saved(tmp_path):
    for bad in ([], None, {'a': torch.ones(1)}, {'a': {1, 2}}):
        with pytest.raises(TypeError, match='config must be'):
            save_tensors({'a': torch.ones(1)}, bad, tmp_path/'m')
    for bad,error in ((0, ValueError), (True, TypeError), ('5GB', TypeError)):
        with pytest.raises(error):
            save_tensors({'a': torch.ones(1)}, {}, tmp_path/'m', max_shard_size=bad)
    assert not (tmp_path/'m').exists()

# %% GGUF
@pytest.fixture
def file(tmp_path): return write(tmp_path/'m.gguf')

@pytest.mark.parametrize('kind,tied', [('F32', True), ('F16', False), ('BF16', True),
    ('Q8_0', False), ('Q4_0', True), ('Q4_1', False), ('Q5_0', True), ('Q5_1', False)])
def test_a_gguf_file_gives_the_tensors_of_transformers(tmp_path, kind, tied):
    write(tmp_path/'m.gguf', kind=kind, drop=['output'] if tied else [])
    s = open_source(tmp_path/'m.gguf')
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file='m.gguf')
    theirs = model.state_dict()
    if tied: theirs.pop('lm_head.weight')
    assert theirs.keys() == s.tensors.keys() and s.config['tie_word_embeddings'] == tied
    for n,t in theirs.items(): assert torch.equal(s.tensors[n].to(t.dtype), t), n
    ours = transformers.LlamaConfig(**s.config)
    for k in '''hidden_size num_key_value_heads head_dim rope_parameters vocab_size eos_token_id
            max_position_embeddings intermediate_size tie_word_embeddings'''.split():
        assert getattr(ours, k) == getattr(model.config, k), k
    assert_close(ours.rms_norm_eps, model.config.rms_norm_eps)

def test_packed_rows_are_unpacked_a_few_at_a_time(tmp_path):
    from attention_nb.checkpoints.gguf import header_and_packed, _unpack
    packed = header_and_packed(write(tmp_path/'m.gguf', kind='Q4_1'))[1]['token_embd.weight']
    whole = _unpack(packed, chunk=10**9)
    for chunk in (1, 33, 64, 500): assert torch.equal(_unpack(packed, chunk=chunk), whole)
    order = np.random.default_rng(0).permutation(V)
    assert torch.equal(_unpack(packed, order, chunk=70), whole[torch.from_numpy(order)])

@pytest.mark.parametrize('more,says', [
    ({'llama.expert_count': 8}, 'llama.expert_count'),
    ({'llama.rope.scaling.type': 'yarn'}, "'yarn'"),
    ({'llama.attention.sliding_window': 4096}, 'sliding_window'), ({'llama.new_thing': 1}, '.new_'),
    ({'llama.attention.head_count_kv': [2, 1]}, 'not a whole number'),
    ({'llama.block_count': 1}, "'blk.1."), ({'llama.block_count': 'x'}, 'block_count'),
    ({'llama.vocab_size': 41}, '41 tokens'), ({'llama.attention.head_count': 3}, 'make 3 heads'),
    ({'llama.attention.value_length': 16}, 'value_length'),
    ({'llama.attention.layer_norm_rms_epsilon': 0.}, 'epsilon'),
    ({'llama.rope.freq_base': np.float64(1e300)}, 'freq_base is inf'),
    ({'llama.block_count': [2, 3]*999}, 'llama.block_count is [2, 3'),
    ({'llama.new_thing': [2, 3]*999}, 'not understood')])
def test_settings_that_are_not_understood_are_refused_by_name(tmp_path, more, says):
    refused(write(tmp_path/'m.gguf', more=more), str(tmp_path/'m.gguf'), says)

def test_settings_that_change_nothing_pass(tmp_path):
    more = {'llama.expert_count': 0, 'llama.attention.key_length': E,
            'llama.rope.scaling.type': 'none',
            'llama.attention.head_count_kv': [KV, KV], 'llama.vocab_size': V}
    plain = open_source(write(tmp_path/'n.gguf')).config
    assert open_source(write(tmp_path/'m.gguf', more=more)).config == plain
    linear = {'llama.rope.scaling.type': 'linear', 'llama.rope.scaling.factor': 4.}
    scaled = open_source(write(tmp_path/'m.gguf', more=linear)).config
    assert scaled['rope_scaling'] == dict(rope_type='linear', factor=4.)

def test_a_family_in_gguf_is_data(tmp_path, monkeypatch):
    "Qwen2 from one more table: biases, and rows in the order of transformers"
    path = tmp_path/'m.gguf'
    more = {k.replace('llama.', 'qwen2.'): v for k,v in said.items() if 'rope.dimension' not in k}
    sizes = dict(q=H*E, k=KV*E, v=KV*E)
    biases = {f'blk.{i}.attn_{n}': (s,) for i in range(N) for n,s in sizes.items()}
    write(path, arch='qwen2', more=more, drop=[*said], biases=biases)
    refused(path, "architecture 'qwen2'", "only 'llama' is understood")
    fixed = dict(model_type='qwen2', architectures=['Qwen2ForCausalLM'], hidden_act='silu')
    known = gguf_files._dialects
    dialect = dataclasses.replace(known['llama'], paired={}, implied={}, fixed=fixed)
    monkeypatch.setitem(known, 'qwen2', dialect)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=path.name)
    source,state = open_source(path),theirs.state_dict()
    assert 'model.layers.1.self_attn.q_proj.bias' in source.tensors
    for name,t in source.tensors.items(): assert torch.equal(t, state[name]), name
    ids = torch.arange(12)[None]
    with torch.no_grad(): want = theirs.eval()(ids).logits
    with torch.no_grad(): assert_close(load_pretrained(path)(ids), want, atol=1e-5, rtol=1e-4)

def test_other_architectures_and_tensors_are_refused_by_name(tmp_path):
    refused(write(tmp_path/'m.gguf', arch='mamba'), "architecture 'mamba'")
    for name in ('rope_freqs', 'blk.0.ffn_gate_inp', 'blk.attn_q', 'blk.02.attn_q', 'blk.0.output',
                 'attn_q'):
        refused(write(tmp_path/'m.gguf', tensors=shapes | {name: (32, 32)}), f"'{name}.weight'")
    refused(write(tmp_path/'m.gguf', drop=['token_embd']), 'token_embd.weight')
    refused(write(tmp_path/'m.gguf', drop=['llama.embedding_length']), 'hidden_size')
    path = write(tmp_path/'m.gguf', tensors={'rope_freqs': (4,)})
    assert 'rope_freqs.weight' in read_gguf(path)[1]

@few
@given(st.data())
def test_a_gguf_file_cut_short_or_changed_at_random(tmp_path, data):
    path,other = tmp_path/'m.gguf',tmp_path/'other.gguf'
    if not path.exists(): write(path, kind='Q8_0')
    whole = path.read_bytes()
    other.write_bytes(whole[:data.draw(st.integers(0, len(whole)-1) | st.integers(0, 2000))])
    # the writer pads the last tensor, so a few bytes may go
    try: dict(open_source(other).tensors)
    except ValueError as e: assert str(other) in str(e)
    else: assert len(whole) - other.stat().st_size < 32
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, 4500))] = data.draw(st.integers(0, 255))
    other.write_bytes(bytes(changed))
    for use in (lambda p: dict(open_source(p).tensors), load_tokenizer):
        try: use(other)
        except ValueError as e: assert str(other) in str(e)

def raw(version=3, tensors=0, values=0, rest=b''):
    return b'GGUF' + struct.pack('<IQQ', version, tensors, values) + rest

def one_value(form, name, *x, times=1):
    "A file of one value: a name, the number of a kind and what follows"
    return raw(values=times, rest=struct.pack(f'<Q{len(name)}s{form}', len(name), name, *x)*times)

def tensor(sizes=1, size=4, kind=0, at=0, name=b'a'):
    return struct.pack(f'<Q{len(name)}sIQIQ', len(name), name, sizes, size, kind, at)

def one_tensor(**how): return raw(tensors=1, rest=tensor(**how))
many = bytes(9999*4)

@pytest.mark.parametrize('data,says', [
    (b'', 'empty'), (b'GGML' + bytes(40), 'not a GGUF'), (b'PK\3\4xx', 'archive'),
    (b'GGUF', 'ends within'), (raw(version=1), 'version is 1'), (raw(version=3<<24), 'version'),
    (raw(), 'architecture None'), (raw(values=2**63), 'ends within'),
    (raw(tensors=2**63), 'ends within'),
    (raw(values=1, rest=struct.pack('<Q', 2**63)), 'ends within'),
    (one_value('I', b'a', 77), 'type 77'), (one_value('IIQ', b'a', 9, 9, 1), 'unknown type 9'),
    (one_value('IIQ', b'a', 9, 12, 2**61), 'ends within'),
    (one_value('IQ1s', b'a', 8, 1, b'\xff'), 'utf-8'),
    (one_value('IB', b'a', 0, 1, times=2), "'a' twice"),
    (one_value('II', b'general.alignment', 4, 0), 'alignment is 0'),
    (one_value('IIQ', b'general.alignment', 9, 4, 9999) + many, 'its alignment is [0, 0'),
    (one_value('IIQ', b'split.count', 9, 4, 9999) + many, 'split.count is [0, 0'),
    (one_value('IQ9999s', b'general.architecture', 8, 9999, b'a'*9999), "architecture 'aaa"),
    (one_tensor(size=99), "'a' should end"), (one_tensor(at=5), 'no multiple of 32'),
    (one_tensor(kind=777), 'not known: 777'), (one_tensor(sizes=0), 'has 0 sizes'),
    (one_tensor(size=33, kind=8), "multiple of Q8_0's 32"), (one_tensor(size=0), 'has sizes (0,)'),
    (raw(tensors=1, rest=struct.pack('<Q1sI', 1, b'a', 2**18) + bytes(2**22)), 'has 262144 sizes'),
    (raw(tensors=2, rest=tensor(name=b'a'*9999)*2 + bytes(99)), 'it holds'),
    (raw(tensors=2, rest=tensor()*2 + bytes(99)), "'a' twice"),
    (raw(tensors=2, rest=tensor() + tensor(name=b'b') + bytes(99)), 'overlap')],
    ids=lambda x: x if isinstance(x, str) else 'header')
def test_a_gguf_header_that_lies(tmp_path, data, says):
    (tmp_path/'m.gguf').write_bytes(data)
    refused(tmp_path/'m.gguf', str(tmp_path/'m.gguf'), says)

# %% a GGUF file in parts
def in_parts(path, **more):
    "The parts of a small llama, eight tensors each"
    write(path, split_max_tensors=8, **more)
    return sorted(path.parent.glob(f'{path.stem}-*-of-*.gguf'))

@pytest.mark.parametrize('more', [{}, dict(small_first_shard=True), dict(kind='Q8_0')])
def test_each_part_of_a_split_gguf_file_leads_to_the_whole(tmp_path, more):
    kind = {k: v for k,v in more.items() if k == 'kind'}
    whole,parts = open_source(write(tmp_path/'m.gguf', **kind)),in_parts(tmp_path/'m.gguf', **more)
    assert len(parts) >= 3
    for part in parts:
        source = open_source(part)
        assert source.config == whole.config and {*source.tensors} == {*whole.tensors}
        assert not source.config['tie_word_embeddings']
        for n,t in whole.tensors.items(): assert torch.equal(source.tensors[n], t), n
        assert read_gguf(part)[1].keys() == read_gguf(tmp_path/'m.gguf')[1].keys()
        tokens = [load_tokenizer(f).encode('abc ab') for f in (part, tmp_path/'m.gguf')]
        assert tokens[0] == tokens[1]

def test_a_split_gguf_file_that_is_not_whole_is_refused(tmp_path):
    first,second,last = in_parts(tmp_path/'m.gguf')
    for gone in (last, second, first):
        kept = gone.read_bytes()
        gone.unlink()
        for part in {first, second, last} - {gone}:
            refused(part, str(part), 'one of 3 parts', f"1 are not beside it: ['{gone.name}']",
                    error=FileNotFoundError)
        gone.write_bytes(kept)
    alone = tmp_path/'alone.gguf'
    alone.write_bytes(first.read_bytes())
    refused(alone, 'one of 3 parts', 'should end with -00001-of-00003.gguf')
    for other in (tmp_path/'m-00001-of-00002.gguf', tmp_path/'m-00001-of-00004.gguf'):
        other.write_bytes(first.read_bytes())
        refused(other, str(other), 'one of 3 parts')

def test_parts_that_do_not_belong_together_are_refused(tmp_path):
    first,second,last = in_parts(tmp_path/'m.gguf')
    whole = last.read_bytes()
    last.write_bytes(second.read_bytes())
    refused(first, f'{last} does not belong to {first.name}: split.no is 1, not 2')
    more = in_parts(tmp_path/'n.gguf', tensors=shapes | {'rope_freqs': (4,)})
    last.write_bytes(more[2].read_bytes())
    refused(first, str(last), 'split.tensors.count is 22, not 21')
    fewer = in_parts(tmp_path/'o.gguf', tensors=dict([*shapes.items()][8:]))
    last.write_bytes(fewer[1].read_bytes())
    refused(first, str(last), 'split.no is 1, not 2')
    last.write_bytes(whole)
    for key,kind,value in (('split.no', '<H', 7), ('split.count', '<H', 2)):
        data = bytearray(whole)
        at = data.index(key.encode()) + len(key) + 4
        data[at:at+2] = struct.pack(kind, value)
        last.write_bytes(bytes(data))
        refused(first, str(last), f'{key} is {value}, not')
    def renamed(data): return data.replace(b'blk.1.ffn_up', b'blk.0.ffn_up')
    assert renamed(whole) != whole
    last.write_bytes(renamed(whole))
    refused(first, str(last), "both hold ['blk.0.ffn_up.weight']")
    last.write_bytes(whole[:-500])
    refused(first, str(last), 'should end at byte')
    data = whole.replace(struct.pack('<i', 21), struct.pack('<i', 20), 1)
    last.write_bytes(data)
    refused(first, str(last), 'split.tensors.count is 20, not 21')

def test_a_split_gguf_file_says_how_many_tensors_it_has(tmp_path):
    parts = in_parts(tmp_path/'m.gguf')
    for part in parts:
        data = part.read_bytes()
        at = data.index(b'split.tensors.count') + 19 + 4
        part.write_bytes(data[:at] + struct.pack('<i', 22) + data[at+4:])
    refused(parts[0], 'its 3 parts should hold 22 tensors, and hold 21')
    for kind,value in ((4, 0), (4, 1)):     # a file that is its only part
        (tmp_path/'m.gguf').unlink(missing_ok=True)
        assert open_source(write(tmp_path/'m.gguf', more={'split.count': value}))
    refused(write(tmp_path/'m.gguf', more={'split.count': 'two'}), "split.count is 'two'")
    refused(write(tmp_path/'m.gguf', more={'split.count': 2**31}), f'one of {2**31} parts')

# %% tokenizers
def test_damaged_tokenizers(tmp_path, folder):
    with pytest.raises(FileNotFoundError, match='no tokenizer'): load_tokenizer(folder)
    for text in ('', '{}', '[]', '{"model": {"type": "Magic"}}'):
        (folder/'tokenizer.json').write_text(text)
        with pytest.raises(ValueError, match='tokenizer.json is not a tokenizer'):
            load_tokenizer(folder)
    (folder/'tokenizer.json').write_bytes(b'\xff\xfe')
    with pytest.raises(ValueError, match='tokenizer.json is not a text'): load_tokenizer(folder)
    (folder/'tokenizer.json').unlink()
    (folder/'vocab.json').write_text('{"<s>": 0}')
    with pytest.raises(FileNotFoundError, match='merges.txt'): load_tokenizer(folder)
    (folder/'merges.txt').write_text('#version: 0.2\n')
    with pytest.raises(ValueError, match='not GPT-2'): load_tokenizer(folder)
    (folder/'vocab.json').write_text('{"a": 0, "b": 1, "<|endoftext|>": 2}')
    (folder/'merges.txt').write_text('#version: 0.2\na b\n')
    with pytest.raises(ValueError, match='vocab.json and merges.txt are no tokenizer'):
        load_tokenizer(folder)
    for name in ('merges.txt', 'vocab.json') if hasattr(os, 'mkfifo') else ():
        (folder/name).unlink(); os.mkfifo(folder/name)
        with pytest.raises(FileNotFoundError, match=f'{name} is not a file'):
            load_tokenizer(folder/'vocab.json')

def spoiled(**changes):
    "A tokenizer.json of byte pairs with other parts"
    parts = 'truncation padding normalizer pre_tokenizer post_processor decoder'.split()
    model = dict.fromkeys(['dropout', 'unk_token', 'continuing_subword_prefix',
                           'end_of_word_suffix'])
    model |= dict.fromkeys(['fuse_unk', 'byte_fallback', 'ignore_merges'], False)
    model |= dict(type='BPE', vocab={'a': 0, 'b': 1, 'ab': 2, 'é': 3, 'aé': 4}, merges=['a b'])
    whole = dict.fromkeys(parts) | dict(version='1.0', added_tokens=[])
    return json.dumps(whole | changes | dict(model=model | changes.get('model', {})))

def split(pattern):
    said = dict(pattern=dict(Regex=pattern), behavior='Isolated', invert=False)
    return dict(type='Split', **said)
def replaced(pattern): return dict(type='Replace', pattern=dict(Regex=pattern), content='x')
def prefixed(prefix, **more): return dict(continuing_subword_prefix=prefix, **more)
nobody = dict(SpecialToken=dict(id='x', type_id=0))
fails = 'fails at this text'
# the package's engine gives up after ten million steps back, in a panic
for_ever = [
    dict(pre_tokenizer=split('(a|a)*$')), dict(normalizer=replaced('(a|a)*$')),
    dict(pre_tokenizer=dict(type='Sequence', pretokenizers=[split('b'), split('(a+)+b')]))]
# a panic while it is read, two ends of the process, a panic at the first text, and at any
hostile = [(parts, f' {fails}') for parts in for_ever] + [
    (dict(normalizer=dict(type='Precompiled', precompiled_charsmap='')), '.*Precompiled'),
    (dict(model=prefixed('#####')), '.*lacks the prefix'),
    (dict(model=prefixed('#', merges=['a é'])), '.*lacks the prefix'),
    (dict(pre_tokenizer=dict(type='FixedLength', length=0)), f' {fails}'),
    (dict(post_processor=dict(type='TemplateProcessing', single=[nobody], pair=[],
                              special_tokens={})), f' {fails}')]

def test_hostile_tokenizers(tmp_path):
    "In a process of its own, which some of them would hang or end"
    files = [tmp_path/f'{n}.json' for n in range(len(hostile))]
    for file,(parts,_) in zip(files, hostile): file.write_text(spoiled(**parts))
    said,_ = said_of("load_tokenizer(path).encode('a'*40 + '!')", *files)
    for file,line,(_,says) in zip(files, said, hostile):
        says = says if says[0] == ' ' else f' is not a tokenizer{says}'
        assert re.match(re.escape(str(file)) + says, line), line

def test_what_looks_hostile_and_is_not(tmp_path):
    good = tmp_path/'good.json'
    model = prefixed('#', vocab={'a': 0, '#b': 1, 'ab': 2}, merges=['a #b'])
    good.write_text(spoiled(pre_tokenizer=split(r'(?:\p{L}+\s)*z'), model=model))
    assert load_tokenizer(good).encoding('ab').tokens == ['ab']

def test_an_interrupt_is_no_fault_of_a_tokenizer(tmp_path, monkeypatch):
    (tmp_path/'tokenizer.json').write_text(spoiled())
    def interrupted(text): raise KeyboardInterrupt
    monkeypatch.setattr(tokenizers, 'Tokenizer', SimpleNamespace(from_str=interrupted))
    with pytest.raises(KeyboardInterrupt): load_tokenizer(tmp_path/'tokenizer.json')

@pytest.mark.parametrize('how,says', [
    (dict(pre='magic'), "'magic'"), (dict(merges=['a q1']), 'q1'), (dict(kinds=[1]), ''),
    (dict(more={'tokenizer.ggml.add_eos_token': True}), 'an end'),
    (dict(tokens=['a', 'a']), 'tokens'), (dict(merges=['a']), '')])
def test_gguf_tokenizers_that_are_not_understood(tmp_path, how, says):
    with pytest.raises(ValueError, match='m.gguf: its tokenizer') as e:
        load_tokenizer(write(tmp_path/'m.gguf', **how))
    assert says in str(e.value)

def test_a_llama_3_tokenizer_begins_every_text_and_cuts_as_transformers_does(tmp_path):
    write(tmp_path/'m.gguf', pre='llama-bpe', more={'tokenizer.ggml.add_bos_token': True})
    ours = load_tokenizer(tmp_path/'m.gguf')
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file='m.gguf')
    for text in ('abc ab', "a 1234's\n\n b", 'ABC', '</s>abc'):
        assert ours.encode(text) == theirs(text)['input_ids'], text
        assert ours.encode(text)[0] == ours.bos_id == 0

def test_smollms_digits_stand_alone_and_gpt2s_do_not(tmp_path):
    for pre,cut in (('smollm', ['Ġ', 'Ġ', '1', '2', 'a']), ('gpt-2', ['Ġ', 'Ġ', '12', 'a'])):
        write(tmp_path/'m.gguf', pre=pre, tokens=['<s>', '</s>', 'a', 'Ġ', '1', '2', '12'],
              merges=['1 2'])
        tok = load_tokenizer(tmp_path/'m.gguf')
        assert tok.encoding('  12a').tokens == cut

# %% the hub
def test_a_name_on_the_hub_is_found_in_the_cache_without_a_network(folder, tmp_path):
    snapshot = tmp_path/'hub'/'models--some--model'
    shutil.copytree(folder, snapshot/'snapshots'/'abc')
    (snapshot/'refs').mkdir(); (snapshot/'refs'/'main').write_text('abc')
    names = 'some/model','other/model','smolm2'
    (found,missed,typo),_ = said_of('len(open_source(path).tensors)', *names,
                                    HF_HUB_CACHE=str(tmp_path/'hub'), HF_HUB_OFFLINE='1')
    assert found == '5' and "did you mean 'smollm2'?" in typo
    assert "'other/model' is neither a folder nor a model that the hub gives" in missed
