"""Calls that a type checker must refuse, each marked `# error`, beside calls that it must not: tests/test_types.py compares.

Never run.
"""
from typing import Any
import attention_nb as nb
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
    nb.AppendedAttention(8, 2, dropuot=.1)                               # error
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
    def a_list(q:Tensor, k:Tensor, v:Tensor, **options:Any)->list[Tensor]: return [q]
    nb.MultiHeadAttention(8, 2, attend=options)
    nb.MultiHeadAttention(8, 2, attend=no_options)                       # error
    nb.MultiHeadAttention(8, 2, attend=a_list)                           # error

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
