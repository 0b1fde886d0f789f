"""Attention flow, as published; nbs/recording/head_scores.ipynb compares it with the narrowest of
all cuts"""
from types import SimpleNamespace
import networkx as nx
import pytest, torch
from attention_nb.recording.head_scores import (attention_entropy, attention_flow,
                                                attention_rollout, score_heads)
from attention_nb.recording.look import load_hf, look
from helpers import full

def published(w):
    "As the paper's code: one graph from the last layer to the first, shortest augmenting paths"
    layers,_,L,_ = w.shape
    steps,graph = (w.mean(1)+torch.eye(L)).double()/2,nx.DiGraph()
    for l in range(layers):
        for i in range(L):
            for j in range(L): graph.add_edge((l+1, i), (l, j), capacity=steps[l,i,j].item())
    flow = nx.algorithms.flow.edmonds_karp
    return torch.tensor([[nx.maximum_flow_value(graph, (layers, i), (0, j), flow_func=flow)
                          for j in range(L)] for i in range(L)])

@pytest.mark.parametrize('n,H,L,causal',
                         [(1,1,2,False), (2,3,5,False), (4,2,6,True), (5,1,4,False)])
def test_it_is_the_published_flow(n, H, L, causal):
    scores = 4*torch.randn(n, H, L, L, generator=torch.Generator().manual_seed(n))
    if causal: scores = scores.masked_fill(torch.ones(L, L).triu(1).bool(), -torch.inf)
    w = scores.softmax(-1)
    torch.testing.assert_close(attention_flow(w), published(w), atol=1e-6, rtol=0)

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

def test_a_bar_and_no_bar(capsys):
    recording = SimpleNamespace(kinds=lambda: ['self'],
                                layers=[SimpleNamespace(name='attn', kind='self')])
    seen = SimpleNamespace(recording=recording, shown=lambda kind: dict(
        weights=[torch.eye(2)[None]], tokens=['a','b'], k_tokens=None))
    for progress in (True, False):
        score_heads(range(3), lambda _: seen, progress=progress)
        assert ('3/3' in capsys.readouterr().err) == progress
