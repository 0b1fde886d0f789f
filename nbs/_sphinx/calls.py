"""Calling a module is calling its `forward`: torch declares `__call__` as `Any`, so type checkers and editors would know nothing of `layer(x)`.

`package.py` gives each exported class with a `forward` of its own a `__call__` with the same signature, for type checkers only; the
class that a reader sees in the notebook stays as it is. Where a flag changes what is returned, the module says so in a class
`_NameCall(Protocol)` with overloads of `__call__`, which are taken instead.
"""
import ast
from textwrap import fill

GUARD = '    if TYPE_CHECKING:    # what type checkers and editors see of a call'

def _has(cls, kind, name): return next((f for f in cls.body if isinstance(f, kind) and getattr(f, 'name', '') == name), None)

def _declared(function):
    "A function without its body, and without decorators that are no overloads"
    function.decorator_list = [d for d in function.decorator_list if ast.unparse(d) == 'overload']
    function.name,function.body = '__call__',[ast.Expr(ast.Constant(...))]
    return ast.unparse(function).replace(':\n    ...', ': ...').replace(' -> ', '->')

def _wrapped(line): return fill(line, 118, initial_indent=' '*8, subsequent_indent=' '*12, break_long_words=False, break_on_hyphens=False)

def typed_calls(source):
    "The source of a module whose classes with a `forward` declare `__call__`"
    tree,lines = ast.parse(source),source.splitlines()
    classes = {c.name: c for c in tree.body if isinstance(c, ast.ClassDef)}
    if GUARD in lines: return source
    made = False
    for cls in sorted(classes.values(), key=lambda c: -c.lineno):
        forward,protocol = _has(cls, ast.FunctionDef, 'forward'),classes.get(f'_{cls.name}Call')
        if forward is None or _has(cls, ast.FunctionDef, '__call__') or not cls.bases or 'Protocol' in ast.unparse(cls.bases[0]): continue
        calls = [_declared(f) for f in (protocol.body if protocol else [forward]) if isinstance(f, ast.FunctionDef)]
        lines[cls.end_lineno:cls.end_lineno] = [GUARD, *(_wrapped(line) for call in calls for line in call.splitlines())]
        made = True
    if not made: return source
    imported = {a.name for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == 'typing' for a in n.names}
    if 'TYPE_CHECKING' not in imported:
        first = next(n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) and getattr(n, 'module', '') != '__future__')
        lines.insert(first.lineno-1, 'from typing import TYPE_CHECKING')
    return '\n'.join(lines) + '\n'
