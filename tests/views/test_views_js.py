"The scripts of the views: short files, narrow lines, and no page gets what it does not need"
import re
import pytest
from attention_nb.views.page import _bare, _joined, _parts
from helpers import root

scripts = sorted((root/'attention_nb'/'views_js').glob('*'))
worker = sorted((root/'attention_nb'/'live_js').glob('*'))

@pytest.mark.parametrize('path', scripts + worker, ids=lambda p: p.name)
def test_a_script_is_short_and_narrow(path):
    lines = path.read_text(encoding='utf-8').splitlines()
    assert len(lines) <= 200 and max(map(len, lines)) <= 100
    # a string over several lines loses its indentation
    assert not [l for l in lines if l.count('`') % 2]

def test_a_page_gets_no_comments_and_no_indentation():
    text = '// why\nf();\n\n  // so\n  /* a */\n  g("// x");  // y\n'
    assert _bare(text) == 'f();\ng("// x");  // y\n'
    assert not [l for l in _joined('model', 'js').splitlines() if l.startswith((' ', '//'))]

def test_every_file_belongs_to_a_view_and_every_view_has_its_function():
    used = {'look', 'common', 'frame', 'begin'}.union(*_parts.values())
    assert {p.stem for p in scripts} == used
    for kind in _parts: assert re.search(rf'^views\.{kind} = ', _joined(kind, 'js'), re.M)

def test_a_page_gets_the_scripts_of_its_kind_only():
    for kind,names in _parts.items():
        others = {n for other in _parts.values() for n in other} - set(names)
        for p in scripts:
            got = _bare(p.read_text(encoding='utf-8')) in _joined(kind, p.suffix[1:])
            assert got == (p.stem not in others)
