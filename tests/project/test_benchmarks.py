"The benchmarks: a file a topic, functions in processes of their own, tables as Markdown and JSON"
import ast, json, subprocess, sys
import pytest
from helpers import root

folder = root/'benchmarks'

@pytest.fixture
def bench(monkeypatch): monkeypatch.syspath_prepend(str(folder))

def test_every_topic_is_a_file_and_no_string_is_run(bench):
    import run
    topics = {p.stem for p in folder.glob('*.py')} - {'run', 'measure', 'page'}
    assert topics == set(run.TOPICS)
    for path in folder.glob('*.py'):
        tree = ast.parse(path.read_text(encoding='utf-8'))
        made = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        assert path.stem not in topics or 'tables' in made, path.name
        called = {ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
        assert not called & {'exec', 'eval', 'compile'} and "'-c'" not in ast.unparse(tree)

def test_contestants_take_turns_and_tables_are_written_twice(bench, tmp_path, capsys):
    import measure
    order = []
    def call(name): return lambda: order.append(name)
    rows = measure.interleave({'ours': call('a'), 'theirs': call('b')}, 3, 'ours')
    assert order == ['a', 'b']*4 and [r[0] for r in rows] == ['ours', 'theirs']
    assert rows[0][2] == 1 and all(seconds >= 0 for _,seconds,_ in rows)
    order.clear()
    measure.interleave({'ours': call('a')}, 31, 'ours', patience=0)
    assert order == ['a']*4, 'three rounds after one that does not count'
    report = measure.Report()
    report.show('A title', rows)
    report.write(tmp_path/'tables.json', 'a machine')
    said = json.loads((tmp_path/'tables.json').read_text())
    table, = said['tables']
    assert table['title'] == 'A title' and table['rows'] == [list(r) for r in rows]
    printed = capsys.readouterr().out
    assert 'A title\n|' in printed and '| ours ' in printed and '| theirs ' in printed

@pytest.mark.skipif(sys.platform != 'linux', reason='asks Linux for its memory')
def test_a_function_is_measured_in_a_process_of_its_own(bench):
    import imports, measure, memory
    mine = measure.peak()
    assert measure.in_process(measure.peak) < mine/2, 'torch is loaded here, not there'
    assert measure.in_process(imports.import_time, 'json') < 1000
    small,large = (measure.in_process(memory.growth, 'nothing', L) for L in (64, 2048))
    assert large > small + 10, 'megabytes'

def test_what_is_no_topic_is_refused():
    command = [sys.executable, folder/'run.py', 'nothing']
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and 'invalid choice' in done.stderr

def test_the_page_keeps_what_others_and_other_topics_measured(bench):
    import page
    def topic(machine, *titles):
        row = ['the first row, a long one: '*4, 1.25]
        return dict(machine=machine, tables=[dict(title=t, headers=['', 'ours'], rows=[row])
                                             for t in titles])
    def read(machines): return page.kept(ast.literal_eval(f'"""{page.lines(machines)}"""'))
    amd,later,intel = 'May 2026: AMD, 2 threads','June 2026: AMD, 2 threads','May 2026: Intel, 4'
    first = page.joined({}, [topic(amd, 'a', 'b')])
    both = page.joined(read(first), [topic(intel, 'a')])
    found = page.joined(read(both), [topic(later, 'b', 'c')])
    assert read(found) == found
    titles = {line: [*tables] for line,tables in found.items()}
    assert titles == {later: ['a', 'b', 'c'], intel: ['a']}
    assert found[later]['a'] == first[amd]['a'] and ' | 1.25' in found[later]['a']
