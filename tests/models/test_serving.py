"Texts that are written together are those that each would be alone, and no page is lost"
import gc, random, threading
import pytest, torch
from torch import nn
from attention_nb.layers.quantized import quantize
from attention_nb.models.config import TransformerConfig
from attention_nb.models.serving import Batcher
from attention_nb.models.transformer import Transformer
from attention_nb.text.bpe import BPETokenizer
from helpers import short
from helpers.tiny_models import decoder

def alone(model, ids, n, **options):
    return model.generate(ids[None], n, eos_id=(), **options)[0,len(ids):].tolist()

def some(n, low=3, high=50): return torch.randint(low, high, (n,))

unlike = 'llama','gpt2','gemma3_text','gpt_oss','deepseek_v3','bloom','smollm3','gpt_neox'

@pytest.mark.parametrize('family', short(unlike, [*unlike, 'gemma2', 'qwen3', 'mistral', 'phi3',
                                                  'mixtral', 'olmo2']))
def test_each_text_is_the_one_it_would_be_alone(family):
    "They come at different times and end at different times, and some begin alike"
    model = decoder(family)
    torch.manual_seed(1)
    begin = some(9)
    prompts = [some(5), torch.cat([begin, some(2)]), some(1), torch.cat([begin, some(7)]), begin]
    lengths = [20, 9, 30, 14, 3]
    batcher,out = Batcher(model, pages=30, page=4),[[] for _ in prompts]
    texts = {}
    for step in range(60):
        if step % 3 == 0 and (i := step//3) < len(prompts):
            texts[i] = batcher.submit(prompts[i], lengths[i], eos_id=())
        batcher.step()
        # the iterator does not step while it has tokens
        for i,t in texts.items(): out[i] += [next(t) for _ in range(len(t._text.ready))]
    for got,ids,n in zip(out, prompts, lengths): assert got == alone(model, ids, n)
    assert batcher.free_pages == 30 and not batcher.step()

def test_hundreds_of_texts_leave_no_page_behind():
    "Also those that are dropped, closed, refused, or that share; no text sees another one's page"
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(20, d_model=8, n_layers=1, n_heads=2)).eval()
    for w in model.parameters(): w.data.mul_(4)
    batcher,dice = Batcher(model, pages=23, page=4),random.Random(0)
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
        if text._text.over and len(said) < n: continue
        assert said + [*text] == alone(model, ids, n)
        done += 1
    del held, text, row
    gc.collect()
    assert not batcher.step() and batcher.free_pages == 23 and done > 50
    assert not any(batcher._table.users)

def test_a_full_house_waits_in_order_and_a_large_text_is_refused():
    model = decoder('llama')
    torch.manual_seed(2)
    batcher = Batcher(model, pages=4, page=4)
    one,two,three = (batcher.submit(some(n), 6, eos_id=()) for n in (7, 8, 2))
    next(one)
    # text two needs more than is left; three would fit, and does not overtake
    assert (batcher.free_pages, len(two._text.ready), len(three._text.ready)) == (1, 0, 0)
    assert len([*three]) == 6 and len([*two]) == 6
    with pytest.raises(ValueError, match='needs 5 pages of 4, there are 4'):
        batcher.submit(some(12), 6)
    # the last token is never read: 17 tokens need 16 places
    assert len([*batcher.submit(some(11), 6, eos_id=())]) == 6
    learned = Transformer(TransformerConfig(50, d_model=32, n_layers=1, n_heads=4, max_len=9,
                                            positions='learned')).eval()
    with pytest.raises(ValueError, match='max_len'): Batcher(learned, pages=9).submit(some(5), 9)

def test_every_text_has_its_own_options():
    model,batcher = decoder('llama'),Batcher(decoder('llama'), pages=60, page=4)
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
    assert [*batcher.submit(ids, 0)] == [] and batcher.free_pages == 60

def test_a_key_on_the_keyboard_loses_no_text():
    "In a prompt and in the middle of a pass; then all goes on"
    model,batcher = decoder('gpt2'),Batcher(decoder('gpt2'), pages=40, page=4)
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
    assert batcher.free_pages == 40

def test_a_key_on_the_keyboard_in_a_processor_begins_no_text_twice():
    model,batcher = decoder('llama'),Batcher(decoder('llama'), pages=9, page=4)
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
    assert [*text] == alone(model, ids, 8) and batcher.free_pages == 9

def test_threads_share_a_batcher():
    model,batcher = decoder('qwen3'),Batcher(decoder('qwen3'), pages=60, page=4)
    torch.manual_seed(5)
    prompts,out = [some(4+i) for i in range(6)],{}
    def read(i): out[i] = [*batcher.submit(prompts[i], 15, eos_id=())]
    threads = [threading.Thread(target=read, args=(i,)) for i in range(6)]
    for t in threads: t.start()
    for t in threads: t.join(60)
    assert out == {i: alone(model, p, 15) for i,p in enumerate(prompts)}
    assert batcher.free_pages == 60

def test_a_model_that_trains_in_other_dtypes_and_with_few_bits():
    torch.manual_seed(6)
    ids = [some(4), some(11)]
    model = Transformer(TransformerConfig(50, d_model=32, n_layers=2, n_heads=2, dropout=.5))
    for w in model.parameters(): w.data.mul_(5)
    want = [alone(model, p, 9) for p in ids]
    batcher = Batcher(model, pages=20, page=4)
    assert model.training
    assert [[*t] for t in [batcher.submit(p, 9, eos_id=()) for p in ids]] == want and model.training
    for other in (model.eval().double(), quantize(model.float(), bits=8)):
        batcher = Batcher(other, pages=20, page=4)
        got = [[*t] for t in [batcher.submit(p, 9, eos_id=()) for p in ids]]
        assert got == [alone(other, p, 9) for p in ids]
    pages = sum(2*21*4*2*16*4 for _ in range(2))    # keys and values, slots, heads, width, bytes
    assert Batcher(model.float(), pages=20, page=4).nbytes == pages

class Remembers(nn.Module):
    def forward(self, x, **told): return x
    def new_cache(self, batch, max_len, **kw): return object()

def test_what_has_no_pages_is_refused_by_name():
    state = Transformer(TransformerConfig(50, d_model=32, n_layers=2, n_heads=4,
                                          layer_types=('full','state')),
                        mixers=dict(state=lambda cfg, layer: Remembers()))
    with pytest.raises(NotImplementedError, match='layer 1 keeps a object, which has no pages'):
        Batcher(state, pages=3)
    with pytest.raises(NotImplementedError, match='got a Transformer that is a encoder'):
        Batcher(Transformer(TransformerConfig(50, d_model=32, n_layers=1, n_heads=4,
                                              kind='encoder')), pages=3)
    batcher = Batcher(decoder('llama'), pages=3)
    with pytest.raises(TypeError, match='ids must be the tokens of one text'):
        batcher.submit([1, 2], 3)
    with pytest.raises(TypeError, match='submit takes .*; got cache, mask'):
        batcher.submit(some(3), 3, cache=None, mask=None)

def test_a_text_that_is_still_written_may_be_begun_again():
    "At every length: a page is shared only when all of its keys are there"
    model = decoder('llama')
    torch.manual_seed(7)
    batcher = Batcher(model, pages=80, page=4)
    text = batcher.submit(some(3), 14, eos_id=())
    batcher.step()
    while not text._text.over:
        more = torch.cat([text._text.so_far[0], some(1)])
        for page in batcher._table.known(more.tolist())[0]:
            keys,_ = batcher._kept[-1]
            assert keys[4*page:4*page+4].flatten(1).any(1).all()
        assert [*batcher.submit(more, 1, eos_id=())] == alone(model, more, 1)    # a step of both

@pytest.mark.parametrize('how', ['close', 'forget'])
def test_a_text_that_is_dropped_makes_room_at_once(how):
    model = decoder('llama')
    torch.manual_seed(8)
    batcher,ids = Batcher(model, pages=5, page=4),some(5)
    texts = [batcher.submit(some(5), 12, eos_id=()), batcher.submit(ids, 6, eos_id=()),
             batcher.submit(some(4), 6, eos_id=())]
    next(texts[0])                                      # four pages; the others wait
    batcher.step()
    assert batcher.free_pages == 1 and len(batcher._waiting) == 2
    for text in (texts[0], texts[2]):
        if how == 'close': text.close()
    if how == 'close': assert len([*texts[0]]) == 1 and [*texts[2]] == []    # what was ready
    del text, texts[2], texts[0]
    gc.collect()
    batcher.step()
    assert len(batcher._running) == 1 and not batcher._waiting and batcher.free_pages == 2
    assert [*texts[0]] == alone(model, ids, 6) and batcher.free_pages == 5
