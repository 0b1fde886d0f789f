"The command as a program: on a real terminal, in a pipe, and what its page says of it"
import json, os, re, select, subprocess, sys
import pytest
from attention_nb.views.command import _parser, main
from helpers import root

def at_terminal(code, answer, cwd):
    """Run Python at a terminal of its own where `answer` is typed after the question; exit code and
    what is seen"""
    pty = pytest.importorskip('pty', reason='NO TERMINAL: this system has none to make')
    import termios
    ours,theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with subprocess.Popen([sys.executable, '-c', code], cwd=cwd, stdin=theirs, stdout=theirs,
                          stderr=theirs) as p:
        os.close(theirs)
        seen = b''
        while True:
            if not select.select([ours], [], [], 240)[0]:
                p.kill()
                pytest.fail(f'no answer: {seen!r}')
            try: more = os.read(ours, 1000)
            except OSError: break                                  # the program has ended
            if not more: break
            seen += more
            if answer and b'[y/N]' in seen:
                os.write(ours, answer.encode())
                answer = ''
        os.close(ours)
    return p.returncode, seen.decode()

def test_a_person_at_a_terminal_is_asked_and_sees_a_bar(tmp_path):
    (tmp_path/'old.svg').write_text('work')
    (tmp_path/'lines.txt').write_text('one line\nand another\n')
    code,seen = at_terminal("""import sys; from attention_nb.views.command import main
sys.exit(main(['time flies', '--no-open', '--out', 'old.svg'])
         or main(['--file', 'lines.txt', '--scores', 'scores.PARQUET']))""", 'y\n', tmp_path)
    assert code == 0 and 'old.svg is there already. Replace it? [y/N]' in seen, seen
    assert (tmp_path/'old.svg').read_text().startswith('<?xml')
    assert '2/2' in seen and 'scores.PARQUET' in seen, seen
    assert {p.name for p in tmp_path.iterdir()} == {'old.svg', 'lines.txt', 'scores.PARQUET'}
    import pyarrow.parquet as parquet
    table = parquet.read_table(tmp_path/'scores.PARQUET')
    assert table.num_rows == 2*72 and table['tokens'].to_pylist()[::72] == [4, 4]

def test_without_pyarrow_nothing_is_loaded_before_the_error(tmp_path, monkeypatch, capsys):
    import attention_nb.views.command as c, importlib.util
    (tmp_path/'lines.txt').write_text('one line')
    monkeypatch.setattr(c, 'load_hf', lambda name: pytest.fail('a model is loaded'))
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None if name == 'pyarrow'
                        else real(name))
    assert main(['--file', str(tmp_path/'lines.txt'), '--scores', str(tmp_path/'a.parquet')]) == 1
    assert 'attention_nb[glove]' in capsys.readouterr().err and not (tmp_path/'a.parquet').exists()

def test_the_program_prints_its_help_and_nothing_of_torch():
    done = subprocess.run([sys.executable, '-m', 'attention_nb', '--help'], capture_output=True,
                          text=True)
    assert done.returncode == 0 and '--scores' in done.stdout and not done.stderr

def test_the_page_and_the_help_name_the_same_options():
    options = {o for a in _parser()._actions for o in a.option_strings if o.startswith('--')}
    for a in _parser()._actions: assert a.help, a.option_strings
    cells = json.loads((root/'nbs'/'views/command.ipynb').read_text(encoding='utf-8'))['cells']
    prose = '\n'.join(''.join(c['source']) for c in cells if c['cell_type'] == 'markdown')
    named = set(re.findall(r'(?<!\w)--[a-z][a-z-]*', prose))
    assert named <= options, named-options
    assert options-named <= {'--help', '--head', '--average', '--rollout', '--title', '--pair',
                             '--version'}, options-named
