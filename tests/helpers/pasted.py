"Code as a reader pastes it: the blocks of a page, one after another, in one namespace"
import ast, builtins, importlib, re, symtable

def blocks(text):
    "The Python code of a plain text"
    return re.findall(r'^```python\n(.*?)^```', text, re.M|re.S)

def _inner(table, called=False):
    "(name, only when something is called?): what functions and classes ask the module for"
    for t in table.get_children():
        at_once = t.get_type() == 'class' or t.get_name() in ('listcomp', 'setcomp', 'dictcomp',
                                                              'genexpr')
        yield from ((s.get_name(), called or not at_once) for s in t.get_symbols()
                    if s.is_global() and s.is_referenced())
        yield from _inner(t, called or not at_once)

def _names(statement):
    "What a statement asks for at once, what only when it is called, and what it makes"
    if isinstance(statement, ast.ImportFrom) and statement.names[0].name == '*':
        module = importlib.import_module(statement.module)
        return set(), set(), set(getattr(module, '__all__', vars(module)))
    table = symtable.symtable(ast.unparse(statement), 'block', 'exec')
    made = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    walrus = {n.target.id for n in ast.walk(statement) if isinstance(n, ast.NamedExpr)}
    inner = list(_inner(table))
    asked = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    asked |= {n for n,called in inner if not called}
    called = {n for n,called in inner if called}
    if isinstance(statement, ast.AugAssign): return asked | made, called, made
    # `x = x + 1` needs an x; in a loop or a block what is made may be asked for below
    own = walrus if isinstance(statement, ast.Assign) else made | walrus
    return asked - own, called, made | walrus

def lacking(codes, out_of_sight=()):
    """Names that the blocks ask for and none before makes; what a function asks for may be made
    below it, as long as it is made. What the blocks numbered in `out_of_sight` make is not there"""
    have,later,found = {*dir(builtins), '__name__', '__file__', 'get_ipython', 'display'},set(),[]
    for n,code in enumerate(codes):
        for statement in ast.parse(code).body:
            asked,called,made = _names(statement)
            if n in out_of_sight:
                have -= made
                continue
            found += sorted(asked - have)
            later |= called
            have |= made
    return found + sorted(later - have)
