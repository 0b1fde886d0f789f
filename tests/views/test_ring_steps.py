"The view of a ring in a real browser: each step shows the pairs and the waiting that Python counts"
import pytest
from attention_nb.views.ring_steps import pairs_of_steps, ring_view
from helpers.looks import expect, fits, hostile, hostile_title

orders = {'in order': [0,0,0,1,1,1,2,2], 'early and late': [0,1,2,2,1,0,0,2]}

def view(**kw): return ring_view(orders, **(dict(step=0) | kw))

def check(page, order, step):
    owner = [*orders.values()][order]
    at = [(i, j) for i in range(len(owner)) for j in range(i+1)]
    want = {(i, j): 'now' if (s := (owner[i]-owner[j]) % 3) == step-1 else
            'done' if s < step else 'later' for i,j in at}
    cells = page.locator('.pairs rect').evaluate_all(
        "cells => cells.map(c => [c.getAttribute('y')/10 - 2, c.getAttribute('x')/10 - 2,"
        " c.getAttribute('class')])")
    assert {(round(i), round(j)): kind for i,j,kind in cells} == want
    steps = pairs_of_steps(owner, 3)
    whole = max(sum(map(max, pairs_of_steps(o, 3))) for o in orders.values())
    widths = page.locator('.lanes rect').evaluate_all("r => r.map(r => +r.getAttribute('width'))")
    want = [max(0, 284*n/whole - .8) for pairs in steps[:step] for n in pairs]
    assert widths == pytest.approx(want)
    says = page.locator('.status').inner_text()
    assert page.locator('.rings').get_attribute('aria-label') == says
    if not step: return
    last,so_far = steps[step-1],sum(map(max, steps[:step]))
    waits = sum(n < max(last) for n in last)
    idle = round(100*(1 - sum(map(sum, steps[:step]))/(3*so_far)))
    named = f'{waits or "no"} process{"" if waits == 1 else "es"} wait{"s" if waits == 1 else ""}'
    assert says == (f'Step {step} takes as long as {max(last)} pairs, and {named}. The steps so '
                    f"far take {so_far}; {idle} % of everybody's time was waiting.")

def test_every_step_counts_what_python_counts(open_view):
    page = open_view(view())
    assert page.locator('.status').inner_text() == 'Nothing is computed yet.'
    check(page, 0, 0)
    back,after = (page.get_by_role('button', name=name) for name in ('back', 'next step'))
    expect(back).to_be_disabled()
    for step in (1, 2, 3):
        after.click()
        check(page, 0, step)
    expect(after).to_be_disabled()
    page.get_by_label('order').select_option('1')
    check(page, 1, 3)
    page.get_by_label('steps', exact=True).fill('1')
    check(page, 1, 1)
    after.focus()
    page.keyboard.press('ArrowRight')
    check(page, 1, 2)

def test_it_begins_at_the_step_that_is_asked_for(open_view):
    check(open_view(view(step=2)), 0, 2)
    check(open_view(view(step=None)), 0, 2)

@pytest.mark.parametrize('width', [390, 1400])
def test_nothing_is_wider_than_the_page(browser, tmp_path, width):
    assert fits(browser, view(), tmp_path/'x.html', width)

def test_hostile_names_do_nothing(open_view):
    page = open_view(ring_view({name: [0,1] for name in hostile[:2]}, title=hostile_title))
    assert page.locator('select option').count() == 2
    assert page.evaluate('window.hacked') is None
