"Every family against transformers: tiny random models, one line each, through all checks below"
import copy, functools, inspect, json, os, resource, time
from dataclasses import fields
import pytest, torch
from torch.testing import assert_close

os.environ.setdefault('TOKENIZERS_PARALLELISM', 'false')
transformers = pytest.importorskip('transformers')
from safetensors.torch import load_file, save_file
from attention_nb.checkpoints.families.registry import FAMILIES, config_from_hf, config_to_hf
from attention_nb.checkpoints.convert import build_model, tensors_to_hf
from attention_nb.recording.recorder import record
from helpers import short

transformers.utils.logging.set_verbosity_error()

V,inf,nan = dict(vocab_size=97),float('inf'),float('nan')
deep = dict(**V, hidden_size=32, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4,
            max_position_embeddings=64)
grouped,flat = dict(**deep, num_key_value_heads=2),dict(**deep, num_key_value_heads=4)
tokens = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
gpt2 = dict(**V, n_embd=32, n_layer=2, n_head=4, n_positions=64, **tokens)
bert = dict(**deep) | dict(num_hidden_layers=2, type_vocab_size=2, hidden_act='gelu')
distil = dict(**V, dim=32, hidden_dim=40, n_layers=2, n_heads=4, max_position_embeddings=64)
bloom = dict(**V, hidden_size=32, n_layer=2, n_head=4)
t5 = dict(**V, d_model=32, d_kv=6, d_ff=40, num_layers=2, num_heads=4,
          relative_attention_num_buckets=8, relative_attention_max_distance=12,
          decoder_start_token_id=0)
gemma = dict(**grouped, head_dim=10, sliding_window=5, query_pre_attn_scalar=12)
latent = dict(**flat, moe_intermediate_size=16, n_routed_experts=8, n_group=4, topk_group=2,
              num_experts_per_tok=3, first_k_dense_replace=1, q_lora_rank=12, kv_lora_rank=16,
              qk_rope_head_dim=8, qk_nope_head_dim=6, v_head_dim=10)
state = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=10,
             linear_value_head_dim=5)
kimi = {n: x for n,x in latent.items() if n not in (
    'n_routed_experts', 'first_k_dense_replace', 'n_group', 'topk_group', 'q_lora_rank')} | dict(
        num_experts=8, linear_head_dim=6, linear_num_heads=3, **tokens)
mixed = ['sliding_attention','full_attention','sliding_attention']
hybrid = ['linear_attention','full_attention','linear_attention']
def scaled(kind, **more): return dict(rope_parameters=dict(rope_type=kind, rope_theta=100., **more))
short_context = dict(original_max_position_embeddings=16)
linear = scaled('linear', factor=3.)
dynamic = scaled('dynamic', factor=3.) | dict(max_position_embeddings=16)
yarn = scaled('yarn', factor=4., **short_context)
llama3 = scaled('llama3', factor=4., low_freq_factor=1., high_freq_factor=4., **short_context)
longrope = short_context | scaled(
    'longrope', short_factor=[1., 1.5, 2., 3.], long_factor=[1., 4., 8., 16.])
deepyarn = scaled('yarn', factor=4., mscale=.7, mscale_all_dim=.9, **short_context)
experts = dict(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=16)
two = dict(rope_parameters=dict(full_attention=dict(rope_type='linear', factor=4., rope_theta=500.),
                                sliding_attention=dict(rope_type='default', rope_theta=100.)))

# name: class, settings
rows = {
    'gpt2': ('GPT2LMHeadModel', gpt2),
    'gpt2-odd': ('GPT2LMHeadModel', gpt2 | dict(n_inner=40, activation_function='relu',
        scale_attn_weights=False, reorder_and_upcast_attn=True, tie_word_embeddings=False,
        layer_norm_epsilon=.1)),
    'gpt2-base': ('GPT2Model', gpt2),
    'bert': ('BertForMaskedLM', bert),
    'bert-odd': ('BertForMaskedLM', bert | dict(hidden_act='relu', type_vocab_size=3,
        layer_norm_eps=.1, tie_word_embeddings=False)),
    'bert-base': ('BertModel', bert | dict(chunk_size_feed_forward=4)),
    'roberta': ('RobertaForMaskedLM', bert),
    'roberta-odd': ('RobertaForMaskedLM', bert | dict(hidden_act='gelu_new', pad_token_id=3,
        tie_word_embeddings=False)),
    'roberta-base': ('RobertaModel', bert | dict(type_vocab_size=1)),
    'distilbert': ('DistilBertForMaskedLM', distil),
    'distilbert-odd': ('DistilBertForMaskedLM', distil | dict(activation='relu',
        sinusoidal_pos_embds=True, tie_word_embeddings=False)),
    'distilbert-base': ('DistilBertModel', distil),
    'modernbert': ('ModernBertForMaskedLM', deep | dict(num_hidden_layers=4, local_attention=6,
        **tokens)),
    'modernbert-odd': ('ModernBertForMaskedLM', deep | two | dict(local_attention=9, norm_bias=True,
        mlp_bias=True, attention_bias=True, decoder_bias=False, classifier_bias=True,
        classifier_activation='tanh', hidden_activation='silu', tie_word_embeddings=False,
        layer_types=mixed, **tokens)),
    'modernbert-base': ('ModernBertModel', deep | dict(layer_types=['full_attention']*3, **tokens)),
    'llama': ('LlamaForCausalLM', grouped | llama3),
    'llama-odd': ('LlamaForCausalLM', grouped | linear | dict(head_dim=6, attention_bias=True,
        mlp_bias=True, hidden_act='gelu', tie_word_embeddings=True, rms_norm_eps=.1,
        pretraining_tp=2)),
    'llama-yarn': ('LlamaForCausalLM', deep | yarn),
    'llama-dynamic': ('LlamaForCausalLM', grouped | dynamic),
    'llama-untruncated': ('LlamaForCausalLM', grouped | scaled('yarn', factor=4., truncate=None,
        **short_context)),
    'llama-base': ('LlamaModel', grouped),
    'mistral': ('MistralForCausalLM', grouped | dict(sliding_window=5)),
    'mistral-odd': ('MistralForCausalLM', flat | linear | dict(sliding_window=None, head_dim=10,
        tie_word_embeddings=True)),
    'mixtral': ('MixtralForCausalLM', grouped | dict(num_local_experts=4, sliding_window=5)),
    'mixtral-odd': ('MixtralForCausalLM', flat | linear | dict(num_local_experts=3,
        num_experts_per_tok=1, head_dim=10, hidden_act='gelu', tie_word_embeddings=True)),
    'mixtral-base': ('MixtralModel', grouped | dict(num_local_experts=4)),
    'qwen2': ('Qwen2ForCausalLM', grouped | dict(use_sliding_window=True, sliding_window=5,
        max_window_layers=1)),
    'qwen2-odd': ('Qwen2ForCausalLM', flat | yarn | dict(sliding_window=5,
        tie_word_embeddings=True)),
    'qwen3': ('Qwen3ForCausalLM', grouped | dict(head_dim=10, tie_word_embeddings=True)),
    'qwen3-odd': ('Qwen3ForCausalLM', flat | yarn | dict(head_dim=10, attention_bias=True,
        use_sliding_window=True, sliding_window=5, layer_types=mixed)),
    'gemma2': ('Gemma2ForCausalLM', gemma),
    'gemma2-odd': ('Gemma2ForCausalLM', gemma | llama3 | dict(num_key_value_heads=4,
        attn_logit_softcapping=None, final_logit_softcapping=None, attention_bias=True,
        hidden_activation='gelu', layer_types=['full_attention']*3, tie_word_embeddings=False)),
    'gemma2-capped': ('Gemma2ForCausalLM', gemma | dict(attn_logit_softcapping=1.5,
        final_logit_softcapping=2.)),
    'gemma3': ('Gemma3ForCausalLM', gemma | two | dict(sliding_window_pattern=3)),
    'gemma3-odd': ('Gemma3ForCausalLM', gemma | dict(num_key_value_heads=4,
        sliding_window_pattern=2, final_logit_softcapping=2., attention_bias=True,
        tie_word_embeddings=False)),
    'gemma3-base': ('Gemma3TextModel', gemma | dict(layer_types=['full_attention']*3)),
    'olmo2': ('Olmo2ForCausalLM', grouped),
    'olmo2-odd': ('Olmo2ForCausalLM', deep | llama3 | dict(attention_bias=True,
        tie_word_embeddings=True, rms_norm_eps=.1)),
    'phi3': ('Phi3ForCausalLM', grouped | longrope | dict(sliding_window=5, pad_token_id=0)),
    'phi3-odd': ('Phi3ForCausalLM', deep | dict(pad_token_id=0, partial_rotary_factor=.5,
        tie_word_embeddings=True, hidden_act='gelu')),
    'gpt_neox': ('GPTNeoXForCausalLM', deep),
    'gpt_neox-odd': ('GPTNeoXForCausalLM', deep | dict(use_parallel_residual=False, rotary_pct=1.,
        attention_bias=False, hidden_act='gelu_fast', tie_word_embeddings=True)),
    'gpt_neox-base': ('GPTNeoXModel', deep | yarn | dict(rotary_pct=.5)),
    'gpt_oss': ('GptOssForCausalLM', grouped | yarn | dict(head_dim=10, sliding_window=5,
        num_local_experts=4, num_experts_per_tok=2)),
    'gpt_oss-odd': ('GptOssForCausalLM', flat | dict(head_dim=8, sliding_window=5,
        num_local_experts=4, num_experts_per_tok=3, swiglu_limit=.5, attention_bias=False,
        layer_types=['full_attention','full_attention','sliding_attention'],
        tie_word_embeddings=True)),
    't5': ('T5ForConditionalGeneration', t5),
    't5-v1.1': ('T5ForConditionalGeneration', t5 | dict(feed_forward_proj='gated-gelu',
        tie_word_embeddings=False)),
    't5-deep': ('T5ForConditionalGeneration', t5 | dict(feed_forward_proj='gelu',
        num_decoder_layers=3)),
    't5-odd': ('T5ForConditionalGeneration', t5 | dict(feed_forward_proj='gated-silu', d_kv=8)),
    't5-null': ('T5ForConditionalGeneration', t5 | dict(scale_decoder_outputs=None)),
    't5-base': ('T5Model', t5),
    't5-encoder': ('T5EncoderModel', t5),
    'bloom': ('BloomForCausalLM', bloom),
    'bloom-odd': ('BloomForCausalLM', bloom | dict(hidden_size=30, n_head=5, pretraining_tp=2,
        tie_word_embeddings=False)),
    'bloom-base': ('BloomModel', bloom),
    'smollm3': ('SmolLM3ForCausalLM', grouped | dict(pad_token_id=0, no_rope_layer_interval=2)),
    'smollm3-odd': ('SmolLM3ForCausalLM', flat | yarn | dict(pad_token_id=0,
        no_rope_layers=[0, 1, 1], use_sliding_window=True, sliding_window=5, attention_bias=True,
        mlp_bias=True, tie_word_embeddings=False)),
    'deepseek_v3': ('DeepseekV3ForCausalLM', latent | deepyarn),
    'deepseek_v3-odd': ('DeepseekV3ForCausalLM', latent | dict(q_lora_rank=None,
        norm_topk_prob=False, rope_interleave=False, attention_bias=True,
        first_k_dense_replace=0, n_shared_experts=2, n_group=1, topk_group=1,
        routed_scaling_factor=1.5, rms_norm_eps=.1, tie_word_embeddings=True)),
    'deepseek_v3-base': ('DeepseekV3Model', latent),
    'qwen3_moe': ('Qwen3MoeForCausalLM', grouped | experts | dict(head_dim=10)),
    'qwen3_moe-odd': ('Qwen3MoeForCausalLM', flat | yarn | experts | dict(head_dim=8,
        attention_bias=True, use_sliding_window=True, sliding_window=5, norm_topk_prob=True,
        hidden_act='gelu', tie_word_embeddings=True)),
    'qwen3_next': ('Qwen3NextForCausalLM', grouped | experts | state | dict(head_dim=16,
        shared_expert_intermediate_size=12, layer_types=hybrid)),
    'qwen3_next-odd': ('Qwen3NextForCausalLM', deep | scaled('yarn', factor=4.,
        partial_rotary_factor=.5, **short_context) | experts | dict(num_key_value_heads=4,
        head_dim=8, attention_bias=True, norm_topk_prob=False, linear_num_key_heads=3,
        linear_num_value_heads=3, linear_key_head_dim=4, linear_value_head_dim=8,
        linear_conv_kernel_dim=2, full_attention_interval=2, tie_word_embeddings=True,
        rms_norm_eps=.1)),
    'qwen3_next-full': ('Qwen3NextForCausalLM', grouped | scaled('default',
        partial_rotary_factor=1.) | experts | dict(head_dim=8, layer_types=['full_attention']*3)),
    'qwen3_next-base': ('Qwen3NextModel', grouped | experts | state | dict(head_dim=16,
        layer_types=hybrid)),
    'olmo3': ('Olmo3ForCausalLM', grouped | two | dict(sliding_window=5)),
    'olmo3-odd': ('Olmo3ForCausalLM', deep | dict(sliding_window=5, attention_bias=True,
        layer_types=['full_attention']*3, tie_word_embeddings=True, rms_norm_eps=.1)),
    'olmo_hybrid': ('OlmoHybridForCausalLM', grouped | state | tokens | dict(layer_types=hybrid,
        rope_parameters=dict(rope_type='default', rope_theta=None))),
    'olmo_hybrid-odd': ('OlmoHybridForCausalLM', deep | linear | tokens | dict(layer_types=hybrid,
        attention_bias=True, linear_allow_neg_eigval=False, linear_conv_kernel_dim=3,
        tie_word_embeddings=True, rms_norm_eps=.1)),
    'kimi_linear': ('KimiLinearForCausalLM', kimi | dict(layer_types=hybrid)),
    'kimi_linear-odd': ('KimiLinearForCausalLM', kimi | dict(q_lora_rank=12, n_group=4,
        topk_group=2, attention_bias=True, linear_conv_kernel_dim=2, norm_topk_prob=False,
        n_shared_experts=2, routed_scaling_factor=1.5, rms_norm_eps=.1, tie_word_embeddings=True,
        mlp_layer_types=['dense','dense','sparse'],
        layer_types=['full_attention','linear_attention','linear_attention'])),
    'kimi_linear-full': ('KimiLinearForCausalLM', kimi | dict(layer_types=['full_attention']*3)),
}
mains = [n for n in rows if '-' not in n]                   # one of each family
# what runs everywhere in `make test`: each kind of model, of positions and of layers once
chosen = '''gpt2 bert modernbert-odd llama-dynamic mistral gemma2-capped phi3 gpt_neox gpt_oss t5
    bloom smollm3 deepseek_v3 qwen3_next olmo_hybrid-odd kimi_linear'''.split()
def of(names): return pytest.mark.parametrize('name', short(chosen, names))
each = pytest.mark.parametrize('name', rows)
def made(name):
    "A random model in which nothing is at its trivial beginning"
    cls,settings = rows[name]
    torch.manual_seed(0)
    cls = getattr(transformers, cls)
    config = cls.config_class(**copy.deepcopy(settings))
    config._attn_implementation = 'eager'
    model = cls(config).eval()
    with torch.no_grad():
        for n,p in [*model.named_parameters(), *model.named_buffers()]:
            if 'inv_freq' in n or not p.is_floating_point() or p.dim() == 0: continue
            if p.squeeze().dim() > 1:
                p.normal_(std=p.shape[-1]**-.5 * (2 if 'attn' in n or 'attention' in n else 1))
            else: p.add_(torch.randn_like(p), alpha=.3)
    return model

def published(model): return {**model.config.to_dict(), 'architectures':[type(model).__name__]}

def ours(model):
    cfg,family = config_from_hf(published(model))
    return build_model(cfg, family, model.state_dict(), copy=True)

def run(model, ids, mask=None, places=None, **kw):
    "A model of transformers; its places count real tokens where they can be said"
    if mask is not None: kw |= dict(attention_mask=mask.long())
    known = inspect.signature(model.forward).parameters
    if 'position_ids' in known:
        real = torch.ones_like(ids) if mask is None else mask.long()
        at = (real.cumsum(-1)-1).clamp(min=0) if places is None else places
        if model.config.model_type == 'roberta': at = at + model.config.pad_token_id + 1
        kw |= dict(position_ids=at)
    if model.config.model_type == 't5' and 'Encoder' not in type(model).__name__:
        kw.setdefault('decoder_input_ids', ids)
    return model(input_ids=ids, output_attentions=True, **kw)

def call(model, ids, mask=None, **kw):
    if model.cfg.kind == 'encoder-decoder': kw.setdefault('decoder_ids', ids)
    return model(ids, mask=mask, **kw)

def first(out): return out.logits if 'logits' in out else out.last_hidden_state
def some_ids(length=24, batch=2, low=4): return torch.randint(low, 97, (batch, length))
@functools.cache
def settings(name):
    "As a file would say them"
    cls,given = rows[name]
    config = getattr(transformers, cls).config_class(**copy.deepcopy(given))
    return {**config.to_dict(), 'architectures':[cls]}
decoders = [n for n in rows if config_from_hf(settings(n))[0].kind != 'encoder']

def agree(name, model, mine, ids, mask=None):
    "Logits and weights of all real tokens"
    with torch.no_grad(): want = run(model, ids, mask)
    with torch.no_grad(), record(mine) as r: got = call(mine, ids, mask)
    real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask
    if 'decoder_attentions' in want: theirs = [*(want.get('encoder_attentions') or ())]
    else: theirs = [*want.attentions]
    whole = real if 'decoder_attentions' not in want else torch.ones_like(real)
    # with filling, float64 says that theirs is wrong by 3e-4 here, and ours by 1e-4
    near = 5e-4 if name.startswith('qwen3_next') and mask is not None else 1e-4
    assert_close(got[whole], first(want)[whole], atol=near, rtol=near)
    for kind,attentions in (('self', theirs), ('decoder', want.get('decoder_attentions')),
                            ('cross', want.get('cross_attentions'))):
        if attentions is None: continue
        kept = [l.weights for l in r.layers if matches(l, kind, mine)]
        assert len(kept) == len(attentions)
        for a,b in zip(kept, attentions):
            rows_ = real if kind == 'self' else whole
            assert_close(a.transpose(1, 2)[rows_], b.transpose(1, 2)[rows_], atol=1e-5, rtol=0)

def matches(layer, kind, mine):
    if mine.cfg.kind != 'encoder-decoder': return kind == 'self'
    if 'cross' in layer.name: return kind == 'cross'
    return kind == ('decoder' if layer.name.startswith('decoder') else 'self')

fillings = dict(none=slice(0), left=slice(7), right=slice(-7, None))
some_filled = [(n, s) for s,names in zip(fillings, (rows, chosen, chosen[::2])) for n in names]

@pytest.mark.parametrize('name,side', short(some_filled, [(n, s) for n in rows for s in fillings]))
def test_logits_and_weights(name, side):
    "Past windows and past the context of the scaling; with filling on either side"
    model = made(name)
    torch.manual_seed(1)
    ids,mask = some_ids(),torch.ones(2, 24, dtype=torch.bool)
    mask[0,fillings[side]] = False
    ids[~mask] = model.config.pad_token_id or 0
    agree(name, model, ours(model), ids, None if side == 'none' else mask)

@of([n for n in decoders if not n.startswith('t5')])
def test_cache(name):
    "Eight tokens, then one by one, padded on the left, also where scaling changes with length"
    model = made(name)
    torch.manual_seed(1)
    ids,mask,past = some_ids(),torch.ones(2, 24, dtype=torch.bool),None
    mask[0,:3] = False
    at = (mask.long().cumsum(-1)-1).clamp(min=0)
    mine = ours(model)
    cache = mine.new_cache(2, 24)
    end = 16 if name == 'phi3' else 24    # beyond it LongRoPE asks for the text anew
    for part in (slice(8), *(slice(n, n+1) for n in range(8, end))):
        known,real = mask[:,:part.stop],mask[:,part]
        with torch.no_grad():
            want = run(model, ids[:,part], known, at[:,part], past_key_values=past, use_cache=True)
            got = mine(ids[:,part], mask=known, cache=cache)
        past = want.past_key_values
        assert_close(got[real], first(want)[real], atol=1e-4, rtol=1e-4)

@of([n for n in decoders if n.startswith('t5')])
def test_decoder_cache(name):
    model,(ids,told) = made(name),(some_ids(9),some_ids(12))
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[0,-3:] = False
    mine,past = ours(model),None
    cache = mine.new_cache(2, 12, memory_len=9)
    for n in range(12):
        with torch.no_grad():
            want = run(model, ids, mask, decoder_input_ids=told[:,n:n+1], past_key_values=past,
                       use_cache=True)
            got = mine(ids, mask=mask, decoder_ids=told[:,n:n+1], cache=cache)
        past = want.past_key_values
        assert_close(got, first(want), atol=1e-4, rtol=1e-4)

some_folders = [*mains, 'modernbert-odd', 'gpt_oss-odd', 't5-v1.1', 'kimi_linear-odd']

# transformers saves OLMo Hybrid's convolutions of unequal widths cut in three equal parts
cut_wrongly = {'olmo_hybrid-odd'}

@pytest.mark.parametrize('name', short(some_folders, [n for n in rows if n not in cut_wrongly]))
def test_folder(name, tmp_path):
    "As transformers saves it, and back into transformers as we save it"
    model = made(name)
    model.save_pretrained(tmp_path/'theirs')
    files = json.loads((tmp_path/'theirs'/'config.json').read_text())
    cfg,family = config_from_hf(files)
    mine = build_model(cfg, family, load_file(tmp_path/'theirs'/'model.safetensors'))
    torch.manual_seed(1)
    ids = some_ids()
    with torch.no_grad(): got,want = call(mine, ids),first(run(model, ids))
    assert_close(got, want, atol=1e-4, rtol=1e-4)
    for base in (files, None):
        folder = tmp_path/f'ours-{base is None}'
        folder.mkdir()
        (folder/'config.json').write_text(json.dumps(config_to_hf(mine.cfg, family, base)))
        save_file(dict(tensors_to_hf(family, mine.cfg, mine.state_dict())),
                  folder/'model.safetensors', dict(format='pt'))
        again = type(model).from_pretrained(folder, attn_implementation='eager').eval()
        with torch.no_grad(): assert_close(first(run(again, ids)), want)

# settings

def small(cls):
    "What a file says that leaves everything out"
    return dict(model_type=getattr(transformers, cls).config_class.model_type, architectures=[cls])

@each
def test_settings_round(name):
    "Written with and without the settings they came from, they read back the same"
    c = settings(name)
    cfg,family = config_from_hf(c)
    for base in (c, None, small(rows[name][0])):
        said = config_to_hf(cfg, family, base)
        assert config_from_hf(json.loads(json.dumps(said, default=str)))[0] == cfg

@each
def test_defaults(name):
    "What a file leaves out is what transformers takes"
    cls = rows[name][0]
    theirs = {**getattr(transformers, cls).config_class().to_dict(), 'architectures':[cls]}
    a,b = config_from_hf(theirs)[0],config_from_hf(small(cls))[0]
    both = {f.name: (getattr(a, f.name), getattr(b, f.name)) for f in fields(a)}
    assert {name: pair for name,pair in both.items() if pair[0] != pair[1]} == {}

old = {    # spelled as files of earlier years are: name, changes -> the same as
    'llama': [dict(rope_theta=500., rope_scaling=dict(type='linear', factor=2.)),
        dict(rope_parameters=dict(rope_type='linear', factor=2., rope_theta=500.))],
    'phi3': [dict(rope_theta=500., rope_scaling=dict(type='su', short_factor=[1.]*4,
            long_factor=[2.]*4), original_max_position_embeddings=16),
        dict(rope_parameters=dict(rope_type='longrope', short_factor=[1.]*4, long_factor=[2.]*4,
            factor=4., rope_theta=500.), original_max_position_embeddings=16)],
    'gpt_neox': [dict(rotary_pct=.5, rotary_emb_base=500),
        dict(rope_parameters=dict(rope_type='default', rope_theta=500., partial_rotary_factor=.5))],
    'gemma3_text': [dict(rope_theta=500., rope_local_base_freq=100.,
            rope_scaling=dict(rope_type='linear', factor=8.), sliding_window_pattern=6),
        dict(rope_parameters=dict(
            full_attention=dict(rope_type='linear', factor=8., rope_theta=500.),
            sliding_attention=dict(rope_type='default', rope_theta=100.)))],
    'modernbert': [dict(global_rope_theta=500., local_rope_theta=100.,
            global_attn_every_n_layers=3),
        dict(rope_parameters=dict(full_attention=dict(rope_theta=500.),
            sliding_attention=dict(rope_theta=100.)))],
    'gpt2': [dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=64, n_ctx=64),
        dict(n_embd=32, n_layer=2, n_head=4, n_positions=64)],
    'bloom': [dict(n_embed=32, num_attention_heads=4, num_hidden_layers=2),
        dict(hidden_size=32, n_head=4, n_layer=2)],
    't5': [dict(feed_forward_proj='gated-gelu', tie_word_embeddings=False),
        dict(dense_act_fn='gelu_new', is_gated_act=True, scale_decoder_outputs=False,
            tie_word_embeddings=False)],
    'deepseek_v3': [dict(topk_method='noaux_tc', scoring_func='sigmoid', moe_layer_freq=1,
            num_nextn_predict_layers=1, ep_size=1, aux_loss_alpha=.001, seq_aux=True), {}],
}

@pytest.mark.parametrize('kind', old)
def test_old_spelling(kind):
    sizes = dict(hidden_size=32, num_attention_heads=4, num_hidden_layers=6,
                 max_position_embeddings=64, head_dim=8)
    cls = next(iter(FAMILIES[kind].architectures))
    first_,second = ({**(sizes if 'rope' in str(old[kind]) or 'rotary' in str(old[kind]) else {}),
                      **small(cls), **c} for c in old[kind])
    if kind in ('gpt_neox','modernbert'): [c.pop('head_dim') for c in (first_, second)]
    if kind == 'gemma3_text': [c.update(num_key_value_heads=4) for c in (first_, second)]
    assert config_from_hf(first_) == config_from_hf(second)

# one field each, which the error names
refused_fields = dict(
    llama=dict(hidden_act='quick_gelu', attention_bias=None, partial_rotary_factor=.5,
        is_decoder=True, add_cross_attention=True, quantization_config=dict(quant_method='fp8'),
        unheard_of=1, sliding_window=5, head_dim=7, num_key_value_heads=3, hidden_size=33,
        per_layer_config={0: dict(head_dim=4)}, rope_interleaved=True, rms_norm_eps=0.),
    gpt2=dict(scale_attn_by_inverse_layer_idx=True, add_cross_attention=True,
        activation_function='mish', is_encoder_decoder=True, scale_attn_weights=None),
    bert=dict(is_decoder=True, position_embedding_type='relative_key', hidden_act='gelu_10',
        embedding_size=16, pruned_heads={0: [1]}),
    roberta=dict(pad_token_id=None, is_decoder=True),
    modernbert=dict(layer_types=['full_attention'], hidden_activation='mish', local_attention=0,
        position_embedding_type='alibi', rope_scaling=dict(type='linear', factor=2.)),
    mistral=dict(layer_types=['full_attention']*32, sliding_window=0),
    mixtral=dict(num_experts_per_tok=0),
    qwen2=dict(use_mrope=True, attention_bias=False),
    qwen3=dict(layer_types=['chunked_attention']*32),
    gemma2=dict(use_bidirectional_attention=True, attn_logit_softcapping=-1., hidden_act='relu'),
    gemma3_text=dict(use_bidirectional_attention=True, attn_logit_softcapping=50.,
        sliding_window_pattern=0, rope_scaling=dict(type='linear', factor=8.),
        rope_parameters=[]),
    olmo2=dict(clip_qkv=8.),
    phi3=dict(attention_bias=True, rope_scaling=dict(type='yarn', factor=2.)),
    gpt_neox=dict(head_dim=8, rotary_pct=.27, rope_parameters=dict(partial_rotary_factor=.27)),
    gpt_oss=dict(hidden_act='gelu', swiglu_alpha=1., experts_per_token=2,
        quantization_config=dict(quant_method='mxfp4')),
    t5=dict(is_decoder=True, feed_forward_proj='swish-gelu', tie_word_embeddings=1,
        is_encoder_decoder=False),
    bloom=dict(apply_residual_connection_post_layernorm=True, slow_but_exact=True, n_inner=32),
    smollm3=dict(no_rope_layers=[1], no_rope_layer_interval=0,
        layer_types=['sliding_attention']*36),
    deepseek_v3=dict(num_key_value_heads=8, n_group=None, head_dim=7, moe_layer_freq=2,
        scoring_func='softmax', topk_method='greedy', rope_interleave=None,
        first_k_dense_replace=-1, qk_head_dim=5, topk_group=9, num_experts_per_tok=200),
    qwen3_moe=dict(decoder_sparse_step=2, mlp_only_layers=[1], num_experts_per_tok=129),
    qwen3_next=dict(decoder_sparse_step=2, mlp_only_layers=[1], linear_num_key_heads=5,
        layer_types=['full_attention']),
    olmo3=dict(clip_qkv=8., layer_types=['chunked_attention']*32),
    olmo_hybrid=dict(layer_types=['linear_attention']*32, linear_num_key_heads=7),
    kimi_linear=dict(mla_use_nope=False, moe_layer_freq=2, linear_attn_config=[],
        mlp_layer_types=['sparse']))
refused = [    # model type, settings, what the error names
    *((kind, {k: v}, k) for kind,said in refused_fields.items() for k,v in said.items()),
    # the notebook of common parts has others
    *(('llama', dict(rope_scaling=p), 'rope_scaling') for p in (
        dict(rope_type='proportional'), dict(type='mrope'), dict(rope_type='linear', factor='2.0'),
        dict(type='yarn', rope_type='linear', factor=2.),
        dict(rope_type='longrope', short_factor=[1.], long_factor=[1.]),
        dict(rope_type='yarn', factor=4., attention_factor=0., **short_context),
        dict(rope_type='llama3', factor=4., low_freq_factor=1., high_freq_factor=1.,
             **short_context))),
    *(('llama', dict(rope_theta=x), 'rope_theta') for x in (0., .5, True)),
    *(('llama', {k: x}, k) for k in ('rope_scaling','rope_parameters') for x in ([], 0, False, '')),
    *(('llama', {k: x}, k) for k,values in dict(
        architectures=('LlamaForCausalLM', 7, [7], [['LlamaForCausalLM']], {}, [], None),
        pad_token_id=(-1, 2.5), eos_token_id=(-1, [2, -1]), bos_token_id=(True,),
        rms_norm_eps=(inf, nan, 10**4000), rope_theta=(inf,), attention_dropout=(nan, 1.5),
        tie_word_embeddings=(0,), attention_bias=('no',), num_key_value_heads=(2.,),
        hidden_size=([32],), hidden_act=(None,)).items() for x in values),
    ('llama', dict(rope_parameters=dict(full_attention=dict(rope_theta=6.))), 'rope_parameters'),
    ('llama', dict(my_note=1), r"ignore=\['my_note'\] passes over it"),
    ('gemma3_text', dict(rope_parameters=dict(full_attention=dict(rope_type='yarn', factor=2.,
        truncate=None))), 'rope_parameters'),
    ('mixtral', dict(num_local_experts=1), 'num_experts_per_tok'),
    ('gpt_oss', dict(num_local_experts=2), 'num_experts_per_tok'),
    ('gpt2', dict(hidden_size=32, n_embd=64), 'n_embd'),
    ('qwen2', dict(layer_types=['sliding_attention']*32), 'sliding_window')]

@pytest.mark.parametrize('kind,changes,names', refused,
                         ids=lambda x: x if isinstance(x, str) else '')
def test_refused(kind, changes, names):
    "What is not understood is refused by family and field"
    cls = next(iter(FAMILIES[kind].architectures))
    with pytest.raises((NotImplementedError,ValueError), match=rf'^{kind}: .*{names}'):
        config_from_hf({**small(cls), **changes})

def test_unknown_family():
    for config in (dict(model_type='falcon'), dict(model_type=['llama']),
                   dict(model_type='gemma3', text_config={}), {}):
        with pytest.raises(NotImplementedError, match='model_type'): config_from_hf(config)

values = (0, -1, 3, 10**6, 2**31-1, 10**5000, .5, inf, nan, True, None, 'x', [1], {'a': 1})

# one of each file of attention_nb/checkpoints/families
of_files = pytest.mark.parametrize('name', short(
    'gpt2 bert llama t5 deepseek_v3 qwen3_next'.split(), mains))

@of_files
def test_any_value_of_any_field_is_read_or_refused(name):
    "A wrong one is an error that names the family, at once, and nothing large is made"
    model = made(name)
    c,tensors = published(model),model.state_dict()
    base,family = config_from_hf(c)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for field in sorted({f.name for f in family.every_field()}):
        for value in values:
            start = time.process_time()
            try:
                cfg,_ = config_from_hf({**c, field: value})
                if cfg != base: build_model(cfg, family, tensors)
            except (ValueError,NotImplementedError) as e:
                assert str(e).startswith(family.model_type), (field, e)
            assert time.process_time() - start < 20, (field, value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20    # a GB

# fields said to have no effect, each tried with another value
other = dict(chunk_size_feed_forward=4, initializer_range=.5, initializer_factor=2.,
    use_cache=False, classifier_dropout=.5, reorder_and_upcast_attn=True, embd_pdrop=.5,
    summary_type='mean', summary_use_proj=False, summary_activation='tanh',
    summary_proj_to_labels=False, summary_first_dropout=.5, sinusoidal_pos_embds=True,
    qa_dropout=.5, seq_classif_dropout=.5, initializer_cutoff_factor=3., embedding_dropout=.5,
    classifier_pooling='mean', deterministic_flash_attn=True, sparse_prediction=True,
    sparse_pred_ignore_index=1, pretraining_tp=2, output_router_logits=True,
    router_aux_loss_coef=.5, router_jitter_noise=.5, num_nextn_predict_layers=3,
    problem_type='regression', sep_token_id=5, cls_token_id=5, pad_token_id=7, bos_token_id=7,
    eos_token_id=7, decoder_start_token_id=7, attention_dropout=.5, hidden_dropout=.5,
    resid_pdrop=.5, attn_pdrop=.5, hidden_dropout_prob=.5, attention_probs_dropout_prob=.5,
    dropout=.5, dropout_rate=.5, mlp_dropout=.5, _sliding_window_pattern=2, linear_a_log_min=1.,
    linear_a_log_max=9., linear_dt_min=.01, linear_dt_max=.2, linear_dt_init_floor=.01, head_dim=9,
    qk_head_dim=9, model_max_length=32)
nameless = {'model_type','architectures','transformers_version','dtype','id2label','label2id',
            '_name_or_path','return_dict','output_hidden_states','output_attentions'}

@of_files
def test_without_effect(name):
    "Whatever is ignored, and dropout, changes nothing in the reference itself"
    from attention_nb.checkpoints.schema import always_ignored
    model = made(name)
    c = published(model)
    family = FAMILIES[c['model_type']]
    free = ({*always_ignored, *family.ignored} & c.keys()) - nameless
    free |= {f.name for f in family.fields} & other.keys() & c.keys()
    assert free <= other.keys(), f'{free - other.keys()} have no other value here'
    torch.manual_seed(1)
    ids = some_ids()
    with torch.no_grad(): want = first(run(model, ids))
    for key in sorted(free):
        config = type(model.config).from_dict({**{k:v for k,v in c.items() if k != 'architectures'},
                                               key:other[key]})
        config._attn_implementation = 'eager'
        again = type(model)(config).eval()
        again.load_state_dict(model.state_dict())
        with torch.no_grad(): assert_close(first(run(again, ids)), want, msg=f'{key} has an effect')

# tensors

def broken(name, **changes):
    model = made(name)
    cfg,family = config_from_hf(published(model))
    tensors = {**model.state_dict(), **changes}
    return build_model(cfg, family, {n:t for n,t in tensors.items() if t is not None})

@of_files
def test_every_tensor(name):
    "Without one of its tensors, or with one of another shape, a model is refused"
    model = made(name)
    cfg,family = config_from_hf(published(model))
    tensors = model.state_dict()
    places = [t.data_ptr() for t in tensors.values()]
    tied = {n for n,t in tensors.items() if places.count(t.data_ptr()) > 1}
    free = tied | {n for n in tensors if 'pooler' in n or n == 'cls.predictions.bias'
                   or n == 'lm_head.bias'}
    early = [n for n in tensors if not any(f'.{i}.' in n for i in range(1, 9))]
    for n in [n for n in early if n not in free][::2]:
        with pytest.raises(ValueError, match=f'^{family.model_type}: no tensor for'):
            build_model(cfg, family, {m:t for m,t in tensors.items() if m != n})
        wrong = torch.zeros(*(s+1 for s in tensors[n].shape))
        with pytest.raises(ValueError, match=f'^{family.model_type}: .*has shape'):
            build_model(cfg, family, {**tensors, n:wrong})
    with pytest.raises(ValueError, match='unexpected tensors: something.weight'):
        build_model(cfg, family, {**tensors, 'something.weight': torch.ones(1)})

class Watched(dict):
    "A mapping that says shapes without reading, and keeps what was read"
    def __init__(self, tensors):
        super().__init__(tensors)
        self.seen = []
    def __getitem__(self, name):
        self.seen.append(name)
        return super().__getitem__(name)
    def shape(self, name): return tuple(self.get(name).shape)
    def dtype(self, name): return self.get(name).dtype

@pytest.mark.parametrize('name', ['llama','mixtral-odd','t5-v1.1','bert'])
def test_each_read_once(name, tmp_path):
    "In the order of the file; nothing before all is checked"
    model = made(name)
    model.save_pretrained(tmp_path)
    cfg,family = config_from_hf(published(model))
    source = Watched(load_file(tmp_path/'model.safetensors'))
    build_model(cfg, family, source)
    needed = [n for n in source if 'pooler' not in n]
    assert source.seen == needed
    bad = Watched({**source, needed[-1]: torch.zeros(3, 3, 3)})
    with pytest.raises(ValueError, match='has shape'): build_model(cfg, family, bad)
    assert bad.seen == []

def test_tied_or_not():
    "A head unlike the embedding is its own; an embedding may be found under the head's name"
    model = made('qwen3')
    mine = ours(model)
    assert mine.cfg.tied and mine.head.weight is None
    table = model.state_dict()['model.embed_tokens.weight']
    assert not broken('qwen3', **{'lm_head.weight': table+1}).cfg.tied
    moved = broken('qwen3', **{'model.embed_tokens.weight': None, 'lm_head.weight': table})
    assert torch.equal(moved.embed.token.weight, table) and moved.cfg.tied
    with pytest.raises(ValueError, match='no tensor for head.weight'):
        broken('llama', **{'lm_head.weight': None})

def test_second_embedding():
    "T5's copies of its embedding may stand there, if they are copies"
    table = made('t5').state_dict()['shared.weight']
    broken('t5')
    for n in ('encoder.embed_tokens.weight','decoder.embed_tokens.weight'):
        with pytest.raises(ValueError, match=f't5: {n} and shared.weight differ'):
            broken('t5', **{n: table+1})
        with pytest.raises(ValueError, match='differ'):
            broken('t5', **{'shared.weight': None, 'lm_head.weight': None, n: table+1})

def test_names_of_old_files():
    "Without a prefix, with gamma and beta, with buffers and heads nobody needs"
    model = made('bert')
    cfg,family = config_from_hf(published(model))
    def old_name(n):
        n = n.removeprefix('bert.').replace('LayerNorm.weight', 'LayerNorm.gamma')
        return n.replace('LayerNorm.bias', 'LayerNorm.beta')
    tensors = {old_name(n): t for n,t in model.state_dict().items() if 'decoder' not in n}
    tensors |= {'embeddings.position_ids': torch.arange(64)[None],
                'cls.seq_relationship.weight': torch.ones(2, 32),
                'pooler.dense.weight': torch.ones(32, 32)}
    ids = some_ids()
    with torch.no_grad():
        assert_close(build_model(cfg, family, tensors)(ids), first(run(model, ids)), atol=1e-4,
                     rtol=1e-4)
    model = made('gpt2')
    cfg,family = config_from_hf(published(model))
    tensors = {n.removeprefix('transformer.'): t for n,t in model.state_dict().items()
               if n != 'lm_head.weight'}
    tensors |= {'h.0.attn.bias': torch.ones(1, 1, 64, 64),
                'h.1.attn.masked_bias': torch.tensor(-1e4)}
    with torch.no_grad():
        assert_close(build_model(cfg, family, tensors)(ids), first(run(model, ids)), atol=1e-4,
                     rtol=1e-4)

def test_head_left_aside():
    "The model without a head from the file of one with it, and extra layers of DeepSeek-V3"
    for name,cls in (('llama','LlamaModel'), ('bert','BertModel'), ('t5','T5EncoderModel'),
                     ('deepseek_v3','DeepseekV3Model')):
        model = made(name)
        cfg,family = config_from_hf(published(model), architecture=cls)
        more = {'model.layers.3.eh_proj.weight': torch.ones(1)} if name == 'deepseek_v3' else {}
        mine,ids = build_model(cfg, family, {**model.state_dict(), **more}),some_ids()
        inner = model.encoder if name == 't5' else model.base_model
        with torch.no_grad():
            assert_close(mine(ids), inner(input_ids=ids).last_hidden_state, atol=1e-4, rtol=1e-4)

def test_types_and_halves():
    "Token types; half precision; memory of its own"
    model = made('bert')
    ids,types = some_ids(),torch.randint(2, (2, 24))
    with torch.no_grad():
        assert_close(ours(model)(ids, type_ids=types), first(run(model, ids, token_type_ids=types)),
                     atol=1e-4, rtol=1e-4)
    cfg,family = config_from_hf(published(model))
    half = build_model(cfg, family, model.state_dict(), dtype=torch.bfloat16)
    assert {p.dtype for p in half.parameters()} == {torch.bfloat16}
    theirs = {t.data_ptr() for t in model.state_dict().values()}
    assert not any(p.data_ptr() in theirs
                   for p in build_model(cfg, family, model.state_dict(), copy=True).parameters())
    for name in ('gpt2','mixtral','gpt_oss'):    # parts of a larger tensor do not keep it alive
        assert all(p.untyped_storage().nbytes() == p.nbytes for p in ours(made(name)).parameters())
