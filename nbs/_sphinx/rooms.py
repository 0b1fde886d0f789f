"""A picture of the modules of a room and of what they import, `<!-- modules -->` on its first page,
and of all rooms, `<!-- rooms -->`; both are drawn from the imports when the site is built.
"""
import ast, functools, html
from nbdev.config import get_config
import cells, package

WIDE,HIGH,GAP,ROW = 150,34,16,74                       # of a box, and between boxes and floors
MOST = 5                                               # boxes in a row

# a method that passes on to a room above its own, which it imports when it is called
UPWARDS = {('models.transformer', 'checkpoints.pretrained'): 'Transformer.save_pretrained'}

def imported(text, module):
    """(module, name) of all that the module `module` imports from the package, inside functions and
    for types too, and the function or method in which the import stands"""
    lib,trees = 'attention_nb',[(ast.parse(text), '')]
    while trees:
        node,where = trees.pop()
        own = f'{where}.{node.name}'.lstrip('.') if hasattr(node, 'name') and hasattr(
            node, 'body') else where
        trees += [(n, own) for n in ast.iter_child_nodes(node)]
        if isinstance(node, ast.Import):
            for a in node.names:
                if a.name.startswith(f'{lib}.'): yield a.name.removeprefix(f'{lib}.'),'',where
        if not isinstance(node, ast.ImportFrom): continue
        if not node.level and (node.module or '').split('.')[0] != lib: continue
        above = module.split('.')[:-node.level] if node.level else []
        name = '.'.join([*above, *filter(None, [node.module])])
        for a in node.names: yield name.removeprefix(lib).lstrip('.'),a.name,where

@functools.cache
def graph(folder=None):
    "Module -> the modules of the package that it imports, but for what UPWARDS names"
    found,below = package.modules_in(folder or get_config().lib_path),{}
    for m,path in found.items():
        every = set()
        for source,name,where in imported(path.read_text(encoding='utf-8'), m):
            if UPWARDS.get((m, source)) != where:
                every |= {source, f'{source}.{name}'.lstrip('.')}
        below[m] = sorted(every & found.keys() - {m})
    return below

def between(modules):
    "Room -> the rooms that its modules import"
    def room(m): return m.split('.')[0]
    return {r: sorted({room(b) for a,bs in modules.items() if room(a) == r for b in bs} - {r})
            for r in cells.ROOMS if any(room(m) == r for m in modules)}

def floors(below):
    "Name -> how many stand below it, one on the other"
    def floor(n, d=0): return max((1 + floor(b, d+1) for b in below[n] if d<9), default=0)
    return {n: floor(n) for n in below}

def plain(below):
    "Without the arrows that a way over others makes needless"
    @functools.cache
    def reached(n): return {m for b in below[n] for m in (b, *reached(b))}
    return {n: [b for b in bs if not any(b in reached(o) for o in bs if o != b)]
            for n,bs in below.items()}

def rows(below):
    "Names, floor by floor from the top, each above what it imports as well as may be"
    at,place,found = floors(below),{},[]
    for f in range(max(at.values(), default=0)+1):
        def middle(n): return sum(place[b] for b in below[n])/len(below[n]) if below[n] else 0
        names = sorted((n for n in below if at[n] == f), key=middle)
        parts = [names[i:i+MOST] for i in range(0, len(names), MOST)]
        for part in parts:
            for i,n in enumerate(part): place[n] = i - (len(part)-1)/2
        found += parts
    return found[::-1]

def drawn(below, links, label):
    "An SVG: a box for each name, a line to each name that it imports"
    below = plain(below)
    lines = rows(below)
    width,height = max(map(len, lines))*(WIDE+GAP)+GAP,len(lines)*ROW
    x,y = {},{}
    for r,names in enumerate(lines):
        left = (width - len(names)*(WIDE+GAP) + GAP)/2
        for i,n in enumerate(names): x[n],y[n] = left + i*(WIDE+GAP),r*ROW + (ROW-HIGH)/2
    parts = [f'<path d="M{x[a]+WIDE/2:.0f} {y[a]+HIGH:.0f}C{x[a]+WIDE/2:.0f} {y[a]+HIGH+24:.0f} '
             f'{x[b]+WIDE/2:.0f} {y[b]-24:.0f} {x[b]+WIDE/2:.0f} {y[b]:.0f}"/>'
             for a,bs in below.items() for b in bs]
    parts += [f'<a href="{html.escape(links[n])}"><rect x="{x[n]:.0f}" y="{y[n]:.0f}" '
              f'width="{WIDE}" height="{HIGH}" rx="5"/><text x="{x[n]+WIDE/2:.0f}" '
              f'y="{y[n]+HIGH/2+4:.0f}">{html.escape(n)}</text></a>' for n in x]
    return (f'<div class="rooms"><svg viewBox="0 0 {width} {height}" role="group" '
            f'aria-label="{html.escape(label)}" '
            f'style="width:{width}px;min-width:min({width}px,34rem)">{"".join(parts)}</svg></div>')

def of_room(room):
    "The picture of a room's modules, by the names they have in it"
    every = {m: b for m,b in graph().items() if m.split('.')[0] == room and m != room}
    def short(m): return m.removeprefix(f'{room}.')
    below = {short(m): [short(b) for b in bs if b in every] for m,bs in every.items()}
    lessons = {f'simple.{cells.alias(n)}': f'../{n}.html'
               for n in map(cells.name_of, cells.notebooks()) if cells.kind(n) == 'lesson'}
    links = {short(m): lessons.get(m, f'{short(m).replace(".", "/")}.html') for m in every}
    return drawn(below, links, f'The modules of {room}; each stands above those that it imports')

def of_all():
    below = between(graph())
    links = {r: f'{r}.html' if r == 'checks' else f'{r}/index.html' for r in below}
    return drawn(below, links, 'The rooms; each stands above those that it imports')
