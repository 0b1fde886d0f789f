"""What the book asks of a page: lessons and workshops, proofs that fold, budgets. The site build and the tests ask here.

A cell is a dictionary as in a notebook's JSON; its source may be a string or a list of lines.
"""
import ast, difflib, json, re
from textwrap import dedent
import yaml

WIDTH = 100                                             # characters in a line of code
OPEN_PROOF = 5                                          # lines of code in a cell that only asserts and stays open
OPEN_CELL,FUNCTION,CLASS,CHECKS = 30,20,60,25           # of a lesson: lines of an open cell, of an exported function, of a class; % of open lines in checks
NAMES = dict(lesson=8, workshop=12)                     # exported public names
NOTES = 3                                               # #| explain notes of a lesson, at least
NAMES_OF = {'09_transformer': 12}

DIRECTIVES = {'hide', 'export', 'exports', 'exporti', 'exportd', 'eval', 'default_exp', 'slow', 'net', 'gpu', 'timed', 'echo', 'include', 'output'}

# %% pages
_page = re.compile(r'(\d+)([a-z]?)_\w+')

def kind(name):
    "'lesson' for NN_name, 'workshop' for NNa_name, None for any other page"
    m = _page.fullmatch(name)
    return None if m is None else 'workshop' if m[2] else 'lesson'

def number(name):
    "The number of a chapter as a tuple: ('3',) of 03_attention, ('3a',) of 03a_fast, () of any other page"
    m = _page.fullmatch(name)
    return () if m is None else (f'{int(m[1])}{m[2]}',)

def lesson_of(name, names):
    "The lesson among `names` that the workshop `name` belongs to, or None"
    number = _page.fullmatch(name)[1]
    return next((n for n in names if kind(n) == 'lesson' and _page.fullmatch(n)[1] == number), None)

def workshops_of(name, names): return sorted(n for n in names if kind(n) == 'workshop' and lesson_of(n, names) == name)

# %% cells
def source(cell): return ''.join(cell['source'])
def directive(cell, name): return re.search(rf'^#\|\s*{name}\b', source(cell), re.M) is not None
def exported(cell): return directive(cell, 'export[si]?')
def code_lines(cell): return [l for l in source(cell).splitlines() if l.strip() and not l.lstrip().startswith('#|')]

def join_options(text):
    "A code cell with each option of several lines, `#| name: >-` and indented lines below, on one line as nbdev wants it"
    def joined(m): return f'{m[1]}: {json.dumps(" ".join(re.sub(r"^#[|]", "", m[2], flags=re.M).split()), ensure_ascii=False)}\n'
    return re.sub(r'^(#\|\s*[\w-]+):[ \t]*[>|]-?[ \t]*\n((?:#\|[ \t]{2,}.*(?:\n|\Z))+)', joined, text, flags=re.M)

def split_options(text):
    "The options that begin a code cell, `#| name: value`, as a dictionary, and the rest of it"
    options,lines = {},join_options(text).splitlines()
    while lines and (m := re.match(r'#\|\s*([\w-]+):?\s*(.*)', lines[0])):
        try: options[m[1]] = yaml.safe_load(m[2]) if m[2] else True
        except yaml.YAMLError: raise ValueError(f'{lines[0]!r} is not YAML: put the value in double quotes') from None
        lines.pop(0)
    return options, '\n'.join(lines).strip('\n')

def folded(options): return options.get('code-fold') in (True, 'true')
def hidden(options): return bool(options.keys() & {'hide', 'default_exp'}) or options.get('echo') is False or options.get('include') is False

def syntax(text):
    "The syntax tree of a cell without its magics; an empty one if it is not Python"
    for code in (text, '\n'.join(l for l in text.splitlines() if not re.match(r'\s*[%!?]', l))):
        try: return ast.parse(code)
        except SyntaxError: pass
    return ast.Module([], [])

def checks(text):
    "How many assertions stand in this code: `assert`, and calls of test_..., assert_..., expect_fail, gradcheck; one in a loop is one"
    def name(f): return f.id if isinstance(f, ast.Name) else f.attr if isinstance(f, ast.Attribute) else ''
    return sum(isinstance(n, ast.Assert) or isinstance(n, ast.Call) and bool(re.match('test_|assert_|expect_fail|gradcheck', name(n.func)))
               for n in ast.walk(syntax(text)))

def only_asserts(cell): return not exported(cell) and checks(source(cell)) > 0 and not cell.get('outputs')

def fold_label(options, text):
    "What the site shows on a folded cell: its summary, and for a proof a tick and the number of its checks"
    summary,n = str(options.get('code-summary', '')).strip(),checks(text)
    if not n or options.keys() & {'export', 'exports', 'exporti'}: return summary
    return f'✓ {summary} · {n} {"check" if n == 1 else "checks"}'

# %% #| explain
EXPLAIN = re.compile(r'\A#\|\s*explain\b:?[ \t]*(.*)\n?')

def quoted_lines(code, quote):
    'The lines of `code` that `quote` names: `"part of a line"`, or a range `"part of the first" to "part of the last"`; None if it has none'
    def squash(s): return re.sub(r'\s', '', s)
    lines,parts = code.splitlines(),re.split(r'"\s+to\s+"', quote.strip().strip('"'))
    first = next((i for i,l in enumerate(lines) if squash(parts[0]) in squash(l)), None)
    last = None if first is None else next((i for i,l in enumerate(lines) if i >= first and squash(parts[-1]) in squash(l)), None)
    return None if last is None or not all(map(squash, parts)) else dedent('\n'.join(lines[first:last+1]))

def explain_problems(cells, name):
    "Notes whose quote is not in the code above them, each with the line that is most like it"
    found,code = [],''
    for i,heading,c in places(cells, ('code', 'markdown')):
        if c['cell_type'] == 'code': code = source(c)
        elif (m := EXPLAIN.match(source(c))) and quoted_lines(code, m[1]) is None:
            near = difflib.get_close_matches(m[1].strip().strip('"'), [l.strip() for l in code.splitlines()], 1, .3)
            found.append(f'{name}.ipynb, under {heading!r}, cell {i} ({c.get("id", "no id")}), line 1: #| explain quotes code that is not in the cell above it: '
                         f'{m[1] or "nothing"}' + (f'; there is {near[0]!r}' if near else ''))
    return found

# %% what a page may not do
def places(cells, kinds=('code',)):
    "(number of the cell, nearest heading above it, cell) of each cell of these kinds"
    heading = ''
    for i,c in enumerate(cells):
        if c['cell_type'] == 'markdown':
            prose = re.sub(r'^```.*?^```', '', source(c), flags=re.M|re.S)
            heading = ([heading] + re.findall(r'^#{1,6}\s+(.+?)\s*$', prose, re.M))[-1]
        if c['cell_type'] in kinds: yield i,heading,c

def mixes_imports(cell):
    "Imports beside other statements: nbdev runs such a cell when it makes the docs, and its names may not be there"
    kinds = {isinstance(n, (ast.Import, ast.ImportFrom)) for n in syntax(source(cell)).body}
    return not exported(cell) and kinds == {True, False}

def fold_problems(cells, name):
    "What is wrong with the folds and notes of the notebook `name`, each with notebook, nearest heading and cell"
    found = explain_problems(cells, name)
    for i,heading,c in places(cells):
        lines = code_lines(c)
        where = f'{name}.ipynb, under {heading!r}, cell {i} ({c.get("id", "no id")}: {lines[0].strip()[:40] if lines else ""!r})'
        try: options,_ = split_options(source(c))
        except ValueError as e: found.append(f'{where}: {e}'); continue
        if clash := re.search(r'^#\|[ \t]{2,}(\S*)', source(c), re.M):
            if clash[1].rstrip(':') in DIRECTIVES: found.append(f'{where}: a line of an option begins with {clash[1].rstrip(":")!r}, which nbdev takes for a directive; break the lines elsewhere')
        if not hidden(options) and mixes_imports(c): found.append(f'{where}: imports and other code in one cell, which nbdev would run for the docs; give imports a cell of their own')
        if folded(options):
            if not isinstance(options.get('code-summary'), str) or not options['code-summary'].strip():
                found.append(f'{where}: folded without a summary; add #| code-summary: "what it proves or holds, in words"')
            if exported(c) and kind(name) == 'lesson': found.append(f'{where}: a lesson shows all the code it exports; unfold it, or move it to a workshop')
        elif not hidden(options) and only_asserts(c) and len(lines) > OPEN_PROOF:
            found.append(f'{where}: {len(lines)} lines that only assert stand open; fold them (#| code-fold: true, #| code-summary: "the claim"), '
                         f'or move what is not a check to a cell of its own')
    return found

# %% budgets
def size(node, text):
    "Lines of a function or class, without blank lines, decorators, docstrings, and lines that hold only parameters and their docments (fields of a dataclass too)"
    lines = text.splitlines()
    drop = {n for n,l in enumerate(lines, 1) if not l.strip()}
    for d in ast.walk(node):
        if not isinstance(d, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)): continue
        first = d.body[0]
        is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        if is_doc and first.lineno > d.lineno: drop |= set(range(first.lineno, first.end_lineno+1))
        drop |= set(range(min([d.lineno, *(x.lineno for x in d.decorator_list)]), d.lineno))
        if not isinstance(d, ast.ClassDef): drop |= set(range(d.lineno+1, first.lineno))
        elif any('dataclass' in ast.unparse(x) for x in d.decorator_list): drop |= {f.lineno for f in d.body if isinstance(f, ast.AnnAssign) and '#' in lines[f.lineno-1]}
    return len(set(range(node.lineno, node.end_lineno+1)) - drop)

def definitions(cell): return [n for n in syntax(source(cell)).body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]

def open_lines(cell):
    "Lines of a cell, without directives, blank lines, and what `size` leaves out of its definitions"
    text,kinds = source(cell),(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    whole = [n for n in syntax(text).body if isinstance(n, kinds)]
    inside = sum(len([l for l in text.splitlines()[n.lineno-1:n.end_lineno] if l.strip()]) - size(n, text) for n in whole)
    return len(code_lines(cell)) - inside

def figure_problems(cells, name):
    "Pictures of a page without a caption, or without a text for those who do not see them"
    found = []
    for i,heading,c in places(cells):
        shown = [o.get('data', {}) for o in c.get('outputs', [])]
        drawn = [''.join(data.get('image/svg+xml', '')) for data in shown if any(kind.startswith('image/') for kind in data)]
        try: options = split_options(source(c))[0]
        except ValueError: continue
        if not drawn or hidden(options) and options.get('echo') is not False or options.get('output') is False or str(options.get('code-summary', '')).startswith('Answer'): continue
        where = f'{name}.ipynb, under {heading!r}, cell {i}: a picture without'
        if 'fig-cap' not in options: found.append(f'{where} a caption; add #| fig-cap: "what to see in it"')
        if 'fig-alt' not in options and not all('<desc' in svg for svg in drawn): found.append(f'{where} a text; add #| fig-alt: "what it shows, in words"')
    return found

def share_of_checks(code):
    "Per cent of the lines on the open page that stand in cells that only assert"
    on_page = [c for c in code if not directive(c, 'code-fold') and not directive(c, 'hide') and not directive(c, 'echo')]
    return round(100 * sum(len(code_lines(c)) for c in on_page if only_asserts(c)) / max(1, sum(len(code_lines(c)) for c in on_page)))

def first_prose(cells):
    "The first prose of a page below its title and promise"
    for c in cells:
        if c['cell_type'] != 'markdown': continue
        text = re.sub(r'\A\s*# .*\n*(^>.*\n?)*', '', source(c), flags=re.M).strip()
        if text: return text
    return ''

def budget_problems(cells, name, public=(), names=()):
    "Where the page `name` leaves its budgets; `public`: what it exports, `names`: all pages of the book"
    found = fold_problems(cells, name)
    code = [c for c in cells if c['cell_type'] == 'code']
    for i,heading,c in places(cells):
        where = f'{name}.ipynb, under {heading!r}, cell {i}'
        found += [f'{where}: a line of {len(l)} characters, {WIDTH} at most: {l.strip()[:40]}' for l in source(c).splitlines() if len(l) > WIDTH]
        try: options = split_options(source(c))[0]
        except ValueError: continue                    # named among the folds
        most = CLASS if any(isinstance(d, ast.ClassDef) for d in definitions(c)) else OPEN_CELL
        if not folded(options) and not hidden(options) and (n := open_lines(c)) > most: found.append(f'{where}: {n} open lines, {most} at most')
        if kind(name) == 'lesson' and exported(c):
            for d in definitions(c):
                most = CLASS if isinstance(d, ast.ClassDef) else FUNCTION
                if size(d, source(c)) > most: found.append(f'{where}: {d.name} has {size(d, source(c))} lines, {most} at most')
    if kind(name) is None: return found
    most = NAMES_OF.get(name, NAMES[kind(name)])
    if len(public) > most: found.append(f'{name}.ipynb exports {len(public)} public names, {most} at most: {", ".join(public)}')
    found += figure_problems(cells, name)
    if kind(name) == 'lesson':
        if share_of_checks(code) > CHECKS: found.append(f'{name}.ipynb: {share_of_checks(code)} % of the open lines only assert, {CHECKS} % at most')
        notes = sum(source(c).startswith('#| explain') for c in cells if c['cell_type'] == 'markdown')
        if notes < NOTES: found.append(f'{name}.ipynb: {notes} #| explain notes, {NOTES} at least')
    else:
        lesson = lesson_of(name, names)
        if lesson is None: found.append(f'{name}.ipynb is a workshop without a lesson')
        elif f']({lesson}.ipynb' not in first_prose(cells): found.append(f'{name}.ipynb: its first prose does not link its lesson, [...]({lesson}.ipynb)')
    return found
