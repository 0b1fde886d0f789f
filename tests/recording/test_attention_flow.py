"""Attention flow through narrow pipes and in a real model; nbs/recording/head_scores.ipynb
compares it with the narrowest of all cuts"""
import torch
from attention_nb.recording.head_scores import (attention_entropy, attention_flow,
                                                attention_rollout)
from attention_nb.recording.look import load_hf, look
from helpers import full

def test_narrow_pipes_are_counted_exactly():
    "A path of weights of a millionth is not lost, and equal widths do not run for ever"
    w = torch.eye(3).repeat(3, 1, 1, 1)
    w[1,0,2,0] = 1e-6
    assert abs(attention_flow(w)[2,0].item()-5e-7) < 1e-12
    even = attention_flow(torch.full((6,1,5,5), .2))
    want = torch.full((5,5), even[0,1].item()).fill_diagonal_(even[0,0].item())
    torch.testing.assert_close(even, want)

@full
def test_flow_is_flatter_than_rollout_in_a_real_model():
    "What the page says of MiniLM on 13 tokens: every row"
    seen = look('time flies like an arrow and fruit flies like a banana', *load_hf('minilm'))
    w = torch.stack(seen.recording.weights())                       # (6, 12, 13, 13)
    flow,rollout = (attention_entropy(m[:,None]/m.sum(-1)[:,None,None])
                    for m in (attention_flow(w), attention_rollout(w)))
    assert (flow > rollout).all(), flow-rollout
