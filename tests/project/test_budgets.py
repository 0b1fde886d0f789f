"Every page keeps its budgets (nbs/_sphinx/rules.py)"
import pytest
import rules
from helpers.book import cells, name_of, names, notebooks

@pytest.mark.parametrize('path', notebooks, ids=name_of)
def test_a_page_keeps_within_its_budgets(path):
    found = rules.budget_problems(cells(name_of(path)), name_of(path), names)
    over = [f'{which}: {text}' for which,text in found]
    assert not over, '\n'.join(['', *over])
