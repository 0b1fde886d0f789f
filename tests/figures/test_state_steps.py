"One matrix of pairs in a real browser: writes and readings are what torch says"
import pytest, torch
from attention_nb.figures.state_steps import _board, state_view
from helpers import short
from helpers.looks import close, expect, press, walk

keys,values = 'ship crew cook captain parrot'.split(),'sea deck kitchen cabin mast'.split()
k = torch.cat([torch.eye(4), torch.full((1, 4), .5)])
v = torch.tensor([[-1.,1,-1,-1,1,-1], [1,-1,-1,-1,1,1], [1,-1,-1,1,1,-1], [1,-1,1,-1,1,-1],
                  [1,1,-1,1,-1,-1]])

def view(**kw): return state_view(keys, values, k, v, **kw)

def follows(page, k, v, writes, delta):
    "Matrix, readings and errors are torch's"
    S,read,away = _board(k.double(), v.double(), writes, delta)
    last = dict(writes)
    errors = [(away[i,last[i]]/v[last[i]].norm()).item() if i in last else 0 for i in range(len(k))]
    close(page.locator('.status').get_attribute('title').split(),
          torch.cat([S.flatten(), read.flatten(), torch.tensor(errors).double()]))

def write(page, i, j):
    page.locator('.keys button').nth(i).click()
    page.get_by_label('as').select_option(str(j))
    page.get_by_role('button', name='write', exact=True).click()

def test_a_fifth_key_blurs_and_the_rule_can_be_changed(open_view):
    page,pairs = open_view(view(written=4)),[[n, n] for n in range(5)]
    status,cards = page.locator('.status'),page.locator('.keys button')
    def button(name): return page.get_by_role('button', name=name)
    follows(page, k, v, pairs[:4], False)
    shown = page.locator('.memory tbody tr').evaluate_all(
        "rows => rows.map(r => [r.cells[0].textContent, r.cells[1].textContent])")
    assert shown == [['1.00','−1.00'], *[['0.00','1.00']]*3, ['reads','−1.00'], ['sea','−1.00']]
    expect(cards.nth(4)).to_contain_text('not written')
    walk(page, (cards.nth(4), status,
                'parrot is not written, but reads something equally near to deck, kitchen and '
                'cabin: its key is like that of ship, crew, cook and captain. 4 of 4'),
         (button('write the next pair'), status,
          'parrot was written as mast, but reads back as kitchen, with an error of 1.22: the sum '
          'has mixed sea, deck, kitchen and cabin into it. 4 of 5 written keys read back right.'),
         (cards.first, status, 'ship reads back as sea, with an error of 0.50: the sum has mixed'))
    follows(page, k, v, pairs, False)
    expect(button('write the next pair')).to_be_disabled()
    expect(cards.nth(4)).to_have_text('parrot→ kitchen✗ error 1.22')
    walk(page, (button('delta rule'), status,
                'ship reads back as sea, with an error of 0.84: writing parrot has changed it. 4 '),
         (cards.nth(4), status, 'parrot reads back as mast, without error.'),
         (cards.nth(2), status, 'cook was written as kitchen, but reads back as mast, with an '
                                'error of 0.84: writing parrot has changed it.'))
    follows(page, k, v, pairs, True)
    expect(button('delta rule')).to_have_attribute('aria-pressed', 'true')
    walk(page, (button('reset'), status, 'ship reads back as sea, without error. 4 of 4'))
    follows(page, k, v, pairs[:4], False)

def test_a_key_is_written_again_by_keyboard(open_view):
    page,status = open_view(view()),'.status'
    page.get_by_role('button', name='write the next pair').focus()
    walk(page, ('Enter', status, 'ship reads back as sea, without error. 1 of 1'))
    expect(page.locator('.keys button').nth(1)).to_have_text('crew–not written')
    page.get_by_label('as').focus()
    press(page, 'm')                                         # mast
    page.get_by_role('button', name='write', exact=True).focus()
    walk(page, ('Enter', status, 'ship was written as mast, but reads something equally near to '
                                 'sea and mast, with an error of 1.00: the sum has mixed sea into'))
    follows(page, k, v, [[0, 0], [0, 4]], False)
    page.get_by_role('button', name='delta rule').focus()
    walk(page, ('Enter', status, 'ship reads back as mast, without error. 1 of 1 written keys'))
    follows(page, k, v, [[0, 0], [0, 4]], True)

@pytest.mark.parametrize('seed', short([0], range(5)))
def test_any_writes_of_any_vectors(open_view, seed):
    draw = torch.Generator().manual_seed(seed)
    a = torch.nn.functional.normalize(torch.randn(5, 3, generator=draw), dim=-1)
    b,writes = torch.randn(5, 8, generator=draw),[[n, n] for n in range(2)]
    page = open_view(state_view(keys, values, a, b, written=2, read=1, delta=True))
    for i,j in torch.randint(5, (6, 2), generator=draw).tolist():
        write(page, i, j)
        writes.append([i, j])
        for name,delta in (('sum', False), ('delta rule', True)):
            page.get_by_role('button', name=name, exact=True).click()
            follows(page, a, b, writes, delta)
