"The view of steps in a real browser: what it counts is what Python counts"
import pytest
from attention_nb.views.cache_steps import _counted, cache_view
from helpers.looks import expect, hostile, hostile_title, words

def shown(page):
    "The numbers of the table, with a cache and without"
    rows = page.locator('.counts tbody tr').evaluate_all(
        "rows => rows.map(r => [...r.cells].slice(1).map(c => +c.textContent.replaceAll(',', '')))")
    return [tuple(column) for column in zip(*rows)]

def squares(page):
    "Of each row of the triangle what its squares say"
    return page.locator('.cells tbody tr').evaluate_all(
        "rows => rows.map(r => [...r.cells].map(c => c.classList[0] === 'now' ? '' : "
        "c.classList[0] ?? ''))")

def triangle(L, t, keeps):
    def square(i, j): return '' if i >= t or j > i else 'read' if keeps and j < i else 'made'
    return [[square(i, j) for j in range(L)] for i in range(L)]

def check(page, t, keeps, token_bytes=23_040):
    assert shown(page) == [_counted(t, token_bytes, True), _counted(t, token_bytes, False)]
    assert squares(page) == triangle(6, t, keeps)
    says = page.locator('.status').inner_text()
    assert says.startswith(f'Step {t}, {words[t-1]}: ')
    assert (f'{(t-1)*token_bytes:,} bytes' in says) == keeps
    assert page.locator('.grid').get_attribute('aria-label') == says

def test_every_step_counts_what_python_counts(open_view):
    page = open_view(cache_view(words, step=1))
    check(page, 1, True)
    back,after = (page.get_by_role('button', name=name) for name in ('back', 'next word'))
    expect(back).to_be_disabled()
    for t in range(2, 7):
        after.click()
        check(page, t, True)
    expect(after).to_be_disabled()
    page.get_by_label('with a cache').uncheck()
    check(page, 6, False)
    back.click()
    check(page, 5, False)
    page.get_by_label('step', exact=True).fill('3')
    check(page, 3, False)
    page.get_by_label('with a cache').check()
    check(page, 3, True)

def test_the_keyboard_steps_and_other_models_weigh_otherwise(open_view):
    page = open_view(cache_view(words, layers=12, n_kv_heads=12, step=4, keeps=False))
    check(page, 4, False, 36_864)
    page.get_by_role('button', name='back').focus()
    page.keyboard.press('ArrowRight')
    check(page, 5, False, 36_864)
    page.keyboard.press('ArrowLeft')
    page.keyboard.press('Enter')
    check(page, 3, False, 36_864)
    slider = page.get_by_label('step', exact=True)
    slider.focus()
    page.keyboard.press('ArrowRight')                   # once, though both could hear it
    check(page, 4, False, 36_864)
    expect(slider).to_have_attribute('aria-valuetext', f'4, {words[3]}')

@pytest.mark.parametrize('tokens', [6, 24])
@pytest.mark.parametrize('width', [390, 1400])
def test_nothing_is_wider_than_the_page(browser, tmp_path, width, tokens):
    page = browser.new_page(viewport=dict(width=width, height=800), has_touch=width == 390)
    page.goto(cache_view((words*4)[:tokens]).save(tmp_path/'x.html').as_uri())
    expect(page.locator('[data-ready=yes]')).to_be_attached()
    assert page.evaluate('document.documentElement.scrollWidth <= innerWidth')
    boxes = page.locator('input, button, .grid, .counts').evaluate_all(
        'es => es.map(e => e.getBoundingClientRect().right)')
    assert boxes and max(boxes) <= width
    page.close()

def test_a_finger_finds_the_buttons(browser, tmp_path):
    page = browser.new_page(viewport=dict(width=390, height=800), has_touch=True, is_mobile=True)
    page.goto(cache_view(words, step=2).save(tmp_path/'x.html').as_uri())
    for name in ('back', 'next word'):
        button = page.get_by_role('button', name=name)
        assert button.bounding_box()['height'] >= 44
    page.get_by_role('button', name='next word').tap()
    check(page, 3, True)
    page.close()

def test_hostile_words_do_nothing(open_view):
    from attention_nb.recording.inputs import readable
    page = open_view(cache_view(hostile[:24], title=hostile_title))
    assert page.locator('.cells th').all_text_contents() == [readable(t) for t in hostile[:24]]
    assert page.evaluate('window.hacked') is None
    assert page.evaluate('document.documentElement.scrollWidth <= innerWidth')
