"The first thing on the page: our time beside the fastest other's, a dot for each processor"
import html, math, re, statistics

# the task in words; its topic; a table's title; how a task in that table begins
WINDOWS,CALL = 'Windows and documents, forward', 'Attention, forward'
SHAPE = 'batch 8, 12 heads, 1,024 tokens, width 64, causal'
TASKS = (
    ('Attention, 1,024 tokens, float32', 'attention', 'Attention and its readable form, float32',
     SHAPE),
    ('Attention, 1,024 tokens, bfloat16', 'flash', f'{CALL}, bfloat16', SHAPE),
    ('Attention with gradients, 1,024 tokens, bfloat16', 'flash',
     f'{CALL} and backward, bfloat16', SHAPE),
    ('A window of 512 at 16,384 tokens', 'sparse', WINDOWS, 'window'),
    ('A window of 512 with gradients', 'sparse', f'{WINDOWS} and backward', 'window'),
    ('16 packed documents of 1,024 tokens', 'sparse', WINDOWS, '16 documents'),
    ('Seven new tokens, a window of 300 in a cache', 'choice',
     "The kernel chosen beside PyTorch's kernels",
     'behind a cache, window of 300: batch 1, 8 heads and 2 of keys, 7 tokens, 5,000 keys'),
    ('A training step of a multi-head layer', 'multihead',
     'Multi-head layer, forward and backward, float32', 'batch 8'),
    ('A layer that returns its weights', 'weights', 'With weights, causal, forward', 'batch 8'),
    ('Decoding a token, SmolLM2', 'decode', 'Decoding and reading',
     'SmolLM2-135M, a token of 1 text, float32'),
    ('Reading a prompt of 992 tokens, SmolLM2', 'decode', 'Decoding and reading',
     'SmolLM2-135M, reading 992 tokens, float32'),
    ('Loading a model, SmolLM2', 'loading', 'Loading SmolLM2-135M', ''),
    ('Reading 400,000 GloVe vectors', 'glove', 'Reading 400,000 word vectors', 'beside a reader'),
    ('Encoding Shakespeare as byte pairs', 'bpe', 'Byte pairs', 'encoding Shakespeare'),
    ('Encoding a million times *a*', 'bpe', 'Byte pairs', 'encoding one million'),
    ('Training 1,000 byte pairs', 'bpe', 'Byte pairs', 'training'),
    ('Importing what loads models', 'imports', 'An import', 'a loader of models'),
    ('A picture of a head, until it answers', 'views', 'Pictures of MiniLM, opened', 'head_view'))

EQUAL = .02                                             # a difference that is none

def is_ours(by): return by.startswith('ours')
def name_of_peer(by): return by.partition(',')[0]
def may_win(by): return not (is_ours(by) or by.endswith('(another result)'))
def is_peer(by): return may_win(by) and not by.endswith(' again')

def by_task(table):
    "Task -> rows (by, seconds, ratio to ours) of a table that compares"
    found = {}
    for task,*row in table['rows']: found.setdefault(task, []).append(row)
    return found

def fastest(rows):
    "The row of the fastest peer, or None"
    return min((row for row in rows if is_peer(row[0])), key=lambda row: row[-1], default=None)

def measured(record, task):
    "Machine -> (our seconds, the fastest peer, ratio of its time to ours) where it was measured"
    _,topic,title,start = task
    found = {}
    for each in record:
        tables = each['tables'] if each['topic'] == topic else ()
        rows = next((rows for t in tables if t['title'] == title
                     for name,rows in by_task(t).items() if name.startswith(start)), ())
        if best := fastest(rows):
            ours = next(seconds for by,seconds,_ in rows if by == 'ours')
            found[each['machine']] = ours, best[0], best[-1]
    return found

def kind(ratio):
    "Where a task stands: 0 ours is faster, 1 about equal, 2 slower"
    return 0 if ratio > 1+EQUAL else 1 if ratio >= 1-EQUAL else 2

def factor(x): return f'{x:.0f}' if x >= 10 else f'{x:.1f}' if x >= 1.95 else f'{x:.2f}'

def verdict(ratio):
    return ('about equal' if kind(ratio) == 1 else f'{factor(ratio)}× faster' if ratio > 1 else
            f'{factor(1/ratio)}× slower')

def name_of(machine): return machine.partition(': ')[2].partition(',')[0]
def short_name(machine): return re.sub(r'\((R|TM)\)| CPU| Processor| @.*', '', name_of(machine))

def ordered(record):
    "(words, machine -> what was measured, typical ratio), the largest gain first"
    tasks = ((task[0], found, statistics.geometric_mean(r for *_,r in found.values()))
             for task in TASKS if (found := measured(record, task)))
    return sorted(tasks, key=lambda task: -task[-1])

TICKS = {1/2: '½', 1: '1', 2: '2', 4: '≥ 4'}

def at(ratio):
    "Where a ratio stands on the axis, from a half and less to four and more"
    low,high = (math.log(x) for x in (1/2, 4))
    return f'{100*(min(max(math.log(ratio), low), high)-low)/(high-low):.1f}%'

def text(said): return html.escape(said, quote=False).replace('-', '\N{NON-BREAKING HYPHEN}')

def beside(found):
    "Whose time it is, where it is the same on all machines"
    peers = {name_of_peer(by) for _,by,_ in found.values()}
    return f' <small>{text(peers.pop())}</small>' if len(peers) == 1 else ''

def told(found, machine, several):
    "What the dot of a machine says, in words"
    if machine not in found: return '<span></span>'
    _,by,ratio = found[machine]
    name = f'<small>{text(short_name(machine))}</small> ' if several else ''
    peer = '' if beside(found) else f' <small>{text(name_of_peer(by))}</small>'
    return f'<span>{name}<b>{verdict(ratio)}</b>{peer}</span>'

def chart(record):
    "A list of the tasks as HTML, the largest gain first: on an axis a dot for each processor"
    tasks,machines = ordered(record),[*dict.fromkeys(each['machine'] for each in record)]
    names = [m for m in machines if any(m in found for _,found,_ in tasks)]
    def dot(machine): return f'm{names.index(machine) % 3}'
    key = ' '.join(f'<i class="{dot(m)}"></i> {text(short_name(m))}' for m in names)
    ticks = ''.join(f'<b style="left:{at(x)}">{name}</b>' for x,name in TICKS.items())
    parts = [f'<div class="race" style="--one:{at(1)}">',
             f'<p class="race-key">{key}<span>The time of the fastest other, as a multiple of '
             'ours: right of 1 ours is faster.</span></p>',
             f'<ul><li aria-hidden="true"><span></span><span class="axis">{ticks}</span></li>']
    for name,found,_ in tasks:
        said = re.sub(r'\*(.+?)\*', r'<em>\1</em>', text(name)) + beside(found)
        dots = ''.join(f'<i class="{dot(m)}" style="left:{at(ratio)}"></i>'
                       for m,(*_,ratio) in found.items())
        numbers = ''.join(told(found, m, len(names) > 1) for m in names)
        parts.append(f'<li><span>{said}</span><span class="axis" aria-hidden="true">{dots}</span>'
                     f'<span class="told">{numbers}</span></li>')
    return '\n'.join([*parts, '</ul>', '</div>'])

def listed(names):
    *first,last = names
    return f'{", ".join(first)} and {last}' if first else last

def counted(machine, tasks):
    "How often ours wins, is equal and loses on a machine"
    kinds = [kind(found[machine][-1]) for _,found,_ in tasks if machine in found]
    faster,equal,slower = map(kinds.count, range(3))
    return (f'on {short_name(machine)}, ours is faster in {faster} of {len(kinds)} tasks, about '
            f'equal in {equal} and slower in {slower}')

def worst(tasks, most=3):
    "Where ours loses most: for each task the machine on which it does worst"
    found = sorted((min((ratio, m, by) for m,(_,by,ratio) in found.items()), words)
                   for words,found,_ in tasks)
    said = [f'{words[0].lower()}{words[1:]} ({factor(1/ratio)}× slower than {name_of_peer(by)} on '
            f'{short_name(m)})' for (ratio,m,by),words in found[:most] if kind(ratio) == 2]
    return f' It loses most at {listed(said)}.' if said else ''

def summary(record):
    "What is compared, the result in short, and where we lose"
    tasks = ordered(record)
    names = dict.fromkeys(re.split(r"[,.' ]", by)[0] for _,found,_ in tasks
                          for _,by,_ in found.values())
    results = '; '.join(counted(m, tasks) for m in dict.fromkeys(e['machine'] for e in record)
                        if any(m in found for _,found,_ in tasks))
    gpu = any(each['topic'] == 'gpu' and each['tables'] for each in record)
    said = 'The chart is of CPUs.' if gpu else '**CPU only: no GPU was measured.**'
    return (f'This page compares our time with that of the fastest of '
            f'{listed(sorted(names, key=str.lower))}, task by task. '
            f'{results[:1].upper()}{results[1:]}.{worst(tasks)} {said}')
