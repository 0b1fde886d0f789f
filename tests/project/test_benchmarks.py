"The benchmarks: a file a topic, functions in processes of their own, tables as Markdown and JSON"
import ast, json, os, re, subprocess, sys
import pytest
from helpers import root

folder = root/'benchmarks'

@pytest.fixture
def bench(monkeypatch): monkeypatch.syspath_prepend(str(folder))

def test_every_topic_is_a_file_and_no_string_is_run(bench):
    import run
    topics = {p.stem for p in folder.glob('*.py')} - {'run', 'measure', 'page', 'chart'}
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
    report.compare('A title', {'a task': rows})
    report.write(tmp_path/'tables.json', 'a machine')
    said = json.loads((tmp_path/'tables.json').read_text())
    table, = said['tables']
    assert table['title'] == 'A title' and table['rows'] == [['a task', *r] for r in rows]
    printed = capsys.readouterr().out
    assert 'A title\n|' in printed and '| ours ' in printed and '| theirs ' in printed

@pytest.mark.skipif(sys.platform != 'linux', reason='asks Linux for its memory')
def test_a_function_is_measured_in_a_process_of_its_own(bench):
    import imports, measure, memory
    mine = measure.peak()
    assert measure.in_process(measure.peak) < mine/2, 'torch is loaded here, not there'
    assert measure.in_process(imports.import_time, 'json') < 1
    small,large = (measure.in_process(memory.growth, 'no option', L) for L in (64, 2048))
    assert large > small + 10, 'megabytes'
    name = 'MALLOC_MMAP_THRESHOLD_'
    with measure.given_back():
        assert measure.in_process(os.getenv, name) == '1000000'
        plain,causal = (measure.in_process(memory.growth, n, 4096) for n in ('no option', 'causal'))
    assert causal < 1.2*plain, 'no table of all pairs'
    assert measure.in_process(os.getenv, name) == os.getenv(name)

def test_what_is_no_topic_is_refused():
    command = [sys.executable, folder/'run.py', 'nothing']
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and 'invalid choice' in done.stderr

AMD,LATER,INTEL,ARM = (f'{x}, 2 threads' for x in ('May 2026: AMD', 'June 2026: AMD',
                                                   'May 2026: Intel', 'May 2026: Arm'))

def topic(machine, name='glove', ratio=.5, title='Reading 400,000 word vectors'):
    task = 'beside a reader'
    rows = [[task, 'ours', .0123456, 1], [task, 'a | b, fast', .02, ratio]]
    return dict(machine=machine, topic=name, tables=[dict(
        title=title, rows=rows, note='of one file',
        headers=['task', 'by', 'seconds', 'relative time (ours = 1)'])])

def test_the_record_keeps_what_others_and_other_topics_measured(bench):
    import page
    before = [topic(AMD), topic(AMD, 'bpe'), topic(INTEL)]
    found = page.joined(before, [topic(LATER)])
    assert [(each['machine'], each['topic']) for each in found] == [
        (LATER, 'glove'), (AMD, 'bpe'), (INTEL, 'glove')]
    assert found[0]['tables'][0]['rows'][0] == ['beside a reader', 'ours', .01235, 1]
    assert json.loads(page.written(found)) == found and before[0] == topic(AMD)

def test_the_page_says_what_was_measured_on_one_machine_and_on_three(bench):
    import chart, page
    one,three = [topic(AMD)],[topic(AMD), topic(INTEL, ratio=4.), topic(ARM, ratio=1.01)]
    said = chart.summary(one)
    assert 'On AMD, ours is faster in 0 of 1 tasks, about equal in 0 and slower in 1.' in said
    assert '(2.0× slower than a | b)' in said and 'no GPU was measured' in said
    assert chart.summary(three).count('ours is faster in') == 3
    assert 'no GPU' not in chart.summary([*one, topic(AMD, 'gpu')])
    drawn = chart.chart(three)
    assert drawn.count('class="pair"') == 3 and drawn.count('<li>') == 1
    assert '<small>Arm</small>' in drawn and '<small>' not in chart.chart(one).split('<b>')[0]
    assert 'width:100.0%"></i><i style="width:50.0%' in chart.chart(one)
    assert 'about equal' in drawn and '4.0× faster' in drawn and 'ours 12.3\u00a0ms' in drawn
    fold = page.folds(three, ['glove'])
    assert fold.count('<details') == 1 and fold.count('*, 2 threads*'[1:]) == 3
    assert '<b>Reading 400,000 word vectors</b>: a | b 0.50 to 4.00 × ours' in fold
    assert '| task | ours (ms) | a / b, fast (ms) | relative time (ours = 1) |' in fold
    assert '| beside a reader | 12.3 | 20.0 | 0.50 |' in fold and 'Of one file.' in fold
    assert '1 rows' in page.lost(three) and 'Intel' not in page.lost(three)
    assert page.folds(one, ['bpe']).startswith('Not measured yet')

def test_units_and_decimals_of_a_table(bench):
    import page
    headers = 'what', 'tokens', 'MB', 'seconds', 'seconds to open'
    text = page.markdown(headers, [('a', 50_000, 14.37, 2e-5, 3e-4), ('b', 26, 1631., 1.5e-5)])
    assert text.splitlines() == [
        '| what | tokens | MB | µs | µs to open |', '| --- | ---: | ---: | ---: | ---: |',
        '| a | 50,000 | 14.4 | 20.0 | 300.0 |', '| b | 26 | 1,631.0 | 15.0 |  |']

def test_the_chart_and_the_page_show_the_record(bench):
    "Every topic stands on the page once, each task of the chart in its table, no number by hand"
    import chart, page, run
    path,record = root/'nbs'/'speed.ipynb',json.loads((folder/'measured.json').read_text('utf-8'))
    sources = [''.join(c['source']) for c in json.loads(path.read_text('utf-8'))['cells']]
    assert sources == [page.filled(s, record) for s in sources], 'make bench ARGS=--page'
    marks = [m[1] for s in sources if (m := re.match('<!-- measured: (.+) -->', s))]
    shown = [name for m in marks if m not in page.PARTS for name in m.split()]
    assert sorted(shown) == sorted(run.TOPICS) and set(page.PARTS) <= set(marks)
    made = {each['topic'] for each in record}
    for task in chart.TASKS: assert task[1] not in made or chart.measured(record, task), task
    assert page.report(record).count('\n## ') == sum(len(each['tables']) for each in record)
