"The benchmarks: a file a topic, and a page that shows what was measured"
import json, re
import pytest
from helpers import root

folder = root/'benchmarks'

@pytest.fixture
def bench(monkeypatch): monkeypatch.syspath_prepend(str(folder))

def test_every_topic_is_a_file(bench):
    import run
    topics = {p.stem for p in folder.glob('*.py')} - {'run', 'measure', 'page', 'chart'}
    assert topics == set(run.TOPICS)

def test_the_worst_are_named_wherever_ours_loses(bench):
    "A task that wins on one machine and loses on another too, with the machine"
    import chart
    found = {'A task': dict(a=(1., 'peer, fast', 1.3), b=(1., 'peer', .8)),
             'Worse': dict(a=(1., 'other', .7)), 'Equal': dict(a=(1., 'other', .99))}
    said = chart.worst([(words, {f'May: {m}': row for m,row in by.items()}, 1)
                        for words,by in found.items()])
    assert said == (' It loses most at worse (1.43× slower than other on a) and a task (1.25× '
                    'slower than peer on b).')

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
