"Requests that run together give the texts that each would give alone, and no slot is lost"
import copy, gc, itertools, random, threading
import pytest, torch
from torch import nn
from attention_nb.layers.base import use_attention
from attention_nb.layers.quantized import quantize
from attention_nb.models.config import TransformerConfig
from attention_nb.models.serving import Batcher
from attention_nb.models.transformer import Transformer
from attention_nb.recording.patching import remove_heads
from attention_nb.text.bpe import BPETokenizer
from helpers import short
from helpers.tiny_models import decoder

def alone(model, ids, n, **options):
    return model.generate(ids[None], n, eos_id=(), **options)[0,len(ids):].tolist()

def ready(tokens): return tokens._request.n - tokens._request.n_yielded

def some(n, low=3, high=50): return torch.randint(low, high, (n,))

unlike = 'llama','gpt2','gemma3_text','gpt_oss','deepseek_v3','bloom','smollm3','gpt_neox'

@pytest.mark.parametrize('family', short(unlike, [*unlike, 'gemma2', 'qwen3', 'mistral', 'phi3',
                                                  'mixtral', 'olmo2']))
def test_each_request_gives_the_text_it_would_give_alone(family):
    "They come at different times and end at different times, and some begin alike"
    model = decoder(family)
    torch.manual_seed(1)
    begin = some(9)
    prompts = [some(5), torch.cat([begin, some(2)]), some(1), torch.cat([begin, some(7)]), begin]
    lengths = [20, 9, 30, 14, 3]
    batcher,out = Batcher(model, slots=3, max_len=32, prefill_chunk=5, block_size=4),{}
    texts = {}
    for step in range(90):
        if step % 3 == 0 and (i := step//3) < len(prompts):
            texts[i],out[i] = batcher.submit(prompts[i], lengths[i], eos_id=()),[]
        batcher.step()
        # the iterator does not step while it has tokens
        for i,t in texts.items(): out[i] += [next(t) for _ in range(ready(t))]
    for i,(ids,n) in enumerate(zip(prompts, lengths)): assert out[i] == alone(model, ids, n)
    assert batcher.free_slots == 3 and not batcher.step()

def test_hundreds_of_requests_leave_no_slot_behind():
    "Also those that are dropped or closed; the buffer is full and moved many times"
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(20, d_model=8, n_layers=1, n_heads=2)).eval()
    for w in model.parameters(): w.data.mul_(4)
    batcher = Batcher(model, slots=5, max_len=30, prefill_chunk=6, prefix_blocks=9, block_size=4)
    dice = random.Random(0)
    begins = [some(n, 0, 20) for n in (4, 9, 13)]
    held,done = [],0
    for i in range(350):
        ids = torch.cat([dice.choice(begins), some(dice.randint(1, 5), 0, 20)])
        n = dice.randint(0, 9)
        held.append([batcher.submit(ids, n, eos_id=()), ids, n, []])
        for row in dice.sample(held, min(4, len(held))):
            text,ids,n,said = row
            how = dice.random()
            if how < .1: text.close()
            if how < .2: held = [r for r in held if r is not row]
            elif len(said) < n: said.append(next(text))
            elif i % 10 == 0:
                assert [*text] == [] and said == alone(model, ids, n)
                held,done = [r for r in held if r is not row],done+1
    for text,ids,n,said in held:
        if text._request.is_finished and len(said) < n: continue
        assert said + [*text] == alone(model, ids, n)
        done += 1
    del held, text, row
    gc.collect()
    assert not batcher.step() and batcher.free_slots == 5 and done > 50
    assert not batcher._buffer.first and len(batcher._prefixes.blocks) == 9

def test_requests_wait_in_order_and_take_all_the_room():
    model = decoder('llama')
    torch.manual_seed(2)
    batcher = Batcher(model, slots=2, max_len=16)
    one,two,three = (batcher.submit(some(n), m, eos_id=()) for n,m in ((7, 6), (8, 3), (2, 6)))
    next(one)
    assert (batcher.free_slots, ready(two), ready(three)) == (0, 1, 0)
    assert len([*three]) == 6 and len([*two]) == 3 and len([*one]) == 5
    assert len([*batcher.submit(some(10), 6, eos_id=())]) == 6
    learned = Transformer(TransformerConfig(50, d_model=32, n_layers=1, n_heads=4, max_len=9,
                                            positions='learned')).eval()
    with pytest.raises(ValueError, match='max_len'):
        Batcher(learned, slots=1, max_len=32).submit(some(5), 9)

def test_every_request_has_its_own_options():
    model,batcher = decoder('llama'),Batcher(decoder('llama'), slots=8, max_len=32)
    torch.manual_seed(3)
    ids,tok = some(6),BPETokenizer.train(['ship'], 257)
    free = alone(model, ids, 20)
    def never(ids, logits): return logits.index_fill(1, torch.tensor(free[:3]), -torch.inf)
    each = [dict(temperature=.8, top_k=9, seed=4), dict(temperature=2., top_p=.9, seed=5),
            dict(min_p=.1, seed=6), dict(repetition_penalty=1.8), dict(logits_processor=never),
            dict(stop=[free[4:6]]), dict(stop=tok.decode(free[7:9]), tokenizer=tok)]
    texts = [batcher.submit(ids, 20, eos_id=(), **options) for options in each]
    for text,options in zip(texts, each): assert [*text] == alone(model, ids, 20, **options)
    ended = [*batcher.submit(ids, 20, eos_id=free[5])]
    assert ended == free[:free.index(free[5])+1]
    assert [*batcher.submit(ids, 0)] == [] and batcher.free_slots == 8

def test_a_key_on_the_keyboard_loses_no_text():
    "In a prompt and in the middle of a pass; then all goes on"
    model,batcher = decoder('gpt2'),Batcher(decoder('gpt2'), slots=2, max_len=20, prefill_chunk=4)
    torch.manual_seed(4)
    b,c = some(9),some(3)
    one,two = batcher.submit(b, 9, eos_id=()),batcher.submit(c, 9, eos_id=())
    at = [0]
    def interrupt(*args):
        at[0] += 1
        if at[0] in (1, 3, 4): raise KeyboardInterrupt
    hook = model.decoder.blocks[1].register_forward_pre_hook(interrupt)
    said = []
    while len(said) < 9:
        try: said.append(next(one))
        except KeyboardInterrupt: pass
    hook.remove()
    assert at[0] > 4 and said == alone(model, b, 9) and [*two] == alone(model, c, 9)
    assert batcher.free_slots == 2

def test_a_key_on_the_keyboard_in_a_processor_begins_no_text_twice():
    model,batcher = decoder('llama'),Batcher(decoder('llama'), slots=2, max_len=20)
    torch.manual_seed(9)
    ids,pressed = some(6),[]
    def processor(ids, logits):
        if len(pressed) < 2:
            pressed.append(1)
            raise KeyboardInterrupt
        return logits
    text = batcher.submit(ids, 8, eos_id=(), logits_processor=processor)
    for _ in 'ab':
        with pytest.raises(KeyboardInterrupt): next(text)
    assert [*text] == alone(model, ids, 8) and batcher.free_slots == 2

@pytest.mark.parametrize('inside', ['the choice of a token', 'the bookkeeping of a pass'])
def test_an_interrupt_between_two_tokens_ends_its_request(inside):
    "Half of the bookkeeping is done: to go on would read a token twice, or skip one"
    model,batcher = decoder('llama'),Batcher(decoder('llama'), slots=2, max_len=30, block_size=4)
    torch.manual_seed(9)
    one,two = some(6),some(5)
    texts = [batcher.submit(one, 9, eos_id=(), stop=[[49]*3]), batcher.submit(two, 9, eos_id=())]
    assert next(texts[0]) == alone(model, one, 9)[0]
    while ready(texts[1]) < 2: batcher.step()
    owner,name = ((texts[0]._request.criteria, 'update') if inside == 'the choice of a token' else
                  (batcher._buffer, 'advance'))
    plain = getattr(owner, name)
    def interrupted(*args):
        plain(*args)
        setattr(owner, name, plain)
        raise KeyboardInterrupt
    setattr(owner, name, interrupted)
    with pytest.raises(KeyboardInterrupt): batcher.step()
    n_ready = ready(texts[0])
    for _ in range(n_ready): next(texts[0])
    with pytest.raises(RuntimeError, match='interrupted between two tokens'): next(texts[0])
    if inside == 'the choice of a token': assert [*texts[1]] == alone(model, two, 9)
    # nothing wrong is kept of it
    assert [*batcher.submit(one, 9, eos_id=())] == alone(model, one, 9)
    assert batcher.free_slots == 2

def test_threads_share_a_batcher():
    model,batcher = decoder('qwen3'),Batcher(decoder('qwen3'), slots=4, max_len=30)
    torch.manual_seed(5)
    prompts,out = [some(4+i) for i in range(6)],{}
    def read(i): out[i] = [*batcher.submit(prompts[i], 15, eos_id=())]
    threads = [threading.Thread(target=read, args=(i,)) for i in range(6)]
    for t in threads: t.start()
    for t in threads: t.join(60)
    assert out == {i: alone(model, p, 15) for i,p in enumerate(prompts)}
    assert batcher.free_slots == 4

def test_a_model_that_trains_in_other_dtypes_and_with_few_bits():
    torch.manual_seed(6)
    ids = [some(4), some(11)]
    model = Transformer(TransformerConfig(50, d_model=32, n_layers=2, n_heads=2, dropout=.5))
    for w in model.parameters(): w.data.mul_(5)
    want = [alone(model, p, 9) for p in ids]
    batcher = Batcher(model, slots=2, max_len=20)
    assert model.training
    assert [[*t] for t in [batcher.submit(p, 9, eos_id=()) for p in ids]] == want and model.training
    for other in (model.eval().double(), quantize(model.float(), bits=8)):
        batcher = Batcher(other, slots=2, max_len=20)
        got = [[*t] for t in [batcher.submit(p, 9, eos_id=()) for p in ids]]
        assert got == [alone(other, p, 9) for p in ids]
    nbytes = 2*2*2*20*2*16*4    # layers, keys and values, slots, tokens, heads, width, bytes
    assert Batcher(model.float(), slots=2, max_len=20).nbytes == nbytes

class Remembers(nn.Module):
    def forward(self, x, **told): return x
    def new_cache(self, batch, max_len, **kw): return object()

def test_layers_without_a_cache_of_keys_are_refused_by_name():
    state = Transformer(TransformerConfig(50, d_model=32, n_layers=2, n_heads=4,
                                          layer_types=('full','state')),
                        mixers=dict(state=lambda cfg, layer: Remembers()))
    with pytest.raises(NotImplementedError, match='layer 1 has a object: every layer must have'):
        Batcher(state, slots=1, max_len=9)
    batcher = Batcher(decoder('llama'), slots=1, max_len=9)
    with pytest.raises(TypeError, match='ids must be a tensor of integers, got list'):
        batcher.submit([1, 2], 3)
    with pytest.raises(TypeError, match='submit has no argument cache'):
        batcher.submit(some(3), 3, cache=None, mask=None)

def test_a_running_text_may_be_submitted_again():
    "At every length, also while it is decoded"
    model = decoder('llama')
    torch.manual_seed(7)
    batcher = Batcher(model, slots=2, max_len=20, block_size=4)
    text = batcher.submit(some(3), 14, eos_id=())
    batcher.step()
    while not text._request.is_finished:
        more = torch.cat([text._request.so_far[0], some(1)])
        assert [*batcher.submit(more, 1, eos_id=())] == alone(model, more, 1)    # a step of both

@pytest.mark.parametrize('how', ['close', 'forget'])
def test_a_request_that_is_dropped_makes_room_at_once(how):
    model = decoder('llama')
    torch.manual_seed(8)
    batcher,ids = Batcher(model, slots=1, max_len=20),some(5)
    texts = [batcher.submit(some(5), 12, eos_id=()), batcher.submit(ids, 6, eos_id=()),
             batcher.submit(some(4), 6, eos_id=())]
    next(texts[0])
    batcher.step()
    assert batcher.free_slots == 0 and len(batcher._waiting) == 2
    for text in (texts[0], texts[2]):
        if how == 'close': text.close()
    # not even what was ready
    if how == 'close': assert ready(texts[0]) and [*texts[0]] == [*texts[2]] == []
    del text, texts[2], texts[0]
    gc.collect()
    batcher.step()
    assert len(batcher._running) == 1 and not batcher._waiting
    assert [*texts[0]] == alone(model, ids, 6) and batcher.free_slots == 1

def lengths_read(batcher):
    "Numbers of tokens that its model is given, in a list that grows"
    lengths,logits = [],batcher._logits
    def counted(ids, *args):
        lengths.append(ids.shape[1])
        return logits(ids, *args)
    batcher._logits = counted
    return lengths

def train(model):
    optimizer = torch.optim.SGD(model.parameters(), 5.)
    ids = torch.arange(3, 15)[None]
    nn.functional.cross_entropy(model(ids)[0,:-1], ids[0,1:]).backward()
    optimizer.step()

def load(model):
    torch.manual_seed(3)
    model.load_state_dict({n: t + .3*torch.randn_like(t) for n,t in model.state_dict().items()})

def values_alone(q, k, v, **options):
    return v.mean(2, keepdim=True).repeat_interleave(q.shape[1]//v.shape[1], 1).expand(q.shape)

def attach(model):
    for block in model.decoder.blocks: block.attn.attend = values_alone

def hook(model): model.decoder.blocks[0].register_forward_hook(lambda m, x, out: -out)

def replace_module(model): model.decoder.blocks[0].ffn = nn.Identity()

def change_setting(model): model.decoder.blocks[0].attn.scale = 3.

penalty = dict(repetition_penalty=2.)    # else these small models repeat one token
varied = dict(eos_id=(), **penalty)

@pytest.mark.parametrize('change', [train, load, quantize, attach, hook, replace_module,
                                    change_setting])
def test_prefixes_of_another_model_are_not_used(change):
    torch.manual_seed(0)
    model,ids = copy.deepcopy(decoder('llama')),some(30)
    batcher = Batcher(model, slots=1, max_len=50, block_size=4)
    lengths,want = lengths_read(batcher),alone(model, ids, 9, **penalty)
    for _ in range(2): assert [*batcher.submit(ids, 9, **varied)] == want
    change(model)
    assert [*batcher.submit(ids, 9, **varied)] == alone(model, ids, 9, **penalty)
    assert [n for n in lengths if n > 1] == [30, 2, 30]

@pytest.mark.parametrize('inside', [lambda m: remove_heads(m, [(0, 1), (1, 2)]),
                                    lambda m: use_attention(m, values_alone)])
def test_prefixes_are_not_carried_into_an_intervention_and_back(inside):
    torch.manual_seed(0)
    model,ids = decoder('llama'),some(30)
    batcher = Batcher(model, slots=1, max_len=50, block_size=4)
    want = alone(model, ids, 9, **penalty)
    assert [*batcher.submit(ids, 9, **varied)] == want
    with inside(model):
        other = alone(model, ids, 9, **penalty)
        assert other != want and [*batcher.submit(ids, 9, **varied)] == other
    assert [*batcher.submit(ids, 9, **varied)] == want
    with inside(model): text = batcher.submit(ids, 9, **varied)    # begun before, ended inside
    next(text)
    with inside(model): next(text)
    assert len([*text]) == 7 and [*batcher.submit(torch.cat([ids, some(1)]), 3, **varied)]
    both = torch.cat([ids, torch.tensor([*want])])
    assert [*batcher.submit(both, 3, **varied)] == alone(model, both, 3, **penalty)

def test_a_beginning_is_read_once():
    model = decoder('llama')
    torch.manual_seed(0)
    batcher,begin = Batcher(model, slots=2, max_len=50, block_size=4),some(30)
    lengths = lengths_read(batcher)
    for _ in range(2): [*batcher.submit(begin, 3, eos_id=())]
    said = [*batcher.submit(begin, 11, eos_id=())]
    [*batcher.submit(torch.cat([begin, torch.tensor(said), some(2)]), 2, eos_id=())]
    # the second prompt reads what stands behind 7 blocks; the answer is known too
    assert [n for n in lengths if n > 1] == [30, 2, 2, 43-40]

@pytest.mark.parametrize('chunk', [4, 100])
def test_a_prompt_that_fails_ends_alone(chunk):
    "In its first chunk or a later one; before, beside and after others"
    model = decoder('llama')
    torch.manual_seed(0)
    batcher = Batcher(model, slots=2, max_len=30, prefill_chunk=chunk)
    def fail(module, args):
        if (args[0] == 49).any(): raise ArithmeticError('of this prompt')
    first,last = some(9, 3, 49),some(7, 3, 49)
    bad = [torch.cat([some(5, 3, 49), torch.tensor([49])]), torch.tensor([49, 5])]
    with_hook = model.embed.register_forward_pre_hook(fail)
    try:
        texts = [batcher.submit(p, 6, eos_id=()) for p in (first, *bad, last)]
        assert len([*texts[3]]) == 6 and len([*texts[0]]) == 6
        for text in texts[1:3]:
            with pytest.raises(ArithmeticError, match='of this prompt'): next(text)
    finally: with_hook.remove()
    assert batcher.free_slots == 2 and not batcher.step()
    assert [*batcher.submit(bad[0], 6, eos_id=())] == alone(model, bad[0], 6)

def test_the_dtype_of_a_model_changes():
    model = copy.deepcopy(decoder('llama'))
    torch.manual_seed(0)
    batcher,ids = Batcher(model, slots=2, max_len=30, prefill_chunk=4),[some(n) for n in (3, 9, 5)]
    texts = [batcher.submit(p, 6, eos_id=()) for p in ids]
    next(texts[0])
    model.double()
    assert [*texts[2]] == alone(model, ids[2], 6)    # it had not begun
    for text in texts[:2]:
        with pytest.raises(RuntimeError, match='are now torch.float64 on cpu, those of this '
                                               'request are torch.float32 on cpu: submit it again'):
            next(text)
    assert [*batcher.submit(ids[0], 6, eos_id=())] == alone(model, ids[0], 6)
    plain,autocast = copy.deepcopy(decoder('llama')),[]
    plain.register_forward_hook(lambda *_: autocast.append(torch.is_autocast_enabled('cpu')))
    with torch.autocast('cpu', torch.bfloat16):    # without effect: requests share steps
        assert len([*Batcher(plain, slots=1, max_len=30).submit(ids[0], 3, eos_id=())]) == 3
    assert autocast and not any(autocast)

def test_what_an_earlier_request_left_does_not_count():
    "NaN in a slot, beside a longer prompt; a slot that another request moves into"
    model = decoder('llama')
    torch.manual_seed(0)
    batcher,ids = Batcher(model, slots=2, max_len=30),[some(n) for n in (9, 3, 5)]
    def fill():
        for t in itertools.chain(*batcher._buffer.layers): t.fill_(torch.nan)
    fill()
    texts = [batcher.submit(p, 6, eos_id=()) for p in ids]
    assert [[*t] for t in texts] == [alone(model, p, 6) for p in ids]
    # a short text moves into the slot of a long one that ends first
    batcher = Batcher(model, slots=3, max_len=30)
    first,long,short = (batcher.submit(ids[i], n, eos_id=()) for i,n in ((0, 3), (0, 9), (1, 9)))
    while batcher.free_slots: batcher.step()
    for keys,values in batcher._buffer.layers: keys[0],values[0] = torch.nan,torch.nan
    assert [[*t] for t in (long, short)] == [alone(model, ids[i], 9) for i in (0, 1)]
    first.close()

def test_padding_and_shapes_are_read_as_by_generate():
    model = copy.deepcopy(decoder('llama'))    # its pad_id is 0
    torch.manual_seed(0)
    ids,batcher = some(6),Batcher(model, slots=2, max_len=30)
    want,padding = alone(model, ids, 8),torch.zeros(3, dtype=torch.long)
    padded = torch.cat([padding, ids])
    real = torch.arange(9) >= 3
    def generated(**options): return model.generate(padded[None], 8, eos_id=(), **options)[0,9:]
    assert generated().tolist() == want
    for prompt,options in ((ids, {}), (ids[None], {}), (padded, {}), (padded[None], {}),
                           (padded, dict(mask=real)), (padded[None], dict(mask=real[None])),
                           (torch.where(real, padded, 7), dict(pad_id=7, mask=real)),
                           (torch.cat([padding + 2, ids]), dict(pad_id=2))):
        assert [*batcher.submit(prompt, 8, eos_id=(), **options)] == want
    assert [*batcher.submit(padded, 8, **varied)] == generated(**penalty).tolist()
    text = generated(mask=torch.ones(1, 9, dtype=torch.bool)).tolist()
    assert text != want
    assert [*batcher.submit(padded, 8, eos_id=(), mask=torch.ones(9, dtype=torch.bool))] == text
    with pytest.raises(ValueError, match=r'ids must be one prompt, \(L,\) or \(1, L\), got \(2, 6'):
        batcher.submit(ids.expand(2, 6), 3)
    with pytest.raises(ValueError, match='must be True in the last column'):
        batcher.submit(ids, 3, mask=torch.zeros(6, dtype=torch.bool))

def test_a_long_prompt_does_not_stall_the_running_requests():
    "Between two chunks every running request gets a token; short prompts share a chunk"
    model = decoder('gemma3_text')
    torch.manual_seed(0)
    batcher,shapes = Batcher(model, slots=4, max_len=60, prefill_chunk=8),[]
    one = batcher.submit(some(3), 30, eos_id=())
    next(one)
    with_hook = model.register_forward_pre_hook(lambda m, args: shapes.append((*args[0].shape,)))
    prompts = [some(20), some(2), some(3)]
    texts = [batcher.submit(p, 5, eos_id=()) for p in prompts]
    counts = []
    for _ in range(4):
        batcher.step()
        counts.append([ready(t) for t in (one, *texts)])
    with_hook.remove()
    assert counts == [[1,0,0,0], [2,0,0,0], [3,1,1,0], [4,2,2,1]]
    assert shapes == [(1,1),(1,8), (1,1),(1,8), (1,1),(1,4),(1,2),(1,2), (3,1),(1,1)]
    for text,p in zip(texts, prompts): assert [*text] == alone(model, p, 5)

def test_a_step_copies_no_keys():
    "The attention function gets a view of the same buffer at every step"
    model = copy.deepcopy(decoder('llama'))
    torch.manual_seed(0)
    batcher = Batcher(model, slots=3, max_len=40)
    texts = [batcher.submit(some(n), 12, eos_id=()) for n in (5, 9, 2)]
    next(texts[2])
    storages = []
    def attend(q, k, v, **options):
        storages.append((k.untyped_storage().data_ptr(), k.shape[:3]))
        return nn.functional.scaled_dot_product_attention(q, k, v, options['mask'], enable_gqa=True)
    model.decoder.blocks[1].attn.attend = attend
    for _ in range(3): batcher.step()
    keys = batcher._buffer.layers[1][0]
    assert storages == [(keys.untyped_storage().data_ptr(), (3, keys.shape[1], n))
                        for n in (10, 11, 12)]
