"""The map below the title of each lesson: a model as boxes, one for each lesson.

The way of a text goes from left to right, and what stands around a model is below it. Today's box
is filled, earlier ones have an outline, later ones are grey. A phone shows the lessons before and
after, and a list.
"""
import html
import cells

HIGH,GAP,TOP,BELOW = 24,14,14,58
# lesson, without its number -> what its box says; the block is what stands between its two marks
WAY = dict(tokenizer='tokens', embedding='vectors', position='positions', layer='q, k, v',
           attention='attention', mask='mask', why='softmax', multihead='heads',
           block='norm, add, feed', model='next token')
AROUND = dict(seeing='seeing', cache='cache', decoder='a decoder', transformer='settings',
              pretrained='weights', training='training', latent='latent', flash='flash',
              sparse='sparse', bits='bits', several_machines='machines')
BLOCK = 'layer','block'
WIDTH = 784

def width(label): return 5.6*len(label) + 14

def row(labels):
    "Lesson -> where its box begins; the boxes of a row fill the width"
    free = (WIDTH - 2*GAP - sum(map(width, labels.values()))) / (len(labels)-1)
    at,x = {},float(GAP)
    for lesson,label in labels.items():
        at[lesson] = x
        x += width(label) + free
    return at

def box(lesson, label, x, y, name, today):
    "A link to a lesson; `name` is its page, `today` the number of the page that shows the map"
    number = int(cells.number(name)[0])
    state = 'now' if number == today else 'past' if today is None or number < today else 'later'
    current = ' aria-current="page"' if state == 'now' else ''
    return (f'<a class="{state}" href="{name}.html"{current} '
            f'aria-label="Lesson {number}: {html.escape(label)}">'
            f'<rect x="{x:.1f}" y="{y}" width="{width(label):.1f}" height="{HIGH}" rx="5"/>'
            f'<text x="{x + width(label)/2:.1f}" y="{y+16}">{html.escape(label)}</text></a>')

def drawn(names, today=None):
    """The map as HTML, with links to the pages `names`; empty if it has no box for one of them
    or for `today`, the page that shows it, if there is one"""
    pages = {cells.alias(n): n for n in names if cells.kind(n) == 'lesson'}
    if {*pages} != {*WAY, *AROUND}: return ''
    now = int(cells.number(today)[0]) if today else None
    at,below = row(WAY),row(AROUND)
    start,end = at[BLOCK[0]]-5,at[BLOCK[1]]+width(WAY[BLOCK[1]])+5
    frame = (f'<rect class="block" x="{start:.1f}" y="{TOP-5}" width="{end-start:.1f}" '
             f'height="{HIGH+10}" rx="8"/><text class="times" x="{end-3:.1f}" y="{TOP-8}">'
             'a block, again and again</text>')
    ways = [*WAY]
    arrows = ''.join(f'<path d="M{at[a]+width(WAY[a]):.1f} {TOP+HIGH/2}H{at[b]:.1f}"/>'
                     for a,b in zip(ways, ways[1:]))
    boxes = [box(n, label, at[n], TOP, pages[n], now) for n,label in WAY.items()]
    boxes += [box(n, label, below[n], BELOW, pages[n], now) for n,label in AROUND.items()]
    line = sorted(pages.values())
    def link(name, rel, text):
        labels = WAY | AROUND
        return (f'<a{rel} href="{name}.html">{text}{cells.number(name)[0]}. '
                f'{html.escape(labels[cells.alias(name)])}</a>')
    n = line.index(today) if today else 0
    near = ''.join(link(p, ' aria-current="page"' if p == today else '', '')
                   for p in line[max(n-1, 0):n+2]) if today else ''
    every = ''.join(f'<li>{link(p, "", "")}</li>' for p in line)
    return (f'<nav class="book-map" aria-label="Where this stands in a model">'
            f'<svg viewBox="0 0 {WIDTH} 84">{frame}{arrows}{"".join(boxes)}</svg>'
            f'<div class="near">{near}</div>'
            f'<details><summary>The whole map</summary><ul>{every}</ul></details></nav>')
