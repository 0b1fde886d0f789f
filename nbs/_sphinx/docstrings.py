"""Docments become docstrings: what the comment behind a parameter says stands where `help(f)`, `f?`
and editors look, and the signature is written without it.

nbdev leaves docments as comments, which only its own pages read. nbdev-export calls `explain`
through export.py; in the notebooks nothing changes.
"""
import ast, io, re, tokenize
from textwrap import dedent, fill, indent

WIDTH = 112
LINE = 100    # characters in a line of code
# a checker of types reads it: the line stays
_ignored = re.compile(r'type: ignore\S*(?: # |$)')
_keywords = '\n\nKeyword Args:'    # written by hand; stands between `Args:` and `Returns:`
_sections = re.compile(r'\n\n(Args|Attributes|Returns):\n.*', re.S)

def comments(source):
    "Line number -> the comment that ends it; lines with a comment alone are left out"
    lines = source.splitlines()
    found = (t for t in tokenize.generate_tokens(io.StringIO(source).readline)
             if t.type == tokenize.COMMENT)
    return {t.start[0]: _ignored.sub('', t.string.lstrip('# '), 1).rstrip() for t in found
            if lines[t.start[0]-1][:t.start[1]].strip()}

def pairs(a):
    "The parameters of a signature, but for `self`, each with its default or None"
    bare = [None]*(len(a.posonlyargs) + len(a.args) - len(a.defaults))
    defaults = [*bare, *a.defaults, None, *a.kw_defaults, None]
    every = zip([*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg], defaults)
    return [(x, d) for x,d in every if x and x.arg not in ('self', 'cls')]

def parameters(function, lines, said):
    "Name of each parameter -> what its comment says, and what is said of the return"
    # the last parameter of a line owns its comment
    ends = {(d or x).end_lineno: x.arg for x,d in pairs(function.args)}
    closing = max([function.lineno, *ends, function.returns.end_lineno if function.returns else 0])
    body = function.body[0].lineno    # a short one is on the same line
    while closing < body and not lines[closing-1].split('#')[0].rstrip().endswith(':'): closing += 1
    return {name: said[line] for line,name in ends.items() if line in said
            and line != closing}, said.get(closing, '')

def fields(cls):
    "Its annotated fields"
    return [x for x in cls.body if isinstance(x, ast.AnnAssign) and isinstance(x.target, ast.Name)
            and not x.target.id.startswith('_')]

def made_by(cls):
    "Its `__init__`, if it has one"
    return next((f for f in cls.body if isinstance(f, ast.FunctionDef) and f.name == '__init__'),
                None)

def _section(title, rows):
    lines = [fill(f'{name}: {text}' if name else text, WIDTH-12, initial_indent='    ',
                  subsequent_indent='        ' if name else '    ',
                  break_long_words=False, break_on_hyphens=False) for name,text in rows.items()
             if text]
    return f'\n\n{title}:\n' + '\n'.join(lines) if lines else ''

def _docstring(doc, sections, pad):
    "The lines of a docstring"
    text,*keywords = _sections.sub('', dedent(doc)).rstrip().split(_keywords)
    args,*returned = sections.split('\n\nReturns:')
    text = ''.join([text, args, *(_keywords + k for k in keywords),
                    *('\n\nReturns:' + r for r in returned)])
    quotes = 'r"""' if '\\' in text else '"""'
    if '\n' not in text: return [f'{pad}{quotes}{text}"""']
    return [*indent(quotes + text, pad, lambda line: bool(line.strip())).splitlines(), f'{pad}"""']

def _edits(tree, lines, said):
    """(node, docstring of the node or None, text, sections) of what is public and has something
    to say"""
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)): continue
        # `__init__` is told by its class
        if node.name.startswith('_') and node.name != '__call__': continue
        doc = ast.get_docstring(node, clean=True)
        if isinstance(node, ast.FunctionDef):
            rows,returned = parameters(node, lines, said)
            sections = _section('Args', rows) + _section('Returns', {'': returned} if node.returns
                                                         else {})
        else:
            init = made_by(node)
            sections = _section('Args', parameters(init, lines, said)[0]) if init else _section(
                'Attributes', {x.target.id: said.get(x.end_lineno, '') for x in fields(node)})
            yield from _edits(node, lines, said)
        if sections and doc: yield node, doc, sections

def _pieces(text):
    "Of a signature, without comments: `def f(`, each parameter, `)->Tensor:`"
    pieces,depth,closed,rows,end = [''],0,False,text.splitlines(),(1, 0)
    for t in tokenize.generate_tokens(io.StringIO(text).readline):
        if t.type in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT): continue
        if t.type == tokenize.NEWLINE: break
        depth += (t.string in ('(', '[', '{')) - (t.string in (')', ']', '}'))
        if t.string == ')' and not depth and not closed:
            pieces.append('')
            closed = True
        same = t.start[0] == end[0]
        pieces[-1] += (rows[end[0]-1][end[1]:t.start[1]] if same else ' ') + t.string
        if depth == 1 and not closed and t.string in ('(', ','): pieces.append('')
        end = t.end
    head,*parameters,tail = [re.sub(r'([([{]) ', r'\1', piece.strip()) for piece in pieces]
    parameters = [p for p in parameters if p]
    if parameters: parameters[-1] = parameters[-1].removesuffix(',')
    return head, parameters, tail

def _laid(head, parameters, tail, pad, column):
    "Lines of a signature whose parameters begin in `column`; 0: on a line of their own"
    lines = [pad + head] + ([] if column else [' '*(len(pad) + 8)])
    start = ' '*(column or len(pad) + 8)
    for i,p in enumerate(parameters, 1):
        room = LINE - (len(tail) if i == len(parameters) else 0)
        space = ' ' if lines[-1].strip() and not lines[-1].endswith('(') else ''
        if len(lines[-1] + space + p) > room and lines[-1].strip() and i > 1:
            lines.append(start)
            space = ''
        lines[-1] += space + p
    return lines[:-1] + [lines[-1] + tail]

def _signature(text, pad):
    "Lines of a signature without comments, as few as hold it"
    pieces = _pieces(text)
    ways = [_laid(*pieces, pad, column) for column in (len(pad + pieces[0]), 0)]
    return min(ways, key=lambda lines: (max(map(len, lines)) > LINE, len(lines)))

def _replaced(node, doc, sections, lines, said):
    """(first line, line after the last, new lines) of what a node's docstring and signature
    become, counted from 0"""
    def above(body):
        "The line after the colon; comments above the first line stay below"
        end = min([body.lineno, *(d.lineno for d in getattr(body, 'decorator_list', []))]) - 1
        while not lines[end-1].split('#')[0].rstrip().endswith(':'): end -= 1
        return end
    def signature(f):
        start,end = f.lineno - 1,above(f.body[0])
        head = lines[start:end]
        if any(n in said for n in range(f.lineno, end+1)) and not any(map(_ignored.search, head)):
            head = _signature('\n'.join(head) + '\n', ' '*f.col_offset)
        return start, end, head
    first = node.body[0]
    constant = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    old = constant and isinstance(first.value.value, str)
    start = first.lineno - 1 if old else above(first)
    yield start, first.end_lineno if old else start, _docstring(doc, sections, ' '*first.col_offset)
    if isinstance(node, ast.FunctionDef): yield signature(node)
    elif init := made_by(node): yield signature(init)
    else:
        for x in fields(node):
            n = x.end_lineno
            if n in said and not _ignored.search(lines[n-1]):
                yield n-1, n, [lines[n-1][:x.end_col_offset]]

def explain(source):
    """The source of a module, with `Args:`, `Attributes:` and `Returns:` in the docstrings of
    all that is public, and without the comments that say the same"""
    lines,said = source.splitlines(),comments(source)
    found = [edit for node,doc,sections in _edits(ast.parse(source), lines, said)
             if node.body[0].lineno != node.lineno    # all on one line
             for edit in _replaced(node, doc, sections, lines, said)]
    for start,end,new in sorted(found, key=lambda edit: -edit[0]): lines[start:end] = new
    return '\n'.join(lines) + '\n'
