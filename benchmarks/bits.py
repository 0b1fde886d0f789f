"""Few bits: tokens of whole models with 32, 16, 8 and 4 bits, step by step and compiled, beside
transformers and llama.cpp; the first token of a compiled step; what rounding costs in perplexity.

llama.cpp takes part where llama-cpp-python is installed. It is compiled for ten minutes:
    CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON" \\
        pip install llama-cpp-python
with -DGGML_AVX512=ON -DGGML_AVX512_VNNI=ON where the processor has both.
"""
import os, tempfile, time
from decode import read_speed
from measure import in_process, interleave

PROMPT,NEW = 1,32    # a prompt of many tokens is measured by itself

def gguf():
    from attention_nb.checkpoints.source import open_source
    return next(open_source('smollm2').folder.glob('*.gguf'))

def llama(texts, ids):
    "Writes NEW tokens behind `ids` for so many texts at once, as a function; None: not installed"
    try: import llama_cpp as c
    except ImportError: return None
    import torch
    ask = c.llama_context_default_params()
    ask.n_ctx,ask.n_batch,ask.n_seq_max,ask.kv_unified = texts*1024,2048,texts,False
    ask.n_threads = ask.n_threads_batch = torch.get_num_threads()
    c.llama_log_set(quiet := c.llama_log_callback(lambda *said: None), None)
    model = c.llama_model_load_from_file(str(gguf()).encode(), c.llama_model_default_params())
    context,batch = c.llama_init_from_model(model, ask),c.llama_batch_init(2048, 0, 1)
    vocabulary = c.llama_vocab_n_tokens(c.llama_model_get_vocab(model))
    memory,ids = c.llama_get_memory(context),ids.tolist()
    def read(tokens, place):
        "The likeliest next token of each text"
        batch.n_tokens = texts*len(tokens[0])
        for t,of_text in enumerate(tokens):
            for j,token in enumerate(of_text):
                i = t*len(of_text) + j
                batch.token[i],batch.pos[i],batch.n_seq_id[i] = token,place+j,1
                batch.seq_id[i][0],batch.logits[i] = t,j == len(of_text)-1
        if c.llama_decode(context, batch): raise RuntimeError('llama.cpp could not read')
        n = len(tokens[0])
        def scores(t): return c.llama_get_logits_ith(context, t*n + n-1)
        import numpy as np
        return [[int(np.ctypeslib.as_array(scores(t), (vocabulary,)).argmax())]
                for t in range(texts)]
    def write(n=NEW, keep=quiet):         # a callback that nobody holds is called all the same
        c.llama_memory_clear(memory, True)
        tokens = read([ids]*texts, 0)
        for i in range(n-1): tokens = read(tokens, len(ids)+i)
        return tokens
    return write

def ours(model, texts, ids, **options):
    model.generate(ids.expand(texts, -1), 3, eos_id=(), **options)    # compiled now, if at all
    return lambda: model.generate(ids.expand(texts, -1), NEW, eos_id=(), **options)

def theirs(model, texts, ids):
    import torch
    ids = ids.expand(texts, -1)
    def write():
        with torch.inference_mode():
            return model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False,
                                  max_new_tokens=NEW, min_new_tokens=NEW, pad_token_id=0)
    return write

def rows(contestants, base, rounds):
    return [(by, seconds/NEW, ratio)
            for by,seconds,ratio in interleave(contestants, rounds, base, patience=60)]

def smollm2(report, rounds):
    import torch
    from attention_nb.checkpoints.pretrained import load_pretrained
    limit,shares,found = read_speed(),[],{}
    ids = torch.randint(5, 20_000, (1, PROMPT))
    models = {f'{bits} bits': load_pretrained('smollm2', bits=bits) for bits in (4, 8)}
    models['16 bits'] = load_pretrained('smollm2').bfloat16()
    models['32 bits'] = load_pretrained('smollm2')
    for texts in (1, 8):
        each = {}
        for name,model in models.items():
            if texts > 1 and name not in ('4 bits', '8 bits'): continue    # compiling takes long
            each['ours' if name == '4 bits' else f'ours, {name}'] = ours(
                model, texts, ids, compiled=True)
            each[f'ours, {name}, step by step'] = ours(model, texts, ids)
        if (other := llama(texts, ids[0])) is not None: each['llama.cpp, 4 bits'] = other
        task = f'a token of {texts} text{"s"*(texts > 1)}'
        found[task] = rows(each, 'ours', rounds)
        for by,seconds,_ in found[task]:
            name = '4 bits' if by == 'ours' else by.removeprefix('ours, ')
            if texts > 1 or name not in models: continue
            size = sum(t.nbytes for t in [*models[name].parameters(), *models[name].buffers()])
            shares.append((f'{name}, {size/1e6:.0f} MB', seconds, size/limit,
                           seconds*limit/size))
    report.compare('SmolLM2-135M with few bits', found, note='compiled, if nothing is said; *ours* '
                   'has 4 bits, as its file')
    report.show('A token beside the time to read all weights', shares,
                ('weights', 'a token (seconds)', 'reading (seconds)', 'times'),
                note=f'compiled, memory is read at {limit/1e9:.1f} GB/s')

def reading(report, rounds):
    "A prompt of 992 tokens"
    import torch
    from attention_nb.checkpoints.pretrained import load_pretrained
    ids = torch.randint(5, 20_000, (1, 992))
    each = {}
    for name,options in {'ours': dict(bits=8), 'ours, 4 bits': dict(bits=4),
                         'ours, 16 bits': None, 'ours, 32 bits': {}}.items():
        model = load_pretrained('smollm2', **(options or {}))
        if options is None: model = model.bfloat16()
        each[name] = lambda model=model: model.generate(ids, 1, eos_id=())
    if (other := llama(1, ids[0])) is not None: each['llama.cpp, 4 bits'] = lambda: other(1)
    report.compare('SmolLM2-135M reads 992 tokens', {
        '992 tokens': interleave(each, rounds, 'ours', patience=60)}, note='*ours* has 8 bits')

def gpt2(report, rounds):
    import torch, transformers
    from attention_nb.checkpoints.pretrained import from_hf
    from attention_nb.layers.quantized import quantize
    torch.manual_seed(0)
    other = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    ids = torch.randint(5, 20_000, (1, PROMPT))
    each = {'ours': ours(quantize(from_hf(other), bits=8), 1, ids, compiled=True),
            'ours, 32 bits, step by step': ours(from_hf(other), 1, ids),
            'transformers, 32 bits (another result)': theirs(other, 1, ids)}
    report.compare('GPT-2 small with 8 bits', {'a token of 1 text': rows(each, 'ours', rounds)},
                   note='random weights; *ours* is compiled')

def first_token(folder):
    "Seconds from a loaded model to its second token, with compiled steps kept in `folder`"
    os.environ['TORCHINDUCTOR_CACHE_DIR'] = folder
    import torch
    from attention_nb.checkpoints.pretrained import load_pretrained
    model = load_pretrained('smollm2', bits=8)
    start = time.perf_counter()
    model.generate(torch.arange(9)[None], 2, eos_id=(), compiled=True)
    return time.perf_counter() - start

def perplexity(model, ids, dtype=None, piece=500):
    "Of pieces of a text; with a cache of this dtype each is read in five parts"
    import torch
    import torch.nn.functional as F
    losses = []
    with torch.inference_mode():
        for part in ids.unfold(0, piece+1, piece):
            cache = None if dtype is None else model.new_cache(1, piece, dtype=dtype)
            read = [part[:-1]] if dtype is None else part[:-1].chunk(5)
            logits = torch.cat([model(r[None], cache=cache)[0].float() for r in read])
            losses.append(F.cross_entropy(logits, part[1:]))
    return torch.stack(losses).mean().exp().item()

def costs(report):
    "Perplexity of SmolLM2 on 20,000 tokens of Shakespeare"
    import torch
    from attention_nb.checkpoints.pretrained import load_pretrained
    from attention_nb.checkpoints.source import packaged
    from attention_nb.checkpoints.tokenizers import load_tokenizer
    plays = sorted(packaged('shakespeare').glob('*_gut.txt'))
    text = (next(p for p in plays if 'hamlet' in p.name).read_bytes()).decode('latin-1')
    ids = torch.tensor(load_tokenizer('smollm2').encode(text)[:20_001])
    load,found = load_pretrained,{}
    found['32 bits'] = perplexity(load('smollm2'), ids)
    found['16 bits'] = perplexity(load('smollm2').bfloat16(), ids)
    found['8 bits'] = perplexity(load('smollm2', bits=8), ids)
    found['4 bits, groups of 32'] = perplexity(load('smollm2', bits=4), ids)
    found['32 bits, a cache of 8'] = perplexity(load('smollm2'), ids, torch.int8)
    exact = found['32 bits']
    report.show('Perplexity of SmolLM2 on 20,000 tokens of Hamlet',
                [(name, p, 100*(p/exact-1)) for name,p in found.items()],
                ('weights', 'perplexity', 'change in %'),
                note='its file has 4 bits itself, in groups of 32')

def tables(report, rounds):
    rounds = max(3, rounds//6)
    smollm2(report, rounds)
    reading(report, rounds)
    gpt2(report, rounds)
    with tempfile.TemporaryDirectory() as folder:
        times = [(name, in_process(first_token, folder)) for name in ('first', 'second')]
    report.show('Two tokens of a compiled step, from a loaded model', times,
                ('process', 'seconds'), note='SmolLM2, 8 bits; what is compiled is kept')
    costs(report)
