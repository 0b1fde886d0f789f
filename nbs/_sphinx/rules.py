"""What the book asks of a page: folds and notes (the build fails on them), and budgets (the tests).

A problem is a pair: what kind it is, and a sentence that says where.
"""
import difflib, re
from cells import *                                     # the tests know both as rules

WIDTH,SHOWN = 100,84                    # characters in a line of code; in code that a lesson shows
OPEN_PROOF = 5                                          # lines that only assert and stay open
WORDS = 2300                                            # of a lesson
GUIDE = 700                                             # words of a guide

DIRECTIVES = {'hide', 'export', 'exports', 'exporti', 'exportd', 'eval', 'default_exp', 'slow',
              'net', 'gpu', 'timed', 'trained', 'whole', 'example', 'echo', 'include', 'output'}

def places(cells, kinds=('code',)):
    "(number of the cell, nearest heading above it, cell) of each cell of these kinds"
    heading = ''
    for i,c in enumerate(cells):
        if c['cell_type'] == 'markdown':
            prose = re.sub(r'^```.*?^```', '', source(c), flags=re.M|re.S)
            heading = ([heading] + re.findall(r'^#{1,6}\s+(.+?)\s*$', prose, re.M))[-1]
        if c['cell_type'] in kinds: yield i,heading,c

# %% folds and notes
def explain_problems(cells, name):
    "Notes whose quote is not in the code above them, each with the line that is most like it"
    code = ''
    for i,heading,c in places(cells, ('code', 'markdown')):
        if c['cell_type'] == 'code': code = source(c)
        elif (m := EXPLAIN.match(source(c))) and quoted_lines(code, m[1]) is None:
            lines = [l.strip() for l in code.splitlines()]
            near = difflib.get_close_matches(m[1].strip(' "'), lines, 1, .3)
            where = f'{name}.ipynb, under {heading!r}, cell {i} ({c.get("id", "no id")}), line 1'
            yield 'notes',(f'{where}: #| explain quotes code that is not in the cell above it: '
                           f'{m[1] or "nothing"}' + (f'; there is {near[0]!r}' if near else ''))

def cell_problems(c, options, lesson):
    "What is wrong with the folds of a code cell, in words"
    n = len(code_lines(c))
    texts = [o for o in c.get('outputs', []) if [*o.get('data', ())] == ['text/plain']]
    if 'fig-cap' in options and texts:
        yield 'its caption stands below a text; end the last line with a semicolon'
    clash = re.search(r'^#\|[ \t]{2,}(\S*)', source(c), re.M)
    if clash and (word := clash[1].rstrip(':')) in DIRECTIVES:
        yield f'a line of an option begins with {word!r}, a directive of nbdev; break it elsewhere'
    if folded(options):
        if not str(options.get('code-summary') or '').strip():
            yield 'folded without a summary; add #| code-summary: "what it proves, in words"'
        if exported(c) and lesson:
            yield 'a lesson shows all the code it exports; unfold it, or move it to the library'
    elif not hidden(options) and only_asserts(c) and n > OPEN_PROOF:
        yield (f'{n} lines that only assert stand open; fold them (#| code-fold: true, '
               '#| code-summary: "the claim"), or move what is not a check')

def fold_problems(cells, name):
    "What is wrong with the folds and notes of the notebook `name`, or with a number of lessons"
    yield from explain_problems(cells, name)
    n = sum(kind(name_of(path)) == 'lesson' for path in nbs.glob('*.ipynb'))
    for said in re.findall(r'\b(\d+) lessons\b', '\n'.join(map(source, cells))):
        if int(said) != n: yield 'counts',f'{name}.ipynb: it says {said} lessons, there are {n}'
    for i,heading,c in places(cells):
        first = (code_lines(c) or [''])[0].strip()[:40]
        where = f'{name}.ipynb, under {heading!r}, cell {i} ({c.get("id", "no id")}: {first!r})'
        try: options,_ = split_options(source(c))
        except ValueError as e: yield 'folds',f'{where}: {e}'; continue
        for problem in cell_problems(c, options, kind(name) == 'lesson'):
            yield 'folds',f'{where}: {problem}'

# %% budgets
def figure_problems(c, options):
    "A picture without a caption, or without a text for those who do not see it"
    shown = [o.get('data', {}) for o in c.get('outputs', [])]
    drawn = [''.join(data.get('image/svg+xml', '')) for data in shown
             if any(kind.startswith('image/') for kind in data)]
    unseen = hidden(options) and options.get('echo') is not False or options.get('output') is False
    answer = str(options.get('code-summary', '')).startswith('Answer')
    if not drawn or unseen or answer: return
    if 'fig-cap' not in options: yield 'a caption; add #| fig-cap: "what to see in it"'
    if 'fig-alt' not in options and not all('<desc' in svg for svg in drawn):
        yield 'a text; add #| fig-alt: "what it shows, in words"'

def code_problems(cells, name):
    for i,heading,c in places(cells):
        where = f'{name}.ipynb, under {heading!r}, cell {i}'
        try: options,_ = split_options(source(c))
        except ValueError: options = dict(hide=True)   # named among the folds
        narrow = kind(name) == 'lesson' and not hidden(options)
        for l in source(c).splitlines():
            most = SHOWN if narrow and not l.startswith('#|') else WIDTH
            if len(l) > most:
                yield 'width',f'{where}: a line of {len(l)} characters, {most} at most: {l[:40]}'
        for lack in figure_problems(c, options) if kind(name) else ():
            yield 'pictures',f'{where}: a picture without {lack}'

def budget_problems(cells, name, names=()):
    "Where the page `name` leaves its budgets; `names`: all pages"
    yield from fold_problems(cells, name)
    yield from code_problems(cells, name)
    of = kind(name)
    most = dict(guide=GUIDE, lesson=WORDS).get(of)
    if of in ('library', 'notes') and name != 'notes/index' and lesson_of(name, cells) not in names:
        yield 'lesson',f'{name}.ipynb: its first prose does not link a lesson'
    if most and (said := words(cells)) > most:
        yield 'words',f'{name}.ipynb: {said} words, {most} at most'
