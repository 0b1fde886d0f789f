"Properties that must hold for any input"
import os, random, subprocess, sys, threading, time, unicodedata
from decimal import Decimal, localcontext
from fractions import Fraction
import numpy as np, pytest, safetensors.torch, torch
from hypothesis import HealthCheck, example, given, settings, strategies as st
from safetensors import SafetensorError
from torch.testing import assert_close
from attention_nb import glove
from attention_nb.glove import load_glove
from attention_nb.core import attention
from attention_nb.fast import scaled_dot_product_attention
from attention_nb.merges import apply_merges, learn_merges, merge_heap, merge_scan
from attention_nb.tokenizer import (GPT2_PATTERN, BPETokenizer, WordTokenizer, apply_merges_naive,
                                    learn_merges_naive)
from attention_nb.tokenizer_base import nfc
from attention_nb.visibility import Visibility, joined, spelled

# how fast a machine is must not decide
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
text = st.text(st.characters(exclude_categories=['Cs']))
bpe = BPETokenizer.train(['the ship and the crew of the ship', 'naïve 你好 🙂'], 300)

@calm
@given(text)
def test_bpe_round_trip(s): assert bpe.decode(bpe.encode(s)) == s

# gaps, groups, empty matches, lookaround, search from the right
patterns = [GPT2_PATTERN, r'\w+', r'x', r'\w*', r'(\w)(\s)?', r'(?=(..))\S', r'\w\K\w',
            r'(?r)\w+|\s', r'\b', r'(?s).+']
special = ['<|user|>', '<|', '<é>', '.*', '<|endoftext|>']
chat = ['the ship <|user|> and the crew <é>']*3
tokenizers = [BPETokenizer.train(chat, 300, pattern=p, special=special) for p in patterns]

@calm
@given(st.lists(st.one_of(text, st.sampled_from(special)), max_size=6), st.sampled_from(tokenizers))
def test_bpe_loses_nothing_whatever_the_pattern_and_forges_nothing(parts, tok):
    s = ''.join(parts)
    plain,read = tok.encode(s),tok.encode(s, allow_special=True)
    assert not tok.special_ids & set(plain)
    assert tok.decode(plain) == s and tok.decode(read, skip_special=False) == s
    assert bool(tok.special_ids & set(read)) == any(t in s for t in special)

symbols = st.lists(st.sampled_from('aab'), max_size=12).map(tuple)

@calm
@given(st.dictionaries(symbols, st.integers(1, 3), max_size=8), st.integers(0, 20), symbols)
def test_bpe_fast_and_naive_agree(words, n, word):
    merges = learn_merges(words, n)
    assert merges == learn_merges_naive(words, n)[0]
    tokens = [*dict.fromkeys([*'ab', *map(''.join, merges)])]
    ids = {t:i for i,t in enumerate(tokens)}
    ranks = {(ids[a],ids[b]): (r,ids[a+b]) for r,(a,b) in enumerate(merges)}
    named = {pair:r for r,pair in enumerate(merges)}
    want = [ids[t] for t in apply_merges_naive(word, named)]
    for f in (merge_scan, merge_heap, apply_merges): assert f([ids[c] for c in word], ranks) == want

marks = st.sampled_from('\u0301\u0323\u0344\u0345\u034f\u093c\u0f71\u0f73\u3099\u20dd')
runs = st.lists(marks, min_size=30, max_size=90).map(''.join)

@calm
@given(st.lists(st.one_of(text, runs), max_size=4).map(''.join))
def test_words_are_composed_as_python_does_it(s): assert nfc(s) == unicodedata.normalize('NFC', s)

@calm
@given(st.text())
def test_bpe_refuses_lone_surrogates_only(s):
    try: s.encode()
    except UnicodeEncodeError:
        with pytest.raises(ValueError, match='lone surrogate'): bpe.encode(s)
    else: bpe.encode(s)

@calm
@given(st.lists(text, max_size=4))
def test_words_round_trip_on_normalized_text(texts):
    tok = WordTokenizer.train(texts)
    for s in texts:
        normal = tok.decode(tok.encode(s))
        assert tok.decode(tok.encode(normal)) == normal
        assert tok.unk_id not in tok.encode(s)

@calm
@given(st.lists(text, max_size=4), st.booleans(), st.booleans(), st.integers(2, 9))
def test_batches_are_rectangles(texts, bos, eos, max_len):
    for tok in (bpe, WordTokenizer.train(texts)):
        ids,mask = tok.batch(texts, bos=bos, eos=eos, max_len=max_len)
        assert ids.shape == mask.shape and ids.shape[0] == len(texts)
        assert not texts or ids.shape[1] <= max_len
        for s,row,m in zip(texts, ids, mask):
            whole = tok.encode(s, bos=bos, eos=eos)
            cut = [*whole[:max_len-eos], *whole[len(whole)-eos:]]
            assert row[m].tolist() == (whole if len(whole) <= max_len else cut)

fixtures = [HealthCheck.function_scoped_fixture]

# fields and line ends that a file of word vectors may hold, good and bad
field = st.one_of(
    st.sampled_from([b'a', b'ship', b'.', b'', b'nan', b'1e39', b'0', b'\xff', b'"', b'new',
                     b'\xc2\xa0', b'1_0', b'\0', b'\t', b'x\ry', b'a\t5', b'a\tb', b'5\t', b'\x0b5',
                     b'\x01', b'+', b'-inf', b'inform', b'.5', b'5.', b'+.5x', b'0x1p3', b'1e-50',
                     b'\xe2\x80\xa8', b'\xed\xa0\x80', b'#', b'\xe3\x80\x80', b'\xef\xbb\xbf',
                     b'NA', b'\xef\xbb\xbfa', b'3.4028235e38', b'-3.4028236e38', b'inf', b'1e-46',
                     bytes(b for b in range(1, 32) if b not in b'\t\n\r')]),
    st.binary(max_size=3).map(lambda b: b.replace(b'\n', b'')),
    st.floats(-9, 9, width=16).map(lambda x: repr(x).encode()))
# at the edge of float32, and half way between two of its numbers or a hair beside that
edges = st.sampled_from([b'3.4028235e38', b'-3.4028235677973366e38', b'1e-45', b'7e-46', b'+1',
                         b'1.000000059604644775390625', b'1.00000005960464477539062500001',
                         b'16777217', b'16777216.9999999999999', b'1.1754942807573643e-38'])
number = st.one_of(st.floats(-9, 9, width=16).map(lambda x: repr(x).encode()), edges)
line = st.one_of(st.tuples(field, number, number).map(b' '.join),
                 st.tuples(field, field, number, number).map(b' '.join),
                 st.lists(field, max_size=5).map(b' '.join))
ending = st.sampled_from([b'\n', b'\n', b'\n', b'\r\n', b' \n', b'  \n', b' \r\n', b'\n\n'])

# whole, and cut in two all the way down
@pytest.mark.parametrize('small', [1<<16, 4])
@settings(deadline=None, max_examples=400, suppress_health_check=fixtures)
@given(st.lists(st.tuples(line, ending), min_size=1, max_size=8), st.booleans(), st.booleans())
@example([(b'a 0 0', b'\n'), (b'', b'\n'), (b'\rb 0 0', b'\n')], False, False)
@example([(b'a 0 0\rb 0 0', b'\n\n')], False, False)
@example([(b'a 0 0', b'\r\n'), (b'b 0 0\r', b'\n')], True, False)
@example([(b'a 3.4028235e38 0', b'\n')], False, False)
@example([(b'a 1.00000005960464477539062500001 0', b'\n')], False, False)
@example([(b'\xef\xbb\xbfa 0 0', b'\n')], False, False)
@example([(b'  0 0', b' \n'), (b'# 0 0 0', b'\n'), (b'a  0 0', b'\n')], False, True)
def test_fast_and_slow_reading_agree(small, monkeypatch, lines, cut, told):
    monkeypatch.setattr(glove, '_small', small)
    block = b''.join(a+b for a,b in lines)
    if cut: block = block[:-1]
    def result(parse):
        try: words,numbers = parse()
        except ValueError as e: return str(e)
        return [str(w) for w in words], np.asarray(numbers).tolist()
    out = np.empty((glove._count_lines(block, len(block)), 2), np.float32)
    slow = result(lambda: glove._parse_lines(block, 2, 'f', 1, told))
    assert slow == result(lambda: glove._parse_block(memoryview(bytearray(block)), 2, 'f', 1, out,
                                                     told))

def test_a_word_that_begins_a_block_keeps_its_first_letter(tmp_path):
    "Arrow takes that letter at a block's start for a byte order mark"
    path = tmp_path/'v.txt'
    words = [f'\ufeff{i}' for i in range(500_000)]
    path.write_text(''.join(f'{w} {i%99}.5 1\n' for i,w in enumerate(words)), encoding='utf-8')
    assert path.stat().st_size > 6<<20
    assert load_glove(path, progress=False, cache=False).words == ['0', *words[1:]]

@calm
@given(st.integers(-150, 127), st.integers(0, 2**24-1), st.sampled_from([-1, 0, 1]),
       st.integers(9, 40))
def test_a_number_is_rounded_once_to_float32(e, m, side, digits):
    "Texts half way between two float32, and a hair beside that"
    with localcontext(prec=400):
        text = Decimal(2*m + 1) * Decimal(2)**(e-24) * (1 + side*Decimal(10)**-digits)
    n,most = glove._near(float(text), str(text).encode()),2**128 - 2**103
    assert (n < most) == (text < most)
    if n < most:
        got = np.array([n], np.float32)
        beside = [np.nextafter(got, np.array([y], np.float32)) for y in (-np.inf, np.inf)]
        off,*others = (abs(Fraction(x.item()) - Fraction(text)) for x in (got, *beside)
                       if np.isfinite(x))
        assert all(off < o or off == o and got.view(np.int32)[0] % 2 == 0 for o in others)

@pytest.mark.parametrize('threads', [1, 3])
def test_a_file_of_many_blocks_with_odd_lines(tmp_path, monkeypatch, threads):
    "Words with spaces, empty lines, repeated words, long lines; an error in the last block"
    monkeypatch.setattr(torch, 'get_num_threads', lambda: threads)
    rng = random.Random(0)
    def word(i): return f'w{i}' if rng.random() > .01 else f'w{i} and more'
    words = [word(i) for i in range(60_000)]
    # Arrow thinks so, the rule does not
    words[20_000],words[50_000] = 'two\rlines','and\rtwo'
    rows = np.round(np.random.default_rng(0).normal(size=(len(words), 12)), 4).astype(np.float32)
    lines = [w + ' ' + ' '.join(map(str, r)) for w,r in zip(words, rows)]
    for i in range(0, len(lines), 7001): lines[i] = '\n' + lines[i]
    lines.insert(30_000, lines[5])                              # a repeated word: the first wins
    path = tmp_path/'v.txt'
    path.write_text('\n'.join(lines)+'\n', newline='\n')
    assert path.stat().st_size > 4<<20
    wv = load_glove(path, progress=False, cache=False)
    assert wv.words == words
    assert_close(wv.vectors, torch.from_numpy(rows))
    path.write_text('\n'.join(lines)+'\nlast 1 2 oops' + ' 0'*9 + '\n')
    bad = '\n'.join(lines).count('\n') + 2
    with pytest.raises(ValueError, match=f"line {bad}: expected a number, got 'oops'"):
        load_glove(path, progress=False, cache=False)

def test_lines_longer_than_a_block_and_a_table_that_must_grow(tmp_path):
    "The first lines say nothing about the length of the others"
    path,mega = tmp_path/'v.txt',1<<20
    short = [f'w{i}' for i in range(200_000)]
    for words in (['a', 'y'*9*mega, 'z'*9*mega, 'b'], [*(c*5*mega for c in 'abcdefgh'), *short]):
        path.write_text(''.join(f'{w} {i} 1\n' for i,w in enumerate(words)))
        wv = load_glove(path, progress=False, cache=False)
        assert wv.words == words
        assert wv.vectors[:,0].tolist() == list(range(len(words)))

def test_the_cache_where_its_folder_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path/'data').mkdir()
    path = tmp_path/'data'/'v.txt'
    path.write_text('a 1 2\n')
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path/'cache'))
    replace = os.replace
    # the owner of a test run may write anywhere, so pretend
    def refuse(src, dst):
        if str(dst).startswith(str(path.parent)): raise PermissionError(dst)
        replace(src, dst)
    monkeypatch.setattr(os, 'replace', refuse)
    load_glove(path, progress=False)
    assert [p.name for p in path.parent.iterdir()] == ['v.txt']
    assert len(list((tmp_path/'cache'/'attention_nb').iterdir())) == 1
    monkeypatch.setattr(glove, '_read_text', None)              # a second parse would fail
    assert load_glove(path, progress=False).words == ['a']

def test_no_cache_can_be_written_anywhere(tmp_path, monkeypatch):
    path = tmp_path/'v.txt'
    path.write_text('a 1 2\n')
    monkeypatch.setenv('XDG_CACHE_HOME', str(path))             # a file in the place of a folder
    def refuse(name, *args, **kw): raise PermissionError(name)
    monkeypatch.setattr(os, 'open', refuse)
    for _ in range(2): assert load_glove(path, progress=False).words == ['a']
    assert [p.name for p in tmp_path.iterdir()] == ['v.txt']

def test_every_write_of_a_cache_has_a_name_of_its_own(tmp_path, monkeypatch):
    path = tmp_path/'v.txt'
    path.write_text('a 1 2\n')
    names,replace = [],os.replace
    def seen(src, dst):
        names.append(src.name)
        replace(src, dst)
    monkeypatch.setattr(os, 'replace', seen)
    monkeypatch.setattr(glove, '_read_cache', lambda *_: None)
    for _ in range(3): load_glove(path, progress=False)
    own = f'.{os.getpid()}-{threading.get_ident()}-'
    assert len(set(names)) == 3 and all(own in n for n in names)

def test_a_cache_is_for_those_who_may_read_the_file(tmp_path, monkeypatch):
    path = tmp_path/'v.txt'
    path.write_text('a 1 2\n')
    path.chmod(0o640)
    def mode(name): return os.stat(name).st_mode & 0o777
    modes,save,chmod,umask = [],safetensors.torch.save_file,os.chmod,os.umask(0)
    def seen(name, new):
        modes.append(mode(name))
        chmod(name, new)
    def saved(tensors, name, notes):
        modes.append(mode(name))
        save(tensors, name, notes)
    monkeypatch.setattr(os, 'chmod', seen)
    monkeypatch.setattr(safetensors.torch, 'save_file', saved)
    try: load_glove(path, progress=False)
    finally: os.umask(umask)
    assert modes == [0o600, 0o600]                              # before the words are in, and after
    assert mode(tmp_path/'.v.txt.safetensors') == 0o640

def test_a_cache_is_not_written_through_a_link(tmp_path, monkeypatch):
    "Somebody else made the temporary name first: it is left alone"
    path,victim = tmp_path/'v.txt',tmp_path/'victim'
    path.write_text('a 1 2\n')
    victim.write_text('mine')
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path/'cache'))
    now = time.time_ns()
    monkeypatch.setattr(time, 'time_ns', lambda: now)
    own = f'{os.getpid()}-{threading.get_ident()}-{now}'
    link = tmp_path/f'.v.txt.safetensors.{own}.tmp'
    link.symlink_to(victim)
    assert load_glove(path, progress=False).words == ['a']
    assert victim.read_text() == 'mine' and link.is_symlink()
    assert not (tmp_path/'.v.txt.safetensors').exists()

def test_a_full_disk_and_no_home(tmp_path, monkeypatch):
    path = tmp_path/'v.txt'
    path.write_text('a 1 2\n')
    def full(*_): raise SafetensorError('No space left on device')
    def homeless(): raise RuntimeError('Could not determine home directory.')
    monkeypatch.setattr('safetensors.torch.save_file', full)
    monkeypatch.setattr('fastcore.xdg.xdg_cache_home', homeless)
    for _ in range(2): assert load_glove(path, progress=False).words == ['a']
    assert [p.name for p in tmp_path.iterdir()] == ['v.txt']

writer = """
import sys
from concurrent.futures import ThreadPoolExecutor
from attention_nb import glove
read = glove._read_cache
def one(i):
    # every second load writes it once more, while others read
    glove._read_cache = (lambda *_: None) if i % 2 else read
    wv = glove.load_glove(sys.argv[1], progress=False)
    assert wv.words == ['a','b'] and wv.vectors.tolist() == [[1,2],[3,4]], wv
with ThreadPoolExecutor(4) as pool: list(pool.map(one, range(40)))
"""

def test_processes_and_threads_write_one_cache_at_once(tmp_path):
    path = tmp_path/'v.txt'
    path.write_text('a 1 2\nb 3 4\n')
    command = [sys.executable, '-c', writer, path]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for p in running:
        _,errors = p.communicate()
        assert p.returncode == 0, errors
    assert sorted(p.name for p in tmp_path.iterdir()) == ['.v.txt.safetensors', 'v.txt']

@settings(deadline=None, max_examples=100, suppress_health_check=fixtures)
@given(st.data())
def test_a_damaged_cache_is_never_believed(tmp_path, data):
    "Bytes turned, cut out, repeated: the cache is refused or says what the text says"
    path = tmp_path/'v.txt'
    path.write_text('ship 1 2 3\nthe crew 4 5 6\nback 7 8 9\n')
    cache,_ = glove._cache_files(path, None)
    truth = load_glove(path, progress=False, cache=False)
    cache.unlink(missing_ok=True)
    load_glove(path, progress=False)
    whole = bytearray(cache.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = st.integers(0, len(whole))
        i,j = sorted((data.draw(place), data.draw(place)))
        twice,nothing = bytes(whole[i:j])*2,b'\0'*(j-i)
        change = data.draw(st.one_of(st.binary(max_size=9), st.just(twice), st.just(nothing)))
        whole[i:j] = change
    cache.write_bytes(whole)
    wv = load_glove(path, progress=False)
    assert wv.words == truth.words and torch.equal(wv.vectors, truth.vectors)

@settings(deadline=None, max_examples=150)
@given(st.data())
def test_fast_attention_equals_readable_attention(data):
    draw = data.draw
    B,Hkv,group,L,S,E,Ev = (draw(st.integers(1, n)) for n in (2,3,3,6,6,9,9))
    torch.manual_seed(draw(st.integers(0, 99)))
    shapes = (B,Hkv*group,L,E),(B,Hkv,S,E),(B,Hkv,S,Ev)
    q,k,v = (torch.randn(s).double() for s in shapes)
    def some(*shape):
        return [n if draw(st.booleans()) else 1 for n in shape][draw(st.integers(0, 3)):]
    kw = dict(causal=draw(st.booleans()),
              window=draw(st.sampled_from([None, (0,0), (2,None), (None,1), (1,3)])),
              scale=draw(st.sampled_from([None, 0., -1.5, .3])),
              softcap=draw(st.sampled_from([None, None, 2.])),
              sinks=torch.randn(Hkv*group).double() if draw(st.booleans()) else None,
              mask=torch.rand(some(B,Hkv*group,L,S)) > .4 if draw(st.booleans()) else None,
              bias=torch.randn(some(B,Hkv*group,L,S)).double() if draw(st.booleans()) else None)
    assert_close(scaled_dot_product_attention(q, k, v, **kw), attention(q, k, v, **kw)[0])

@st.composite
def rules(draw, L, S, B, depth=2):
    "Who sees whom, of any kind, joined in any way"
    if depth and draw(st.booleans()):
        a,b = draw(rules(L, S, B, depth-1)),draw(rules(L, S, B, depth-1))
        return a & b if draw(st.booleans()) else a | b
    def ids(n, most, ordered):
        lead = draw(st.sampled_from([(), (1,), (B,)]))
        t = torch.randint(0, most, (*lead, n))
        return t.sort(-1).values if ordered else t
    kind,ordered,n,m = (draw(s) for s in (st.integers(0, 4), st.booleans(), st.integers(1, 5),
                                          st.integers(1, 5)))
    said = dict(causal=draw(st.booleans()),
                window=draw(st.sampled_from([None, (0,0), (2,None), (None,1), (1,3)])))
    if kind == 1: said |= dict(q_pos=ids(L, L+S, ordered), k_pos=ids(S, L+S, ordered))
    if kind == 2: said |= dict(q_doc=ids(L, n, ordered), k_doc=ids(S, n, ordered))
    if kind == 3: said |= dict(rule=lambda q, k: (q-k) % n < m)
    if kind == 4:
        lead = draw(st.sampled_from([(), (1,1), (B,1), (1,3), (B,3)]))
        said |= dict(q_doc=ids(L, n, ordered), k_doc=ids(S, m, ordered),
                     table=torch.rand(*lead, n, m) > .4)
    batches = {len(t) for name,t in said.items() if isinstance(t, torch.Tensor) and t.dim() == 2
               and name != 'table' and len(t) > 1}
    assert len(batches) < 2
    return Visibility(L, S, **said)

def shown(see, L, S):
    table = None if see is None else see.dense()
    return (torch.ones(L, S).bool() if table is None else table).expand(2, 3, L, S)

@calm
@given(st.data())
def test_blocks_tiles_and_parts_are_of_one_table(data):
    draw = data.draw
    torch.manual_seed(draw(st.integers(0, 99)))
    L,S,q_block,k_block = (draw(st.integers(1, n)) for n in (9,9,4,4))
    see = draw(rules(L, S, 2))
    table = shown(see, L, S)
    kinds = see.blocks(q_block, k_block).expand(2, 3, -1, -1)
    for i,rows in enumerate(table.split(q_block, -2)):
        for j,tile in enumerate(rows.split(k_block, -1)):
            some,every = tile.flatten(-2).any(-1),tile.flatten(-2).all(-1)
            right = torch.where(kinds[...,i,j] == 0, ~some, (kinds[...,i,j] == 1) | every)
            assert right.all(), see
            got = see.tile(slice(i*q_block, (i+1)*q_block), slice(j*k_block, (j+1)*k_block))
            assert every.all() if got is None else torch.equal(got.expand_as(tile), tile), see
    at = torch.randint(L, (3,)),torch.randint(S, (2,))
    assert torch.equal(shown(see.part(*at), 3, 2), table[:,:,at[0]][...,at[1]]), see
    said = joined(torch.ones(1, L, 1), torch.ones(1, S, 1), **spelled(see))
    assert torch.equal(shown(said, L, S), table), see
