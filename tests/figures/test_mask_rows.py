"The square of cells in a real browser: rows share themselves out as torch says"
import torch
from attention_nb.figures.mask_rows import _weights, mask_view
from attention_nb.kernels.mask import causal_mask
from helpers.looks import close, expect, walk

tokens = 'i must go back'.split()
scores = (2*torch.randn(4, 4, generator=torch.Generator().manual_seed(0))).round(decimals=3)

def row(page, mask, i):
    "What the page says of row `i` is what torch says"
    close(page.locator('.status').get_attribute('title').split(),
          _weights(scores.double(), mask)[i])

def test_a_click_hides_a_key_and_its_row_is_shared_out(open_view):
    page,mask = open_view(mask_view(scores, tokens)),causal_mask(4)
    cells,status = page.locator('.mask button'),page.locator('.status')
    row(page, mask, 3)
    for i,j in ((3, 0), (2, 3), (2, 0), (3, 0)):
        mask[i,j] = ~mask[i,j]
        cells.nth(4*i+j).click()
        expect(cells.nth(4*i+j)).to_have_attribute('aria-pressed', str(bool(mask[i,j])).lower())
        row(page, mask, i)
    assert (cells.evaluate_all('all => all.map(c => c.ariaPressed === "true")')
            == mask.flatten().tolist())
    walk(page, (lambda: cells.first.click(), status, 'i may see no key: its weights are 0.'))
    page.get_by_role('button', name='all visible').click()
    expect(status).to_contain_text('i may see 4 of 4 keys')
    page.get_by_role('button', name='causal').click()
    expect(status).to_have_text('i may see 1 of 4 keys: i 100\u00a0%.')
    page.get_by_role('button', name='reset').click()
    row(page, causal_mask(4), 3)

def test_arrows_lead_from_cell_to_cell(open_view):
    page = open_view(mask_view(scores, tokens))
    cells = page.locator('.mask button')
    cells.first.focus()
    for key,at in (('ArrowDown', 4), ('ArrowRight', 5), ('ArrowUp', 1), ('ArrowLeft', 0),
                   ('ArrowLeft', 0)):
        page.keyboard.press(key)
        expect(cells.nth(at)).to_be_focused()
        assert cells.evaluate_all('all => all.filter(c => c.tabIndex === 0).length') == 1
    page.keyboard.press('Enter')
    expect(cells.first).to_have_attribute('aria-pressed', 'false')
