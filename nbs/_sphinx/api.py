"""API entries, and the list of all public names where `<!-- api -->` stands."""
import ast, inspect, pydoc, re
from docutils.nodes import make_id
from nbdev.config import get_config
from nbdev.doclinks import NbdevLookup
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform
import cells, package
from quarto import own_names

MARK = '<!-- api -->'

def entry(md, code_follows=False):
    "A `show_doc` entry, known to Sphinx's Python domain; its signature only if no code follows"
    md = re.sub(r"\*<class '(?:\w+\.)*(\w+)'>", r'Unpack[\1]', md)   # as Python prints types
    md = md.replace('__main__.', '')
    head = re.search(r'^#+ (\S+)$', md, re.M)
    found = head and NbdevLookup()[head[1].replace('\\', '')]
    if not isinstance(found, tuple): return md
    name,anchor = own_names()[found[0]],found[0].split('#')[-1]
    kind = 'method' if '.' in head[1] else 'function'
    if inspect.isclass(pydoc.locate(name)): kind = 'class'
    target = f'<a id="{anchor}"></a>\n\n' if make_id(anchor) != anchor else ''   # of nbdev's links
    return (f':::{{py:{kind}}} {name}\n:no-typesetting:\n:::\n\n{target}{head[0]}\n\n'
            f'[source]({NbdevLookup().code(head[1])}){{.api-source}}\n\n'
            f'{"" if code_follows else md[head.end():].strip()}')

class MethodsOfClasses(SphinxPostTransform):
    "A link to a method that has no entry of its own leads to its class"
    default_priority = 8                                # before MyST resolves its links
    def run(self, **kwargs):
        known = self.env.domains.python_domain.objects
        for node in self.document.findall(pending_xref):
            owner = node.get('reftarget', '').rpartition('.')[0]
            ours = node.get('reftype') == 'myst' and owner in known
            if ours and node['reftarget'] not in known: node['reftarget'] = owner

def summaries(path):
    "Name -> first line of its docstring, of the functions and classes of the module at `path`"
    kinds,tree = (ast.FunctionDef, ast.ClassDef),ast.parse(path.read_text(encoding='utf-8'))
    docs = {n.name: ast.get_docstring(n) for n in tree.body if isinstance(n, kinds)}
    return {name: doc.split('\n')[0] for name,doc in docs.items() if doc}

def listing():
    "Markdown: rooms, in them modules as their pages follow, names in the order of the alphabet"
    cfg,parts = get_config(),{}
    pages = {cells.name_of(p, cfg.nbs_path): cells.load(p) for p in cells.notebooks(cfg.nbs_path)}
    homes = {f'simple.{cells.alias(p)}' if cells.kind(p) == 'lesson' else p.replace('/', '.'): p
             for p in cells.in_order(pages)}
    addresses = {name: address for address,name in own_names().items()}
    for module,names in package.every_name(cfg.lib_path).items():
        if not names or module not in homes: continue
        page = homes[module]
        summary = summaries(cfg.lib_path/f'{module.replace(".", "/")}.py')
        found = [(n, addresses.get(f'{cfg.lib_path.name}.{module}.{n}')) for n in names]
        lines = [f'- [`{n}`]({address}): {summary.get(n, "")}' if address else
                 f'- `{n}`: a constant' for n,address in found]
        title = f'From [{cells.title(pages[page])}]({page}.ipynb).'
        parts[page] = f'## {module}\n\n{title}\n\n' + '\n'.join(lines)
    return '\n\n'.join(parts[p] for p in homes.values() if p in parts)
