"Attention flow: as published, and what a maximum flow must do; tables of scores of many texts"
import networkx as nx
import numpy as np
import pytest, torch
from attention_nb.recording.head_scores import (attention_entropy, attention_flow,
                                                attention_rollout, previous_token, save_scores,
                                                score_heads)
from attention_nb.recording.look import load_hf, look

def weights(n, H, L, seed, sharp=4, causal=False):
    scores = sharp*torch.randn(n, H, L, L, generator=torch.Generator().manual_seed(seed))
    if causal: scores = scores.masked_fill(torch.ones(L, L).triu(1).bool(), -torch.inf)
    return scores.softmax(-1)

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
@pytest.mark.parametrize('seed', range(3))
def test_it_is_the_published_flow(n, H, L, causal, seed):
    w = weights(n, H, L, seed, causal=causal)
    torch.testing.assert_close(attention_flow(w), published(w), atol=1e-6, rtol=0)

@pytest.mark.parametrize('seed', range(3))
def test_what_every_flow_must_do(seed):
    "Between the strongest path and the width at both ends; tokens may change places"
    w = weights(4, 2, 6, seed)
    flow,steps,I = attention_flow(w),(w.mean(1)+torch.eye(6))/2,torch.eye(6)
    path = I
    for A in steps: path = torch.minimum(A[:,:,None], path[None]).amax(1)      # the widest path
    assert (flow > path-1e-6).all() and (flow > attention_rollout(w)-1e-6).all()
    ends = torch.minimum((steps[-1]).sum(1)[:,None], (steps[0]).sum(0)[None])
    assert (flow < ends+1e-6).all()
    order = torch.randperm(6, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(attention_flow(w[:,:,order][...,order]), flow[order][:,order])
    torch.testing.assert_close(attention_flow([*w[:2], I.expand(2,6,6), *w[2:]]), flow)
    torch.testing.assert_close(attention_flow(w, outputs=order[:2].tolist()), flow[order[:2]])

def test_narrow_pipes_are_counted_exactly():
    "A path of weights of a millionth is not lost, and equal widths do not run for ever"
    w = torch.eye(3).repeat(3, 1, 1, 1)
    w[1,0,2,0] = 1e-6
    assert abs(attention_flow(w)[2,0].item()-5e-7) < 1e-12
    even = attention_flow(torch.full((6,1,5,5), .2))
    want = torch.full((5,5), even[0,1].item()).fill_diagonal_(even[0,0].item())
    torch.testing.assert_close(even, want)

@pytest.fixture(scope='module')
def minilm(): return load_hf('minilm')

def test_flow_is_flatter_than_rollout_in_a_real_model(minilm):
    "What the page says of MiniLM on 13 tokens: every row"
    w = look('time flies like an arrow and fruit flies like a banana', *minilm).recording.weights()
    w = torch.stack(w)
    assert w.shape == (6, 12, 13, 13)
    flow,rollout = (attention_entropy(m[:,None]/m.sum(-1)[:,None,None])
                    for m in (attention_flow(w), attention_rollout(w)))
    assert (flow > rollout).all(), flow-rollout

def test_a_table_of_a_real_model(minilm, tmp_path):
    texts = ['i must go back to my ship and to my crew', 'go', 'the cat and the dog']
    table = score_heads(texts, lambda t: look(t, *minilm))
    assert {len(c) for c in table.values()} == {3*6*12} and set(table['kind']) == {'self'}
    heads = table['previous_token'].reshape(3, 6, 12)
    seen = look(texts[0], *minilm)
    np.testing.assert_allclose(heads[0], previous_token(seen.recording.weights()), rtol=1e-6)
    assert np.isfinite(heads).all() and np.isnan(table['induction'].reshape(3, 72)[1]).all()
    assert table['tokens'].reshape(3, 72)[:,0].tolist() == [13, 3, 7]
    import csv, pyarrow.parquet as parquet
    with open(save_scores(table, tmp_path/'scores.csv')) as f: rows = list(csv.DictReader(f))
    stored = parquet.read_table(save_scores(table, tmp_path/'scores.parquet')).to_pydict()
    for name,column in table.items():
        of_csv = [row[name] for row in rows]
        if column.dtype.kind != 'f':
            assert stored[name] == column.tolist() and of_csv == [str(x) for x in column]
        else:
            np.testing.assert_allclose([float(x or 'nan') for x in of_csv], column, rtol=1e-4)
            np.testing.assert_array_equal(np.array(stored[name], np.float32), column)

def test_a_bar_and_no_bar(capsys):
    from types import SimpleNamespace
    seen = SimpleNamespace(shown=lambda: dict(weights=torch.eye(2)[None], tokens=['a','b'],
                                              k_tokens=None, split=None))
    for progress in (True, False):
        score_heads(range(3), lambda _: seen, progress=progress)
        assert ('3/3' in capsys.readouterr().err) == progress
