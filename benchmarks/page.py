"What was measured, as Markdown, as JSON and as the page of the site"
import html, json, math, platform, pprint, re, statistics, subprocess, sys, time
from pathlib import Path
import chart
from measure import COMPARED

root = Path(__file__).resolve().parents[1]

def machine():
    "Processor, threads and versions, in a line"
    import torch
    info = Path('/proc/cpuinfo')
    said = info.read_text().splitlines() if info.exists() else []
    names = [each.partition(':')[2].strip() for each in said if each.startswith('model name')]
    return (f'{time.strftime("%B %Y")}: {(names or [platform.processor()])[0]}, '
            f'{torch.get_num_threads()} threads, torch {torch.__version__}, Python '
            f'{platform.python_version()}')

# %% the record: of each processor and topic its tables
def rounded(x): return float(f'{x:.4g}') if isinstance(x, float) else x

def joined(before, found):
    "The record, with what was measured now in place of the same topic on the same processor"
    def key(each): return chart.name_of(each['machine']), each['topic']
    def short(t): return t | dict(rows=[[*map(rounded, row)] for row in t['rows']])
    new = {key(each): each | dict(tables=[*map(short, each['tables'])]) for each in found}
    return list(({key(each): each for each in before} | new).values())

def written(record):
    "As JSON with a line for each row"
    text = json.dumps(record, ensure_ascii=False, indent=1)
    def line(m): return re.sub(r'\n\s*', ' ', m[0]).replace('[ ', '[').replace(' ]', ']')
    return re.sub(r'\[[^\[\]{}]*\]', line, text) + '\n'

# %% tables
UNITS = {'s': 1, 'ms': 1e3, 'µs': 1e6}                 # how many in a second

def unit(values):
    "The unit in which these seconds are read best"
    typical = statistics.median(values)
    return 's' if typical >= 1 else 'ms' if typical >= 1e-3 else 'µs'

def places(header, numbers):
    "Decimals of a column: the smallest number has three digits where two decimals allow it"
    if header == COMPARED[-1]: return 2
    if all(isinstance(x, int) for x in numbers): return 0
    small = min((abs(x) for x in numbers if x), default=1)
    return min(2, max(0, 2-math.floor(math.log10(small))))

def cell(x): return str(x).replace('|', '/')

def is_number(x): return isinstance(x, (int, float))

def markdown(headers, rows):
    "A table: times in one unit, fixed decimals, numbers at the right"
    timed = [i for i,h in enumerate(headers) if 'seconds' in h]
    times = [row[i] for row in rows for i in timed if i < len(row) and is_number(row[i])]
    name = unit(times) if times else 's'
    size = UNITS[name]
    digits,columns = places('seconds', [x*size for x in times]),[]
    for i,header in enumerate(headers):
        values = [row[i] if i < len(row) else '' for row in rows]
        values = [x*size if i in timed and is_number(x) else x for x in values]
        numbers = [*filter(is_number, values)]
        n = digits if i in timed else places(header, numbers)
        columns.append([cell(header.replace('seconds', name)), '---:' if numbers else '---',
                        *(f'{x:,.{n}f}' if is_number(x) else cell(x) for x in values)])
    return '\n'.join(f'| {" | ".join(line)} |' for line in zip(*columns))

def side_by_side(found, peer):
    "(headers, rows) of tasks that have two contestants, those where ours does worst first"
    rows = [(task, a, b, ratio) for task,((_,a,_),(_,b,ratio)) in found.items()]
    return (('task', 'ours (seconds)', f'{peer} (seconds)', COMPARED[-1]),
            sorted(rows, key=lambda row: row[-1]))

def shown(table):
    "A table as Markdown; of one that compares, a task a row or a contestant a row"
    headers,rows = table['headers'],table['rows']
    if tuple(headers) == COMPARED:
        found = chart.by_task(table)
        names = {tuple(by for by,*_ in contestants) for contestants in found.values()}
        if len(names) == 1 and len(only := names.pop()) == 2:
            headers,rows = side_by_side(found, only[1])
        else: rows = [('' if i else task, *row) for task,contestants in found.items()
                      for i,row in enumerate(contestants)]
        if not any(row[0] for row in rows): headers,rows = headers[1:],[row[1:] for row in rows]
    said = f'{note[:1].upper()}{note[1:]}.\n\n' if (note := table.get('note')) else ''
    return said + markdown(headers, rows)

def times_ours(values):
    low,high = (f'{x:.2f}' if x < 9.95 else f'{x:.0f}' for x in (min(values), max(values)))
    return f'{low} × ours' if low == high else f'{low} to {high} × ours'

def result(ways):
    "What came out, in words; `ways`: forward, and backward too -> a table on several machines"
    said,before = [],''
    for way,tables in ways.items():
        if tuple(tables[0]['headers']) != COMPARED: return tables[0].get('said', '')
        tasks = [rows for t in tables for rows in chart.by_task(t).values()]
        best = [row for rows in tasks if (row := chart.fastest(rows))]
        if not best:                                    # only ours: the one called so and others
            best = [row for rows in tasks for row in rows if row[0] != 'ours']
        who = {chart.name_of_peer(by.removeprefix('ours, ')) for by,*_ in best}
        who = who.pop() if len(who) == 1 else 'the fastest other'
        said.append(f'{who*(who != before)} {times_ours([r for *_,r in best])} {way}'.strip())
        before = who
    return '; '.join(said)

def fold(title, said, parts):
    "What opens; `parts`: (what stands above, Markdown)"
    what = f'<b>{html.escape(title, quote=False)}</b>'
    what += f': {html.escape(said, quote=False)}' if said else ''
    body = '\n\n'.join(f'*{above}*\n\n{text}' if above else text for above,text in parts)
    return f'<details class="measured"><summary>{what}</summary>\n\n{body}\n\n</details>'

def folds(record, topics):
    "The tables of some topics; the same one of every machine, forward and backward, in a fold"
    several,found = len({each['machine'] for each in record}) > 1,{}
    for each in (each for topic in topics for each in record if each['topic'] == topic):
        for t in each['tables']:
            way = re.search(r', (forward( and backward)?)(?=,|$)', t['title'])
            title = t['title'].replace(way[0], '', 1) if way else t['title']
            same = found.setdefault(title, {}).setdefault(way[1] if way else '', [])
            same.append((each['machine'] if several else '', t))
    if not found:
        return f'Not measured yet: `make bench ARGS="{" ".join(topics)} --page"` does it.'
    parts = []
    for title,ways in found.items():
        said = result({way: [t for _,t in same] for way,same in ways.items()})
        parts.append(fold(title, said, [
            (', '.join(filter(None, (way.capitalize()*(len(ways) > 1), line))), shown(t))
            for way,same in ways.items() for line,t in same]))
    return '\n\n'.join(parts)

def lost(record):
    "A fold of every row in which another is clearly faster, the worst first, of all machines"
    found = {}
    for each in record:
        for t in each['tables']:
            if tuple(t['headers']) != COMPARED: continue
            found.setdefault(each['machine'], []).extend(
                (': '.join(filter(None, (t['title'], task))), by, ratio)
                for task,rows in chart.by_task(t).items() for by,_,ratio in rows
                if ratio < 1-chart.EQUAL and chart.may_win(by))
    n,several = sum(map(len, found.values())),len(found) > 1
    headers = 'task', 'by', COMPARED[-1]
    title = f'Every row in which another is more than {chart.EQUAL:.0%} faster'
    return fold(title, f'{n} rows, the worst first', [
        (line*several, markdown(headers, sorted(rows, key=lambda row: row[-1])))
        for line,rows in found.items() if rows])

# %% the page
GROWTH = dict(window='A window of 512, by length',
              memory='Memory of one head above its inputs')

def growth(record):
    "What the plot shows: machine -> rows, of the tables with these titles"
    found = {name: {chart.short_name(each['machine']): t['rows'] for each in record
                    for t in each['tables'] if t['title'] == title}
             for name,title in GROWTH.items()}
    return pprint.pformat(found, width=90, sort_dicts=False)

def machines(record):
    lines = dict.fromkeys(each['machine'] for each in record)
    return f'Measured in {"; in ".join(lines)}.'

PARTS = dict(summary=chart.summary, chart=chart.chart, machines=machines, lost=lost)

def filled(source, record):
    "A cell anew that begins by saying what is measured: a part, or topics whose tables it shows"
    if m := re.match(r'#\| hide\n# measured\n', source): return f'{m[0]}growth = {growth(record)}'
    m = re.match(r'<!-- measured: (.+) -->', source)
    if not m: return source
    return f'{m[0]}\n' + (PARTS[m[1]](record) if m[1] in PARTS else folds(record, m[1].split()))

def replace(path, text):
    new = path.with_name(f'{path.name}.tmp')
    new.write_text(text, encoding='utf-8')
    new.replace(path)

def fill(page, record):
    nb = json.loads(page.read_text(encoding='utf-8'))
    for c in nb['cells']:
        c['source'] = filled(''.join(c['source']), record).splitlines(keepends=True)
    replace(page, json.dumps(nb, ensure_ascii=False, indent=1) + '\n')

def report(record):
    "Every table, as on the screen"
    parts = (f'## {t["title"]}\n\n{each["machine"]}\n\n{shown(t)}'
             for each in record for t in each['tables'])
    return '\n\n'.join(['# Measured', *parts]) + '\n'

def write(folder, topics, page=root/'nbs'/'speed.ipynb', kept=root/'benchmarks'/'measured.json'):
    """bench.md and bench.json of the topics in `folder`; with them the record of all machines is
    brought up to date, and from it the page"""
    found = [dict(topic=name) | json.loads(path.read_text(encoding='utf-8')) for name in topics
             if (path := folder/f'{name}.json').exists()]
    replace(folder/'bench.md', report(found))
    replace(folder/'bench.json', written(found))
    record = joined(json.loads(kept.read_text(encoding='utf-8')), found)
    replace(kept, written(record))
    fill(page, record)
    subprocess.run([sys.executable, root/'nbs'/'_sphinx'/'outputs.py', page], check=True)
