"""What a type checker makes of calls whose result an argument decides, or that a careless
annotation would lose. tests/project/test_types.py checks it with pyright in strict mode, beside the
example of each offered name, and runs it; `assert_type` does nothing when it runs.
"""
import tempfile
from pathlib import Path
from typing import Any, assert_type
import attention_nb as nb
import torch
from torch import Tensor, nn
from attention_nb.checkpoints.schema import Family
from attention_nb.checkpoints.source import open_source
from attention_nb.kernels.options import AttentionCall, AttentionOptions, check_attention
from attention_nb.layers.base import AttentionFunction, AttentionLayer, attention_layers
from attention_nb.layers.cache import AttentionCache
from attention_nb.models.blocks import Block
from attention_nb.recording.look import Seen
from attention_nb.recording.steps import RecordedAttention
from attention_nb.text.bpe import GPT2_PATTERN
from attention_nb.text.vocabulary import Tokenizer

Pair = tuple[Tensor,Tensor]
x,ids = torch.randn(2, 5, 8),torch.tensor([[4,5,6],[7,8,9]])
q,k,v = torch.randn(2, 2, 5, 4),torch.randn(2, 2, 6, 4),torch.randn(2, 2, 6, 4)
texts = ['to my ship', 'and to my crew']
small = nb.TransformerConfig(vocab_size=20, max_len=None, d_model=8, n_layers=2, n_heads=2, d_ff=16)

def text()->None:
    words = nb.WordTokenizer.train(texts, min_count=1)
    assert_type(words, nb.WordTokenizer)
    assert_type(words.encode('to my ship', eos=True), list[int])
    assert_type(words.batch(texts, max_len=4, padding_side='left'), Pair)
    assert_type(nb.load_tokenizer('minilm'), Tokenizer)
    assert_type(nb.load_tokenizer('minilm').batch(texts), Pair)
    tokenizer:Tokenizer = nb.BPETokenizer.train(texts, 260, pattern=GPT2_PATTERN)
    assert_type(tokenizer.decode(tokenizer.encode('to my ship', bos=True)), str)
    table = nb.WordVectors(['ship','crew'], torch.eye(2))
    assert_type(table.nearest('ship', 1), list[tuple[str,float]])
    assert_type(nb.Embeddings(20, 8, 16)(ids, positions=torch.arange(3)), Tensor)

def functions()->None:
    options:AttentionOptions = {'causal': True, 'window': (3,None)}
    assert_type(nb.attention_lse(q, k, v, **options), Pair)
    assert_type(check_attention(q, k, v, dropout_p=.1), AttentionCall)
    assert_type(nb.scaled_dot_product_attention(q, k, v, mask=nb.causal_mask(5, 6)), Tensor)
    assert_type(nb.explain_choice(q, k, v, causal=True), list[tuple[str,str]])
    every:list[AttentionFunction] = [nb.attention, nb.scaled_dot_product_attention,
                                     nb.attention_lse]
    assert_type(every[0](q, k, v, causal=True), Tensor|Pair)
    see = nb.AttentionMask(5, 6, causal=True, window=(3,0))
    assert_type(see.dense(), Tensor|None)
    assert_type(see & nb.AttentionMask(5, 6, rule=lambda q, k: q != k) | see, nb.AttentionMask)
    assert_type(nb.AttentionMask.from_block_mask(see.to_block_mask(2)), nb.AttentionMask)

def layers()->None:
    asked = bool(len(x))
    one = nb.SelfAttention(8, 4)
    assert_type(one(x), Tensor)
    assert_type(one(x, causal=True, need_weights=True), Pair)
    assert_type(one(x, need_weights=asked), Tensor|Pair)
    layer = nb.MultiHeadAttention(8, 2, n_kv_heads=1, qk_norm='rms', window=(3,0))
    assert_type(layer(x), Tensor)
    assert_type(layer(x, need_weights='mean'), Pair)
    assert_type(layer(x, cache=layer.new_cache(2, 9), causal=True), Tensor)
    def uniform(q:Tensor, k:Tensor, v:Tensor, **options:Any)->Tensor:
        return v.mean(-2, keepdim=True).expand(q.shape)
    assert_type(nb.MultiHeadAttention(8, 2, attend=uniform)(x), Tensor)
    latent = nb.LatentAttention(8, 2, kv_rank=6, nope_dim=4, rope_dim=2, v_dim=4, rope=nb.Rope(2))
    assert_type(latent(x, need_weights=True), Pair)
    ours = nb.from_torch(nn.MultiheadAttention(8, 2, batch_first=True))
    assert_type(nb.to_torch(ours, batch_first=False), nn.MultiheadAttention)
    assert_type(nb.TorchInterface(nb.to_torch(ours))(x, x, x), tuple[Tensor,Tensor|None])
    model = nn.Sequential(layer)
    with nb.use_attention(model, nb.scaled_dot_product_attention) as same:
        assert_type(same, nn.Sequential)
    assert_type(attention_layers(model), list[AttentionLayer])
    cache:AttentionCache = nb.SlidingKVCache(2, 2, 3, 4)
    assert_type(len(cache), int)
    assert_type(nb.Rope(4).tables(torch.arange(5)), Pair)
    assert_type(nb.quantize(nb.Transformer(nb.TransformerConfig(9, d_model=32))), nb.Transformer)

def models()->None:
    model = nb.Transformer(small)
    assert_type(model(ids, cache=model.new_cache(2, 9)), Tensor)
    assert_type(model.generate(ids, 3, top_k=4, seed=1), Tensor)
    assert_type(model.generate(ids, 3, n_beams=2, return_scores=True), Pair)
    asked = bool(len(ids))
    assert_type(model.generate(ids, 3, return_scores=asked), Tensor|Pair)
    def flat(ids:Tensor, logits:Tensor)->Tensor: return logits*0
    for processor in (flat, [flat, flat]):
        assert_type(nb.generate(model, ids, 3, logits_processor=processor), Tensor)
    for column in nb.stream(model, ids, 2, top_p=.9): assert_type(column, Tensor)
    spelling = nb.Transformer(nb.TransformerConfig(260, d_model=8, n_layers=1, n_heads=2))
    words = nb.BPETokenizer.train(texts, 260)
    for piece in nb.stream(spelling, torch.tensor([[3]]), 2, tokenizer=words):
        assert_type(piece, str)
    batcher = nb.Batcher(model, slots=2, max_len=9)
    for token in batcher.submit(ids[:1], 2, top_p=.9): assert_type(token, int)
    assert_type(nb.can_save_as(small, 'llama'), bool)
    assert_type(small.rope_scaling, dict[str,Any]|None)
    if model.decoder is not None: assert_type(model.decoder.blocks[0], Block)

def files()->None:
    with tempfile.TemporaryDirectory() as folder:
        saved = nb.save_pretrained(nb.Transformer(small), folder, family='llama')
        assert_type(saved, list[Path])
        assert_type(nb.load_pretrained(folder, dtype=torch.float64), nb.Transformer)
        source = open_source(folder)
        assert_type(source.config, dict[str,Any])
        for name,t in source.tensors.read(progress=False): assert_type((name, t), tuple[str,Tensor])
    config = nb.config_to_hf(small, nb.FAMILIES['llama'])
    assert_type(nb.config_from_hf(config), tuple[nb.TransformerConfig,Family])

def recording()->None:
    layer = nb.MultiHeadAttention(8, 2)
    with nb.record(layer) as r: layer(x)
    assert_type(r.layers[0], RecordedAttention)
    assert_type(r.layers[0].q, Tensor)
    assert_type(r.weights(batch=1), list[Tensor])
    seen = nb.look('ab', nb.Transformer(small), nb.WordTokenizer.train(texts, min_count=1))
    assert_type(seen, Seen)
    assert_type(seen.hidden, tuple[Tensor,...])
    with nb.remove_heads(layer, [(0,1)]) as removed: assert_type(removed, nn.Module)

def training()->None:
    data = nb.PackedTexts([range(9) for _ in texts], length=4, batch=2, end=8)
    model = nb.Transformer(small)
    for step in nb.train(model, data, steps=3, lr=1e-3): assert_type(step.loss, float)
    assert_type(nb.add_lora(model, 2), nb.Transformer)
    assert_type(nb.merge_lora(model), nb.Transformer)

if __name__ == '__main__':
    torch.manual_seed(0)
    for part in (text, functions, layers, models, files, recording, training): part()
