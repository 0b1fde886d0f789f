"""The short forms of the lessons: few lines, which import torch and each other alone, and a decoder
that runs published weights as they are"""
import ast, sys
import pytest, torch
from torch.testing import assert_close
from attention_nb.simple.cache import SimpleKVCache
from attention_nb.simple.decoder import SimpleDecoder, greedy
from helpers import root

LINES = 400                                             # of code, in all modules together
modules = sorted(p for p in (root/'attention_nb'/'simple').glob('*.py') if p.stem != '__init__')
texts = {p.stem: p.read_text(encoding='utf-8') for p in modules}

# ---- what they are made of

def code_lines(text):
    """Lines of code: without blank lines, comments, docstrings, and lines that hold only a
    parameter and its docment"""
    lines,drop = text.splitlines(),set()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)): continue
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            drop |= set(range(first.lineno, first.end_lineno+1))
        if not isinstance(node, ast.FunctionDef): continue
        given = [n for n in ast.walk(node.args) if isinstance(n, ast.arg)]
        drop |= {p.lineno for p in given if p.lineno > node.lineno and '#' in lines[p.lineno-1]
                 and lines[p.lineno-1].lstrip(' *').startswith(p.arg)}
    return [l for n,l in enumerate(lines, 1)
            if n not in drop and l.strip() and not l.lstrip().startswith('#')]

def test_all_of_it_is_read_in_one_sitting():
    sizes = {name: len(code_lines(text)) for name,text in texts.items()}
    assert len(sizes) > 7 and sum(sizes.values()) <= LINES, sizes

@pytest.mark.parametrize('name', texts)
def test_a_short_form_imports_torch_and_short_forms_alone(name):
    "And what Python brings"
    found = []
    for node in ast.walk(ast.parse(texts[name])):
        if isinstance(node, ast.Import): found += [a.name for a in node.names]
        if isinstance(node, ast.ImportFrom) and node.level != 1:
            found.append('.'*node.level + (node.module or ''))
    assert {n.partition('.')[0] for n in found} <= {'torch', *sys.stdlib_module_names}

# ---- a decoder that runs published models; nbs/14_pretrained.ipynb does it with SmolLM2

def of_config(config):
    "What `from_tensors` is told of a config.json"
    rope = config.get('rope_parameters') or {}
    return dict(n_heads=config['num_attention_heads'], n_kv_heads=config['num_key_value_heads'],
                base=config.get('rope_theta') or rope['rope_theta'], eps=config['rms_norm_eps'])

def random_llama(tied):
    "Of transformers: the model, its tensors as they are published, and what `from_tensors` is told"
    transformers = pytest.importorskip('transformers')
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=24, intermediate_size=40, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=1e-4, rope_theta=700.,
        tie_word_embeddings=tied, attn_implementation='eager', initializer_range=.3)
    llama = transformers.LlamaForCausalLM(config).eval()
    state = {name: t for name,t in llama.state_dict().items()
             if not (tied and name == 'lm_head.weight')}
    for name,t in state.items():
        if 'norm' in name: t.copy_(torch.rand_like(t) + .5)
    return llama, state, of_config(config.to_dict())

@pytest.mark.parametrize('tied', (True, False))
def test_a_llama_of_transformers(tied):
    llama,state,said = random_llama(tied)
    short,ids = SimpleDecoder.from_tensors(state, **said),torch.randint(50, (2, 11))
    with torch.no_grad():
        want = llama(ids).logits
        assert_close(short(ids), want, atol=1e-4, rtol=1e-4)
        caches = [SimpleKVCache(2, 2, 11, 4) for _ in range(3)]
        steps = [short(part, caches) for part in ids.split([5,1,1,4], 1)]
        assert_close(torch.cat(steps, 1), want, atol=1e-4, rtol=1e-4)
        for wrong in (dict(base=701.), dict(eps=1e-2), dict(n_heads=3, n_kv_heads=1)):
            other = SimpleDecoder.from_tensors(state, **said | wrong)
            assert (other(ids) - want).abs().max() > 1e-4
    theirs = llama.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=6,
                            do_sample=False, eos_token_id=None, pad_token_id=0)
    assert torch.equal(greedy(short, ids, 6), theirs)

def test_weights_of_half_precision_are_read():
    _,state,said = random_llama(False)
    half = {name: t.bfloat16() for name,t in state.items()}
    short = SimpleDecoder.from_tensors(half, **said)
    assert {p.dtype for p in short.parameters()} == {torch.float32}
    assert torch.equal(short.head, half['lm_head.weight'].float())
