"A model that says what it is told, for tests of how texts end and how they are shown"
import torch
from attention_nb.models.config import TransformerConfig
from attention_nb.models.transformer import Transformer

class Parrot(torch.nn.Module):
    "Says `rows` token by token, whatever it reads; prompts have `first` tokens"
    def __init__(self, rows, vocab_size, first=1, **cfg):
        super().__init__()
        self.cfg = TransformerConfig(vocab_size, d_model=8, n_layers=1, n_heads=1, **cfg)
        self.rows,self.first,self.inner = rows,first,Transformer(self.cfg)

    def new_cache(self, *args, **options): return self.inner.new_cache(*args, **options)

    def forward(self, ids, *, cache, last, **options):
        self.inner(ids, cache=cache, last=last, **options)
        step = len(cache)-self.first
        said = torch.tensor([[r[min(step, len(r)-1)]] for r in self.rows])
        return torch.nn.functional.one_hot(said, self.cfg.vocab_size).float()
