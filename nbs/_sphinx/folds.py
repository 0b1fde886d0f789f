"""Sphinx extension: what is folded on a page, and what wraps on a phone.

The proofs of a section become one quiet line at its end, `11 checks`, which opens in place: the
claims below one another, each with its code. An answer says only "Answer" until it is opened, then
its sentence. An output whose columns stand below one another scrolls; others wrap, as code does,
where a comment behind a line stays in one piece.
"""
import html, re
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput
from sphinx.transforms.post_transforms import SphinxPostTransform

_proof = re.compile(r'✓ (.*) · (\d+) checks?')
_answer = re.compile(r'(?:✓ )?Answer\b(?: \d+)?(?:: (.*?))?(?: · \d+ checks?)?')

class Proofs(HideCodeCellNode):
    "Proofs, pairs of a claim and the number of its checks in `claims`, and the code of each"

def claim(fold):
    "The claim of a proof and the number of its checks, or None"
    m = _proof.fullmatch(fold['prompt_show'])
    return (m[1], int(m[2])) if m and not _answer.fullmatch(m[0]) else None

def text(label):
    "HTML of a line in which `code` and *emphasis* are marked"
    parts = re.split(r'`([^`]+)`', html.escape(label, quote=False))
    return ''.join(f'<code>{part}</code>' if n % 2 else
                   re.sub(r'(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])', r'<em>\1</em>', part)
                   for n,part in enumerate(parts))

def said(label, kind):
    return nodes.raw('', f'<p class="{kind}">{text(label)}</p>', format='html')

def is_table(text):
    "Do two columns begin or end at the same places in two lines of an output, or is it a tensor?"
    def edges(line):
        gaps = [*re.finditer(r'(?<=\S) {2,}(?=\S)', line)]
        return {('from', g.end()) for g in gaps} | {('to', g.start()) for g in gaps} | {
            ('to', len(line)) for _ in gaps[:1]}
    found = [*map(edges, text.splitlines())]
    return any(len(a & b) > 1 for a,b in zip(found, found[1:])) or bool(
        re.search(r'^ +\[', text, re.M))

class Gather(SphinxPostTransform):
    default_priority = 200                             # after MyST-NB has folded them
    formats = ('html',)
    def run(self, **kwargs):
        for block in self.document.findall(nodes.literal_block):
            if 'output' in block['classes'] and is_table(block.astext()):
                block['classes'].append('columns')
        for fold in list(self.document.findall(HideCodeCellNode)):
            if found := claim(fold):
                says = said(found[0], 'claim')
                fold.replace_self(Proofs('', says, *fold.children, claims=[found]))
            elif (m := _answer.fullmatch(fold['prompt_show'])) and m[1]:
                fold.insert(0, said(m[1][0].upper() + m[1][1:], 'answer-says'))
        for section in list(self.document.findall(nodes.section)):
            alone = [c for c in section.children if isinstance(c, nodes.container)
                     and len(c) == 1 and isinstance(c[0], Proofs)]
            if not alone: continue
            group = Proofs('', claims=[cell[0]['claims'][0] for cell in alone])
            for cell in alone: group += cell[0].children
            section.insert(section.index(alone[-1])+1, group)
            for cell in alone: section.remove(cell)

def visit_proofs(self, node):
    "On paper the line says what is proved, since nothing opens there"
    claims,n = node['claims'],sum(n for _,n in node['claims'])
    self.body.append(
        '<details class="hide proofs"><summary><span class="fold-tick">✓</span> '
        f'<span class="fold-count">{n} {"check" if n == 1 else "checks"}</span> '
        + ' '.join(f'<span class="fold-claim">{text(c)}</span>' for c,_ in claims)
        + '</summary>\n')

def visit_fold(self, node):
    "MyST-NB's summary has two texts, and for screen readers a name that hides both"
    answer = _answer.fullmatch(node['prompt_show'])
    self.body.append(f'<details class="hide{" answer" if answer else ""}"><summary>'
                     f'{"Answer" if answer else text(node["prompt_show"])}</summary>\n')

def mark_lines(app, pagename, templatename, context, doctree):
    """Mark, for the style sheet, comments that stand behind code and the spaces before them, and
    lines of code that a phone breaks, with their indentation"""
    def aside(m):
        before,spaces = m.groups()
        if not re.sub('<[^>]*>', '', before).strip(): return m[0]
        return f'{before}<span class="gap">{spaces}</span><span class="c1 aside">'
    def line(code):
        if len(html.unescape(re.sub('<[^>]*>', '', code))) <= 40: return code
        deep = len(code) - len(code.lstrip(' '))
        return (f'<span class="line" style="--in:{deep}"><span class="in">{code[:deep]}</span>'
                f'{code[deep:]}</span>')
    def block(m): return m[1] + '\n'.join(map(line, m[2].split('\n'))) + m[3]
    if (body := context.get('body')) and '<div class="highlight"><pre>' in body:
        body = re.sub('^(.*?)( +)<span class="c1">', aside, body, flags=re.M)
        context['body'] = re.sub('(<div class="highlight"><pre>(?:<span></span>)?)(.*?)(</pre>)',
                                 block, body, flags=re.S)

def setup(app):
    app.setup_extension('myst_nb')
    app.connect('html-page-context', mark_lines)
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_HideCellInput))
    app.add_node(Proofs, html=(visit_proofs, depart_HideCellInput))
    app.add_post_transform(Gather)
    return dict(parallel_read_safe=True, parallel_write_safe=True)
