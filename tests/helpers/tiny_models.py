"Random models of `transformers`, small and sharp, of any type it knows"
import functools, inspect, os
import torch

os.environ.setdefault('TOKENIZERS_PARALLELISM', 'false')
import transformers                                                          # noqa: E402
from transformers import CONFIG_MAPPING, AutoModel                           # noqa: E402

transformers.utils.logging.set_verbosity_error()

sizes = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=50,
    max_position_embeddings=64, n_embd=32, n_layer=2, n_head=4, d_model=32, encoder_layers=2,
    decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
    decoder_ffn_dim=48, d_kv=8, d_ff=48, num_layers=2, num_heads=4, num_key_value_heads=2,
    head_dim=8, dim=32, hidden_dim=48, n_layers=2, n_heads=4, ffn_dim=48, embedding_size=32,
    word_embed_proj_dim=32, num_decoder_layers=2, local_radius=3, sliding_window=4,
    local_attention=4, num_local_experts=2, num_experts=2, num_experts_per_tok=1,
    moe_intermediate_size=16, image_size=16, patch_size=8, num_mel_bins=8, max_source_positions=8,
    max_target_positions=64,
    pad_token_id=0, bos_token_id=1, eos_token_id=None, decoder_start_token_id=1)

def tiny(kind, **more):
    "A configuration of a model type, with those of `sizes` that it knows"
    cls = CONFIG_MAPPING[kind]
    known = {n for c in cls.__mro__ for n in getattr(c, '__annotations__', {})}
    known |= {*inspect.signature(cls).parameters}
    same = getattr(cls, 'attribute_map', {})
    given = {n: x for n,x in sizes.items() if n in known or n in same}
    return cls(**{n: x for n,x in given.items() if same.get(n) not in given} | more)

latent = dict(num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=16, qk_rope_head_dim=8,
               qk_nope_head_dim=6, v_head_dim=10, num_local_experts=8, n_group=4, topk_group=2,
               num_experts_per_tok=3, first_k_dense_replace=1)

def said(kind):
    "What config.json would say of a small model of one of our families, with its head"
    from attention_nb.checkpoints.families.registry import FAMILIES
    more = latent if kind in ('deepseek_v3','kimi_linear') else {}
    return tiny(kind, **more).to_dict() | dict(architectures=[*FAMILIES[kind].architectures][:1])

def made(kind, kernel='eager', auto=AutoModel, **more):
    "A random model, sharp enough that its weights differ"
    torch.manual_seed(0)
    model = auto.from_config(tiny(kind, **more), attn_implementation=kernel).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1: p.mul_(3)
    return model

@functools.cache
def decoder(kind):
    "Ours, of a family that writes"
    from attention_nb.checkpoints.pretrained import from_hf
    more = latent if kind in ('deepseek_v3','kimi_linear') else {}
    return from_hf(made(kind, auto=transformers.AutoModelForCausalLM, **more)).eval()

def inputs(model, padded=False):
    torch.manual_seed(1)
    ids,real = torch.randint(3, 50, (2, 7)),torch.ones(2, 7, dtype=torch.long)
    if padded: real[1,5:] = 0
    decoder = dict(decoder_input_ids=ids) if model.config.is_encoder_decoder else {}
    if model.main_input_name == 'pixel_values': return dict(pixel_values=torch.randn(2, 3, 16, 16))
    if model.main_input_name == 'input_features':
        return dict(input_features=torch.randn(2, 8, 16)) | decoder
    return dict(input_ids=ids, attention_mask=real) | decoder
