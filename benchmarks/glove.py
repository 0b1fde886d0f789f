"Reading word vectors: time and peak memory"
import sys, tempfile
from functools import partial
from pathlib import Path
from measure import in_process, interleave, peak

def glove_file(folder):
    "glove.6B.50d.txt, written back from its package; read as float32 the numbers are the same"
    import numpy as np
    from attention_nb.text.glove import load_glove
    path,wv = folder/'glove.6B.50d.txt',load_glove()
    with open(path, 'w', encoding='utf-8', newline='\n') as f:
        for word,row in zip(wv.words, wv.vectors.numpy()):
            numbers = ' '.join(np.format_float_positional(x, trim='-') for x in row)
            f.write(f'{word} {numbers}\n')
    return path

def by_hand():
    import pyarrow.csv, tqdm                                                    # noqa: F401
    from attention_nb.text.glove import load_glove
    return lambda path: load_glove(path, cache=False, progress=False)

def cached():
    import safetensors.torch                                                    # noqa: F401
    from attention_nb.text.glove import load_glove
    return lambda path: load_glove(path, progress=False)

def arrow():
    import pyarrow.csv as pc
    read,parse = (pc.ReadOptions(autogenerate_column_names=True),
                  pc.ParseOptions(delimiter=' ', quote_char=False))
    return lambda path: pc.read_csv(path, read, parse)

def gensim():
    from gensim.models import KeyedVectors
    return lambda path: KeyedVectors.load_word2vec_format(path, no_header=True)

# each imports what it needs and gives the function that reads
readers = {'ours': by_hand, 'ours, from the cache': cached,
           'pyarrow.csv, unchecked': arrow, 'gensim': gensim}

def added(name, path):
    "Megabytes that reading adds, in the process that asks"
    read = readers[name]()
    before = peak()
    vectors = read(path)
    after = peak()
    del vectors
    return (after-before)/1e3

def tables(report, rounds):
    with tempfile.TemporaryDirectory() as folder:
        path = str(glove_file(Path(folder)))
        size = Path(path).stat().st_size/1e6
        report.say(f'{Path(path).name}: {size:.0f} MB, in the page cache')
        cached()(path)                                  # writes the cache
        def some(names): return {n: partial(readers[n](), path) for n in names}
        first,*_,last = readers
        quick = interleave(some(n for n in readers if n != last), rounds, first)
        slow = interleave(some((first, last)), max(2, rounds//5), first)
        report.compare('Reading 400,000 word vectors',
                       {'beside a reader of CSV': quick, 'beside gensim, fewer rounds': slow})
        if sys.platform == 'linux':
            rows = [(name, in_process(added, name, path)) for name in readers]
            report.show('Memory at the peak of reading', rows, ('by', 'MB'),
                        f'{rows[0][1]:.0f} MB ours, {rows[1][1]:.0f} from the cache, '
                        f'{rows[-1][1]:.0f} {last}')
