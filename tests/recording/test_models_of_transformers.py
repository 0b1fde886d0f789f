"""Torch's own modules, and `look` on pictures, sounds, targets and written text; see
nbs/recording/third_party.ipynb and nbs/recording/recorder.ipynb"""
import copy, os
from dataclasses import replace
from types import SimpleNamespace
import numpy as np
import pytest, torch
from torch import nn
from torch.testing import assert_close

os.environ.setdefault('TOKENIZERS_PARALLELISM', 'false')
transformers = pytest.importorskip('transformers')
from PIL import Image
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM
from attention_nb.checkpoints.tokenizers import PretrainedTokenizer
from attention_nb.layers.torch_interop import TorchInterface
from attention_nb.models.config import TransformerConfig
from attention_nb.models.generation import generate
from attention_nb.models.transformer import Transformer
from attention_nb.recording.inputs import open_picture
from attention_nb.recording.look import load_hf, look
from attention_nb.recording.prepare_hf import _sound
from attention_nb.recording.recorder import record
from attention_nb.text.tokenizer import WordTokenizer
from attention_nb.views.attention_views import head_view, model_view
from attention_nb.views.neuron_view import neuron_view
from helpers.tiny_models import made, tiny

close = dict(rtol=0, atol=1e-5)

def given_by(model, **given):
    "What a model gives when it is asked for its weights"
    with torch.no_grad(): return model(**given, output_attentions=True)

def are_of(r, own, n=0, parts=None):
    "The weights that are recorded of text `n` are those that the model gave"
    for part in parts or r.kinds():
        theirs = own['attentions' if part == 'self' else f'{part}_attentions']
        assert_close(r.weights(n, part), [w[n] for w in theirs], **close)

# ---- torch's own modules

def torch_weights(m, *args, **kw):
    with torch.no_grad(): return m(*args, **kw, average_attn_weights=False)[1]

@pytest.mark.parametrize('batch_first, bias, training', [
    (True, True, False), (True, False, True), (False, True, True), (False, False, False)])
def test_torchs_module(batch_first, bias, training):
    torch.manual_seed(0)
    m = nn.MultiheadAttention(16, 4, bias=bias, batch_first=batch_first, kdim=8, vdim=12,
                              add_zero_attn=not bias).train(training)
    def turned(t): return t if batch_first else t.transpose(0, 1)
    q,k,v = (turned(torch.randn(2, n, width)) for n,width in ((5,16), (7,8), (7,12)))
    hidden = torch.rand(5, 7) > 0.6
    hidden[:,0] = False
    pad = torch.tensor([[0]*7, [0]*5+[1]*2]).bool()
    for kw in ({}, dict(attn_mask=hidden), dict(attn_mask=torch.randn(5, 7)),
               dict(key_padding_mask=pad),
               dict(attn_mask=hidden, key_padding_mask=pad), dict(need_weights=False)):
        want = m(q, k, v, **kw)
        with record(m) as r: got = m(q, k, v, **kw)
        assert_close(got[0], want[0])
        assert r.kinds() == ['cross']
        assert_close(r.layers[0].weights, torch_weights(m, q, k, v, **kw | dict(need_weights=True)),
                     **close)

def test_torchs_encoder():
    "Its fast path is not taken meanwhile, padding too; the weights are torch's"
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 3).eval()
    x,pad = torch.randn(2, 6, 16),torch.tensor([[0]*6, [0]*4+[1]*2]).bool()
    for kw in ({}, dict(src_key_padding_mask=pad),
               dict(mask=torch.ones(6, 6).bool().triu(1), is_causal=True)):
        with torch.no_grad():
            want = model(x, **kw)
            with record(model) as outer, record(model) as r: got = model(x, **kw)
            real = ~pad[...,None] if 'src_key_padding_mask' in kw else torch.tensor(True)
            assert_close(got*real, want*real)
            assert [n.name for n in r.layers] == [f'layers.{n}.self_attn' for n in range(3)]
            assert r.kinds() == ['self']
            y,mask,padding = x,kw.get('mask'),kw.get('src_key_padding_mask')
            for layer,n,o in zip(model.layers, r.layers, outer.layers, strict=True):
                assert_close(n.weights, torch_weights(layer.self_attn, y, y, y, attn_mask=mask,
                                                      key_padding_mask=padding), **close)
                assert torch.equal(n.weights, o.weights)
                y = layer(y, src_mask=mask, src_key_padding_mask=padding)
        assert torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(AssertionError), record(model): model(torch.randn(2, 6, 3))
    assert torch.backends.mha.get_fastpath_enabled()

@pytest.mark.parametrize('rest', [
    (None, False), (None, True, None, False),
    (None, False, torch.ones(4, 4).bool().triu(1), True, True)])
def test_torchs_arguments_by_place(rest):
    torch.manual_seed(0)
    m,x = nn.MultiheadAttention(16, 4),torch.randn(4, 2, 16)
    want,heads = m(x, x, x, *rest),m(x, x, x, attn_mask=rest[2] if len(rest) > 2 else None,
                                     average_attn_weights=False)[1]
    with record(m) as r: got = m(x, x, x, *rest)
    assert torch.equal(got[0], want[0]) and (got[1] is None) == (want[1] is None)
    assert_close(r.layers[0].weights, heads, **close)

def test_a_call_that_is_refused_leaves_no_trace():
    """Without weights torch believes is_causal and not the mask: better none than a wrong record.
    Calls after it are passes of their own, in a model too"""
    torch.manual_seed(0)
    layer,x = nn.TransformerEncoderLayer(16, 4, 32),torch.randn(4, 2, 16)
    for m,given in ((layer.self_attn, (x, x, x)), (layer, (x,))):
        hidden = torch.eye(4).bool()
        hides = dict(src_mask=hidden) if m is layer else dict(attn_mask=hidden, need_weights=False)
        with record(m.eval()) as r:
            with pytest.raises(NotImplementedError, match='hides something else'):
                m(*given, is_causal=True, **hides)
            for _ in range(2): m(*given)
        assert len(r) == 1

def test_torchs_encoder_and_decoder():
    torch.manual_seed(0)
    model = nn.Transformer(16, 4, 2, 2, 32).eval()
    source,target = torch.randn(6, 2, 16),torch.randn(4, 2, 16)
    later = nn.Transformer.generate_square_subsequent_mask(4)
    given = dict(tgt_mask=later, tgt_is_causal=True)
    with torch.no_grad(): want = model(source, target, **given)
    with torch.no_grad(), record(model) as r: got = model(source, target, **given)
    assert_close(got, want)
    assert r.kinds() == ['encoder', 'decoder', 'cross'] and len(r) == 6
    assert [w.shape for w in r.weights(kind='cross')] == [(4, 4, 6)]*2
    first = model.decoder.layers[0]
    mask = dict(attn_mask=later)
    assert_close(next(n.weights for n in r.layers if n.kind == 'decoder'),
                 torch_weights(first.self_attn, target, target, target, **mask), **close)
    decoder = model.decoder
    with torch.no_grad(), record(decoder) as r: decoder(target, source, tgt_mask=later)
    assert r.kinds() == ['self', 'cross']
    ours = copy.deepcopy(model)         # our modules in torch's layers are recorded alike
    for layer in (*ours.encoder.layers, *ours.decoder.layers):
        for name in ('self_attn', 'multihead_attn'):
            if hasattr(layer, name):
                setattr(layer, name, TorchInterface(getattr(layer, name)))
    with torch.no_grad(), record(ours) as mine, record(model) as r:
        assert_close(ours(source, target, **given), model(source, target, **given))
    assert mine.kinds() == r.kinds()
    for kind in r.kinds(): assert_close(mine.weights(1, kind), r.weights(1, kind), **close)

# ---- look

words = ('[PAD] <s> </s> [UNK] time flies like an arrow die zeit fliegt wie ein pfeil '
         'a cat on the mat').split()

@pytest.fixture(scope='module')
def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    t = Tokenizer(models.WordLevel({w: i for i,w in enumerate(words)}, unk_token='[UNK]'))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.post_processor = processors.TemplateProcessing(single='$A </s>', pair='$A </s> $B </s>',
                                                     special_tokens=[('</s>', 2)])
    special = dict(unk_token='[UNK]', pad_token='[PAD]', bos_token='<s>', eos_token='</s>')
    return transformers.PreTrainedTokenizerFast(tokenizer_object=t, **special)

def eager(model):
    "The same model, loaded to give its weights"
    twin = copy.deepcopy(model)
    twin.set_attn_implementation('eager')
    return twin

def all_shown(seen):
    "Every view takes what was seen"
    for view in (head_view, model_view):
        groups = view(seen)._data['groups']
        assert [g['name'] for g in groups] == (seen.recording.kinds() if len(groups) > 1 else [''])
        kinds = seen.recording.kinds()
        assert [(g['q'], g['k']) for g in groups] == [seen.token_names[kind] for kind in kinds]
        for kind in kinds:
            assert view(**seen.shown(kind))._data['groups'][0]['q'] == seen.token_names[kind][0]
    for kind in seen.recording.kinds(): neuron_view(**seen.neurons(kind))

@pytest.mark.parametrize('kind', ['bart', 't5'])
def test_a_text_and_its_answer(kind, tokenizer):
    model = made(kind, 'sdpa', AutoModelForSeq2SeqLM)
    model.generation_config.decoder_start_token_id = 1
    source,answer = ['time', 'flies', '</s>'],['<s>', 'die', 'zeit', 'fliegt']
    seen = look('time flies', model, tokenizer, target='die zeit fliegt')
    assert seen.recording.kinds() == ['encoder', 'decoder', 'cross']
    assert seen.tokens == source and not seen.written
    assert seen.token_names == dict(encoder=(source, source), decoder=(answer, answer),
                              cross=(answer, source))
    ids = tokenizer('time flies', return_tensors='pt').input_ids
    told = torch.tensor([[1, 9, 10, 11]])
    are_of(seen.recording, given_by(eager(model), input_ids=ids, decoder_input_ids=told))
    all_shown(seen)
    wrote = look('time flies', model, tokenizer, write=5)
    got = model.generate(ids, max_new_tokens=5, do_sample=False)[0]
    assert wrote.written == len(got)-1 and len(wrote.token_names['decoder'][0]) == len(got)
    long = look('time flies', model, tokenizer, write=32)
    assert look('time flies', model, tokenizer).written == min(32, long.written)
    assert look('time flies', model, tokenizer, write=0).token_names['decoder'][0] == ['<s>']
    # the decoder reads everything again at each step
    model.generation_config.use_cache = False
    assert look('time flies', model, tokenizer, write=5).token_names == wrote.token_names
    same = look('time flies', model, tokenizer, target='die zeit').token_names['cross']
    assert same == (['<s>', 'die', 'zeit'], source)
    with pytest.raises(ValueError, match='the target has 71 tokens, the model reads at most 64'):
        look('time flies', made('bart', 'sdpa'), tokenizer, target='zeit '*70)
    bare = look('time flies', made(kind, 'sdpa'), tokenizer)
    assert len(bare.token_names['decoder'][0]) == 1

def test_a_text_that_is_written_on(tokenizer):
    "One look is the record of all steps of `generate`"
    model = made('gpt2', 'sdpa', AutoModelForCausalLM, vocab_size=len(words), eos_token_id=2)
    seen = look('time flies', model, tokenizer, write=4)
    ids = tokenizer('time flies', return_tensors='pt')
    with record(model) as r: got = model.generate(**ids, max_new_tokens=4, do_sample=False)
    assert seen.tokens == [words[i] for i in got[0]] and seen.written == len(seen.tokens)-3
    n = r.layers[0].weights.shape[2]
    assert_close([w[:,:n,:n] for w in seen.recording.weights()], r.weights(), **close)
    typed = copy.deepcopy(tokenizer)    # types of the new tokens are those of the last one
    typed.model_input_names = ['input_ids', 'token_type_ids', 'attention_mask']
    assert look('time flies', model, typed, write=4).written == seen.written
    with pytest.raises(ValueError, match='the text has 3 tokens and 62 to write, the model reads'):
        look('time flies', model, tokenizer, write=62)
    model.train()    # dropout must not act while it writes
    assert look('time flies', model, tokenizer, write=4).tokens == seen.tokens and model.training
    said = r'GPT2Model cannot write: load it with its head, load_hf\(\.\.\., head=True\)'
    with pytest.raises(ValueError, match=said):
        look('time flies', model.transformer, tokenizer, write=4)

def test_positions_of_roberta_begin_behind_padding(tokenizer):
    model = made('roberta', 'sdpa')     # 64 positions, of which one is of padding
    assert len(look('time '*62, model, tokenizer).tokens) == 63
    with pytest.raises(ValueError, match='the text has 64 tokens, the model reads at most 63'):
        look('time '*63, model, tokenizer)

@pytest.mark.parametrize('both', [False, True])
def test_our_own_transformer_writes_and_reads_targets(both):
    own = WordTokenizer.train(['time flies like an arrow'])
    settings = dict(kind='encoder-decoder', decoder_start_id=2) if both else {}
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=len(own), d_model=12, n_layers=2, n_heads=3,
                                          **settings)).eval()
    seen = look('time flies', model, own, write=3)
    ids = torch.tensor([own.encode('time flies')])
    want = [own.decode([i], skip_special=False) for i in generate(model, ids, 3)[0].tolist()]
    assert (seen.token_names['decoder'][0] if both else seen.tokens) == want and seen.written == 3
    all_shown(seen)
    if not both: return
    seen = look('time flies', model, own, target='an arrow')
    start = own.decode([2], skip_special=False)
    assert seen.token_names['cross'] == ([start, 'an', 'arrow'], ['time', 'flies'])
    assert look('time flies', model, own).written == 32
    short = replace(model.cfg, positions='learned', max_len=8)
    assert look('time flies', Transformer(short), own).written == 7
    with pytest.raises(ValueError, match='the target has 9 tokens, the model reads at most 8'):
        look('time flies', Transformer(short), own, target='an '*8)
    headless = Transformer(replace(model.cfg, head=None))
    assert look('time flies', headless, own).token_names['decoder'][0] == [start]

def test_a_target_has_no_end_token(tokenizer):
    ends = PretrainedTokenizer(tokenizer.backend_tokenizer,
                               special_tokens_map=dict(eos_token='</s>'))
    model = Transformer(TransformerConfig(len(words), d_model=12, n_layers=1, n_heads=3,
                                          kind='encoder-decoder', decoder_start_id=1)).eval()
    seen = look('time', model, ends, target='die zeit')
    assert seen.token_names['cross'] == (['<s>', 'die', 'zeit'], ['time', '</s>'])

def test_a_batch_of_one_sound_stays_one():
    model = SimpleNamespace(main_input_name='input_values')
    assert _sound(torch.rand(1, 99), model, None)[0]['input_values'].shape == (1, 99)
    model.main_input_name = 'input_features'
    for shape in ((8, 16), (1, 8, 16)):
        assert _sound(torch.rand(shape), model, None)[0]['input_features'].shape == (1, 8, 16)

picture = Image.fromarray((np.arange(20*30*3).reshape(20, 30, 3) % 251).astype('uint8'))

visions = dict(vit=1, deit=2, beit=1, dinov2=1, dinov2_with_registers=5, dinov3_vit=1,
               siglip_vision_model=0, clip_vision_model=1)

@pytest.mark.parametrize('kind', visions)
def test_a_picture(kind):
    "Patches are named by row and column, behind special tokens; the weights are the model's own"
    model = made(kind, 'sdpa', image_size=[16, 24] if kind == 'vit' else 16)
    pixels = torch.rand(3, 16, 24 if kind == 'vit' else 16)
    seen,own = look(pixels, model),given_by(eager(model), pixel_values=pixels[None])
    are_of(seen.recording, own, parts=['self'])          # siglip's head attends, too
    assert seen.grid == (2, 3 if kind == 'vit' else 2)
    assert seen.n_special == visions[kind] and seen.image_kind == 'self'
    places = [f'{r},{c}' for r in range(seen.grid[0]) for c in range(seen.grid[1])]
    assert seen.tokens[seen.n_special:] == places
    assert len(seen.tokens) == own.attentions[0].shape[-1]
    assert seen.n_special == 0 or seen.tokens[0] == '[CLS]'
    assert_close(seen.image, (pixels*255).round().to(torch.uint8).permute(1, 2, 0))
    all_shown(seen)

def test_a_picture_as_one_has_it(tmp_path):
    "An image, an array and a file are prepared by the processor; kept is what the model saw"
    model = made('vit', 'sdpa')
    processor = transformers.ViTImageProcessor(size=dict(height=16, width=16), do_rescale=True)
    picture.save(tmp_path/'picture.png')
    seens = [look(x, model, processor)
             for x in (picture, np.asarray(picture), tmp_path/'picture.png',
                       str(tmp_path/'picture.png'))]
    for seen in seens[1:]:
        assert_close(seen.recording.weights(), seens[0].recording.weights(), rtol=0, atol=0)
    small = np.asarray(picture.resize((16, 16), Image.BILINEAR)).astype(int)
    assert abs(seens[0].image.numpy().astype(int)-small).max() <= 2
    grey = look(picture.convert('L'), model, processor)
    assert grey.image.shape == (16, 16, 3)
    with pytest.raises(TypeError, match="tokenizer must be the model's processor for a picture"):
        look(picture, model)

@pytest.mark.parametrize('turn', [3, 6, 8])
def test_a_picture_is_looked_at_as_the_camera_was_held(turn, tmp_path):
    "As `image_view` shows it, from a file and from an image"
    from attention_nb.views.images import rgb_picture
    exif = Image.Exif()
    exif[0x112] = turn
    picture.save(tmp_path/'turned.png', exif=exif)
    with Image.open(tmp_path/'turned.png') as opened:
        got = [open_picture(x) for x in (opened, tmp_path/'turned.png', f'{tmp_path}/turned.png')]
    want = rgb_picture(tmp_path/'turned.png')
    for one in got:
        assert one.size == want.size == (picture.size if turn == 3 else picture.size[::-1])
        assert one.tobytes() == want.tobytes()

def clip(tokenizer):
    config = transformers.CLIPConfig(text_config=tiny('clip_text_model', eos_token_id=2).to_dict(),
                                     vision_config=tiny('clip_vision_model').to_dict(),
                                     projection_dim=16)
    torch.manual_seed(0)
    prepares = transformers.CLIPImageProcessor(size=dict(shortest_edge=16),
                                               crop_size=dict(height=16, width=16))
    model = transformers.CLIPModel._from_config(config, attn_implementation='sdpa').eval()
    return model, transformers.CLIPProcessor(prepares, tokenizer)

def test_a_text_with_a_picture(tokenizer, tmp_path):
    model,processor = clip(tokenizer)
    picture.save(tmp_path/'cat.png')    # its name is no text
    named = look(str(tmp_path/'cat.png'), model, processor)
    assert named.recording.kinds() == ['vision_model']
    with pytest.raises(ValueError, match='one image at a time'):
        look(torch.rand(2, 3, 16, 16), model, processor)
    text = ['a', 'cat', '</s>']
    both = look('a cat', model, processor, image=picture)
    alone,seen = look('a cat', model, processor),look(picture, model, processor)
    assert both.tokens == text and set(both.token_names) == {'text_model', 'vision_model'}
    assert both.image_kind == 'vision_model' and both.token_names['text_model'] == (text, text)
    assert both.token_names['vision_model'][0] == ['[CLS]', '0,0', '0,1', '1,0', '1,1']
    assert alone.recording.kinds() == ['text_model']
    assert alone.image is None and alone.tokens == text
    assert seen.recording.kinds() == ['vision_model']
    assert (seen.grid, seen.n_special, seen.image_kind) == ((2, 2), 1, 'vision_model')
    given,twin = processor(text='a cat', images=picture, return_tensors='pt'),eager(model)
    pixels = given.pop('pixel_values')
    own = dict(text_model_attentions=given_by(twin.text_model, **given).attentions,
               vision_model_attentions=given_by(twin.vision_model, pixel_values=pixels).attentions)
    for one in (both, alone, seen):
        are_of(one.recording, own)
        all_shown(one)
    assert torch.equal(named.image, seen.image)
    assert both.hidden[0].shape == (3, 32)

def test_a_sound(tokenizer):
    prepares = transformers.WhisperFeatureExtractor(feature_size=8, chunk_length=1, n_fft=64,
                                                    hop_length=1000, sampling_rate=16000)
    processor = transformers.WhisperProcessor(prepares, tokenizer)
    config = tiny('whisper', max_source_positions=8, eos_token_id=2, vocab_size=len(words))
    torch.manual_seed(0)
    whisper = transformers.WhisperForConditionalGeneration
    model = whisper._from_config(config, attn_implementation='sdpa').eval()
    sound = np.sin(np.arange(12000)/20).astype('float32')
    seen = look(sound, model, processor, target='time flies')
    times,answer = seen.token_names['encoder'][0],['<s>', 'time', 'flies']
    # a second, cut in eight
    assert times == [f'{n/8:.2f}s' for n in range(8)] == seen.tokens
    assert seen.recording.kinds() == ['encoder', 'decoder', 'cross']
    assert seen.token_names['cross'] == (answer, times)
    features = processor(sound, sampling_rate=16000, return_tensors='pt')['input_features']
    are_of(seen.recording, given_by(eager(model), input_features=features,
                                    decoder_input_ids=torch.tensor([[1, 4, 5]])))
    all_shown(seen)
    wrote = look(sound, model, processor, write=4)
    first,*rest = wrote.token_names['decoder'][0]
    assert first == '<s>' and wrote.written == len(rest)
    generated = model.generate(features, max_new_tokens=4, do_sample=False)[0].tolist()
    assert [words.index(w) for w in rest] == generated[:wrote.written]
    same = look(features, model, processor, target='time flies')
    assert_close(*(s.recording.weights(kind='cross') for s in (same, seen)), rtol=0, atol=0)
    with pytest.raises(TypeError, match="tokenizer must be the model's processor for a sound"):
        look(sound, model)

def test_several_texts_stay_apart(tokenizer):
    "One look for each; one batch, and each by its number"
    model,texts = made('bert', 'sdpa'),['time flies', 'a cat on the mat']
    each = [look(t, model, tokenizer) for t in texts]
    batch = tokenizer(texts, padding=True, return_tensors='pt')
    batch.pop('token_type_ids', None)
    with record(model) as r, torch.no_grad(): model(**batch)
    for n,seen in enumerate(each):
        L = len(seen.tokens)
        assert_close(seen.recording.weights(), [w[:,:L,:L] for w in r.weights(n)], **close)
    with pytest.raises(ValueError, match='2 sequences'): head_view(r, each[0].tokens)

# ---- load_hf

def test_models_come_with_what_prepares_their_input(tmp_path, tokenizer):
    model,processor = clip(tokenizer)
    for x in (model, processor): x.save_pretrained(tmp_path/'clip')
    loaded,prepares = load_hf(tmp_path/'clip')
    assert type(loaded) is transformers.CLIPModel
    assert look('a cat', loaded, prepares, image=picture).grid == (2, 2)
    bart = made('bart', auto=AutoModelForSeq2SeqLM, decoder_start_token_id=1)
    for x in (bart, tokenizer): x.save_pretrained(tmp_path/'bart')
    for head in (None, True, False):
        loaded,prepares = load_hf(tmp_path/'bart', head=head)
        assert type(loaded) is (transformers.BartModel if head is False else type(bart))
        seen = look('time flies', loaded, prepares, write=0 if head is False else 3)
        assert seen.recording.kinds() == ['encoder', 'decoder', 'cross'] and not loaded.training
    gpt2 = made('gpt2', auto=AutoModelForCausalLM)
    for x in (gpt2, tokenizer): x.save_pretrained(tmp_path/'gpt2')
    assert [type(load_hf(tmp_path/'gpt2', head=h)[0]).__name__
            for h in (None, False, True)] == ['GPT2Model', 'GPT2Model', 'GPT2LMHeadModel']
