"""Every public name of the package in a plausible call, one function for each chapter, as somebody's program would have it.

tests/test_types.py checks it with mypy and pyright in strict mode, runs it, and fails when a public name of the package is missing here.
`assert_type` states what a type checker makes of a call; it does nothing when the program runs.
"""
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, assert_type
import matplotlib
import attention_nb as nb
import regex
import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

Pair = tuple[Tensor,Tensor]
x,ids = torch.randn(2, 5, 8),torch.tensor([[4,5,6],[7,8,9]])
q,k,v = torch.randn(2, 2, 5, 4),torch.randn(2, 2, 6, 4),torch.randn(2, 2, 6, 4)
texts = ['to my ship', 'and to my crew']

def chapter_01()->None:
    words = nb.WordTokenizer.train(texts, min_count=1)
    assert_type(words, nb.WordTokenizer)
    assert_type(words.encode('to my ship', eos=True), list[int])
    assert_type(words.decode(words.encode('to my ship')), str)
    assert_type(words.batch(texts, max_len=4), Pair)
    pieces = nb.BPETokenizer.train(texts, 260, pattern=nb.GPT2)
    assert_type(pieces.encode('to my ship', allow_special=True), list[int])
    with tempfile.TemporaryDirectory() as folder:
        pieces.save(Path(folder)/'t.json')
        assert_type(nb.BPETokenizer.load(Path(folder)/'t.json'), nb.BPETokenizer)
        (Path(folder)/'vocab.json').write_text('{"a": 0, "b": 1}')
        (Path(folder)/'merges.txt').write_text('#version: 0.2\na b\n')
        assert_type(nb.read_vocab(Path(folder)/'vocab.json', more=['ab']), list[str])
        assert_type(nb.read_merges(Path(folder)/'merges.txt'), list[tuple[str,str]])
    assert_type(nb.split_words('to my ship', lower=False), list[str])
    counted:dict[tuple[str,...],int] = {('s','h','i','p'): 2}
    assert_type(nb.count_pairs(counted), Counter[tuple[str,str]])
    assert_type(nb.glue_pair('ship', ('s','h')), tuple[str,...])
    merges,_ = nb.learn_merges_naive(counted, 1)
    assert_type(nb.learn_merges(counted, 1), list[tuple[str,str]])
    assert_type(nb.apply_merges_naive('ship', {m:i for i,m in enumerate(merges)}), tuple[str,...])

def chapter_01a()->None:
    ranks = {(0,1): (0,2)}
    for merge in (nb.apply_merges, nb.merge_scan, nb.merge_heap): assert_type(merge([0,1], ranks), list[int])
    merger = nb.Merger([('a','b')], dict(a=0, b=1, ab=2))
    assert_type(merger['ab'], list[int])
    pattern = nb.checked_pattern(r'\w+')
    assert_type(pattern, regex.Pattern[str])
    assert_type(nb.split_pieces('to my ship', pattern), list[str])
    assert_type(nb.checked_merges([('a','b')], ['a','b','ab']), list[tuple[str,str]])

def chapter_01b()->None:
    class Letters(nb.SpecialTokenizer):
        "A tokenizer of somebody's own"
        end = '<end>'
        def __init__(self)->None:
            self.vocab = nb.checked_vocab(['<end>', *'abc'], ('<end>',), needed='abc')
            self.ids = {t:i for i,t in enumerate(self.vocab)}
            self._use_special(nb.checked_special([], self.end), ordinary='abc')
        def _encode(self, text:str)->list[int]: return [self.ids[c] for c in text]
        def _decode(self, ids:list[int])->str: return ''.join(self.vocab[i] for i in ids)
    tokenizer:nb.Tokenizer = Letters()
    assert_type(tokenizer.encode('abc', bos=True), list[int])
    assert_type(nb.checked_integer('n', 3, least=1), int)
    assert_type(nb.checked_flag('lower', True), bool)
    assert_type(nb.checked_text('a') + nb.checked_utf8('b') + nb.nfc('c'), str)
    assert_type([*nb.checked_texts(texts)], list[str])
    assert_type(nb.split_special('a<end>b', ['<end>']), list[str])

def chapter_02()->None:
    embed = nb.Embeddings(20, 8, 16, dropout=.1)
    assert_type(embed(ids), Tensor)
    assert_type(embed(ids, positions=torch.arange(3)), Tensor)
    assert_type(nb.cosine_similarity(x[0], x[1]), Tensor)
    assert_type(nb.sinusoidal_positions(5, 8), Tensor)

def chapter_02a()->None:
    table = nb.WordVectors(['ship','crew'], torch.eye(2))
    assert_type(table['ship'], Tensor)
    assert_type(table.matrix(['ship']), Tensor)
    assert_type(table.nearest('ship', 1), list[tuple[str,float]])
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder)/'glove.txt').write_text('ship 1 0\ncrew 0 1\n')
        assert_type(nb.load_glove(Path(folder)/'glove.txt', cache=False, progress=False), nb.WordVectors)

def chapter_02b()->None:
    assert_type(nb.colors['q'], str)
    assert_type(nb.show_weights([.2,.8], ['a','b'], title='Shares'), Axes)
    assert_type(nb.show_numbers([[1.,2.]], ['a'], ['x','y'], digits=1), Axes)
    assert_type(nb.show_arrows(torch.eye(2), ['a','b'], color=['q','k']), Axes)

def chapter_03()->None:
    assert_type(nb.attention(q, k, v, causal=True, window=(3,None), softcap=30.), Pair)
    assert_type(nb.group_heads(q, k, v), Pair)
    scores = nb.attention_scores(q, k, scale=.5)
    assert_type(nb.softmax_with_sink(nb.hide(scores, causal=True), torch.zeros(2)), Tensor)
    assert_type(nb.visible(torch.arange(3)[:,None], torch.arange(3), causal=True), Tensor)
    assert_type(nb.allowed(3, 5, window=(1,0)), Tensor)
    layer = nb.SelfAttention(8, 4)
    assert_type(layer(x), Tensor)
    assert_type(layer(x, causal=True, need_weights=True), Pair)
    asked = bool(len(x))
    assert_type(layer(x, need_weights=asked), Tensor|Pair)

def chapter_03a()->None:
    assert_type(nb.scaled_dot_product_attention(q, k, v, mask=nb.causal_mask(5, 6)), Tensor)
    left,right = nb.attention_lse(q, k[:,:,:3], v[:,:,:3]),nb.attention_lse(q, k[:,:,3:], v[:,:,3:])
    assert_type(nb.merge_attention(left, right), Pair)
    every:list[nb.AttentionFunction] = [nb.attention, nb.scaled_dot_product_attention, nb.attention_lse, nb.attention_with_weights]
    assert_type(every[0](q, k, v, causal=True), Tensor|Pair)

def chapter_03b()->None:
    nb.check_attention(q, k, v, dropout_p=.1)
    assert_type(nb.check_window((3,None)), tuple[int|None,int|None])
    nb.check_broadcast('mask', nb.causal_mask(5, 6), (2,2,5,6))
    nb.check_number('scale', .5, torch.float32, positive=True)
    nb.check_sizes(d_model=8, n_heads=2)
    nb.check_layer_mask('mask', None)
    assert_type(nb.one_head_mask(None, x), Tensor|None)
    nb.check_layer(dropout=0., out_dropout=0., window=None, softcap=None, scale=None)
    nb.check_inputs(x, x, x, (8,8,8), causal=True)
    assert_type(nb.check_attended(q, q, k, v, False), Tensor|Pair)
    @nb.checked
    @nb.in_float32
    def twice(q:Tensor, k:Tensor, v:Tensor, *, causal:bool=False)->Pair: return nb.attention(2*q, k, v, causal=causal)
    assert_type(twice(q, k, v, causal=True), Pair)

def chapter_04()->None:
    mask = nb.causal_mask(5) & nb.window_mask(5, 5, 2) | nb.prefix_mask(5, prefix=1)
    assert_type(mask, Tensor)
    assert_type(nb.padding_mask([3,5], 5), Tensor)
    assert_type(nb.document_mask([0,0,1]), Tensor)
    assert_type(nb.show_mask(mask, q_tokens=list('abcde')), Axes)

def chapter_05()->None:
    assert_type(nb.merge_heads(nb.split_heads(x, 2)), Tensor)
    assert_type(nb.MultiHeadAttentionLoop(8, 2)(x, causal=True), Pair)
    layer = nb.MultiHeadAttention(8, 2, n_kv_heads=1, qk_norm='rms', window=(3,0))
    assert_type(layer(x), Tensor)
    assert_type(layer(x, causal=True, need_weights=True), Pair)
    assert_type(layer(x, need_weights='mean'), Pair)
    def uniform(q:Tensor, k:Tensor, v:Tensor, **options:Any)->Tensor: return v.mean(-2, keepdim=True).expand(q.shape)
    assert_type(nb.MultiHeadAttention(8, 2, attend=uniform)(x), Tensor)
    assert_type(nb.MultiHeadAttention(8, 2, attend=nb.attention)(x, need_weights=True), Pair)

def chapter_05a()->None:
    ours = nb.from_torch(nn.MultiheadAttention(8, 2, batch_first=True))
    assert_type(ours, nb.MultiHeadAttention)
    assert_type(nb.to_torch(ours, batch_first=False), nn.MultiheadAttention)
    assert_type(nb.AppendedAttention(8, 2, add_zero_attn=True, dropout=.1)(x), Tensor)
    assert_type(nb.TorchInterface(ours)(x, x, x, need_weights=False), tuple[Tensor,Tensor|None])

def chapter_05b()->None:
    assert_type(nb.attention_with_weights(q, k, v, causal=True), Pair)

if __name__ == '__main__':
    matplotlib.use('agg')
    torch.manual_seed(0)
    for name,chapter in list(globals().items()):
        if name.startswith('chapter_'): chapter()
