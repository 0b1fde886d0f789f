"The decoder that guesses letters in the page: its worker against Python, and what a reader does"
import base64, re
import pytest, torch
from helpers.looks import until

texts = ['the ship', 'a', '', 'o, what a rogue and peasant slave am i! is it not monstrous that',
         'first line\nsecond', 'to be, or not to be: that is the question\nwhether ' * 2]

@pytest.fixture(scope='module')
def guess(browser, tmp_path_factory):
    "Write a decoder, and let the worker's script guess by it"
    from attention_nb.figures.browser_model import _worker
    from attention_nb.figures.next_letter import write_letters
    page,folder = browser.new_page(),tmp_path_factory.mktemp('letters')
    page.add_script_tag(content=_worker())
    def f(model, letters, text, **options):
        data = base64.b64encode((folder/write_letters(folder, model, letters)).read_bytes())
        return page.evaluate("""([data, text, options]) => {
            const model = decoder(Uint8Array.from(atob(data), c => c.charCodeAt(0)).buffer)
            const {p, read, weights} = guess(model, text, options)
            return {p: [...p], read, weights: weights.map(l => l.map(w => [...w]))}}""",
            [data.decode(), text, options])
    yield f
    page.close()

def decoder():
    "A decoder of the page's kind with large weights, as they are in the file, and its letters"
    from attention_nb.simple.decoder import SimpleDecoder
    torch.manual_seed(0)
    model = SimpleDecoder(36, 32, 2, n_heads=4, n_kv_heads=2, d_ff=48)
    for p in model.parameters(): p.data = (p.data + .3*torch.randn_like(p)).half().float()
    return model, "\n !',-.:;?abcdefghijklmnopqrstuvwxyz"

@pytest.mark.parametrize('text', texts)
def test_the_worker_guesses_what_python_does(guess, text):
    from attention_nb.figures.next_letter import next_letters
    model,letters = decoder()
    found = guess(model, letters, text)
    assert ''.join(found['read']) == (text or '\n')[-64:]
    want = next_letters(model, letters, text or '\n')
    assert want.max() > .1 and (torch.tensor(found['p']) - want).abs().max() < 1e-4
    assert all(abs(sum(w) - 1) < 1e-5 for layer in found['weights'] for w in layer)

def test_heads_that_are_off_temperature_and_unknown_letters(guess):
    from attention_nb.figures.next_letter import next_letters
    model,letters = decoder()
    text = 'the ship'
    got = guess(model, letters, text, temperature=2)['p']
    log = next_letters(model, letters, text).log()/2
    assert (torch.tensor(got) - log.softmax(-1)).abs().max() < 1e-4
    got = guess(model, letters, text, without=[[1,2]])['p']
    heads = model.blocks[1].heads
    heads.out_proj.weight.data[:,2*heads.E:3*heads.E] = 0
    want = next_letters(model, letters, text)
    assert (torch.tensor(got) - want).abs().max() < 1e-4
    read = guess(model, letters, 'Crème  brûlée 7€ — <b>')['read']
    assert ''.join(read) == 'creme brulee b '

def bars(page):
    "Letters and percentages of the panel"
    return page.locator('.next-letter li').all_inner_texts()

@pytest.mark.parametrize('width', [1400, 390])
def test_the_first_page_guesses_and_writes_on(browser, address, width):
    page,late = browser.new_page(viewport=dict(width=width, height=900)),[]
    page.route('**/bert-*', lambda route: late.append(route))      # the picture's model comes late
    page.goto(f'{address}/index.html')
    panel = page.locator('.next-letter')
    until(lambda: len(bars(page)) == 5)
    shares = [int(re.search(r'(\d+)\s*%', text)[1]) for text in bars(page)]
    assert shares == sorted(shares, reverse=True) and 20 < sum(shares) <= 102
    stage = page.frame_locator('iframe[title^="Arcs"]')
    stage.get_by_role('option', name='wanted').click()
    until(lambda: panel.locator('q').inner_text().endswith('it wanted'))
    stage.get_by_role('button', name='change the sentence').click()
    field = stage.get_by_role('textbox')
    field.fill('Where is the que')
    until(lambda: bars(page)[0].startswith('e') and panel.locator('q').inner_text()
          .endswith('is the que'))
    panel.get_by_role('button', name='write on').click()
    own = panel.locator('.next-text b')
    until(lambda: own.count() and len(own.inner_text()) >= 3 and late)
    late[0].continue_()
    stage.get_by_role('option', name='que').wait_for()         # it has read the sentence
    until(lambda: own.count() and len(own.inner_text()) >= 5)
    panel.get_by_role('button', name='stop').click()
    until(lambda: panel.get_by_role('button', name='write on').count() == 1)
    page.close()

def test_play_shows_what_a_head_does(browser, address):
    page = browser.new_page()
    page.goto(f'{address}/play.html')
    until(lambda: len(bars(page)) == 5)
    heads = page.locator('.next-heads button')
    assert heads.count() == 8
    before = bars(page)
    for n in range(8): heads.nth(n).click()
    until(lambda: bars(page) != before and page.locator('.next-letter .was').count() == 5)
    for n in range(8): heads.nth(n).click()
    until(lambda: bars(page) == before and page.locator('.next-letter .was').count() == 0)
    page.locator('.next-letter input').fill('2')
    until(lambda: bars(page) != before)
    page.close()
