"The command as a program: on a real terminal, in a pipe, and what its page says of it"
import json, re, sys
import pytest
from attention_nb.views.command import _parser, main
from helpers import root

def test_at_a_terminal_it_shows_its_help_asks_and_draws_a_bar(tmp_path):
    pexpect = pytest.importorskip('pexpect', reason='NO TERMINAL: this system has none to make')
    (tmp_path/'old.svg').write_text('work')
    (tmp_path/'lines.txt').write_text('one line\nand another\n')
    code = """import runpy, sys
for argv in (['--help'], ['time flies', '--no-open', '--out', 'old.svg'],
             ['--file', 'lines.txt', '--scores', 'scores.PARQUET']):
    sys.argv = ['attention-view', *argv]
    try: runpy.run_module('attention_nb', run_name='__main__')
    except SystemExit as e:
        if e.code: raise"""
    program = pexpect.spawn(sys.executable, ['-c', code], cwd=tmp_path, encoding='utf-8',
                            timeout=240, dimensions=(24, 80))
    program.expect_exact('old.svg is there already. Replace it? [y/N]')
    assert '--scores' in program.before and 'arning' not in program.before
    program.sendline('y')
    program.expect(pexpect.EOF)
    program.close()
    assert program.exitstatus == 0 and '2/2' in program.before, program.before
    assert (tmp_path/'old.svg').read_text().startswith('<?xml')
    assert {p.name for p in tmp_path.iterdir()} == {'old.svg', 'lines.txt', 'scores.PARQUET'}
    import pyarrow.parquet as parquet
    table = parquet.read_table(tmp_path/'scores.PARQUET')
    assert table.num_rows == 2*72 and table['tokens'].to_pylist()[::72] == [4, 4]

def test_without_pyarrow_nothing_is_loaded_before_the_error(tmp_path, monkeypatch, capsys):
    import attention_nb.views.command as c, importlib.util
    (tmp_path/'lines.txt').write_text('one line')
    monkeypatch.setattr(c, 'open_model', lambda name, head: pytest.fail('a model is loaded'))
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: name != 'pyarrow' and real(name))
    assert main(['--file', str(tmp_path/'lines.txt'), '--scores', str(tmp_path/'a.parquet')]) == 1
    assert 'attention_nb[glove]' in capsys.readouterr().err and not (tmp_path/'a.parquet').exists()

def test_the_page_and_the_help_name_the_same_options():
    options = {o for a in _parser()._actions for o in a.option_strings if o.startswith('--')}
    for a in _parser()._actions: assert a.help, a.option_strings
    cells = json.loads((root/'nbs'/'views/command.ipynb').read_text(encoding='utf-8'))['cells']
    prose = '\n'.join(''.join(c['source']) for c in cells if c['cell_type'] == 'markdown')
    named = set(re.findall(r'(?<!\w)--[a-z][a-z-]*', prose))
    assert named <= options, named-options
    assert options-named <= {'--help', '--head', '--average', '--rollout', '--title', '--pair',
                             '--version'}, options-named
