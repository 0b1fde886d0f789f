"Properties that must hold for any input"
import os, random, subprocess, sys
from pathlib import Path
import numpy as np, pytest, torch
from hypothesis import HealthCheck, example, given, settings, strategies as st
from torch.testing import assert_close
from attention_nb.text import glove
from attention_nb.text.glove import load_glove
from attention_nb.text.bpe import GPT2_PATTERN, BPETokenizer

# how fast a machine is must not decide
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
text = st.text(st.characters(exclude_categories=['Cs']))

# gaps, groups, empty matches, lookaround
patterns = [GPT2_PATTERN, r'\w+', r'x', r'\w*', r'(\w)(\s)?', r'(?=(..))\S', r'\w\K\w',
            r'\b', r'(?m).+']
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
# at the edge of float32, and half way between two of its numbers
edges = st.sampled_from([b'3.4028235e38', b'-3.4028235e38', b'3.5e38', b'1e-45', b'7e-46', b'+1',
                         b'1.000000059604644775390625', b'16777217', b'16777216.9999999999999',
                         b'1.1754942807573643e-38'])
number = st.one_of(st.floats(-9, 9, width=16).map(lambda x: repr(x).encode()), edges)
line = st.one_of(st.tuples(field, number, number).map(b' '.join),
                 st.tuples(st.just(b'a'), number, number).map(b' '.join),
                 st.tuples(field, field, number, number).map(b' '.join),
                 st.lists(field, max_size=5).map(b' '.join))
ending = st.sampled_from([b'\n', b'\n', b'\n', b'\r\n', b' \n', b'  \n', b' \r\n', b'\n\n', b'\r'])

@settings(deadline=None, max_examples=200, suppress_health_check=fixtures)
@given(st.lists(st.tuples(line, ending), min_size=1, max_size=8), st.booleans(), st.booleans())
@example([(b'a 0 0', b'\n'), (b'', b'\n'), (b'\rb 0 0', b'\n')], False, False)
@example([(b'a 0 0\rb 0 0', b'\n\n')], False, False)
@example([(b'a 0 0', b'\r\n'), (b'b 0 0\r', b'\n')], True, False)
@example([(b'a 3.4028235e38 0', b'\n')], False, False)
@example([(b'\xef\xbb\xbfa 0 0', b'\n')], False, False)
@example([(b'a 0 0', b'\n'), (b'  0 0', b' \n'), (b'# 0 0 0', b'\n')], False, True)
def test_what_is_read_quickly_is_what_the_rule_says(tmp_path, lines, cut, told):
    "Whatever Arrow takes, words and numbers are those of the plain reader"
    path,data = tmp_path/'v.txt',b''.join(a+b for a,b in lines)
    path.write_bytes((b'9 2\n' if told else b'') + (data[:-1] if cut else data))
    try: start = glove._read_start(path)
    except ValueError: return
    quick = glove._read_arrow(path, start, False)
    if quick is None: return
    words,numbers = glove._read_lines(path, start, False)
    assert quick[0] == words and torch.equal(quick[1], numbers)

def test_only_the_first_letter_of_a_file_may_be_a_byte_order_mark(tmp_path):
    path = tmp_path/'v.txt'
    words = [f'\ufeff{i}' for i in range(200_000)]
    path.write_text(''.join(f'{w} {i%99}.5 1\n' for i,w in enumerate(words)), encoding='utf-8')
    assert path.stat().st_size > 2<<20
    assert load_glove(path, progress=False, cache=False).words == ['0', *words[1:]]

def kept(path, text='a 1 2\n'):
    "A text that was written long ago, so that a copy of its table is kept"
    path.write_text(text)
    os.utime(path, (10**9, 10**9))
    return path

def test_a_file_of_many_blocks_with_odd_lines(tmp_path):
    "Words with spaces, empty lines, repeated words, long lines; an error in the last block"
    rng = random.Random(0)
    plain = [f'w{i}' for i in range(30_000)]
    spaced = [w if rng.random() > .01 else f'{w} and more' for w in plain]
    rows = np.round(np.random.default_rng(0).normal(size=(len(plain), 12)), 4).astype(np.float32)
    path = tmp_path/'v.txt'
    for words in (plain, spaced):
        lines = [w + ' ' + ' '.join(map(str, r)) for w,r in zip(words, rows)]
        for i in range(0, len(lines), 7001): lines[i] = '\n' + lines[i]
        lines.insert(20_000, lines[5])                          # a repeated word: the first wins
        path.write_text('\n'.join(lines)+'\n', newline='\n')
        assert path.stat().st_size > 2<<20
        wv = load_glove(path, progress=False, cache=False)
        assert wv.words == words
        assert_close(wv.vectors, torch.from_numpy(rows))
        path.write_text('\n'.join(lines)+'\nlast 1 2 oops' + ' 0'*9 + '\n')
        bad = '\n'.join(lines).count('\n') + 2
        with pytest.raises(ValueError, match=f"line {bad}: expected a finite .*, got 'oops'"):
            load_glove(path, progress=False, cache=False)

def test_lines_longer_than_a_block(tmp_path):
    path,mega = tmp_path/'v.txt',1<<20
    words = ['a', 'y'*3*mega, 'z'*3*mega, *(f'w{i}' for i in range(1000))]
    path.write_text(''.join(f'{w} {i} 1\n' for i,w in enumerate(words)))
    wv = load_glove(path, progress=False, cache=False)
    assert wv.words == words and wv.vectors[:,0].tolist() == list(range(len(words)))

def test_the_cache_where_its_folder_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path/'data').mkdir()
    path = kept(tmp_path/'data'/'v.txt')
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

@pytest.mark.parametrize('home', [True, False])
def test_no_cache_can_be_written_anywhere(tmp_path, monkeypatch, home):
    "No folder, a full disk, no home: the table is read all the same, and nothing is left"
    path = kept(tmp_path/'v.txt')
    monkeypatch.setenv('XDG_CACHE_HOME', str(path))             # a file in the place of a folder
    def homeless(): raise RuntimeError('Could not determine home directory.')
    if not home: monkeypatch.setattr('fastcore.xdg.xdg_cache_home', homeless)
    def full(*_): raise OSError(28, 'No space left on device')
    monkeypatch.setattr(os, 'replace', full)
    for _ in range(2): assert load_glove(path, progress=False).words == ['a']
    assert [p.name for p in tmp_path.iterdir()] == ['v.txt']

def test_a_cache_is_for_those_who_may_read_the_file(tmp_path, monkeypatch):
    path = kept(tmp_path/'v.txt')
    path.chmod(0o640)
    modes,write,umask = [],Path.write_bytes,os.umask(0)
    def seen(file, content):
        modes.append(file.stat().st_mode & 0o777)
        return write(file, content)
    monkeypatch.setattr(Path, 'write_bytes', seen)
    try: load_glove(path, progress=False)
    finally: os.umask(umask)
    assert modes == [0o600]                                     # while it is written
    assert (tmp_path/'.v.txt.safetensors').stat().st_mode & 0o777 == 0o640

writer = """
from concurrent.futures import ThreadPoolExecutor
from attention_nb.text import glove
read = glove._read_cache
def one(i):
    # every second load writes it once more, while others read
    glove._read_cache = (lambda *_: None) if i % 2 else read
    wv = glove.load_glove(path, progress=False)
    assert wv.words == ['a','b'] and wv.vectors.tolist() == [[1,2],[3,4]], wv
print('ready', flush=True)
with ThreadPoolExecutor(4) as pool: list(pool.map(one, range(60)))
"""

def test_processes_and_threads_write_one_cache_at_once(tmp_path, monkeypatch):
    path = kept(tmp_path/'v.txt', 'a 1 2\nb 3 4\n')
    monkeypatch.setattr(glove, '_read_cache', glove._read_cache)    # back afterwards
    other = subprocess.Popen([sys.executable, '-c', f'path = {str(path)!r}\n{writer}'], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    other.stdout.readline()
    exec(writer, dict(path=path))
    _,errors = other.communicate()
    assert other.returncode == 0, errors
    assert sorted(p.name for p in tmp_path.iterdir()) == ['.v.txt.safetensors', 'v.txt']
