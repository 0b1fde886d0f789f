"A word to type in a real browser: its merges are those of Python"
from attention_nb.figures.merge_steps import _steps, merges_view
from attention_nb.simple.tokenizer import learn_merges_naive
from helpers.looks import expect

text = 'low lower lowest newest newer wide wider widest slow slower now'
merges,_ = learn_merges_naive({tuple(f' {word}'): 1 for word in text.split()}, 20)

def follows(page, word, step):
    steps = _steps(word, merges)
    expect(page.locator('.status')).to_have_attribute(
        'title', ' '.join('' if rank is None else str(rank) for rank,_ in steps))
    rows = page.locator('.merges li').evaluate_all(
        'rows => rows.map(r => [...r.children].slice(1).map(e => e.textContent))')
    assert rows == [[p.replace(' ', '·') for p in pieces] for _,pieces in steps[:step+1]]

def test_every_word_is_joined_as_python_joins_it(open_view):
    page = open_view(merges_view(merges, ' lowest'))
    on = page.get_by_role('button', name='next merge')
    follows(page, ' lowest', 0)
    for word in (' newest', 'wow', ' slowest lowering', 'x', '', ' \U0001f600é'):
        page.locator('input').fill(word)
        follows(page, word, 0)
        for step in range(1, len(_steps(word, merges))):
            on.click()
            follows(page, word, step)
        expect(on).to_be_disabled()
        expect(page.locator('.status')).to_contain_text('No merge fits.')
    page.get_by_role('button', name='reset').click()
    follows(page, ' lowest', 0)

def test_arrows_step_but_not_while_one_types(open_view):
    page = open_view(merges_view(merges, ' lowest', step=1))
    page.locator('input').focus()
    page.keyboard.press('ArrowRight')
    follows(page, ' lowest', 1)
    page.get_by_role('button', name='next merge').focus()
    page.keyboard.press('ArrowRight')
    follows(page, ' lowest', 2)

def test_a_typed_word_is_only_text(open_view):
    page = open_view(merges_view([('<','b'), ('<b','>')], '<b>', step=2))
    expect(page.locator('.piece.new').last).to_have_text('<b>')
    page.locator('input').fill('<img src=x onerror=a=1>')
    assert page.locator('.merges img').count() == 0
