"""Tokenizers of every kind on random text: streams, files of all forms, patterns, batches.
Held to the package tokenizers and to transformers.
"""
import json, random, re
import pytest, tokenizers, torch, transformers
from tokenizers import decoders, models, pre_tokenizers, trainers
from attention_nb.byte_level import _char_to_byte
from attention_nb.config import TransformerConfig
from attention_nb.generation import TextStream, generate
from attention_nb.tokenizer import BPETokenizer, WordTokenizer
from attention_nb.tokenizer_files import load_tokenizer
from attention_nb.transformer import Transformer

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
    return tok

def trained(model, trainer, before, decoder):
    tok = tokenizers.Tokenizer(model)
    tok.pre_tokenizer,tok.decoder = before,decoder
    tok.train_from_iterator(scripts*2, trainer)
    return tok

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
    for turn in range(120):
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

@pytest.mark.parametrize('kind', kinds)
def test_a_stream_holds_back_no_whole_words(kind):
    "And decodes few tokens again"
    tok,decode,encode,_ = decoded(kind)
    ids = encode('the ship goes back. '*60)
    flow,said = TextStream(tok),''
    for k,i in enumerate(ids, 1):
        said += flow.push(i)
        assert said == decode(ids[:k])
    assert len(ids) > 200 and len(flow._ids) < 100

@pytest.mark.parametrize('stop', ['。', '語', '語。', '😀', 'ไ'])
def test_a_string_to_stop_at_may_end_within_a_run_of_bytes(stop):
    tok,decode,encode,_ = decoded('llama 2')
    ids = encode('the 日本語。😀😀ไทย ship')
    out = said_until(tok, ids, stop)
    assert decode(out).endswith(stop) and stop not in decode(out[:-1])
    ids = encode(' the ')+[*encode('語')]*20+encode('。go')
    assert decode(said_until(tok, ids, '。')).endswith('語。')

def said_until(tok, ids, stop):
    "What `generate` takes of `ids`"
    class Repeats(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cfg = TransformerConfig(400, d_model=8, n_layers=1, n_heads=1)
            self.inner = Transformer(self.cfg)
        def new_cache(self, *args, **options): return self.inner.new_cache(*args, **options)
        def forward(self, read, *, cache, last, **options):
            self.inner(read, cache=cache, last=last, **options)
            return torch.nn.functional.one_hot(torch.tensor([[ids[len(cache)-1]]]), 400).float()
    start = torch.zeros(1, 1, dtype=torch.long)
    return generate(Repeats(), start, len(ids), stop=stop, tokenizer=tok)[0,1:].tolist()

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

def two_files(folder, said, vocab=()):
    vocab = [*sorted(_char_to_byte), 'he', 'Ġhe', '<|endoftext|>', *vocab]
    (folder/'vocab.json').write_text(json.dumps({t: i for i,t in enumerate(vocab)}))
    (folder/'merges.txt').write_text('#version: 0.2\nh e\nĠ he\n', encoding='utf-8')
    for name,content in said.items(): (folder/f'{name}.json').write_text(json.dumps(content))
    return folder

@pytest.mark.parametrize('name', beside)
def test_two_files_and_what_is_beside_them_are_read_as_by_transformers(name, tmp_path):
    folder = two_files(tmp_path, beside[name])
    ours,theirs = load_tokenizer(folder),transformers.GPT2Tokenizer.from_pretrained(folder)
    if name == 'added tokens': assert ours.encode('<|user|>he').ids == [259, 256]
    rng = random.Random(0)
    parts = ['he', ' he', '  ', '<|user|>', '[m]', '[x]', '<s>', '</s>', '<pad>', '<img>',
             '<|endoftext|>', 'é😀', 'a', '\n', ' ']
    for _ in range(200):
        text = ''.join(rng.choice(parts) for _ in range(8))
        ids = ours.encode(text).ids
        assert ids == theirs(text)['input_ids'], text
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    assert ours.get_vocab_size() == len(theirs)

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
