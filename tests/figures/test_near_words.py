"Words near a word in a real browser: its neighbours are those of torch"
import torch
from attention_nb.figures.near_words import _nearest, near_view
from attention_nb.views.page import unpack_floats
from helpers.looks import close, expect

words = 'ship boat crew sailor to and my go'.split()
vectors = torch.randn(8, 5, generator=torch.Generator().manual_seed(0))
view = near_view(words, vectors, shown=4)
x = unpack_floats(view._data['xdata'], 8, 5).double()

def follows(page, word):
    near = _nearest(x, words.index(word), 4)
    expect(page.locator('.bars tbody button')).to_have_text([words[n] for n,_ in near])
    close(page.locator('.status').get_attribute('title').split(),
          torch.tensor([cos for _,cos in near]))

def test_a_word_is_typed_or_clicked(open_view):
    page = open_view(view)
    field,status = page.locator('input'),page.locator('.status')
    follows(page, 'ship')
    for typed in ('crew', ' Go '):
        field.fill(typed)
        follows(page, typed.strip().lower())
    second = words[_nearest(x, words.index('go'), 4)[1][0]]
    page.locator('.bars tbody button').nth(1).click()
    expect(field).to_have_value(second)
    follows(page, second)
    for typed,says in (('whale', 'whale is not among the 8 words of this page.'),
                       ('', 'An empty word is not among the 8 words of this page.')):
        field.fill(typed)
        expect(status).to_have_text(says)
        expect(page.locator('.bars')).to_be_hidden()
    page.get_by_role('button', name='reset').click()
    follows(page, 'ship')
