"""Calls that a type checker must refuse, each marked `# error`, beside calls that it must not:
tests/project/test_types.py compares. Never run.
"""
from typing import Any
import attention_nb as nb
from attention_nb.checkpoints.save import save_tensors
from attention_nb.checkpoints.source import open_source
import torch
from torch import Tensor, nn

x,q = torch.zeros(2, 5, 8),torch.zeros(2, 2, 5, 4)
Pair = tuple[Tensor,Tensor]

def functions()->None:
    nb.attention(q, q, q)
    nb.attention(q, q)                                                   # error
    nb.attention(q, q, q, caual=True)                                    # error
    nb.attention([[1.]], q, q)                                           # error
    nb.attention(q, q, q, True)                                          # error
    nb.attention(q, q, q, mask='causal')                                 # error
    nb.attention(q, q, q, window=3)                                      # error
    out:Tensor = nb.attention(q, q, q)                                   # error
    nb.scaled_dot_product_attention(q, q, q, attn_mask=q)                # error
    pair:Pair = nb.scaled_dot_product_attention(q, q, q)                 # error
    nb.attention_lse(q, q, q, causal=True)
    nb.attention_lse(q, q, q, caual=True)                                # error
    nb.merge_attention(q, q)                                             # error
    nb.causal_mask('5')                                                  # error
    nb.window_mask(5, 5)                                                 # error
    nb.prefix_mask(5, 5, 2)                                              # error
    nb.cosine_similarity([1.,2.])                                        # error
    nb.nothing                                                           # error
    print(out, pair)

def layers()->None:
    layer = nb.MultiHeadAttention(8, 2)
    nb.MultiHeadAttention('8', 2)                                        # error
    nb.MultiHeadAttention(8)                                             # error
    nb.MultiHeadAttention(8, 2, num_heads=2)                             # error
    nb.MultiHeadAttention(8, 2, dropuot=.1)                              # error
    layer(x, caual=True)                                                 # error
    layer([1.,2.])                                                       # error
    layer(x, need_weights='all')                                         # error
    layer(x, attn_mask=None)                                             # error
    pair:Pair = layer(x)                                                 # error
    also:Pair = layer(x, need_weights=False)                             # error
    good:Pair = layer(x, need_weights=True)
    out:Tensor = layer(x, need_weights=True)                             # error
    mean:Tensor = layer(x, need_weights='mean')                          # error
    nb.SelfAttention(8, 4)(x, need_weights=True).shape                   # error
    nb.SelfAttention(8, 4)(x, x)                                         # error
    one:Pair = nb.SelfAttention(8, 4)(x)                                 # error
    nb.MultiHeadAttentionLoop(8, 2)(x).shape                             # error
    nb.Embeddings(20, 8)                                                 # error
    nb.Embeddings(20, 8, 16)('to my ship')                               # error
    nb.from_torch(layer)                                                 # error
    nb.to_torch(nn.MultiheadAttention(8, 2))                             # error
    print(pair, also, good, out, mean, one)

def functions_of_somebodys_own()->None:
    def options(q:Tensor, k:Tensor, v:Tensor, **options:Any)->Tensor: return q
    def no_options(q:Tensor, k:Tensor, v:Tensor)->Tensor: return q
    nb.MultiHeadAttention(8, 2, attend=options)
    nb.MultiHeadAttention(8, 2, attend=no_options)
    nb.MultiHeadAttention(8, 2, attend='blocks')

def words()->None:
    words = nb.WordTokenizer.train(['to my ship'])
    nb.WordTokenizer.train(['to my ship'], vocab_size=9)                 # error
    nb.BPETokenizer.train(['to my ship'])                                # error
    words.encode(['to my ship'])                                         # error
    words.encode('to my ship', allow_special=True)                       # error
    words.decode('to my ship')                                           # error
    ids:Tensor = words.encode('to my ship')                              # error
    nb.load_glove(wrods=['ship'])                                        # error
    nb.load_glove().nearest('ship')[0].lower()                           # error
    print(ids)

def places_and_caches()->None:
    nb.Rope(4, scaling='linear')                                         # error
    nb.Rope(4)(x)                                                        # error
    nb.alibi_bias(2, torch.arange(5))                                    # error
    nb.relative_bias([[1.]], 5)                                          # error
    nb.KVCache(2, 2, 9)                                                  # error
    nb.SlidingKVCache(2, 2, None, 4)                                     # error
    nb.KVCache(2, 2, 9, 4).update(x)                                     # error
    nb.KVCache(2, 2, 9, 4).max_len + 1                                   # error

def models()->None:
    cfg = nb.TransformerConfig(vocab_size=20)
    model,ids = nb.Transformer(cfg),torch.zeros(1, 3, dtype=torch.long)
    nb.TransformerConfig(vocab_size=20, d_modle=8)                       # error
    nb.TransformerConfig()                                               # error
    nb.TransformerConfig(vocab_size=20, window=3)                        # error
    nb.ExpertsConfig(4)                                                  # error
    nb.Transformer(vocab_size=20)                                        # error
    nb.Transformer(dict(vocab_size=20))                                  # error
    model([[1,2]])                                                       # error
    model(ids, attention_mask=ids)                                       # error
    model(ids, cache=nb.KVCache(1, 2, 9, 4))                             # error
    pair:Pair = model(ids)                                               # error
    model.decoder.blocks                                                 # error
    model.generate(ids)                                                  # error
    model.generate(ids, 3, max_length=9)                                 # error
    model.generate(ids, 3, temperature='high')                           # error
    scored:Pair = model.generate(ids, 3)                                 # error
    text:Tensor = model.generate(ids, 3, return_scores=True)             # error
    model.generate(ids, 3, logits_processor=3)                           # error
    nb.generate(model, ids, 3, n_beams=2, early_stopping='soon')         # error
    nb.stream(model, ids, 3, n_beams=2)                                  # error
    nb.stream(model, ids, 3, return_scores=True)                         # error
    nb.stream(model, ids, 3, tokenizer='words')                          # error
    nb.generate(torch.nn.Linear(2, 2), ids, 3)                           # error
    model.save_pretrained('folder', famly='llama')                       # error
    print(pair, scored, text)

def published()->None:
    nb.load_pretrained('minilm', dtype='float32')                        # error
    nb.load_pretrained('minilm').forward(mask=None)                      # error
    nb.FAMILIES['llama'].titel                                           # error
    nb.config_to_hf(nb.FAMILIES['llama'])                                # error
    save_tensors({}, {}, 'folder', max_shard_size='5GB')       # error
    open_source('folder').weights                                     # error

def latent()->None:
    nb.LatentAttention(8, 2)                                             # error
    layer = nb.LatentAttention(8, 2, kv_rank=6, nope_dim=4, rope_dim=2, v_dim=4)
    layer(x, x)                                                          # error
    pair:Pair = layer(x)                                                 # error
    layer(x, need_weights='all')                                         # error
    layer(x, window=(3,0))                                               # error
    print(pair)

def recorded()->None:
    layer = nb.MultiHeadAttention(8, 2)
    with nb.record(layer, aks=True): layer(x)                            # error
    with nb.record('minilm'): layer(x)                                   # error
    with nb.record(layer) as r: layer(x)
    r.weights('self')                                                    # error
    r.layers[0].scores                                                   # error
    nb.look('to my ship')                                                # error
    nb.look('to my ship', layer, tokeniser=None)                         # error
    nb.load_hf(3)                                                        # error
