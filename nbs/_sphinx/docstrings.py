"""Docments become docstrings: what the comment behind a parameter says also stands where `help(f)`,
`f?` and editors look.

nbdev leaves docments as comments, which only its own pages read. nbdev-export calls `explain`
through export.py; in the notebooks nothing changes. A section `Args:` or `Returns:` from an
earlier run is written anew.
"""
import ast, io, re, tokenize
from textwrap import dedent, fill, indent

WIDTH = 112
_ignored = re.compile(r'^type: ignore\S*(?: # |$)')             # for the checker of types
_sections = re.compile(r'\n\n(Args|Attributes|Returns):\n.*', re.S)

def comments(source):
    "Line number -> the comment that ends it; lines with a comment alone are left out"
    lines = source.splitlines()
    found = (t for t in tokenize.generate_tokens(io.StringIO(source).readline)
             if t.type == tokenize.COMMENT)
    return {t.start[0]: _ignored.sub('', t.string.lstrip('# ')).rstrip() for t in found
            if lines[t.start[0]-1][:t.start[1]].strip()}

def _parameters(function, lines, said):
    "Name of each parameter -> what its comment says, and what is said of the return"
    a = function.args
    bare = [None]*(len(a.posonlyargs) + len(a.args) - len(a.defaults))
    defaults = [*bare, *a.defaults, None, *a.kw_defaults, None]
    every = zip([*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg], defaults)
    # the last parameter of a line owns its comment
    ends = {(d or x).end_lineno: x.arg for x,d in every if x and x.arg not in ('self', 'cls')}
    closing = max([function.lineno, *ends, function.returns.end_lineno if function.returns else 0])
    while not lines[closing-1].split('#')[0].rstrip().endswith(':'): closing += 1
    return {name: said[line] for line,name in ends.items() if line in said
            and line != closing}, said.get(closing, '')

def _fields(cls, said):
    "Name of each annotated field -> what its comment says"
    fields = [x for x in cls.body if isinstance(x, ast.AnnAssign) and isinstance(x.target, ast.Name)
              and not x.target.id.startswith('_')]
    return {x.target.id: said.get(x.end_lineno, '') for x in fields}

def _section(title, rows):
    lines = [fill(f'{name}: {text}' if name else text, WIDTH-12, initial_indent='    ',
                  subsequent_indent='        ' if name else '    ',
                  break_long_words=False, break_on_hyphens=False) for name,text in rows.items()
             if text]
    return f'\n\n{title}:\n' + '\n'.join(lines) if lines else ''

def _docstring(doc, sections, pad):
    "The lines of a docstring"
    text = _sections.sub('', dedent(doc)).rstrip() + sections
    quotes = 'r"""' if '\\' in text else '"""'
    if '\n' not in text: return [f'{pad}{quotes}{text}"""']
    return [*indent(quotes + text, pad, lambda line: bool(line.strip())).splitlines(), f'{pad}"""']

def _edits(tree, lines, said):
    """(node, docstring of the node or None, text, sections) of what is public and has something
    to say"""
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)): continue
        if node.name.startswith('_'): continue    # `__init__` is told by its class
        doc = ast.get_docstring(node, clean=True)
        if isinstance(node, ast.FunctionDef):
            rows,returned = _parameters(node, lines, said)
            sections = _section('Args', rows) + _section('Returns', {'': returned} if node.returns
                                                         else {})
        else:
            init = next((f for f in node.body if isinstance(f, ast.FunctionDef)
                         and f.name == '__init__'), None)
            sections = _section('Args', _parameters(init, lines,
                                                    said)[0]) if init else _section('Attributes',
                                                    _fields(node, said))
            yield from _edits(node, lines, said)
        if sections and doc: yield node, doc, sections

def explain(source):
    """The source of a module, with `Args:`, `Attributes:` and `Returns:` in the docstrings of
    all that is public"""
    lines,said = source.splitlines(),comments(source)
    for node,doc,sections in sorted(_edits(ast.parse(source), lines, said),
                                    key=lambda e: -e[0].lineno):
        first = node.body[0]
        if first.lineno == node.lineno: continue    # all on one line
        constant = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        old = constant and isinstance(first.value.value, str)
        start = min([first.lineno, *(d.lineno for d in getattr(first, 'decorator_list', []))]) - 1
        while not old and not lines[start-1].split('#')[0].rstrip().endswith(':'):
            start -= 1    # comments above the first line stay below
        lines[start:first.end_lineno if old else start] = _docstring(doc, sections,
            ' '*first.col_offset)
    return '\n'.join(lines) + '\n'
