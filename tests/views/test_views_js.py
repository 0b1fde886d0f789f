"The scripts of the views: short files, narrow lines, and no page gets what it does not need"
import re
import pytest
from attention_nb.views.page import _bare, _join_scripts, _kinds
from attention_nb.figures.browser_model import _scripts
from helpers import root
from pages import import_figures

scripts = sorted(p for folder in ('views_js', 'figures_js')
                 for p in (root/'attention_nb'/folder).glob('*'))
worker = sorted((root/'attention_nb'/'live_js').glob('*'))

import_figures()
# kind -> its scripts
kinds = {k: kind.scripts for k,kind in _kinds.items()} | {'live': _scripts}
def name(path): return f'{path.parent.name}/{path.stem}'

@pytest.mark.parametrize('path', scripts + worker, ids=lambda p: p.name)
def test_a_script_is_short_and_narrow(path):
    lines = path.read_text(encoding='utf-8').splitlines()
    assert len(lines) <= 200 and max(map(len, lines)) <= 100
    # a string over several lines loses its indentation
    assert not [l for l in lines if l.count('`') % 2]

def test_a_page_gets_no_comments_and_no_indentation():
    text = '// why\nf();\n\n  // so\n  /* a */\n  g("// x");  // y\n'
    assert _bare(text) == 'f();\ng("// x");  // y\n'
    lines = _join_scripts(kinds['model'], 'js').splitlines()
    assert not [l for l in lines if l.startswith((' ', '//'))]

def test_every_file_belongs_to_a_view_and_every_view_has_its_function():
    used = {f'views_js/{n}' for n in ('look', 'common', 'frame', 'begin')}.union(*kinds.values())
    assert {name(p) for p in scripts} == used
    for kind,names in kinds.items():
        assert re.search(rf'^views\.{kind} = ', _join_scripts(names, 'js'), re.M)

def test_a_page_gets_the_scripts_of_its_kind_only():
    for names in kinds.values():
        others = {n for other in kinds.values() for n in other} - set(names)
        for p in scripts:
            got = _bare(p.read_text(encoding='utf-8')) in _join_scripts(names, p.suffix[1:])
            assert got == (name(p) not in others)
