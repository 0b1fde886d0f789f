"What was measured, as Markdown, as JSON and as the page of the site with its plots"
import ast, json, platform, subprocess, sys, textwrap, time
from pathlib import Path

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

def cell(x): return f'{x:.4g}' if isinstance(x, float) else str(x).replace('|', '/')

def markdown(found):
    "Every table, as on the screen"
    from tabulate import tabulate
    parts = ['# Measured']
    for topic in found:
        parts.append(topic['machine'])
        for t in topic['tables']:
            rows = [[cell(x) for x in row] for row in t['rows']]
            parts.append(f'## {t["title"]}\n\n' + tabulate(rows, t['headers'], tablefmt='github',
                                                          disable_numparse=True))
    return '\n\n'.join(parts) + '\n'

def kept(text):
    "What the page holds: of each machine, by its line, the tables by title, as text"
    machines = (part.split('\n\n# ') for part in f'\n{text}'.split('\n@ ')[1:])
    return {line.strip(): dict(t.strip().split('\n', 1) for t in tables)
            for line,*tables in machines}

def processor(machine): return machine.partition(': ')[2].partition(',')[0]

def joined(before, found):
    "What was measured now; of this processor also the other tables, and all of the others"
    machine = found[-1]['machine']
    new = {t['title']: '\n'.join(' | '.join(map(cell, row)) for row in [t['headers'], *t['rows']])
           for topic in found for t in topic['tables']}
    old = {title: text for line,tables in before.items() if processor(line) == processor(machine)
           for title,text in tables.items()}
    others = {line: t for line,t in before.items() if processor(line) != processor(machine)}
    return {machine: old | new} | others

def lines(machines):
    "The same for the page: `@` and a machine, `#` and a title, then headers and rows with bars"
    text = []
    for machine,tables in machines.items():
        text += ['', f'@ {machine}']
        for title,rows in tables.items(): text += ['', f'# {title}', *rows.splitlines()]
    return '\n'.join('\\\n'.join(textwrap.wrap(each, 96, drop_whitespace=False,
                                               break_long_words=False)) for each in text[1:])

def replace(path, text):
    new = path.with_name(f'{path.name}.tmp')
    new.write_text(text, encoding='utf-8')
    new.replace(path)

def write(folder, topics, page=root/'nbs'/'speed.ipynb'):
    "bench.md and bench.json of the topics in `folder`, and the page, run anew"
    found = [json.loads(path.read_text(encoding='utf-8')) | dict(topic=name) for name in topics
             if (path := folder/f'{name}.json').exists()]
    replace(folder/'bench.md', markdown(found))
    replace(folder/'bench.json', json.dumps(found, ensure_ascii=False, indent=1) + '\n')
    nb = json.loads(page.read_text(encoding='utf-8'))
    measured, = (c for c in nb['cells'] if ''.join(c['source']).startswith('#| hide\nmeasured'))
    before = ast.literal_eval(''.join(measured['source']).partition('measured = ')[2])
    text = lines(joined(kept(before), found)).replace('"""', "'''")
    measured['source'] = f'#| hide\nmeasured = """{text}"""'.splitlines(keepends=True)
    replace(page, json.dumps(nb, ensure_ascii=False, indent=1) + '\n')
    subprocess.run([sys.executable, root/'nbs'/'_sphinx'/'outputs.py', page], check=True)
