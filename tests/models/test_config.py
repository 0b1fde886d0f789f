"A table of settings is written down and comes back equal, whatever it says"
import dataclasses, json
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from attention_nb.models.config import _choices, ExpertsConfig, TransformerConfig
from attention_nb.checkpoints.families.registry import FAMILIES, config_from_hf, why_not_save_as
from attention_nb.layers.latent import LatentConfig
from attention_nb.layers.linear import DeltaConfig
from attention_nb.models.transformer import Transformer
from helpers.tiny_models import said

calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow,
                                                      HealthCheck.filter_too_much])
size,side,number = st.integers(1, 9),st.none() | st.integers(0, 9),st.floats(.1, 9)
more = dict(n=size, d_ff=size, n_shared=size, clamp=st.none() | number)
def experts_of(n, **o): return ExpertsConfig(2*n, 1, **o)
experts = st.builds(experts_of, **more, router=st.sampled_from(['softmax','sigmoid']), scale=number,
                    normalize=st.booleans()) | \
    st.builds(experts_of, **more, router=st.just('top_softmax'))
latent = st.builds(LatentConfig, q_rank=st.none() | size, kv_rank=size, nope_dim=size,
                   rope_dim=size.map(lambda n: 4*n), v_dim=size, bias=st.booleans())
delta = st.builds(DeltaConfig, n_heads=size, head_dim=size, v_head_dim=st.none() | size,
                  conv_size=size, channel_decay=st.booleans(), max_beta=number,
                  gate=st.sampled_from(['silu','sigmoid']), gate_rank=st.none() | size)
pairs = st.lists(number, min_size=4, max_size=4)
scaling = st.one_of(
    st.builds(lambda f: dict(type='linear', factor=f), number),
    st.builds(lambda s, l, n: dict(rope_type='longrope', short_factor=s, long_factor=l, factor=2,
                                   original_max_position_embeddings=n), pairs, pairs,
              st.integers(2, 99)))
some = dict(
    vocab_size=size, d_model=st.just(32), n_heads=st.just(4), n_layers=st.just(2), window=st.none()
    | st.tuples(side, side), experts=st.none() | experts, latent=st.none() | latent,
    layer_types=st.none() | st.lists(st.sampled_from(['full','window','retention','delta']),
                                     min_size=2, max_size=2), delta=delta,
    rope_scaling=st.none() | scaling,
    window_rope=st.none() | st.fixed_dictionaries({}, optional=dict(base=number, scaling=scaling)),
    rope_layers=st.none() | st.lists(st.booleans(), min_size=2, max_size=2),
    eos_id=st.none() | size | st.lists(size, max_size=3), rope_base=number,
    dropout=st.floats(0, 1), attn_dropout=st.floats(0, 1), rotary_dim=st.none() | st.just(8),
    n_kv_heads=st.sampled_from([None, 1, 2, 4]))

def of(f):
    "Values of a field by its type"
    if f.name in some: return some[f.name]
    if f.name in _choices: return st.sampled_from(_choices[f.name])
    kinds = {int: size, float: number, bool: st.booleans(), type(None): st.none()}
    return st.one_of(kinds[k] for k in getattr(f.type, '__args__', (f.type,)))

def without_effectless(fields):
    "Most tables have settings without an effect, which are refused: leave these out"
    unused = {'dense_layers'} if fields.get('experts') is None else {'gated', 'activation'}
    if fields.get('positions', 'rope') != 'rope':
        unused |= {'rotary_dim', 'window_rope', 'rope_layers'}
    if fields.get('latent') is not None:
        unused |= {'n_kv_heads', 'head_dim', 'v_head_dim', 'attn_bias', 'out_bias'}
    types = {*(fields.get('layer_types') or ['full'])}
    if 'delta' not in types: unused |= {'delta'}
    if types <= {'full','window'}: unused |= {'mixer_norm_style'}
    return {name: x for name,x in fields.items() if name not in unused}

@calm
@given(st.fixed_dictionaries(dict(vocab_size=size), optional={
    f.name: of(f) for f in dataclasses.fields(TransformerConfig) if f.name != 'vocab_size'}))
def test_any_table_comes_back_from_json(fields):
    try: cfg = TransformerConfig(**without_effectless(fields))
    except ValueError: assume(False)
    back = TransformerConfig.from_dict(json.loads(json.dumps(cfg.to_dict())))
    assert back == cfg and repr(back) == repr(cfg)
    assert {*cfg.to_dict()} == {f.name for f in dataclasses.fields(cfg)}
    for name in FAMILIES: assert isinstance(why_not_save_as(cfg, name), list)

@pytest.mark.parametrize('name', FAMILIES)
def test_each_familys_table_comes_back_and_makes_the_same_model(name):
    cfg,_ = config_from_hf(said(name))
    back = TransformerConfig.from_dict(json.loads(json.dumps(cfg.to_dict())))
    assert back == cfg and repr(back) == repr(cfg)
    shapes = [{n: p.shape for n,p in Transformer(c).named_parameters()} for c in (cfg, back)]
    assert shapes[0] == shapes[1]

def test_a_table_is_frozen_deep_down():
    "Whoever changes what he gave, or what he got, changes no table"
    divisors,given = [1.]*4,dict(base=7.)
    cfg = TransformerConfig(9, 32, 2, 4, window_rope=given, rope_scaling=dict(
        rope_type='longrope', short_factor=divisors, long_factor=divisors, factor=2.,
        original_max_position_embeddings=9))
    told = cfg.to_dict()
    divisors[0],given['base'] = 5.,8.
    assert cfg.to_dict() == told
    told['rope_scaling']['short_factor'][0] = 5.
    assert cfg.to_dict() != told and cfg == TransformerConfig.from_dict(cfg.to_dict())
