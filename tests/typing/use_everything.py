"""Every name that the package offers in a plausible call, one function for each chapter, as
somebody's program would have it, and some that stay in their modules.

tests/project/test_types.py checks it with pyright in strict mode, runs it, and fails when a name
that the package offers is missing here. `assert_type` states what a type checker makes of a call;
it does nothing when the program runs.
"""
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, assert_type
import matplotlib
import attention_nb as nb
from attention_nb.models import sampling
from attention_nb.text import vocabulary
from attention_nb.checkpoints.convert import build_model, tensors_from_hf, tensors_to_hf
from attention_nb.checkpoints.families.registry import model_features
from attention_nb.checkpoints.save import save_tensors
from attention_nb.checkpoints.schema import Family, Field, Part, Rule
from attention_nb.checkpoints.source import locate
from attention_nb.checkpoints.tensors import Tensors
from attention_nb.checks import (check_broadcast, check_number, check_sizes, checked_integer,
                                 checked_window, explained)
from attention_nb.kernels.dispatch import dispatch, weigh
from attention_nb.kernels.options import (AttentionCall, AttentionOptions, call_of,
                                          check_attention, in_float32)
from attention_nb.kernels.reference import (attention_scores, group_heads, hide, reference,
                                            softmax_with_sink, unharmed)
from attention_nb.layers.quantized import (QuantizedEmbedding, QuantizedLinear, rounded_groups,
                                            rounded_rows)
from attention_nb.layers.base import (AttentionFunction, AttentionLayer, check_call, check_inputs,
                                      check_layer, check_layer_mask, one_head_mask)
from attention_nb.layers.cache import LayerCache
from attention_nb.layers.latent import absorb_queries, absorbing_pays, expand_latent, latent_scale
from attention_nb.layers.rope_scaling import (check_scaling, dynamic_frequencies,
                                              linear_frequencies, llama3_frequencies,
                                              longrope_frequencies, rope_frequencies,
                                              scaled_frequencies, yarn_frequencies)
from attention_nb.layers.torch_interop import AppendedAttention
from attention_nb.models.blocks import ForwardContext, Mixers, Stack
from attention_nb.models.sampling import penalize_repetition
from attention_nb.models.transformer import LMHead, TokenEmbeddings, check_ids
from attention_nb.recording.look import Seen
from attention_nb.recording.steps import Recorded
from attention_nb.simple.tokenizer import (apply_merges_naive, count_pairs, glue_pair,
                                           learn_merges_naive)
from attention_nb.text.bpe import (Merger, apply_merges, checked_merges, checked_pattern,
                                   learn_merges, merge_heap, merge_scan, read_merges, split_pieces)
from attention_nb.text.tokenizer import split_words
from attention_nb.text.vocabulary import (SpecialTokenizer, checked_flag, checked_special,
                                          checked_texts, checked_vocab, read_vocab, split_special)
from attention_nb.views.arcs import arc_view
from attention_nb.views.browser_model import int8_pieces, write_live
from attention_nb.views.cache_steps import cache_view
from attention_nb.views.flash_tiles import tiles_view
from attention_nb.views.forming import forming_view
from attention_nb.views.ring_steps import ring_view
from attention_nb.views.mixing import mixing_view
from attention_nb.views.model_shapes import shapes_view
from attention_nb.views.plots import colors, show_arrows, show_numbers
from attention_nb.views.rope_turns import rotation_view
import regex
import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

Pair = tuple[Tensor,Tensor]
x,ids = torch.randn(2, 5, 8),torch.tensor([[4,5,6],[7,8,9]])
q,k,v = torch.randn(2, 2, 5, 4),torch.randn(2, 2, 6, 4),torch.randn(2, 2, 6, 4)
texts = ['to my ship', 'and to my crew']
small = nb.TransformerConfig(vocab_size=20, max_len=None, d_model=8, n_layers=2, n_heads=2, d_ff=16)

def chapter_01()->None:
    words = nb.WordTokenizer.train(texts, min_count=1)
    assert_type(words, nb.WordTokenizer)
    assert_type(words.encode('to my ship', eos=True), list[int])
    assert_type(words.decode(words.encode('to my ship')), str)
    assert_type(words.batch(texts, max_len=4, left=True), Pair)
    pieces = nb.BPETokenizer.train(texts, 260, pattern=nb.GPT2_PATTERN)
    assert_type(pieces.encode('to my ship', allow_special=True), list[int])
    with tempfile.TemporaryDirectory() as folder:
        pieces.save(Path(folder)/'t.json')
        assert_type(nb.BPETokenizer.load(Path(folder)/'t.json'), nb.BPETokenizer)
        (Path(folder)/'vocab.json').write_text('{"a": 0, "b": 1}')
        (Path(folder)/'merges.txt').write_text('#version: 0.2\na b\n')
        assert_type(read_vocab(Path(folder)/'vocab.json', more=['ab']), list[str])
        assert_type(read_merges(Path(folder)/'merges.txt'), list[tuple[str,str]])
    assert_type(split_words('to my ship', lower=False), list[str])
    counted:dict[tuple[str,...],int] = {('s','h','i','p'): 2}
    assert_type(count_pairs(counted), Counter[tuple[str,str]])
    assert_type(glue_pair('ship', ('s','h')), tuple[str,...])
    merges,_ = learn_merges_naive(counted, 1)
    assert_type(learn_merges(counted, 1), list[tuple[str,str]])
    ranks = {m:i for i,m in enumerate(merges)}
    assert_type(apply_merges_naive('ship', ranks), tuple[str,...])

def chapter_01a()->None:
    ranks = {(0,1): (0,2)}
    for merge in (apply_merges, merge_scan, merge_heap):
        assert_type(merge([0,1], ranks), list[int])
    merger = Merger([('a','b')], dict(a=0, b=1, ab=2))
    assert_type(merger['ab'], list[int])
    pattern = checked_pattern(r'\w+')
    assert_type(pattern, regex.Pattern[str])
    assert_type(split_pieces('to my ship', pattern), list[str])
    vocab = ['a','b','ab']
    assert_type(checked_merges([('a','b')], vocab), list[tuple[str,str]])

def chapter_01b()->None:
    class Letters(SpecialTokenizer):
        "A tokenizer of somebody's own"
        end = '<end>'
        def __init__(self)->None:
            vocab = ['<end>', *'abc']
            self.vocab = checked_vocab(vocab, ('<end>',), needed='abc')
            self.ids = {t:i for i,t in enumerate(self.vocab)}
            self._use_special(checked_special([], self.end), ordinary='abc')
        def _encode(self, text:str)->list[int]: return [self.ids[c] for c in text]
        def _decode(self, ids:list[int])->str: return ''.join(self.vocab[i] for i in ids)
    tokenizer:nb.Tokenizer = Letters()
    assert_type(tokenizer.encode('abc', bos=True), list[int])
    assert_type(checked_integer('n', 3, least=1), int)
    assert_type(checked_flag('lower', True), bool)
    base = vocabulary
    assert_type(base.checked_text('a') + base.checked_utf8('b') + base.nfc('c'), str)
    assert_type([*checked_texts(texts)], list[str])
    assert_type(split_special('a<end>b', ['<end>']), list[str])

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
        assert_type(nb.load_glove(Path(folder)/'glove.txt', cache=False, progress=False),
                    nb.WordVectors)

def chapter_02b()->None:
    assert_type(colors['q'], str)
    assert_type(nb.show_weights([.2,.8], ['a','b'], title='Shares'), Axes)
    assert_type(show_numbers([[1.,2.]], ['a'], ['x','y'], digits=1), Axes)
    assert_type(show_arrows(torch.eye(2), ['a','b'], color=['q','k']), Axes)

def chapter_03()->None:
    assert_type(nb.attention(q, k, v, causal=True, window=(3,None), softcap=30.), Pair)
    assert_type(group_heads(q, k, v), Pair)
    assert_type(nb.simple_attention(x, x, x, nb.causal_mask(5)), Pair)
    scores = hide(attention_scores(q, k, scale=.5), nb.allowed(5, 6, causal=True))
    assert_type(softmax_with_sink(scores, torch.zeros(2)), Tensor)
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
    assert_type(nb.merge_attention(left, right, dtype=torch.float32), Pair)
    assert_type(nb.explain_choice(q, k, v, causal=True), list[tuple[str,str]])
    every:list[AttentionFunction] = [nb.attention, nb.scaled_dot_product_attention,
                                              nb.attention_lse, nb.attention_with_weights]
    assert_type(every[0](q, k, v, causal=True), Tensor|Pair)

def chapter_03b()->None:
    assert_type(checked_window((3,None)), tuple[int|None,int|None])
    check_broadcast('mask', nb.causal_mask(5, 6), (2,2,5,6))
    check_number('scale', .5, torch.float32, positive=True)
    check_sizes(d_model=8, n_heads=2)
    @explained('function')
    def scaled(q:Tensor, *, by:float=1.)->Tensor: return by*q
    assert_type(scaled(q, by=2.), Tensor)

def chapter_03h()->None:
    call = check_attention(q, k, v, dropout_p=.1)
    assert_type(call, AttentionCall)
    options:AttentionOptions = {'causal': True, 'window': (3,None)}
    assert_type(nb.attention_lse(q, k, v, **options), Pair)
    assert_type(call_of(q, k, v, **options).see, nb.Visibility|None)
    @in_float32
    def twice(c:AttentionCall)->Pair: return 2*c.v, c.k
    assert_type(unharmed(twice, call), Pair)
    assert_type(reference(call), Pair)
    assert_type(dispatch(call, 'oracle'), Tensor)
    assert_type(weigh(call), Pair)

def chapter_03d()->None:
    model = nn.Sequential(nb.MultiHeadAttention(8, 2))
    with nb.use_attention(model, nb.scaled_dot_product_attention) as same:
        assert_type(same, nn.Sequential)
    assert_type(nb.attention_layers(model), list[AttentionLayer])
    check_layer_mask('mask', None)
    assert_type(one_head_mask(None, x), Tensor|nb.Visibility|None)
    check_layer(dropout=0., out_dropout=0., window=None, softcap=None, scale=None)
    check_inputs(x, x, x, (8,8,8))
    check_call(x, 5, heads=2, mask=None, bias=None)

def chapter_03e()->None:
    from attention_nb.views.word_senses import sense_view
    words = torch.randn(3, 4)
    view = sense_view('a', [['a','b'], ['c','a']], [words[:2], words[[2,0]]], ['d'], words[:1],
                      shown=1)
    assert_type(view, nb.View)

def chapter_04()->None:
    mask = nb.causal_mask(5) & nb.window_mask(5, 5, 2) | nb.prefix_mask(5, prefix=1)
    assert_type(mask, Tensor)
    assert_type(nb.padding_mask([3,5], 5), Tensor)
    assert_type(nb.document_mask([0,0,1]), Tensor)
    assert_type(nb.show_mask(mask, q_tokens=list('abcde')), Axes)

def chapter_04a()->None:
    see = nb.Visibility(5, 6, causal=True, window=(3,0))
    assert_type(see.dense(), Tensor|None)
    assert_type(see.tile(slice(0, 2), slice(0, 3)), Tensor|None)
    assert_type(see.blocks(2, 2), Tensor)
    assert_type(nb.attention(q, k, v, mask=see), Pair)
    assert_type(see & nb.Visibility(5, 6, rule=lambda q, k: q != k) | see, nb.Visibility)
    table = torch.ones(3, 3, dtype=torch.bool)
    assert_type(nb.Visibility.from_blocks(table, 2, 5, 6, causal=True), nb.Visibility)
    assert_type(nb.Visibility.from_block_mask(see.to_block_mask(2)), nb.Visibility)

def chapter_05()->None:
    assert_type(nb.merge_heads(nb.split_heads(x, 2)), Tensor)
    assert_type(nb.SimpleMultiHeadAttention(8, 2).n_heads, int)
    assert_type(nb.MultiHeadAttentionLoop(8, 2)(x, causal=True), Pair)
    layer = nb.MultiHeadAttention(8, 2, n_kv_heads=1, qk_norm='rms', window=(3,0))
    assert_type(layer(x), Tensor)
    assert_type(layer(x, causal=True, need_weights=True), Pair)
    assert_type(layer(x, need_weights='mean'), Pair)
    def uniform(q:Tensor, k:Tensor, v:Tensor, **options:Any)->Tensor:
        return v.mean(-2, keepdim=True).expand(q.shape)
    assert_type(nb.MultiHeadAttention(8, 2, attend=uniform)(x), Tensor)
    assert_type(nb.MultiHeadAttention(8, 2, attend=nb.attention)(x, need_weights=True), Pair)

def chapter_05a()->None:
    ours = nb.from_torch(nn.MultiheadAttention(8, 2, batch_first=True))
    assert_type(ours, nb.MultiHeadAttention)
    assert_type(nb.to_torch(ours, batch_first=False), nn.MultiheadAttention)
    assert_type(AppendedAttention(8, 2, add_zero_attn=True, dropout=.1)(x), Tensor)
    drop_in = nb.TorchInterface(nb.to_torch(ours))
    assert_type(nb.to_torch(drop_in), nn.MultiheadAttention)
    assert_type(drop_in(x, x, x, need_weights=False), tuple[Tensor,Tensor|None])

def chapter_05b()->None:
    assert_type(nb.attention_with_weights(q, k, v, causal=True), Pair)

def chapter_05d()->None:
    assert_type(mixing_view(torch.eye(2), ['my','crew'], heads=2), nb.View)

def chapter_06a(run:bool=False)->None:
    layer = nb.MultiHeadAttention(8, 2)
    with nb.record(layer) as r: layer(x)
    assert_type(r, nb.Recording)
    assert_type(r.kinds() + [r.layers[0].name], list[str])
    assert_type(r.layers[0], Recorded)
    assert_type(r.layers[0].q, Tensor|None)
    assert_type(r.weights(batch=1), list[Tensor])
    assert_type(r.neurons(layers=[0]), dict[str,Any])
    seen = nb.look('ab', nb.Transformer(small), nb.WordTokenizer.train(texts, min_count=1))
    assert_type(seen, Seen)
    assert_type(seen.tokens, list[str])
    assert_type(seen.hidden, tuple[Tensor,...])
    assert_type(seen.shown(kind='self'), dict[str,Any])
    # the weights are not everywhere
    if run: assert_type(nb.load_hf('minilm', head=False), tuple[Any,Any])

def chapter_06b()->None:
    w,words = torch.rand(2, 2, 3, 3).softmax(-1),list('abc')
    assert_type(nb.head_view(w, words, layer=1, heads=[0]), nb.View)
    assert_type(nb.model_view([w[0],w[1]], words, average=True), nb.View)
    one = torch.randn(1, 2, 3, 4)
    assert_type(nb.neuron_view(one, one, words, v=one, causal=True, stage='softmax'), nb.View)
    assert_type(nb.show_tokens(words).html, str)
    nb.show_attention(w[0,0], words)

def chapter_06c()->None:
    w,words = torch.rand(2, 2, 3, 3).softmax(-1),['a','b','a']
    for score in (nb.previous_token, nb.next_token, nb.first_token, nb.attention_entropy):
        assert_type(score(w), Tensor)
    for told in (nb.same_token, nb.induction, nb.separator_mass):
        assert_type(told(w, words), Tensor)
    assert_type(nb.attention_rollout(w), Tensor)
    assert_type(nb.attention_flow([*w], [0]), Tensor)
    layer = nb.MultiHeadAttention(8, 2)
    with nb.remove_heads(layer, [(0,1)]) as model: assert_type(model, nn.Module)
    class Seen:
        def shown(self)->dict[str,Any]: return dict(weights=w, tokens=words, k_tokens=None)
    table = nb.score_heads(['a b a'], lambda text: Seen())
    with tempfile.TemporaryDirectory() as folder:
        assert_type(nb.save_scores(table, Path(folder)/'scores.csv'), Path)

def chapter_06n()->None:
    cfg = nb.TransformerConfig(vocab_size=9, d_model=8, n_layers=1, n_heads=2, d_ff=8)
    writer,ids = nb.Transformer(cfg).eval(),torch.tensor([[1, 2]])
    with nb.record(writer) as r: writer(ids)
    assert_type(r.outputs(), dict[str,Tensor])
    with nb.patch_heads(writer, {(0,0): 'mean', (0,1): torch.ones(4)}) as patched: patched(ids)
    with nb.patch_heads(writer, {(0,0): r}) as patched: assert_type(patched, nn.Module)
    assert_type(nb.attribute_logit(writer, ids, 3), tuple[Tensor,Tensor])
    nb.head_view(r, ['a','b'], kind='self')
    nb.neuron_view(r, tokens=['a','b'])

def chapter_06e()->None:
    weights,picture = torch.rand(1, 2, 5, 5).softmax(-1),torch.rand(8, 8, 3)
    assert_type(nb.image_view(weights, picture, grid=(2,2)), nb.View)

def chapter_06f()->None:
    view = nb.softmax_view(torch.randn(4), torch.randn(3, 4), list('abc'), sink=1.)
    assert_type(view, nb.View)
    assert_type(nb.permutation_view(torch.randn(3, 4), list('abc'), order=[2,0,1]), nb.View)

def chapter_07()->None:
    rope = nb.Rope(4, base=1e4, scaling=dict(rope_type='linear', factor=2.))
    assert_type(rope(q, torch.arange(5)), Tensor)
    assert_type(rope.tables(torch.arange(5)), Pair)
    assert_type(nb.apply_rope(q, *rope.tables(torch.arange(5)), interleaved=True), Tensor)
    assert_type(nb.alibi_slopes(2), Tensor)
    assert_type(nb.alibi_bias(2, 5, k_pos=torch.arange(5)), Tensor)
    near = nb.relative_buckets(torch.arange(5), torch.arange(6), causal=True)
    assert_type(near, Tensor)
    assert_type(nb.relative_bias(torch.zeros(32, 2), 5, 6), Tensor)

def chapter_07a()->None:
    plain = rope_frequencies(8)
    assert_type(linear_frequencies(plain, 2.), Tensor)
    assert_type(dynamic_frequencies(8, 1e4, 2., 4, torch.tensor(9)), Tensor)
    yarn = yarn_frequencies(8, 1e4, factor=2., original=4096, truncate=False)
    assert_type(yarn, Tensor)
    llama = llama3_frequencies(plain, factor=8., original=8192, low=1., high=4.)
    assert_type(llama, Tensor)
    assert_type(longrope_frequencies(8, 1e4, [1.,1.,2.,3.]), Tensor)
    assert_type(check_scaling(None, 8), dict[str,Any])
    scaled = scaled_frequencies(8, scaling=dict(rope_type='linear', factor=2.))
    assert_type(scaled, tuple[Tensor,float])

def chapter_07c()->None:
    view = rotation_view(torch.randn(2), torch.randn(2), theta=torch.ones(1))
    assert_type(view, nb.View)

def chapter_08()->None:
    cache = nb.KVCache(2, 2, 9, 4)
    assert_type(cache.update(k, v), Pair)
    assert_type(len(cache) + cache.nbytes, int)
    assert_type(cache.max_len, int|None)
    ring = nb.SlidingKVCache(2, 2, 3, 4, device='cpu')
    ring.update(k, v)
    assert_type(ring.positions, Tensor)
    layer = nb.MultiHeadAttention(8, 2, window=(3,0))
    kept:list[nb.AttentionCache] = [nb.SlidingKVCache(2, 2, 3, 4), layer.new_cache(2, 9)]
    for cache_of_layer in kept: assert_type(layer(x, cache=cache_of_layer, causal=True), Tensor)

def chapter_08b()->None:
    assert_type(cache_view(list('abc'), step=2, keeps=False), nb.View)
    assert_type(forming_view(torch.eye(3)[None,None], [1], [2.], names=['a']), nb.View)
    assert_type(ring_view(dict(zigzag=[0,1,1,0]), step=1), nb.View)

def chapter_09()->None:
    decoder = nb.SimpleDecoder(36, 8, n_blocks=2, n_heads=4, n_kv_heads=2, d_ff=12)
    assert_type(decoder.E, int)

def chapter_09a()->None: assert_type(shapes_view(step=3), nb.View)

def chapter_10()->None:
    assert_type(nb.RMSNorm(8)(x), Tensor)
    think = nb.FeedForward(8, 16, activation='gelu')
    assert_type(nb.Residual(small)(x, think), Tensor)
    assert_type(nb.MixtureOfExperts(8, nb.ExpertsConfig(4, 2, 16)).route(x[0]), Pair)
    assert_type(nb.Block(small)(x, causal=True), Tensor)
    context = ForwardContext(places=torch.arange(5))
    assert_type(context.now(2), Tensor)
    assert_type(Stack(small, causal=True)(x, context), Tensor)
    assert_type(TokenEmbeddings(small)(ids, torch.arange(3)), Tensor)
    assert_type(LMHead(small)(x, torch.zeros(20, 8)), Tensor)
    model = nb.Transformer(small)
    assert_type(model(ids, last=1), Tensor)
    cache = model.new_cache(2, 9)
    assert_type(cache, nb.ModelCache)
    assert_type(model(ids, cache=cache), Tensor)
    assert_type(model.generate(ids, 3, top_k=4, seed=1), Tensor)
    assert_type(model.generate(ids, 3, n_beams=2, return_scores=True), Pair)
    both:bool = len(texts) > 0
    assert_type(model.generate(ids, 3, return_scores=both), Tensor|Pair)
    makers:Mixers = dict(mean=lambda cfg, layer: nn.Identity())
    assert_type(makers['mean'](small, 0), nn.Module)
    assert_type(nb.Transformer(small, attend=nb.attention), nb.Transformer)
    def memory(mixer:nb.Mixer)->LayerCache: return mixer.new_cache(2, 9)
    assert_type(memory.__name__, str)
    if model.decoder is not None:
        assert_type(model.decoder.blocks[0], nb.Block)
        for block in model.decoder.blocks: assert_type(block.attn_add, nb.Residual)

def chapter_10a(run:bool=False)->None:
    if not run: return    # it takes several processes
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh('cpu', (2,))
    assert_type(nb.parallelize(nb.Transformer(small), mesh), nb.Transformer)
    assert_type(nb.split_cache(nb.Transformer(small), 1, 9, mesh), nb.ModelCache)
    assert_type(str(nb.plan(small, 1024, 4)), str)
    assert_type(nb.context_parallel(nb.Transformer(small), mesh), nb.Transformer)
    for part in (nb.ring_attention(mesh, order='contiguous'), nb.ulysses_attention(mesh)):
        assert_type(part(q, q, q, causal=True), Tensor)
        assert_type(part.join(part.split(q), -2), Tensor)
    layer = nb.MultiHeadAttention(8, 2)
    assert_type(nb.load_shard(layer, 'model.safetensors'), nb.MultiHeadAttention)

def training()->None:
    texts:dict[Path,str] = {}
    data = nb.PackedTexts([range(9) for _ in texts], length=4, batch=2, end=8)
    assert_type(data(0), tuple[Tensor,Tensor])
    model = nb.Transformer(small)
    names:list[str] = nb.add_lora(model, 2)
    for step in nb.train(model, data, steps=3, lr=1e-3): assert_type(step.loss, float)
    for step in nb.train(model, lambda n: torch.ones(2, 9, dtype=torch.long), steps=n_steps(names)):
        assert_type(step.step, int)
    assert_type(nb.merge_lora(model), int)

def n_steps(names:list[str])->int: return len(names)

def chapter_10b()->None:
    model = nb.Transformer(small)
    words = nb.BPETokenizer.train(texts, 260)
    cfg = nb.TransformerConfig(vocab_size=260, d_model=8, n_layers=1, n_heads=2)
    spelling = nb.Transformer(cfg)
    logits = torch.randn(2, 20)
    made = sampling
    for out in (made.filter_top_k(logits, 3), made.filter_top_p(logits, .9),
                made.filter_min_p(logits, .1)):
        assert_type(nb.filter_logits(out, temperature=.7), Tensor)
    assert_type(nb.sample(logits, generator=torch.Generator()), Tensor)
    assert_type(penalize_repetition(logits, ids, 1.2), Tensor)
    assert_type(nb.generate(model, ids, 3, temperature=.7, stop=[[3,4]], n_beams=1), Tensor)
    assert_type(nb.generate(model, ids, 3, n_beams=2, early_stopping='never'), Tensor)
    drawn = nb.generate(model, ids, 3, top_k=3, num_return_sequences=2, return_scores=True)
    assert_type(drawn, Pair)
    def flat(ids:Tensor, logits:Tensor)->Tensor: return logits*0
    for processor in (flat, [flat, flat]):
        assert_type(nb.generate(model, ids, 3, logits_processor=processor), Tensor)
    for column in nb.stream(model, ids, 2, top_p=.9): assert_type(column, Tensor)
    for token in nb.Batcher(model, pages=9).submit(ids[0], 2, top_p=.9): assert_type(token, int)
    for piece in nb.stream(spelling, torch.tensor([[3]]), 2, tokenizer=words):
        assert_type(piece, str)
    assert_type(nb.TextStream(words).push(3), str)

def chapter_10c()->None:
    experts = nb.ExpertsConfig(4, 2, 16, router='sigmoid')
    cfg = nb.TransformerConfig(vocab_size=20, window=(3,0), experts=experts)
    assert_type(nb.TransformerConfig.from_dict(cfg.to_dict()), nb.TransformerConfig)
    assert_type(nb.can_be(cfg, 'llama'), list[str])
    assert_type(cfg.width, int)
    assert_type(cfg.block_types, tuple[str,...])
    assert_type(cfg.rope_scaling, dict[str,Any]|None)
    check_ids(cfg, ids, past=0)

def chapter_11(run:bool=False)->None:
    with tempfile.TemporaryDirectory() as folder:
        files = nb.save_pretrained(nb.Transformer(small), folder, family='llama')
        assert_type(files, list[Path])
        assert_type(nb.load_pretrained(folder, dtype=torch.float64), nb.Transformer)
        assert_type(nb.load_pretrained(folder, attend=nb.scaled_dot_product_attention,
                                       rope_scaling=dict(rope_type='default'), ignore=(),
                                       mixers={}), nb.Transformer)
    if not run: return    # the weights are not everywhere
    model = nb.load_pretrained('minilm', progress=True)
    assert_type(nb.embed_sentences(model, nb.load_tokenizer('minilm'), texts), Tensor)
    hf:Any = None
    assert_type(nb.from_hf(hf, dtype=torch.float32, ignore=[]), nb.Transformer)

def chapter_11a()->None:
    family = nb.FAMILIES['llama']
    config = nb.config_to_hf(small, family)
    assert_type(config, dict[str,Any])
    assert_type(nb.config_from_hf(config, ignore=()),
                tuple[nb.TransformerConfig,Family])
    theirs = dict(tensors_to_hf(family, small, nb.Transformer(small).state_dict()))
    assert_type(theirs, dict[str,Tensor])
    assert_type(dict(tensors_from_hf(family, small, theirs)), dict[str,Tensor])
    assert_type(build_model(small, family, theirs, copy=True), nb.Transformer)
    assert_type(model_features(small)['norm'], str)
    assert_type(nb.family_table()['Llama'], dict[str,str])
    width = Field('hidden_size', 'd_model', 8, 'size')
    assert_type(width.fits(9), bool)
    part = Part((width,), lambda c: dict(d_model=c['hidden_size']),
                            lambda cfg: dict(hidden_size=cfg.d_model))
    rule = Rule('a.weight', ('embed.token.weight',), when=dict(tied=True))
    mine = Family('mine', 'Mine', {'MineModel': dict(head=None)}, {}, (), (part,),
                              (rule,))
    assert_type(mine.published('d_model'), str)
    assert_type(mine.keys[0].targets, tuple[str,...])

def chapter_11b()->None:
    with tempfile.TemporaryDirectory() as folder:
        nb.save_pretrained(nb.Transformer(small), folder, family='llama')
        source = nb.open_source(folder)
        assert_type(source, nb.Source)
        assert_type(source.config, dict[str,Any])
        assert_type(source.tensors, Tensors)
        for name,t in source.tensors.read(progress=False): assert_type((name, t), tuple[str,Tensor])
        copied = save_tensors(source.tensors, source.config, Path(folder)/'copy')
        assert_type(copied, list[Path])
        assert_type(source.config_file, Path)
    assert_type(locate('someone/model'), Path|str)

def files_of_somebodys_own()->None:
    "Not run: it needs files"
    assert_type(nb.read_gguf('model.gguf'), tuple[dict[str,Any],Tensors])
    assert_type(nb.byte_pairs(nb.load_tokenizer('smollm2')), nb.BPETokenizer)
    assert_type(nb.save_tokenizer('smollm2', 'folder'), list[Path])

def chapter_12()->None:
    sizes = nb.LatentConfig(kv_rank=6, nope_dim=4, rope_dim=2, v_dim=4)
    layer = nb.LatentAttention(8, 2, kv_rank=6, nope_dim=4, rope_dim=2, v_dim=4, rope=nb.Rope(2))
    assert_type(layer(x, causal=True), Tensor)
    assert_type(layer(x, need_weights=True), Pair)
    assert_type(layer(x, cache=layer.new_cache(2, 9), need_weights='mean'), Pair)
    asked,kept = torch.randn(2, 2, 5, 6),torch.randn(2, 1, 7, 8)
    w_k,w_v = torch.randn(2, 4, 6),torch.randn(2, 4, 6)
    assert_type(expand_latent(asked, kept, w_k, w_v), tuple[Tensor,Tensor,Tensor])
    assert_type(absorb_queries(asked, kept, w_k), tuple[Tensor,Tensor,Tensor])
    assert_type(latent_scale(sizes.nope_dim, sizes.rope_dim), float)
    assert_type(absorbing_pays(1, 100, 6, 4, 4), bool)

def chapter_06l()->None:
    assert_type(int8_pieces(q[0,0]), tuple[Tensor,Tensor])
    with tempfile.TemporaryDirectory() as folder:
        assert_type(write_live(folder), dict[str,Any])

def chapter_06m()->None:
    assert_type(arc_view(torch.ones(1, 1, 3, 3)/3, ['a','b','c']), nb.View)

def chapter_13d()->None:
    see = {'causal': nb.Visibility(100, causal=True)}
    assert_type(tiles_view(see, sides=(32,), step=2), nb.View)

def chapter_16()->None:
    linear = torch.nn.Linear(32, 16).eval()
    assert_type(nb.quantize(nb.Transformer(nb.TransformerConfig(9, d_model=32))), nb.Transformer)
    layer,table = QuantizedLinear(linear, 4),QuantizedEmbedding(torch.randn(9, 32)).eval()
    assert_type(layer(torch.randn(2, 32)), Tensor)
    assert_type(table(torch.tensor([1, 2])), Tensor)
    assert_type(table.multiply(torch.randn(2, 32)), Tensor)
    assert_type(layer.dequantize(), Tensor)
    assert_type(rounded_rows(linear.weight), Pair)
    assert_type(rounded_groups(linear.weight, 16), Pair)

def chapter_13b()->None: assert_type(nb.flash_attention(q, k, v, causal=True), Pair)

if __name__ == '__main__':
    matplotlib.use('agg')
    torch.manual_seed(0)
    for name,chapter in list(globals().items()):
        if name.startswith('chapter_'): chapter()
