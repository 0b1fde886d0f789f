"""The list of all public names: the build puts it where `<!-- api -->` stands, a heading for each module and a line for each name."""
import ast, json, re
from pathlib import Path
from nbdev.config import get_config, nbpath2html
from nbdev.doclinks import NbdevLookup
import package, rules

MARK = '<!-- api -->'

def summaries(path):
    "Name -> first line of its docstring, of the functions and classes of the module at `path`"
    defined = [n for n in ast.parse(path.read_text(encoding='utf-8')).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    return {n.name: doc.split('\n')[0] for n in defined if (doc := ast.get_docstring(n))}

def page_title(path):
    return next(m[1] for c in json.loads(path.read_text(encoding='utf-8'))['cells'] if (m := re.search(r'^(?:# |title: )(.+)', rules.source(c), re.M)))

def listing():
    "Markdown: modules in the order of their pages, names in the order of the alphabet"
    cfg = get_config()
    pages = {Path(nbpath2html(Path(p.name))).stem: p for p in sorted(cfg.nbs_path.glob('*.ipynb'))}
    addresses = {name: entry[0] for name,entry in NbdevLookup().syms.items() if isinstance(entry, tuple)}
    parts = {}
    for module,names in package.table(cfg.lib_path).items():
        summary,found = summaries(cfg.lib_path/f'{module}.py'),[(n, addresses.get(f'{cfg.lib_path.name}.{module}.{n}')) for n in names]
        page = next((pages[Path(a).name.split('.html')[0]] for _,a in found if a), None)
        if page is None: continue
        lines = [f'- [`{n}`]({address}): {summary.get(n, "")}' if address else f'- `{n}`: a constant' for n,address in found]
        parts[page.stem] = f'## {module}\n\nFrom [{page_title(page)}]({page.name}).\n\n' + '\n'.join(lines)
    return '\n\n'.join(parts[p] for p in sorted(parts))
