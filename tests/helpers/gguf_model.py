"A small model as a GGUF file"
import numpy as np, pytest

gguf = pytest.importorskip('gguf')

H,KV,D,E,F,V,N = 4,2,32,8,64,40,2
said = {'llama.block_count': N, 'llama.context_length': 64, 'llama.embedding_length': D,
        'llama.feed_forward_length': F, 'llama.attention.head_count': H,
        'llama.attention.head_count_kv': KV, 'llama.rope.dimension_count': E,
        'llama.rope.freq_base': 5e4, 'llama.attention.layer_norm_rms_epsilon': 1e-5}
shapes = {'token_embd': (V, D), 'output_norm': (D,), 'output': (V, D)} | {
    f'blk.{i}.{n}': s for i in range(N) for n,s in dict(
        attn_norm=(D,), ffn_norm=(D,), attn_q=(H*E, D), attn_k=(KV*E, D), attn_v=(KV*E, D),
        attn_output=(D, H*E), ffn_gate=(F, D), ffn_up=(F, D), ffn_down=(D, F)).items()}

def write(path, *, kind='F32', more={}, drop=(), tensors=None, arch='llama', pre='smollm',
          merges=('a b', 'ab c'), kinds=None, tokens=None, biases={}, **split):
    "A small llama as a GGUF file, or as several: `split` is as for `GGUFWriter`"
    w = gguf.GGUFWriter(path, arch, **split)
    for k,v in (said | more).items():
        if k in drop: continue
        add = {int: w.add_uint32, float: w.add_float32, str: w.add_string, bool: w.add_bool,
               np.float64: w.add_float64}
        (w.add_array if isinstance(v, list) else add[type(v)])(k, v)
    tokens = tokens or ['<s>', '</s>', *'abc', 'ab', 'abc', 'Ġ',
                        *'defghijklmnopqrstuvwxyz123456!'][:V]
    assert len(tokens) <= V
    tokens += [f'<{i}>' for i in range(V - len(tokens))]
    w.add_tokenizer_model('gpt2'); w.add_tokenizer_pre(pre)
    w.add_token_list(tokens); w.add_token_merges([*merges])
    w.add_token_types(kinds or [3, 3, *[1]*(V-2)]); w.add_bos_token_id(0); w.add_eos_token_id(1)
    rng,kind = np.random.default_rng(0),gguf.GGMLQuantizationType[kind]
    for n,s in (shapes if tensors is None else tensors).items():
        if n in drop: continue
        x = rng.standard_normal(s, dtype=np.float32)
        k = kind if len(s) > 1 else gguf.GGMLQuantizationType.F32
        x = gguf.quantize(x, k)
        w.add_tensor(n + '.weight', x, raw_dtype=k)
    for n,s in biases.items(): w.add_tensor(n + '.bias', rng.standard_normal(s, dtype=np.float32))
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
    return path
