"""What type checkers and editors should know of a class, and a reader need not see.

Calling a module is calling its `forward`: torch declares `__call__` as `Any`, so they would know nothing of `layer(x)`.

nbdev-export, through export.py, gives each exported class with a `forward` of its own a `__call__` with the same signature, for type
checkers only; the class that a reader sees in the notebook stays as it is. Where a flag changes what is returned, the module says so in
a class `_NameCall(Protocol)` with overloads of `__call__`, which are taken instead.

An attribute that `__init__` sets has no declared type, and type checkers may guess differently. It is declared here where the code says
it: `self.proj = nn.Linear(...)`, `self.width = width` for an annotated parameter, `self.norm = None if ... else nn.LayerNorm(...)`.
Fields of a class `_NameFields(Protocol)`, or an annotation where the attribute is set, say the rest.
"""
import ast
from textwrap import fill

GUARD = '    if TYPE_CHECKING:    # what type checkers and editors see'

def _has(cls, kind, name): return next((f for f in cls.body if isinstance(f, kind) and getattr(f, 'name', '') == name), None)

def _declared(function):
    "A function without its body, and without decorators that are no overloads"
    function.decorator_list = [d for d in function.decorator_list if ast.unparse(d) == 'overload']
    function.name,function.body = '__call__',[ast.Expr(ast.Constant(...))]
    return ast.unparse(function).replace(':\n    ...', ': ...').replace(' -> ', '->')

def _pairs(target, value):
    "The targets of an assignment, each with its value if that is written down"
    if not isinstance(target, ast.Tuple): return [(target,value)]
    values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else [None]*len(target.elts)
    return [*zip(target.elts, values)]

def _kind(value, known):
    "The type of an expression as text, None where it is not plain to see"
    match value:
        case ast.Constant(None): return 'None'
        case ast.Constant(): return type(value.value).__name__
        case ast.Name(name): return known.get(name)
        case ast.Call(func) if ast.unparse(func).split('.')[-1][:1].isupper(): return ast.unparse(func)
        case ast.Call(ast.Name(name)) if f'{name}()' in known: return known[f'{name}()']
        case ast.Call(ast.Name('len' | 'int' | 'bool' | 'float' | 'str' as name)): return 'int' if name == 'len' else name
        case ast.IfExp():
            kinds = [_kind(v, known) for v in (value.body, value.orelse)]
            return None if None in kinds else ' | '.join(dict.fromkeys(kinds))

def _attributes(cls, protocol, returned):
    "Public attributes that `__init__` sets and nobody declares: name -> type"
    declared = {n.target.id for n in cls.body if isinstance(n, ast.AnnAssign)} | {f.name for f in cls.body if isinstance(f, ast.FunctionDef)}
    declared |= {t.id for n in cls.body if isinstance(n, ast.Assign) for t in ast.walk(n) if isinstance(t, ast.Name)}
    fields = {n.target.id: ast.unparse(n.annotation) for n in protocol.body if isinstance(n, ast.AnnAssign)} if protocol else {}
    init = _has(cls, ast.FunctionDef, '__init__')
    if init is None: return fields
    known = returned | {a.arg: ast.unparse(a.annotation) for a in init.args.args+init.args.kwonlyargs if a.annotation}
    known |= {f'{f.name}()': ast.unparse(f.returns) for f in ast.walk(init) if isinstance(f, ast.FunctionDef) and f.returns
                and ast.unparse(f.returns) not in ('int', 'float')}    # a base class may allow None too
    found = {}
    for node in ast.walk(init):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute): declared.add(node.target.attr)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name): known[node.target.id] = ast.unparse(node.annotation)
        if not isinstance(node, ast.Assign): continue
        for target,value in (pair for t in node.targets for pair in _pairs(t, node.value)):
            if isinstance(target, ast.Name): known.pop(target.id, None)
            elif ast.unparse(target).startswith('self.') and not target.attr.startswith('_'): found.setdefault(target.attr, []).append(value)
    kinds = {name: [_kind(v, known) for v in values] for name,values in found.items() if name not in declared}
    return {name: ' | '.join(dict.fromkeys(k)) for name,k in kinds.items() if None not in k and set(k) != {'None'} and name not in fields} | fields

def _wrapped(line): return fill(line, 118, initial_indent=' '*8, subsequent_indent=' '*12, break_long_words=False, break_on_hyphens=False)

def typed_calls(source):
    "The source of a module whose classes declare their attributes, and those with a `forward` its `__call__`"
    tree,lines = ast.parse(source),source.splitlines()
    classes = {c.name: c for c in tree.body if isinstance(c, ast.ClassDef) and not (c.bases and 'Protocol' in ast.unparse(c.bases[0]))}
    said = {c.name: c for c in tree.body if isinstance(c, ast.ClassDef)}
    returned = {f'{f.name}()': ast.unparse(f.returns) for f in tree.body if isinstance(f, ast.FunctionDef) and f.returns
                and ast.unparse(f.returns) not in ('int', 'float')}    # a base class may allow None too
    if GUARD in lines: return source
    made = False
    for cls in sorted(classes.values(), key=lambda c: -c.lineno):
        protocol = said.get(f'_{cls.name}Call') or cls
        calls = [f for f in protocol.body if isinstance(f, ast.FunctionDef) and f.name in ('__call__', 'forward')]
        said_here = any(isinstance(n, ast.If) and ast.unparse(n.test) == 'TYPE_CHECKING' for n in cls.body)
        if not cls.bases or said_here or _has(cls, ast.FunctionDef, '__call__'): calls = []
        if calls: lines[cls.end_lineno:cls.end_lineno] = [GUARD, *(_wrapped(l) for f in calls for l in _declared(f).splitlines())]
        fields = _attributes(cls, said.get(f"_{cls.name.lstrip('_')}Fields"), returned)
        first = cls.body[0].end_lineno if ast.get_docstring(cls) else cls.lineno
        if fields: lines[first:first] = [GUARD, *(_wrapped(f'{name}: {kind}') for name,kind in fields.items())]
        made = made or calls or fields
    if not made: return source
    imported = {a.name for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == 'typing' for a in n.names}
    if 'TYPE_CHECKING' not in imported:
        first = next(n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) and getattr(n, 'module', '') != '__future__')
        lines.insert(first.lineno-1, 'from typing import TYPE_CHECKING')
    return '\n'.join(lines) + '\n'
