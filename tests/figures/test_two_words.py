"Two words in a real browser: what follows from twelve numbers is what torch says"
import torch
from attention_nb.figures.two_words import _steps, two_words_view
from helpers.looks import close, expect

roles = dict(Wq='query', Wk='key', Wv='value')
Wq,Wk,Wv = torch.tensor([[[0.,1.],[0.,0.]], [[1.,0.],[0.,2.]], [[10.,0.],[5.,10.]]])

def follows(page, *matrices):
    said = page.locator('.status').get_attribute('title').split()
    close(said, torch.cat([t.flatten() for t in _steps(torch.eye(2), *matrices).values()]))

def test_all_that_follows_is_what_torch_says(open_view):
    page = open_view(two_words_view(['ship','crew'], Wq, Wk, Wv))
    follows(page, Wq, Wk, Wv)
    expect(page.locator('.status')).to_have_text(
        'ship takes 20\u00a0% from ship and 80\u00a0% from crew: (5.98, 8.04). '
        'crew takes 50\u00a0% from ship and 50\u00a0% from crew: (7.50, 5.00).')
    now = {name: W.clone() for name,W in zip(roles, (Wq, Wk, Wv))}
    for name,i,j,value in (('Wq', 1, 0, 3.), ('Wk', 0, 0, -2.5), ('Wv', 1, 1, 0.),
                           ('Wq', 0, 1, 0.)):
        now[name][i,j] = value
        page.get_by_label(f'{roles[name]} matrix, row {i+1}, column {j+1}').fill(f'{value:g}')
        follows(page, *now.values())
    cells = page.locator('.counts tbody tr').evaluate_all(
        'rows => rows.map(r => [...r.cells].map(c => c.textContent))')
    assert [c[0] for c in cells] == ['query','key','value','scores','weights','output']

def test_what_is_no_number_changes_nothing_and_reset_goes_back(open_view):
    page = open_view(two_words_view(['ship','crew'], Wq, Wk, Wv))
    field = page.get_by_label('query matrix, row 1, column 2')
    field.fill('')
    follows(page, Wq, Wk, Wv)
    field.fill('500')                                   # held at the largest
    follows(page, torch.tensor([[0.,20.],[0.,0.]]), Wk, Wv)
    page.get_by_role('button', name='reset').click()
    follows(page, Wq, Wk, Wv)
    expect(field).to_have_value('1')
