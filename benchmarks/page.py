"What was measured, as Markdown, as JSON and as the page of the site with its plots"
import json, os, platform, subprocess, sys, textwrap, time
from pathlib import Path

root = Path(__file__).resolve().parents[1]

def machine():
    "Processor, threads, versions, and how busy it is, in a line"
    import torch
    info = Path('/proc/cpuinfo')
    said = info.read_text().splitlines() if info.exists() else []
    names = [each.partition(':')[2].strip() for each in said if each.startswith('model name')]
    busy = f', load {os.getloadavg()[0]:.1f} before it began' if hasattr(os, 'getloadavg') else ''
    return (f'{time.strftime("%B %Y")}: {(names or [platform.processor()])[0]}, '
            f'{torch.get_num_threads()} threads, torch {torch.__version__}, Python '
            f'{platform.python_version()}{busy}')

def cell(x): return f'{x:.4g}' if isinstance(x, float) else str(x).replace('|', '/')

def markdown(line, tables):
    "Every table, as on the screen"
    from tabulate import tabulate
    parts = [f'# Measured\n\n{line}']
    for t in tables:
        rows = [[cell(x) for x in row] for row in t['rows']]
        parts.append(f'## {t["title"]}\n\n' + tabulate(rows, t['headers'], tablefmt='github',
                                                      disable_numparse=True))
    return '\n\n'.join(parts) + '\n'

def lines(line, tables):
    "The same for the page: a title, the headers, the rows, with bars between"
    found = [line]
    for t in tables:
        found += ['', f'# {t["title"]}', *(' | '.join(map(cell, row))
                                          for row in [t['headers'], *t['rows']])]
    return '\n'.join('\\\n'.join(textwrap.wrap(each, 96, drop_whitespace=False,
                                               break_long_words=False)) for each in found)

def write(line, tables, folder, page=root/'nbs'/'speed.ipynb'):
    "bench.md and bench.json in `folder`, and the page, run anew"
    folder.mkdir(parents=True, exist_ok=True)
    data = json.dumps(dict(machine=line, tables=tables), ensure_ascii=False, indent=1)
    for name,text in (('bench.md', markdown(line, tables)), ('bench.json', data + '\n')):
        new = folder/f'{name}.tmp'
        new.write_text(text, encoding='utf-8')
        new.replace(folder/name)
    nb = json.loads(page.read_text(encoding='utf-8'))
    measured, = (c for c in nb['cells'] if ''.join(c['source']).startswith('#| hide\nmeasured'))
    text = lines(line, tables).replace('"""', "'''")
    measured['source'] = f'#| hide\nmeasured = """{text}"""'.splitlines(keepends=True)
    new = page.with_name(page.name + '.tmp')
    new.write_text(json.dumps(nb, ensure_ascii=False, indent=1) + '\n', encoding='utf-8')
    new.replace(page)
    subprocess.run([sys.executable, root/'nbs'/'_sphinx'/'outputs.py', page], check=True)
