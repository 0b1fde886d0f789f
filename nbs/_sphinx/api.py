"""Sphinx extension: a page for every public name, api/NAME.html, and the list of them, in groups of
tasks, where `<!-- api -->` stands.

Before Sphinx reads, a few lines for each name are written to nbs/api, which git ignores: they ask
autodoc for signature, docstring and methods, and bring links, errors and an example. What the
docstring says of parameters becomes a table, with types and defaults as the code writes them.
"""
import ast, builtins, collections, copy, functools, inspect, re
from pathlib import Path
from textwrap import dedent, indent
from typing import is_typeddict
import nbdev.config
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole
import cells, docstrings, package

config = functools.cache(nbdev.config.get_config)      # else its file is read each time
MARK,WORDS = '<!-- api -->','<!-- words -->'
ERRORS,LONG = 5,300                                    # shown of one name; letters of a value

# %% what the modules say
@functools.cache
def lines(module):
    path = config().lib_path/f'{module.replace(".", "/")}.py'
    return path.read_text(encoding='utf-8').splitlines()

def definitions_in(code):
    "Name -> its node"
    def target(n): return getattr(n, 'targets', [getattr(n, 'target', n)])[0]
    return {getattr(target(n), 'id', getattr(target(n), 'name', None)): n
            for n in cells.syntax(code).body}

@functools.cache
def definitions(module): return definitions_in('\n'.join(lines(module)))

def homes(): return package.homes(config().lib_path)

@functools.cache
def groups():
    "Title -> names that are offered, and the other public names of their modules, or of the room"
    found = {title: (names.split(), []) for title,names in package.offered.items()}
    offered = [(n, homes()[n], t) for t,(names,_) in found.items() for n in names if n in homes()]
    near = {}
    for _,m,t in offered: near.setdefault(m, t)
    for _,m,t in offered: near.setdefault(m.split('.')[0], t)
    for n,m in homes().items():
        if not is_offered(n):
            found[near.get(m) or near.get(m.split('.')[0], [*found][0])][1].append(n)
    return found

def node_of(name): return definitions(homes()[name])[name]
def page(name): return package.page(config().lib_path, name)
def full(name): return f'{config().lib_path.name}.{homes()[name]}.{name}'
def is_constant(node): return isinstance(node, (ast.Assign, ast.AnnAssign))
def is_offered(name): return name in ' '.join(package.offered.values()).split()

def remark(text, node):
    "What a comment behind or above `node` says"
    behind = re.search(r'# (.*)', text[node.end_lineno-1][node.end_col_offset:])
    above = [l.strip() for l in text[:node.lineno-1]]
    n = next((i for i,l in enumerate(above[::-1]) if not re.match('# (?!%%)', l)), len(above))
    return behind[1] if behind else ' '.join(l[2:] for l in above[len(above)-n:])

class Interface(ast.NodeTransformer):
    "A definition as its user sees it: docstrings for bodies, nothing private"
    def visit_If(self, node): return None
    def visit_FunctionDef(self, node):
        if re.match('_(?!_(init|call)__)', node.name): return None
        node.body = [ast.Expr(ast.Constant(ast.get_docstring(node) or ...))]
        node.decorator_list = [d for d in node.decorator_list if isinstance(d, ast.Name)]
        return node

@functools.cache
def interface(name):
    text = ast.unparse(ast.fix_missing_locations(Interface().visit(copy.deepcopy(node_of(name)))))
    return f'{name} = ...' if is_constant(node_of(name)) and len(text) > LONG else text

@functools.cache
def modules_of(room):
    return [m for m in package.modules_in(config().lib_path) if m.split('.')[0] == room]

def seen(name):
    "All that its page shows of the package"
    bases = {getattr(b, 'id', 'Protocol') for b in getattr(node_of(name), 'bases', ())}
    near = modules_of(homes()[name].split('.')[0])
    words = lines('checks') if 'explained' in ast.dump(node_of(name)) else ()
    return [interface(name), words, [lines(m) for m in near if bases - {'Protocol'}]]

@functools.cache
def summary(name):
    "The first line of its docstring, of a constant the comment at its value"
    if is_constant(node := node_of(name)): return remark(lines(homes()[name]), node)
    return (ast.get_docstring(node) or '').split('\n')[0]

# %% what the notebooks say
class Unrolled(ast.NodeTransformer):
    "A loop over what is written out, as what it does each time"
    def __init__(self, values={}): self.values = values
    def visit_Name(self, node): return self.values.get(node.id, node)
    def visit_For(self, node):
        names,found = getattr(node.target, 'elts', [node.target]),[]
        for row in getattr(node.iter, 'elts', ()):
            values = zip((getattr(n, 'id', '') for n in names), getattr(row, 'elts', [row]))
            found += map(Unrolled(dict(values)).visit, copy.deepcopy(node.body))
        return found or node

def failures(page):
    "(name, exception, message, call) of each call in an `expect_fail` that has a public name"
    made = {}
    def called(f):
        if isinstance(f, ast.Name): return f.id if f.id in homes() else made.get(f.id)
        if isinstance(f, ast.Attribute): return f.attr if f.attr in homes() else called(f.value)
    texts = [cells.source(c) for c in page if c['cell_type'] == 'code']
    if not any('expect_fail' in text for text in texts): return
    trees = ((text, cells.syntax(text)) for text in texts)
    for n in (n for text,tree in trees
              for n in ast.walk(Unrolled().visit(tree) if 'expect_fail' in text else tree)):
        if isinstance(n, ast.Assign):
            t,v = (getattr(x, 'elts', [x]) for x in (n.targets[0], n.value))
            made |= {a.id: called(b.func) for a,b in zip(t, v)
                     if isinstance(a, ast.Name) and isinstance(b, ast.Call)}
        if not isinstance(n, ast.With) or len(n.body) > 1: continue
        said = n.items[0].context_expr
        if 'expect_fail' not in ast.dump(said) or len(said.args) < 2: continue
        calls = (called(x.func) for x in ast.walk(n.body[0]) if isinstance(x, ast.Call))
        name,message = next(filter(None, calls), None),getattr(said.args[1], 'value', None)
        if name and isinstance(message, str):
            call = re.sub(r'\*\*dict\((.*)\)\)$', r'\1)', ast.unparse(n.body[0]))
            yield name, ast.unparse(said.args[0]), message, call

@functools.cache
class Book:
    "What the pages in `folder` say of public names"
    def __init__(self, folder):
        self.pages = {cells.name_of(p, folder): cells.load(p) for p in cells.notebooks(folder)}
        writes = {cells.module(p): p for p in self.pages}
        self.home = {n: writes[m] for n,m in homes().items() if m in writes}
        self.failures,self.examples = {},{}
        for p,page in self.pages.items():
            for name,*said in failures(page): self.failures.setdefault(name, []).append((p, *said))
            for c in (c for c in page if cells.directive(c, 'example')):
                options,code = cells.split_options(cells.source(c))
                for name in re.findall(r'\w+', options['example']):
                    self.examples[name] = code, cells.printed(c)

    def errors(self, name):
        "A few, short ones, first of its own page and of calls that say all they need"
        def order(e):
            asked = {*re.findall(r'\b[a-z]\w*\b(?![(=])', e[3])} - {*dir(builtins), 'torch', 'nn'}
            return e[0] != self.home[name], len(asked), len(e[3])
        found = {e[2]: e[1:] for e in sorted(self.failures.get(name, ()), key=order, reverse=True)
                 if len(e[3]) < 80 and '*' not in e[3]}
        return [*found.values()][:-ERRORS-1:-1]

# %% the page of a name
class Code(SphinxRole):
    "Code whose public names are links: the names of classes, or all of it"
    def run(self):
        parts = [self.text] if is_offered(self.text) else re.split(r'(\b[A-Z]\w+)', self.text)
        made = [self.link(p) if p in homes() and (i % 2 or is_offered(p)) else nodes.Text(p)
                for i,p in enumerate(parts)]
        return [nodes.literal('', '', *made)], []
    def link(self, name):
        return pending_xref('', nodes.Text(name), refdomain='py', reftype='obj',
                            reftarget=full(name), refdoc=self.env.docname)

def code(text, role='public'):
    text = re.sub(r'([`\\])', r'\\\1', ' '.join((text or '').split()))
    return f':{role}:`{text}`' if text else ''

def rst(text):
    "Text with code in backticks"
    return ''.join(fr'\ {code(part)}\ ' if i % 2 else re.sub(r'([*|_\\`])', r'\\\1', part)
                   for i,part in enumerate(re.split(r'`([^`\n]+)`', text)))

def table(title, head, rows):
    def row(texts): return '\n'.join(f'   {"  -" if i else "* -"} {t}' for i,t in enumerate(texts))
    return '\n'.join([f'\n.. rubric:: {title}\n' * bool(title), '.. list-table::',
                      '   :class: api-table', '   :header-rows: 1', '',
                      *map(row, [head, *rows]), '']) if rows else ''

def block(language, text): return f'\n.. code-block:: {language}\n\n{indent(text, "   ")}\n'

def pasted(text):
    "An example as a prompt takes it: a blank line ends what is indented"
    return re.sub(r'(\n[ \t]+\S.*\n)(?=[\w@](?!lse\b|lif\b|xcept\b|inally\b))', r'\1\n', text)

def page_of(name, book):
    "Its page, in reStructuredText"
    cfg,m,node,made = config(),homes()[name],node_of(name),book.home[name]
    lesson = explained_in(name, book)
    path,place = f'{cfg.lib_path.name}/{m.replace(".", "/")}.py',f'../{made}.html#{full(name)}'
    links = [f'`Source <{cfg.git_url}/blob/{cfg.branch}/{path}#L{node.lineno}>`__']
    if lesson in book.pages:
        links.insert(0, f'Explained in :doc:`lesson {cells.number(lesson)[0]}, '
                        f'{cells.title(book.pages[lesson])} </{lesson}>`')
    if made != lesson: links.insert(-1, f'Made in `{made} <{place}>`__')
    kinds = {ast.FunctionDef: 'function', ast.ClassDef: 'class'}
    kind,short = kinds.get(type(node), 'data'),interface(name).endswith('= ...')
    bases = [ast.unparse(b) for b in getattr(node, 'bases', ())]
    where = cfg.lib_path.name if is_offered(name) else full(name).rpartition('.')[0]
    example,printed = book.examples.get(name, (f'from {where} import {name}', ''))
    errors = [[code(error), rst(message), code(call, 'literal')]
              for error,message,call in book.errors(name)]
    return '\n'.join([
        ':orphan:\n' * (not is_offered(name)), rst(name), '='*len(rst(name)), '',
        f'.. {package.digest(seen(name))}', '',
        '.. rst-class:: page-kind', '', f'API · {m}', '',
        '.. rst-class:: lead', '', rst(summary(name)), '',
        '.. rst-class:: api-links', '', ' · '.join(links),
        block('python', pasted(example)), block('text', printed) * bool(printed),
        f'.. auto{kind}:: {full(name)}' + '()' * ('TypedDict' in bases),
        *['   :no-value:']*short,
        *['   :special-members: __call__']*('Protocol' in bases), '',
        indent(table('Raises', ('Exception', 'Says', 'Call'), errors), '   ')])

def plain(name, book):
    "Its page as plain text"
    example,printed = (f'\n\n```\n{text}\n```' if text else '' for text in
                       book.examples.get(name, ('', '')))
    made = interface(name)
    return (f'# {name}\n\n> {summary(name)}\n\n```python\n# {full(name)}\n{made}\n```'
            f'{example}{printed}\n')

def write(app):
    "The pages of all names that a notebook of the book makes, where they differ"
    folder,book = Path(app.srcdir, 'api'),Book(Path(app.srcdir))
    names = book.home if folder.with_suffix('.ipynb').exists() else {}
    pages = {f'{page(n)}.rst': page_of(n, book) for n in names}
    app.api_texts = {page(n): plain(n, book) for n in names}
    for path in {*folder.glob('*.rst')} - {Path(app.srcdir, p) for p in pages}: path.unlink()
    for path,text in ((Path(app.srcdir, p), text) for p,text in pages.items()):
        if path.exists() and path.read_text(encoding='utf-8') == text: continue
        folder.mkdir(exist_ok=True)
        path.write_text(text, encoding='utf-8')

# %% what autodoc finds
def written(obj):
    "Parameter, field or 'return' -> type, default and remark, as the code writes them"
    found,own = collections.defaultdict(lambda: ('', '', '')),config().lib_path.name
    for o in reversed(inspect.getmro(obj)) if inspect.isclass(obj) else [inspect.unwrap(obj)]:
        if not o.__module__.startswith(f'{own}.'): continue
        text = dedent(inspect.getsource(o))
        node = ast.parse(text).body[0]
        made = docstrings.made_by(node) if isinstance(node, ast.ClassDef) else node
        pairs = [(x.arg, x.annotation, d) for x,d in docstrings.pairs(made.args)] if made else [
            (x.target.id, x.annotation, x.value) for x in docstrings.fields(node)]
        said = docstrings.parameters(made, text.splitlines(), docstrings.comments(text))[0] \
            if made else {}                            # of a private class they are no docstring
        found |= {n: [t and ast.unparse(t), d and ast.unparse(d), said.get(n, '')]
                  for n,t,d in pairs}
        if made is node and node.returns: found['return'] = ast.unparse(node.returns), '', ''
    return found

def entries(text):
    "Name -> meaning, of a section of a docstring"
    found = re.findall(r'^ {4}(\w+): (.*(?:\n {5,}.*)*)', text, re.M)
    return {n: ' '.join(said.split()) for n,said in found}

def parameters(obj):
    "Names as a call writes them -> names as a docstring does"
    stars = {inspect.Parameter.VAR_POSITIONAL: '*', inspect.Parameter.VAR_KEYWORD: '**'}
    return {stars.get(p.kind, '') + n: n for n,p in inspect.signature(obj).parameters.items()
            if n not in ('self', 'cls')}

def hints(obj):
    "Others' words for its parameters, and what to say here, as its errors do"
    from attention_nb.checks import words
    f = obj.__init__ if inspect.isclass(obj) else obj
    what = hasattr(f, '__wrapped__') and inspect.getclosurevars(f).nonlocals.get('what')
    return [(code(n, 'literal'), rst(said)) for n,said in words.get(what, {}).items()
            if n not in inspect.signature(obj).parameters]

def explain(app, what, name, obj, options, text):
    "The docstring: sections become tables"
    if what in ('function', 'class'): del text[0]      # it is the page's lead
    if what == 'data': text.clear()
    if what not in ('function', 'method', 'class'): return
    sections = r'^((?:Keyword )?Args|Attributes|Returns):$'
    head,*parts = re.split(sections, '\n'.join(text), flags=re.M)
    said,code_of = dict(zip(parts[::2], parts[1::2])),written(obj)
    above = inspect.getmro(obj)[1:] if what == 'class' else ()     # those of a base are its own
    meaning = entries(said.get('Args', said.get('Attributes', ''))) or next(
        (found for c in above if c.__module__.startswith(f'{config().lib_path.name}.')
         and (found := entries(inspect.getdoc(c) or ''))), {})
    known = parameters(obj) if meaning or any(r for _,_,r in code_of.values()) else {}
    if is_typeddict(obj):
        text_of,fields = lines(homes()[obj.__name__]),docstrings.fields(node_of(obj.__name__))
        meaning = {f.target.id: remark(text_of, f) for f in fields}
        known = {n: n for n in meaning}
    made_new = r'^field\(default_factory=(\w+)\)$'
    def default(n): return code(re.sub(made_new, r'\1()', code_of[n][1] or ''), 'literal')
    rows = [(code(shown, 'literal'), code(code_of[n][0]),
             default(n) or '*required*' * (n == shown and not is_typeddict(obj)),
             rst(meaning.get(n, code_of[n][2]))) for shown,n in known.items()]
    made = [rst(head), table('', ('Name', 'Type', 'Default', 'Meaning'), rows)]
    keywords = entries(said.get('Keyword Args', '')).items()
    made.append(table('Options', ('Name', 'Meaning'), [(code(n), rst(m)) for n,m in keywords]))
    if returned := rst(' '.join(said.get('Returns', '').split())):
        kind = code(code_of['return'][0])
        made += ['\n.. rubric:: Returns\n', ': '.join(filter(None, (kind, returned)))]
    if others := table('', ('Theirs', 'Ours'), hints(obj)):
        made += ['\n.. dropdown:: Words of torch and transformers\n', indent(others, '   ')]
    text[:] = '\n'.join([*made, '']).splitlines()

def bare(app, what, name, obj, options, signature, returned):
    "A protocol and a dictionary of options are not called"
    return ('', None) if is_typeddict(obj) or getattr(obj, '_is_protocol', False) else None

def skip(app, what, name, obj, skipped, options):
    "What comes from torch, and the fields of a named tuple"
    from torch.nn import Module
    theirs = name not in ('forward', '__call__') and hasattr(Module, name)
    return True if theirs or type(obj).__name__ == '_tuplegetter' else None

def forget(app, doctree):
    "A page is read again when its text differs: each export writes all modules anew"
    if app.env.docname.startswith('api/'): app.env.dependencies.pop(app.env.docname, None)

# %% the list of names
def link(name):
    cfg = config()
    return f'[`{name}`]({cfg.doc_host}{cfg.doc_baseurl}/{page(name)}.html#{full(name)})'

def explained_in(name, book):
    "The lesson that explains a name; a page of the library where there is none"
    made = book.home[name]
    return made if cells.kind(made) == 'lesson' else cells.lesson_of(made, book.pages[made])

def listing(folder=cells.nbs):
    "Markdown: in groups of tasks what is offered, below it, folded, what else is public"
    found,book,cfg = [],Book(folder),config()
    def row(name):
        lesson = explained_in(name, book)
        more = lesson in book.pages and (f' (lesson [{cells.number(lesson)[0]}]({cfg.doc_host}'
                                         f'{cfg.doc_baseurl}/{lesson}.html))')
        return f'- {link(name)} {summary(name)}{more or ""}'
    for title,both in groups().items():
        offered,others = (['\n'.join(row(n) for n in names if n in book.home)] for names in both)
        if others[0]: others = [f'<details><summary>Parts and helpers</summary>\n\n{others[0]}'
                                '\n\n</details>']
        if offered[0] or others[0]: found += [f'## {title}', *offered, *others]
    return '\n\n'.join(found)

OWNERS = dict(module='MultiHeadAttention', call='MultiHeadAttention',
              function='scaled_dot_product_attention', config='TransformerConfig',
              model='Transformer', load='load_pretrained', rope='Rope', lora='add_lora',
              documents='document_mask', generate='generate')

def words_of_others():
    "Markdown: a folded table of the words in `attention_nb.checks.words`"
    from attention_nb.checks import words
    rows = (f'| `{n}` | {link(OWNERS[row])} | {said} |' for row,some in words.items()
            for n,said in some.items())
    return ('<details><summary>Their word, where, and ours</summary>\n\n'
            '| Elsewhere | Here | How |\n|---|---|---|\n' + '\n'.join(rows) + '\n\n</details>')

def contents(app):
    "Title -> pages, of each group of names that are offered"
    found = {title: [page(n) for n in names] for title,(names,_) in groups().items()}
    return {title: [p for p in pages if p in app.env.found_docs] for title,pages in found.items()}

def places(code, module):
    "Above the code of public names a mark of their place, and links to their pages"
    made = [n for n in definitions_in(code) if homes().get(n) == module]
    marks = ''.join(f'<a id="{full(n)}"></a>' for n in made)
    return f'{{.made}}\n{marks}API: {", ".join(map(link, made))}' if made else ''

class MethodsOfClasses(SphinxPostTransform):
    "A link to a method that has no entry of its own leads to its class"
    default_priority = 8                                # before MyST resolves its links
    def run(self, **kwargs):
        known = self.env.domains.python_domain.objects
        for node in self.document.findall(pending_xref):
            owner = node.get('reftarget', '').rpartition('.')[0]
            ours = node.get('reftype') == 'myst' and owner in known
            if ours and node['reftarget'] not in known: node['reftarget'] = owner

def setup(app):
    app.setup_extension('sphinx.ext.autodoc')
    app.add_role('public', Code())
    app.add_post_transform(MethodsOfClasses)
    app.connect('builder-inited', write)
    app.connect('env-updated', lambda app, env: env.plain_texts.update(app.api_texts))
    app.connect('html-page-context',
                lambda app, doc, *_: app.add_js_file('api.js') if doc == 'api' else None)
    app.connect('autodoc-process-docstring', explain)
    app.connect('autodoc-process-signature', bare)
    app.connect('doctree-read', forget)
    app.connect('autodoc-skip-member', skip)
    return dict(parallel_read_safe=False, parallel_write_safe=True)
