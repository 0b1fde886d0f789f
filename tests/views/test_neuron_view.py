"The neuron view in a real browser: every number of every step is attention's"
import math, re
import pytest, torch
from attention_nb.kernels.reference import attention, attention_scores, hide
from attention_nb.recording.recorder import record
from attention_nb.views.neuron_view import _shown, neuron_view
from attention_nb.kernels.attention_mask import AttentionMask
from helpers import short
from helpers.looks import expect, walk, words

def numbers_of(x): return [float(t.replace('−', '-')) if t else None for t in x]

read = """t => {
    const row = r => [r.cells[0].textContent, [...r.cells].slice(1).map(c => c.title)];
    const [head, query] = t.tHead.rows;
    return [[...head.cells].slice(1).map(c => c.textContent), query ? row(query) : null,
            [...t.tBodies[0].rows].map(row), [...t.tFoot.rows].map(row)]; }"""
at_every_step = """() => [...document.querySelectorAll('.steps button')].slice(2, -1).map(b => {
    b.click();
    return [b.textContent, (%s)(document.querySelector('.numbers table'))]; })"""

def numbers_in(heads, query, rows, feet):
    "Names of the columns, the query's cells, cells by row, cells at the foot: every number in full"
    def of(x): return [(name, numbers_of(cells)) for name,cells in x]
    return heads, of([query])[0] if query else None, of(rows), dict(of(feet))

def grid(page): return numbers_in(*page.locator('.numbers table').evaluate(read))

def steps(page): return page.locator('.steps button').all_inner_texts()[2:-1]

def press(page, step): page.locator('.steps').get_by_role('button', name=step, exact=True).click()

def choose(page, **values):
    for name,value in values.items():
        page.get_by_label(re.compile(f'^{name} ')).select_option(str(value))

def close(got, want):
    got = torch.tensor([[math.nan if x is None else x for x in row] for row in got],
                       dtype=torch.float64)
    torch.testing.assert_close(got, want.double(), atol=1e-6, rtol=1e-6)

def chain(q, k, v, l, h, i, *, causal=False, window=None, **kw):
    "All steps of one query in float64: a dict of columns (S,), its output, keys, values, numbers"
    one = {name: x[l] if isinstance(x, list) else x for name,x in kw.items()}
    one = {name: x.double() if torch.is_tensor(x) and x.is_floating_point() else x
           for name,x in one.items()}
    q,k,v = (t[l:l+1].double() for t in (q, k, v))
    out,w = attention(q, k, v, causal=causal, window=window, **one)
    keys,values = (t.repeat_interleave(q.shape[1]//k.shape[1], 1) for t in (k, v))
    columns,options = {'q · k': q @ keys.mT},{}
    for name,option in (('scaled', 'scale'), ('capped', 'softcap'), ('+ bias', 'bias')):
        options[option] = one.get(option)
        columns[name] = attention_scores(q, keys, **options)
    see = AttentionMask(5, 6, causal=causal, window=window, mask=one.get('mask')).dense()
    columns |= {'masked': hide(columns['+ bias'], see), 'weight': w}
    return ({name: x[0,h,i] for name,x in columns.items()}, out[0,h,i], keys[0,h], values[0,h],
            q[0,h,i])

torch.manual_seed(0)
cases = {
    'plain': {}, 'causal': dict(causal=True), 'window': dict(window=(1,0)),
         'window, causal': dict(window=(2,None), causal=True),
    'mask': dict(mask=torch.eye(5, 6).bool() | (torch.arange(6) == 5)),
         'mask of keys': dict(mask=torch.arange(6) > 1),
    'mask of each head and layer': dict(mask=list(torch.rand(2, 4, 5, 6) > .3)),
         'all hidden': dict(mask=torch.arange(5)[:,None].expand(5, 6) > 2),
    'bias': dict(bias=torch.linspace(-2, 2, 30).view(5, 6), causal=True),
         'bias that hides': dict(bias=torch.eye(5, 6).log()),
    'cap and sinks': dict(softcap=2., sinks=torch.tensor([0., 3., -torch.inf, 1.])),
    'of each layer': dict(scale=[.1, 1.], softcap=[None, 3.], bias=[torch.randn(4, 1, 6), None]),
         'large': dict(scale=30.),
}

def check(seen, columns, out, keys, values, asks):
    "The tables of all steps against those of `chain`"
    products,w = keys*asks,columns['weight'][:,None]
    want = {'key': keys, 'product': products, 'value': torch.cat([w, values], 1),
            'sum': torch.cat([products.cumsum(1), products.sum(1, keepdim=True)], 1),
            'weight × value': torch.cat([w, w*values], 1)}
    for step,numbers in seen:
        heads,query,rows,feet = numbers_in(*numbers)
        assert [name for name,_ in rows] == words
        cells = [cells for _,cells in rows]
        if query: close([query[1][:8]], asks[None])
        if step == 'query': assert {x for row in cells for x in row} == {None}
        elif step in want: close(cells, want[step])
        elif step == 'output': close([feet['output'][1:]], out[None])
        else:
            if step == 'softmax':
                assert heads[-2:] == ['exp', 'weight']
                total,one = feet['sum'][-2:]
                close([[row[-2]/total if total else 0.] for row in cells], w)
                all_of = torch.tensor([[float(total > 0)]*2])
                close([[one, w.sum().item() + feet.get('sink', [0.])[-1]]], all_of)
                cells,heads = [row[:-2] + row[-1:] for row in cells],heads[:-2] + heads[-1:]
            close(cells, torch.stack([columns[name] for name in heads], 1))

@pytest.mark.parametrize('name', cases)
def test_every_number_of_every_step_is_that_of_attention(open_view, name):
    "Five queries, six keys, four query heads on two key heads, values narrower than keys"
    kw = cases[name]
    torch.manual_seed(1)
    q,k,v = 2*torch.randn(2,4,5,8),torch.randn(2,2,6,8),torch.randn(2,2,6,3)
    page = open_view(neuron_view(q, k, words[:5], words, v=v, **kw))
    for l,h,i in [(0,0,0), (1,1,3), (1,2,4), (0,3,2)][[*cases].index(name) % 2::2]:
        choose(page, layer=l, head=h, query=i)
        seen = page.evaluate(at_every_step % read)
        names = [step for step,_ in seen]
        assert names[:4] + names[-4:] == ['query', 'key', 'product', 'sum', 'softmax', 'value',
                                          'weight × value', 'output']
        check(seen, *chain(q, k, v, l, h, i, **kw))

def test_steps_that_change_nothing_are_left_out_of_buttons_and_formula(open_view):
    q,k,v = torch.randn(2,1,3,4),torch.randn(2,1,3,4),torch.randn(2,1,3,2)
    page = open_view(neuron_view(q, k, list('abc'), v=v, scale=[1., .5], softcap=[None, 2.],
                                 causal=True, stage='softmax'))
    assert steps(page) == ['query', 'key', 'product', 'sum', 'mask', 'softmax', 'value',
                           'weight × value', 'output']
    expect(page.locator('.formula')).to_have_text('oi = Σj softmaxj(Σe qie kje + ln Mij) vj')
    choose(page, layer=1)
    assert steps(page)[4:7] == ['scale', 'cap', 'mask']
    formula = 'oi = Σj softmaxj(cap(α Σe qie kje) + ln Mij) vj'
    expect(page.locator('.formula')).to_have_text(formula)
    press(page, 'cap')
    choose(page, layer=0)                         # has no cap: the view goes on with the weights
    expect(page.locator('[aria-current=step]')).to_have_text('softmax')
    page = open_view(neuron_view(q, k, list('abc'), sinks=torch.tensor([1.]),
                                 bias=torch.ones(3, 3)))
    assert steps(page) == ['query', 'key', 'product', 'sum', 'scale', 'bias', 'softmax']
    expect(page.locator('.formula')).to_have_text('wij = softmaxj(α Σe qie kje + bij ; z)')

def test_buttons_arrows_and_play_walk_the_steps_and_light_the_formula(open_view):
    q,k,v = torch.randn(1,1,3,4),torch.randn(1,1,3,4),torch.randn(1,1,3,2)
    page = open_view(neuron_view(q, k, list('abc'), v=v), kind='clock')
    now,lit = page.locator('.steps [aria-current=step]'),page.locator('.formula .lit')
    after,play = page.get_by_label('next step'),page.locator('.play')
    expect(now).to_have_text('product')
    expect(lit).to_have_text(['qie', 'kje'])
    for step,terms in (('sum', ['Σe']), ('scale', ['α ']), ('softmax', ['softmaxj']),
                       ('value', ['vj']), ('weight × value', ['vj']), ('output', ['oi', 'Σj'])):
        walk(page, (after, now, [step]))
        expect(lit).to_have_text(terms)
    expect(after).to_be_disabled()
    page.locator('.numbers').focus()
    names = steps(page)
    walk(page, *(('ArrowLeft', now, [step]) for step in names[-2::-1]))
    expect(lit).to_have_text(['qie'])
    expect(page.get_by_label('previous step')).to_be_disabled()
    walk(page, *(('ArrowRight', now, [step]) for step in names[1:]))
    page.clock.pause_at(page.evaluate('Date.now()') + 1)
    def later(ms): return lambda: page.clock.run_for(ms)
    walk(page, (play, now, ['query']),                  # from the end it begins anew
         (later(2000), play, ['Pause']), (lambda: None, now, ['key']), (play, play, ['Play']),
         (later(5000), now, ['key']), (play, play, ['Pause']), (later(30_000), now, ['output']))
    expect(play).to_have_text('Play')

def test_the_sentence_says_the_numbers_of_the_key_in_focus(open_view):
    q = torch.tensor([[[[1., 2.]]*2]])
    k = torch.tensor([[[[3., 1.], [-1., .5]]]])
    page = open_view(neuron_view(q, k, ['up', 'down'], v=k, query=0, scale=.5,
                                 bias=torch.full((2, 2), .25)))
    says,on = page.locator('.status'),page.locator('tr.on')
    expect(on).to_contain_text('up')                  # the largest weight
    for step,sentence in (('query', '“up” asks with its query, 2 numbers.'),
                          ('product', 'Neuron by neuron: 1.00 × 3.00 = 3.00 in neuron 0, the '
                                      'largest product of “up” and “up”.'),
                          ('sum', 'The 2 products of “up” and “up” add up to 5.00.'),
                          ('scale', '5.00 times 0.5000 is 2.50.'),
                          ('bias', '2.50 plus 0.25 is 2.75.'),
                          ('softmax', 'e to the power 2.75 − 2.75, the largest score, is 1.00; '
                                      'divided by the sum 1.08 it is the weight 92\u00a0%.'),
                          ('output', 'All weighted values add up to what “up” takes: its number 0 '
                                     'is 2.70.')):
        press(page, step)
        expect(says).to_have_text(sentence)
    page.locator('.numbers').focus()
    walk(page, ('ArrowDown', on, 'down'),
         (lambda: press(page, 'weight × value'), says,
          ['Weight times value: number 0 of “down” is 8\u00a0% × −1.00 = −0.08.']),
         (page.locator('tbody tr').first, '[aria-current=true] th', ['up']))

def test_of_many_numbers_the_largest_are_drawn_and_the_rest_is_summed(open_view):
    torch.manual_seed(0)
    q,k,v = torch.randn(1,1,4,300),torch.randn(1,1,4,300),torch.randn(1,1,4,200)
    page = open_view(neuron_view(q, k, list('abcd'), v=v, query=1, key=2))
    products = (k*q[:,:,1:2])[0,0].double()
    heads,query,rows,_ = grid(page)
    drawn = [int(e) for e in heads[:-1]]
    assert 8 <= len(drawn) <= 20 and heads[-1] == f'{300-len(drawn)} others'
    assert drawn == sorted(products[2].abs().topk(len(drawn)).indices.tolist())
    assert query[1][-1] is None
    rest = [e for e in range(300) if e not in drawn]
    close([cells for _,cells in rows],
          torch.cat([products[:,drawn], products[:,rest].sum(1, keepdim=True)], 1))
    expect(page.locator('.note')).to_have_text(f'{len(drawn)} of 300 neurons are drawn, those '
                                               f'with the largest products of c; '
                                               f'the last column adds the {len(rest)} others.')
    press(page, 'sum')
    heads,_,rows,_ = grid(page)
    close([[cells[-1]] for _,cells in rows], products.sum(1, keepdim=True))
    press(page, 'output')
    heads,_,rows,feet = grid(page)
    shown = [int(n) for n in heads[1:]]
    out = attention(q.double(), k.double(), v.double())[0][0,0,1]
    assert shown == sorted(out.abs().topk(len(shown)).indices.tolist())
    close([feet['output'][1:]], out[None,shown])
    expect(page.locator('.note')).to_have_text(f'{len(shown)} of 200 numbers are drawn, the '
                                               f'largest of the output.')

def test_largest_first_sorts_keys_by_weight_and_neurons_by_product(open_view):
    torch.manual_seed(0)
    q,k = torch.randn(1,1,6,8),torch.randn(1,1,6,8)
    page = open_view(neuron_view(q, k, words, query=3, causal=True))
    before = grid(page)
    page.get_by_label('largest first').check()
    heads,_,rows,_ = grid(page)
    w = attention(q, k, k, causal=True)[1][0,0,3]
    order = w.argsort(descending=True, stable=True)
    assert [name for name,_ in rows] == [words[j] for j in order]
    products = k[0,0]*q[0,0,3]
    best = products[w.argmax()].abs().argsort(descending=True)
    assert heads == [str(e) for e in best.tolist()]
    close([cells for _,cells in rows], products[order][:,best])
    page.get_by_label('largest first').uncheck()
    assert grid(page) == before

@pytest.mark.parametrize('family', short(['bert', 'llama'], ['bert', 'gpt2', 'llama']))
def test_the_weights_are_the_recorded_ones(family):
    "Of absolute places without a mask, with one, and of turned ones with shared keys"
    from transformers import AutoConfig, AutoModel
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                 vocab_size=50)
    if family == 'llama': sizes['num_key_value_heads'] = 2
    torch.manual_seed(0)
    model = AutoModel.from_config(AutoConfig.for_model(family, **sizes)).eval()
    for p in model.parameters(): p.data.mul_(6 if p.dim() > 1 else 1)     # large enough to see
    with torch.no_grad(), record(model) as r: model(torch.arange(3, 9)[None])
    for layer,head,i in ((1,3,4), (0,2,5), (0,0,0)):
        view = neuron_view(**r.neurons(), tokens=words, layer=layer, head=head, query=i)
        *_,scores,weights,_ = _shown(view._data)
        torch.testing.assert_close(weights, r.layers[layer].weights[0,head,i], atol=1e-5, rtol=1e-4)
        assert (scores == -math.inf).tolist() == [family != 'bert' and j > i for j in range(6)]

@pytest.mark.parametrize('S', short([600], [600, 30_000]))
def test_of_many_keys_those_in_sight_are_elements(open_view, S):
    best = 2*S//3
    q,k = torch.zeros(2,1,1,S,4)
    q[0,0,-1] = k[0,0,best] = 4.
    page = open_view(neuron_view(q, k, [f'w{n}' for n in range(S)], causal=True, stage='softmax'))
    on,names = page.locator('tr.on'),page.locator('tbody th')
    expect(on.locator('td').last).to_have_text('100\u00a0%')         # the largest weight, far down
    expect(names).to_have_count(100)
    page.locator('.numbers').focus()
    for down in (0, 25):                                             # out of what was in sight
        for _ in range(down): page.keyboard.press('ArrowDown')
        expect(on).to_be_in_viewport()
        expect(on.locator('th')).to_have_text([f'w{best+down}'])
    top = 'e => { e.scrollTop = 0 }'
    page.locator('.numbers').evaluate(top)
    expect(names.first).to_have_text('w0')
    choose(page, query=10)
    page.locator('.numbers').evaluate(top)
    for n,masked in ((11, '−∞'), (10, '0.00')):
        expect(page.locator('tbody tr').nth(n).locator('td').nth(2)).to_have_text(masked)
