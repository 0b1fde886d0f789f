"The notebooks, and the pages that the site makes of them"
import ast, html, re
from typing import NamedTuple
import package, rules                                   # the tests know cells as rules
from helpers import root

notebooks = rules.notebooks()
name_of = rules.name_of
names = [name_of(p) for p in notebooks]
pages = ['index', *(n for n in names if n != 'index')]
loaded = {name_of(p): rules.load(p) for p in notebooks}
book = rules.in_order(loaded)                           # all pages as they are read
# with code of their own
chapters = [n for n in book if rules.kind(n) not in (None, 'room')
            and n != 'notes/index']
lessons = [n for n in chapters if rules.kind(n) == 'lesson']

def cells(page): return loaded[page]
def code_cells(page): return [c for c in cells(page) if c['cell_type'] == 'code']
runnable = [p for p in notebooks if code_cells(name_of(p))]
def markdown(page): return [rules.source(c) for c in cells(page) if c['cell_type'] == 'markdown']

def module_of(page):
    "The module that the notebook writes, or None"
    options = (rules.split_options(rules.source(c))[0] for c in code_cells(page))
    return next((o['default_exp'] for o in options if 'default_exp' in o), None)

def path_of(module): return root/'attention_nb'/f'{module.replace(".", "/")}.py'

def public_names(page):
    "What its module exports"
    module = module_of(page)
    return package.public_names(path_of(module)) if module else []

def entries(page):
    "Public functions and classes of its module"
    if not (module := module_of(page)): return []
    tree = ast.parse(path_of(module).read_text(encoding='utf-8'))
    kinds = ast.FunctionDef, ast.ClassDef
    defined = {n.name for n in tree.body if isinstance(n, kinds)}
    return sorted(defined & set(public_names(page)))

def home():
    "Public name -> its page and module"
    return {name: (page, module_of(page)) for page in names for name in entries(page)}

def anchor(heading): return re.sub(r'[^\w\s-]', '', heading.strip().lower()).replace(' ', '-')

def promise(page):
    "Below the title, as `> promise` or in the front matter"
    return rules.promise(cells(page))

# ---- pages of a site

def plain(text): return html.unescape(re.sub(r'<[^>]*>', '', text))
def article(text): return text[text.index('<article'):text.index('</article>')]

class Links(NamedTuple):
    "Targets of links, anchors of a page, and addresses that it loads; what a view holds is a text"
    links:list[str]
    ids:set[str]
    loaded:list[str]

    @classmethod
    def of(cls, text):
        head,_,body = text.partition('</head>')
        found = {'href': [], 'id': [], 'src': [], 'poster': [], 'data': []}
        for name,value in re.findall(r'(?<![\w-])(href|id|src|poster|data)="([^"]*)"', body):
            found[name].append(html.unescape(value))
        sheets = re.findall(r'<link [^>]*rel="(?:stylesheet|icon|preload)"[^>]*>', head)
        loaded = [m for s in sheets for m in re.findall('href="([^"]*)"', s)]
        loaded += re.findall(r'<script[^>]* src="([^"]*)"', head)
        return cls(found['href'], {*found['id']}, loaded + found['src'] + found['poster']
                   + found['data'])

def labels(text):
    "What stands on the folds of a page that are no proofs"
    folds = r'<details class="hide(?: answer)?">\s*<summary>(.*?)</summary>'
    return [plain(l) for l in re.findall(folds, text, re.S)]

def proofs(text):
    "[(number of checks, claims)] of the proofs of a page, those of a section together"
    lines = re.findall(r'<details class="hide proofs">\s*<summary>(.*?)</summary>', text, re.S)
    claim,count = r'class="fold-claim">(.*?)</span>',r'class="fold-count">(\d+) checks?<'
    return [(int(re.search(count, line)[1]), [plain(c) for c in re.findall(claim, line)])
            for line in lines]

def following(text):
    "The page after this one"
    after = re.findall(r'<a[^>]*class="right-next"[^>]*href="([^"#]*)', text)
    return after or re.findall(r'href="([^"#]*)"[^>]*class="right-next"', text)

def sidebar(text):
    "{caption: [(page, [those below it])]} as the sidebar of a page shows them, by their links"
    nav = text[text.index('class="bd-docs-nav'):]
    nav,found,caption = nav[:nav.index('</nav>')],{},''
    pattern = (r'<span class="caption-text">([^<]*)|'
               r'<li class="toctree-l(\d)[^"]*">\s*<a[^>]*href="([^"]*)"')
    for name,level,href in re.findall(pattern, nav):
        if name: caption = name
        elif level == '1': found.setdefault(caption, []).append((href, []))
        else: found[caption][-1][1].append(href)
    return found

def top_bar(text):
    "[(words, page, is it the part of this page?)] of the bar at the top"
    bar = text[text.index('bd-navbar-elements'):text.index('navbar-header-items__end')]
    links = re.findall(r'<li class="nav-item\s*([^"]*)">\s*<a[^>]*href="([^"]*)"[^>]*>([^<]*)', bar)
    return [(words.strip(), href, 'active' in classes) for classes,href,words in links]
