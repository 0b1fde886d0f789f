"""Tokenizers of every kind on random text: streams, files of all forms.
Held to the package tokenizers and to transformers.
"""
import copy, functools, json, pickle, random, re
import pytest, tokenizers, torch, transformers
from tokenizers import decoders, models, pre_tokenizers, trainers
from attention_nb.models.generation import generate, stream
from attention_nb.models.text_stream import TextStream
from attention_nb.text.bpe import BPETokenizer, char_to_byte
from attention_nb.text.tokenizer import WordTokenizer
from attention_nb.checkpoints.tokenizers import (PretrainedTokenizer, load_tokenizer,
                                                 save_tokenizer)
from helpers.parrot import Parrot

scripts = ['the ship goes, back. 12', 'Ελληνικά ναι', 'русский язык', '日本語。東京へ', '한국어 말',
           'हिन्दी भाषा', 'עברית שלום', 'العربية لغة', '😀🚢👩‍👩‍👧 é ſ', 'ไทยภาษา']
def some_text(rng, n):
    "Words and letters of all scripts"
    pieces = [rng.choice(scripts) for _ in range(n)]
    return ''.join(rng.choice([p, rng.choice(p), p.split()[0]]) + rng.choice(['', ' ', '\n', '  '])
                   for p in pieces)

# %% streams
def of_bytes_and_words(*steps):
    "As Llama 2's: words, and bytes for the characters that are no words"
    words = ['<s>', *(f'<0x{b:02X}>' for b in range(256)), '▁', 'th', 'the', '▁ship', 'go', 'es',
             '日本', '語', 'русск', '▁я', '\ufffd', '한', 'ा', *'abcdefghiklmnoprstuwy,.']
    tok = tokenizers.Tokenizer(models.BPE({w: i for i,w in enumerate(words)},
                                          [('t', 'h'), ('th', 'e')], byte_fallback=True))
    tok.normalizer = tokenizers.normalizers.Replace(' ', '▁')
    tok.decoder = decoders.Sequence([decoders.Replace('▁', ' '), decoders.ByteFallback(),
                                     decoders.Fuse(), *steps])
    tok.add_special_tokens(['<s>'])
    return tok

def trained(model, trainer, before, decoder):
    tok = tokenizers.Tokenizer(model)
    tok.pre_tokenizer,tok.decoder = before,decoder
    tok.train_from_iterator(scripts*2, trainer)
    return tok

@functools.cache
def decoded(kind):
    "A tokenizer with a decoder of this kind"
    said = dict(special_tokens=['[UNK]', '<s>'], show_progress=False, vocab_size=300)
    words = pre_tokenizers.Whitespace()
    match kind:
        case 'llama 2': tok = of_bytes_and_words(decoders.Strip(' ', 1, 0))
        case 'byte fallback': tok = of_bytes_and_words()
        case 'byte fallback in transformers':
            tok = transformers.PreTrainedTokenizerFast(unk_token='<s>',
                tokenizer_object=of_bytes_and_words(decoders.Strip(' ', 1, 0)))
        case 'byte level' | 'byte level in transformers':
            said['initial_alphabet'] = pre_tokenizers.ByteLevel.alphabet()
            tok = trained(models.BPE(), trainers.BpeTrainer(**said | dict(vocab_size=330)),
                          pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel())
            if kind != 'byte level':
                tok = transformers.PreTrainedTokenizerFast(tokenizer_object=tok)
        case 'word pieces':
            tok = trained(models.WordPiece(unk_token='[UNK]'), trainers.WordPieceTrainer(**said),
                          words, decoders.WordPiece())
        case 'metaspace':
            tok = trained(models.Unigram(), trainers.UnigramTrainer(unk_token='[UNK]', **said),
                          pre_tokenizers.Metaspace(), decoders.Metaspace())
        case 'a suffix':
            trainer = trainers.BpeTrainer(end_of_word_suffix='</w>', **said)
            tok = trained(models.BPE(unk_token='[UNK]', end_of_word_suffix='</w>'), trainer, words,
                          decoders.BPEDecoder())
        case 'fused':
            tok = trained(models.BPE(unk_token='[UNK]'), trainers.BpeTrainer(**said), words,
                          decoders.Fuse())
        case 'none':
            tok = trained(models.WordLevel(unk_token='[UNK]'), trainers.WordLevelTrainer(**said),
                          words, None)
        case 'our words': return (t := WordTokenizer.train(scripts)), t.decode, t.encode, len(t)
        case 'our bytes': return (t := BPETokenizer.train(scripts, 300)),t.decode,t.encode,len(t)
    def encoded(text):
        ids = tok.encode(text, add_special_tokens=False)
        return getattr(ids, 'ids', ids)
    def decode(ids): return tok.decode(ids, skip_special_tokens=True)
    return tok, decode, encoded, len(tok.get_vocab())

kinds = ['llama 2', 'byte fallback', 'byte fallback in transformers', 'byte level',
         'byte level in transformers', 'word pieces', 'metaspace', 'a suffix', 'fused', 'none',
         'our words', 'our bytes']

@pytest.mark.parametrize('kind', kinds)
def test_a_stream_is_what_decode_says(kind):
    "Joined, whole texts and any ids, of any length; nothing is taken back, little is held back"
    tok,decode,encode,n = decoded(kind)
    rng = random.Random(0)
    for turn in range(14):
        ids = encode(some_text(rng, rng.randrange(1, 40)))
        if turn%2: ids = [rng.choice([i, i, rng.randrange(n)]) for i in ids]
        whole,flow,said = decode(ids),TextStream(tok),''
        for i in ids:
            said += flow.push(i)
            assert whole.startswith(said)
        assert said + flow.flush() == whole
        if len(ids) < 3: continue
        k = rng.randrange(1, len(ids))
        before = decode(ids[:k])
        if before.endswith('\ufffd') or not whole.startswith(before): continue
        flow = TextStream(tok, after=ids[:k])
        assert before + ''.join([*map(flow.push, ids[k:]), flow.flush()]) == whole
    # whole words come out at once, and few tokens are decoded again
    ids = encode('the ship goes back. '*45)
    flow,said = TextStream(tok),''
    for k,i in enumerate(ids, 1):
        said += flow.push(i)
        assert said == decode(ids[:k])
    assert len(ids) > 200 and len(flow._ids) < 100

def said_until(tok, ids, stop, start=0):
    "What `generate` takes of `ids`"
    start = torch.tensor([[start]])
    return generate(Parrot([ids], 400), start, len(ids), stop=stop, tokenizer=tok)[0,1:].tolist()

def test_a_string_to_stop_at_may_end_within_a_run_of_bytes():
    tok,decode,encode,_ = decoded('llama 2')
    for stop in ('。', '語', '語。', '😀', 'ไ'):
        out = said_until(tok, encode('the 日本語。😀😀ไทย ship'), stop)
        assert decode(out).endswith(stop) and stop not in decode(out[:-1])
    ids = encode(' the ')+[*encode('語')]*20+encode('。go')
    assert decode(said_until(tok, ids, '。')).endswith('語。')

@pytest.mark.parametrize('kind', kinds)
def test_generate_and_stream_with_a_tokenizer_of_any_kind(kind, tmp_path):
    "Ids beyond the words of a tokenizer, which tables have, spell nothing; marks end texts too"
    tok,decode,encode,n = decoded(kind)
    for tok in (tok, loaded(tok, tmp_path)): written_with(tok, kind, decode, encode, n)

def loaded(tok, folder):
    if not isinstance(tok, tokenizers.Tokenizer): return tok
    tok.save(str(folder/'tokenizer.json'))
    return load_tokenizer(folder)

def written_with(tok, kind, decode, encode, n):
    ids = encode('the ship goes, back')
    mixed = [n, *ids[:2], n+7, *ids[2:], n]
    for start in (0, n+1):
        flow = stream(Parrot([mixed], 400), torch.tensor([[start]]), len(mixed), tokenizer=tok)
        pieces = [*flow]
        assert ''.join(pieces).strip() == decode(ids).strip() and all(pieces) and len(pieces) > 2
        assert said_until(tok, mixed, 'never said', start) == mixed
        out = said_until(tok, mixed, 'ship', start)
        spelled = [decode([i for i in ids if i < n]) for ids in (out, out[:-1])]
        assert out == mixed[:len(out)] and ['ship' in s for s in spelled] == [True, False]
    mark = {'our words': '<eos>', 'our bytes': '<|endoftext|>'}.get(kind, '<s>')
    marked = [*ids[:3], (tok.get_vocab() if hasattr(tok, 'get_vocab') else tok.ids)[mark], *ids[3:]]
    assert said_until(tok, marked, mark) == marked[:4]
    flow = stream(Parrot([marked], 400), torch.tensor([[0]]), len(marked), tokenizer=tok)
    assert mark not in ''.join(flow)

# %% GPT-2's two files
def added(content, **flags):
    plain = dict.fromkeys(['lstrip', 'rstrip', 'single_word', 'normalized'], False)
    return plain | dict(content=content, special=True) | flags

def gpt2(**said): return dict(tokenizer_config=dict(tokenizer_class='GPT2Tokenizer', **said))
beside = {
    'nothing': dict(),
    'added tokens': dict(added_tokens={'<|user|>': 259, '[x]': 260}),
    'and their roles': dict(added_tokens={'<|user|>': 259, '[m]': 260},
        special_tokens_map=dict(mask_token='[m]', pad_token='<pad>')),
    'a list of all': gpt2(mask_token='[m]', added_tokens_decoder={
        '258': added('<|endoftext|>'), '260': added('[m]', lstrip=True),
        '259': added('<|user|>', special=False)}),
    'a space': gpt2(add_prefix_space=True),
    'marks': gpt2(add_bos_token=True, add_eos_token=True) | dict(added_tokens={'<|user|>': 259}),
    'other marks': gpt2(bos_token='<s>', eos_token='</s>', pad_token='<pad>', image_token='<img>',
        add_bos_token=True, additional_special_tokens=['<|user|>', 'he']),
    'no marks': gpt2(bos_token=None, add_bos_token=True),
    'tokens with flags': dict(special_tokens_map=dict(pad_token=dict(content='<pad>', lstrip=True,
        rstrip=True, single_word=False, normalized=True))),
    'names of tokens': gpt2(extra_special_tokens=dict(video_token='<img>'),
        added_tokens_decoder={'258': added('<|endoftext|>')})}

def two_files(folder, said):
    vocab = [*sorted(char_to_byte), 'he', 'Ġhe', '<|endoftext|>']
    (folder/'vocab.json').write_text(json.dumps({t: i for i,t in enumerate(vocab)}))
    (folder/'merges.txt').write_text('#version: 0.2\nh e\nĠ he\n', encoding='utf-8')
    for name,content in said.items(): (folder/f'{name}.json').write_text(json.dumps(content))
    return folder

@pytest.mark.parametrize('name', beside)
def test_two_files_and_what_is_beside_them_are_read_as_by_transformers(name, tmp_path):
    folder = two_files(tmp_path, beside[name])
    ours,theirs = load_tokenizer(folder),transformers.GPT2Tokenizer.from_pretrained(folder)
    rng = random.Random(0)
    parts = ['he', ' he', '  ', '<|user|>', '[m]', '[x]', '<s>', '</s>', '<pad>', '<img>',
             '<|endoftext|>', 'é😀', 'a', '\n', ' ']
    for _ in range(99):
        text = ''.join(rng.choice(parts) for _ in range(8))
        ids = ours.encode(text)
        assert ids == theirs(text)['input_ids'], text
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    assert len(ours) == len(theirs)
    assert (ours.bos_id, ours.eos_id) == (theirs.bos_token_id, theirs.eos_token_id)

@pytest.mark.parametrize('said,says', [
    (dict(tokenizer_config=dict(tokenizer_class='CLIPTokenizer')), 'is of a CLIPTokenizer'),
    (dict(added_tokens={'<|user|>': 300}), "'<|user|>' has the id 300, where 259 is the next"),
    (dict(added_tokens={'he': 259}), "'he' has the id 259, where 256"),
    (dict(added_tokens={'<a>': 259, '<b>': 259}), "'<b>' has the id 259, where 260"),
    (dict(added_tokens={'<|user|>': [1]}), 'added tokens are not understood'),
    (gpt2(added_tokens_decoder=[3]), 'added tokens are not understood'),
    (gpt2(added_tokens_decoder={'259': {}}), 'added tokens are not understood'),
    (dict(special_tokens_map=dict(pad_token={})), 'added tokens are not understood')])
def test_two_files_that_are_not_understood(said, says, tmp_path):
    with pytest.raises(ValueError, match=re.escape(says)) as e:
        load_tokenizer(two_files(tmp_path, said))
    assert str(tmp_path) in str(e.value)

# %% files
def slow_to_cut():
    "A tokenizer whose pattern reads a row of letters in very many ways"
    tok = tokenizers.Tokenizer(models.BPE({c: i for i,c in enumerate(sorted(char_to_byte))}, []))
    cut = pre_tokenizers.Split(tokenizers.Regex(r'\w*\w*\w*\w*\s'), 'isolated')
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tok.pre_tokenizer = pre_tokenizers.Sequence([cut, level])
    return tok

@pytest.mark.parametrize('copied', [lambda tok: tok, copy.copy, copy.deepcopy,
                                    lambda tok: pickle.loads(pickle.dumps(tok))])
def test_a_panic_of_tokenizers_names_the_file_also_from_a_copy(copied, tmp_path):
    bare = slow_to_cut()
    bare.enable_padding(pad_id=7, pad_token='x')
    bare.enable_truncation(3)
    bare.save(str(tmp_path/'tokenizer.json'))
    first,texts,long = load_tokenizer(tmp_path),['ab ab ab ab ab', 'a '],'a'*1000
    tok = copied(copied(first))
    for got,want in zip(tok.batch(texts), first.batch(texts), strict=True):
        assert torch.equal(got, want)
    assert 7 in tok.batch(texts)[0] and tok.batch(texts)[0].shape[1] > 3
    for call in (lambda: tok.encode(long), lambda: tok.encoding('a', long),
                 lambda: tok(['a', long])):
        with pytest.raises(ValueError, match='fails at this text') as e: call()
        assert str(e.value).startswith(str(tmp_path/'tokenizer.json'))
    with pytest.raises(TypeError): tok.encode(3)

@pytest.mark.parametrize('special', [(), ('<a>', '<a><b>', '<b>', '>x', ' ')])
def test_our_byte_pairs_are_saved_for_others_with_the_same_ids(special, tmp_path):
    own = BPETokenizer.train(scripts*3, 400, special=special)
    doubled = BPETokenizer(own.vocab, [*own.merges, *own.merges[:9]], special=special)
    own.save(tmp_path/'mine.json')
    rng = random.Random(0)
    for k,source in enumerate((own, tmp_path/'mine.json', doubled)):
        folder = tmp_path/str(k)
        files = save_tokenizer(source, folder)
        assert {p.name for p in files} == {'tokenizer.json', 'tokenizer_config.json'}
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
        bare = tokenizers.Tokenizer.from_file(str(folder/'tokenizer.json'))
        for _ in range(150):
            signs = (rng.choice([*special, '<', 'a', '>']) for _ in range(6))
            text = some_text(rng, 4) + ''.join(signs)
            ids = own.encode(text, allow_special=True)
            assert theirs(text)['input_ids'] == bare.encode(text).ids == ids, text
            assert theirs.decode(ids) == own.decode(ids, skip_special=False)
        assert type(load_tokenizer(folder)) is PretrainedTokenizer
        assert load_tokenizer(folder).encode(text) == ids

# %% a folder that held another one
def test_a_tokenizer_saved_over_another_is_alone(tmp_path):
    tokenizer = BPETokenizer.train(['to be or not to be'], 270)
    for name in ('chat_template.jinja', 'added_tokens.json'): (tmp_path/name).write_text('{}')
    (tmp_path/'additional_chat_templates').mkdir()
    (tmp_path/'README.md').write_text('mine')
    written = save_tokenizer(tokenizer, tmp_path)
    assert {*tmp_path.iterdir()} == {*written, tmp_path/'README.md'}
    again = save_tokenizer(tmp_path, tmp_path)
    assert {*tmp_path.iterdir()} == {*again, tmp_path/'README.md'}
    assert load_tokenizer(tmp_path).encode('to be') == tokenizer.encode('to be')

def test_what_stands_beside_is_not_looked_for_elsewhere(tmp_path):
    save_tokenizer(BPETokenizer.train(['to be'], 260), tmp_path/'secret')
    folder = tmp_path/'model'
    (folder/'.saving-0123456789abcdef').mkdir(parents=True)
    elsewhere = '.saving-0123456789abcdef/../../secret/x.safetensors'
    (folder/'config.json').write_text(json.dumps(dict(transformers_weights=elsewhere)))
    with pytest.raises((OSError, ValueError)): load_tokenizer(folder)
