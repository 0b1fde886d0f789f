"The command as a program: on a real terminal, in a pipe, and what its page says of it"
import json, os, re, select, subprocess, sys, time
import pytest
from attention_nb.views.command import _parser, main
from helpers import root

command = [sys.executable, '-m', 'attention_nb']
text = ['time flies', '--no-open']

def at_terminal(argv, answer, cwd):
    """Run at a terminal of its own where `answer` is typed after the question; exit code and
    what is seen"""
    pty = pytest.importorskip('pty', reason='NO TERMINAL: this system has none to make')
    import termios
    ours,theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with subprocess.Popen([*command, *argv], cwd=cwd, stdin=theirs, stdout=theirs,
                          stderr=theirs) as p:
        os.close(theirs)
        seen,start = b'',time.time()
        while time.time()-start < 240:
            if not select.select([ours], [], [], 240)[0]:
                p.kill()
                pytest.fail(f'no answer: {seen!r}')
            try: more = os.read(ours, 1000)
            except OSError: break                                  # the program has ended
            if not more: break
            seen += more
            if answer and b'[y/N]' in seen: os.write(ours, answer.encode()); answer = ''
        os.close(ours)
    return p.returncode, seen.decode()

def test_a_person_is_asked_and_a_script_is_told(tmp_path):
    old = tmp_path/'old.svg'
    old.write_text('work')
    code,seen = at_terminal([*text, '--out', 'old.svg'], 'n\n', tmp_path)
    assert code == 1 and 'old.svg is there already. Replace it? [y/N]' in seen
    assert old.read_text() == 'work'
    done = subprocess.run([*command, *text, '--out', 'old.svg'], cwd=tmp_path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stdout, old.read_text()) == (1, '', 'work')
    assert done.stderr == 'attention-view: old.svg is there already: --force replaces it\n'
    code,seen = at_terminal([*text, '--out', 'old.svg'], 'y\n', tmp_path)
    assert code == 0 and old.read_text().startswith('<?xml'), seen
    assert sorted(p.name for p in tmp_path.iterdir()) == ['old.svg']

def test_a_table_with_a_bar_at_a_terminal(tmp_path):
    (tmp_path/'lines.txt').write_text('one line\nand another\n')
    code,seen = at_terminal(['--file', 'lines.txt', '--scores', 'scores.PARQUET'], '', tmp_path)
    assert code == 0 and '2/2' in seen and 'scores.PARQUET' in seen, seen
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

def test_version_and_help_answer_without_torch_on_the_screen():
    import attention_nb
    done = subprocess.run([*command, '--version'], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0,
                                                           f'attention-view '
                                                           f'{attention_nb.__version__}\n', '')
    done = subprocess.run([*command, '--help'], capture_output=True, text=True)
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
