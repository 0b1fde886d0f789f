"""The map below the title of each lesson: a model as boxes, one for each lesson.

The way of a text goes from left to right, and what stands around a model is below it. Today's box
is filled, earlier ones have an outline, later ones are grey. A phone shows the lessons before and
after, and a list.
"""
import html
from itertools import pairwise
import cells

HIGH,GAP,TOP,BELOW = 24,14,18,59
# lesson, without its number -> what its box says; the block is what stands between its two marks
WAY = dict(tokenizer='tokens', embedding='vectors', position='positions', layer='q, k, v',
           attention='attention', mask='mask', why='softmax', multihead='heads',
           block='norm, add, feed', model='next token')
AROUND = dict(seeing='seeing', cache='cache', decoder='a decoder', transformer='settings',
              pretrained='weights', training='training', latent='latent', flash='flash',
              window='window', sparse='sparse', state='state', bits='bits',
              several_machines='machines')
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
    """The map as HTML, with links to the lessons among the pages `names`; `today` is the lesson
    that shows it. Empty unless it has a box for each lesson, and no other"""
    pages = {cells.alias(n): n for n in names if cells.kind(n) == 'lesson'}
    if {*pages} != {*WAY, *AROUND}: return ''
    now = int(cells.number(today)[0]) if today else None
    at,below = row(WAY),row(AROUND)
    start,end = at[BLOCK[0]]-5,at[BLOCK[1]]+width(WAY[BLOCK[1]])+5
    frame = (f'<rect class="block" x="{start:.1f}" y="{TOP-5}" width="{end-start:.1f}" '
             f'height="{HIGH+10}" rx="8"/><text class="times" x="{end-3:.1f}" y="{TOP-8}">'
             'a block, again and again</text>')
    arrows = ''.join(f'<path d="M{at[a]+width(WAY[a]):.1f} {TOP+HIGH/2}H{at[b]:.1f}"/>'
                     for a,b in pairwise(WAY))
    boxes = [box(n, label, at[n], TOP, pages[n], now) for n,label in WAY.items()]
    boxes += [box(n, label, below[n], BELOW, pages[n], now) for n,label in AROUND.items()]
    def link(name, current=''):
        label = (WAY | AROUND)[cells.alias(name)]
        return (f'<a{current} href="{name}.html">{cells.number(name)[0]}. '
                f'{html.escape(label)}</a>')
    line = sorted(pages.values())
    near = line[max(line.index(today)-1, 0):line.index(today)+2] if today else []
    near = ''.join(link(n, ' aria-current="page"' if n == today else '') for n in near)
    every = ''.join(f'<li>{link(n)}</li>' for n in line)
    return (f'<nav class="book-map" aria-label="Where this stands in a model">'
            f'<svg viewBox="0 0 {WIDTH} 84">{frame}{arrows}{"".join(boxes)}</svg>'
            f'<div class="near">{near}</div>'
            f'<details><summary>The whole map</summary><ul>{every}</ul></details></nav>')
