"""`help(f)`, `f?` and editors say of every public name what it is, and of every parameter its
shape and meaning"""
import importlib, inspect, re
from dataclasses import fields, is_dataclass
import attention_nb, package, pytest
from helpers import root
from helpers.book import module_of, name_of, notebooks

modules = [importlib.import_module(f'attention_nb.{m}')
           for m in package.modules_in(root/'attention_nb')]
public = {f'{m.__name__}.{n}': getattr(m, n) for m in modules for n in m.__all__}
# constants have no help of their own
public = {n: x for n,x in public.items() if inspect.isfunction(x) or inspect.isclass(x)}
classes = {n: x for n,x in public.items() if inspect.isclass(x)}
methods = {f'{n}.{k}': getattr(x, k) for n,x in classes.items() for k in list(vars(x))
           if (not k.startswith('_') or k == '__init__' and not is_dataclass(x)
               and not getattr(x, '_is_protocol', False)) and inspect.isroutine(getattr(x, k))
           and k not in inspect.get_annotations(x)}
functions = {n: x for n,x in public.items() if n not in classes} | methods

tables = {n: c for n,c in classes.items() if is_dataclass(c) or hasattr(c, '_fields')}

of_each_page = pytest.mark.parametrize('path', [p for p in notebooks if module_of(name_of(p))],
                                       ids=name_of)

def of(path, names):
    "Those of its module"
    return {n: x for n,x in names.items()
            if n.startswith(f'attention_nb.{module_of(name_of(path))}.')}

def said(doc):
    "Name -> meaning, as the docstring says"
    found = re.search(r'^(?:Args|Attributes):\n((?: .*\n?)+)', doc or '', re.M)
    return dict(re.findall(r'^    (\w+): (\S.*)$', found[1], re.M)) if found else {}

@of_each_page
def test_a_public_name_says_what_it_is(path):
    silent = [n for n,x in of(path, public).items() if not x.__doc__
              or x.__doc__.startswith(f'{x.__name__}(')]
    assert not silent, 'no docstring, or one that Python wrote'

def told(name, f):
    "Parameters that have a meaning: of `__init__` in its class, of a method also in a base of it"
    owner,_,own = name.rpartition('.')
    if own == '__init__': return set(said(inspect.getdoc(classes[owner])))
    over = [getattr(c, own) for c in classes[owner].__mro__ if own in vars(c)] if owner in classes \
        else [f]
    return {n for g in over for n in said(inspect.getdoc(inspect.unwrap(g)))}

@of_each_page
def test_every_parameter_says_what_it_is(path):
    for name,f in of(path, functions).items():
        asked = set(inspect.signature(f).parameters) - {'self', 'cls'}
        lacking = asked - told(name, f)
        assert not lacking, f'{name}: a comment behind {sorted(lacking)} says what it is'

@of_each_page
def test_every_field_says_what_it_is(path):
    for name,cls in of(path, tables).items():
        asked = [f.name for f in fields(cls)] if is_dataclass(cls) else cls._fields
        public = {f for f in asked if not f.startswith('_')}
        assert not public - set(said(inspect.getdoc(cls))), name

def test_options_that_are_passed_on_are_named():
    from attention_nb.models import generation, generation_options as asked, transformer
    model = transformer.Transformer
    for f,options in ((model.generate, asked.GenerateKwargs),
                      (generation.generate, asked.GenerateKwargs),
                      (model.save_pretrained, transformer.SaveOptions),
                      (generation.stream, asked.StreamKwargs)):
        missing = options.__optional_keys__ - set(re.findall(r'\w+', inspect.getdoc(f)))
        assert options.__optional_keys__ and not missing, (f.__qualname__, missing)

def test_every_layer_that_is_offered_says_what_a_call_gives():
    "torch declares the call of a module as `Any`; short forms leave it so"
    from torch import nn
    layers = {n: getattr(attention_nb, n) for n in attention_nb.__all__}
    layers = {n: c for n,c in layers.items() if inspect.isclass(c) and issubclass(c, nn.Module)
              and 'forward' in vars(c)}
    untyped = [n for n,c in layers.items()
               if not any('def __call__(' in inspect.getsource(base) for base in c.__mro__
                          if base.__module__.startswith('attention_nb'))]
    assert len(layers) > 8 and sorted(untyped) == ['SimpleDecoder', 'SimpleMultiHeadAttention']
