"Conversations as texts: the same as transformers makes, and templates that would never end"
import contextlib, io, itertools, json, sys
import pytest, torch
from attention_nb.checkpoints import chat_template as chat
from attention_nb.checkpoints.source import open_source
from attention_nb.checkpoints.save import save_tensors
from attention_nb.checkpoints.tokenizers import files_of
from helpers import short
from helpers.gguf_model import write

tokenizers = pytest.importorskip('tokenizers')
transformers = pytest.importorskip('transformers')
transformers.utils.logging.set_verbosity_error()

def folder_of(path, said, **files):
    "A model's folder with a small tokenizer; `files` by name, `__` for a folder"
    save_tensors({'a': torch.ones(1)}, dict(model_type='llama', vocab_size=12), path)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({'a': 0, '<s>': 1}, unk_token='a'))
    words.save(str(path/'tokenizer.json'))
    kind = dict(tokenizer_class='PreTrainedTokenizerFast')
    (path/'tokenizer_config.json').write_text(json.dumps(kind | said))
    for name,text in files.items():
        file = path/name.replace('__', '/').replace('_jinja', '.jinja').replace('_json', '.json')
        file.parent.mkdir(exist_ok=True)
        file.write_text(text if isinstance(text, str) else json.dumps(text))
    return path

def theirs(folder): return transformers.PreTrainedTokenizerFast.from_pretrained(folder)

# %% the grid
tokens = 'bos', 'eos', 'unk', 'sep', 'pad', 'cls', 'mask', 'image', 'audio', 'boi'
everything = ("{{ name }}|{% for m in messages %}{{ m }}~{{ m.content }}~"
              "{{ m.tool_calls is defined }}~{% generation %}{{ m.thinking }}"
              "{{ m.reasoning_content }}{% endgeneration %}\n"
              "{% endfor %}{{ tools | tojson }}{{ documents }}{{ deep }}"
              "{% if add_generation_prompt %}<|assistant|>{{ enable_thinking }}{% endif %}"
              + ''.join(f"{{{{ {t}_token }}}}," for t in tokens))
def template(name): return f"{{% set name = '{name}' %}}" + everything
def listed(*names): return [dict(name=n, template=template(n)) for n in names]

added = dict(__type='AddedToken', content='<s>', lstrip=False, rstrip=False, normalized=False,
             special=True, single_word=False)
older = dict(bos_token='<old>', eos_token=dict(content='</old>', lstrip=False, rstrip=False,
             normalized=False, single_word=False), image_token='<image>', unk_token=None)
folders = {
    'one': (dict(chat_template=template('one'), bos_token='<s>', eos_token=None), {}),
    'list': (dict(chat_template=listed('rag', 'default', 'tool_use'), bos_token=added), {}),
    'list of one': (dict(chat_template=listed('default'), image_token='<i>'), {}),
    'no default': (dict(chat_template=listed('tool_use', 'rag')), {}),
    'a file': (dict(chat_template=template('old')), dict(chat_template_jinja=template('file'))),
    'files': (dict(chat_template=listed('tool_use', 'rag'), bos_token='<s>'),
              dict(chat_template_jinja=template('file'), special_tokens_map_json=older,
                   additional_chat_templates__tool_use_jinja=template('tools'),
                   additional_chat_templates__rag_jinja=template('rag'))),
    'a file for tools': (dict(chat_template=template('old')),
                         dict(additional_chat_templates__tool_use_jinja=template('tools'))),
    'two defaults': ({}, dict(chat_template_jinja=template('file'),
                     additional_chat_templates__default_jinja=template('further'))),
    'older tokens': (dict(chat_template=template('one'), bos_token='<new>', unk_token='<u>'),
                     dict(special_tokens_map_json=older)),
    'tokens twice': (dict(chat_template=template('one'), bos_token='<new>', added_tokens_decoder={
                          '1': {k: v for k,v in added.items() if k != '__type'}}),
                     dict(special_tokens_map_json=older)),
    'named tokens': (dict(chat_template=template('one'), audio_token='<a>', add_bos_token=True,
                          extra_special_tokens=dict(image_token='<i>', boi_token='<boi>')), {}),
    'named by the older file': (dict(chat_template=template('one')), dict(
        special_tokens_map_json=dict(extra_special_tokens=dict(boi_token='<boi>')))),
    'unnamed tokens': (dict(chat_template=template('one'), extra_special_tokens=['<x>']), {}),
    'tokens that transformers saved': (dict(chat_template=template('one'),
        model_specific_special_tokens=dict(image_token='<i>')), {})}

call = dict(type='function', function=dict(name='f', arguments=dict(z=1, a=[None, 'é<b>'])))
tool = dict(type='function', function=dict(name='f', description='<d> & "é"', parameters={}))
talks = [
    [dict(role='system', content='Be <brief>.'), dict(role='user', content='Hello\u2028 é')],
    [dict(role='user', content='Find'), dict(role='assistant', content=None, tool_calls=[call]),
     dict(role='tool', content='[1]', name='f', tool_call_id=None)],
    [dict(role='user', content=[dict(type='image'), dict(type='text', text=None)]),
     dict(role='assistant', thinking='hm', content='Hi'),
     dict(role='assistant', content='Ho', reasoning='so', reasoning_content=None),
     dict(reasoning_content='ah', thinking='oh', role='assistant', content='')]]
settings = [dict(zip(('tools', 'documents'), both), **more) for both,more in itertools.product(
    [(None, None), ([], None), ([tool], [dict(title='t', text=None)])],
    [{}, dict(enable_thinking=False, bos_token='<mine>', deep=dict(b=1, a=[1.5, None]))])]

def ask_here(request):
    "What the process says that fills in a template, without starting one"
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as m, contextlib.redirect_stdout(said):
        m.setattr(chat, '_limit_this_process', lambda seconds: None)
        m.setattr(sys, 'stdin', io.StringIO(request))
        chat._answer()
    return json.loads(said.getvalue())

@pytest.mark.parametrize('name', folders)
def test_a_conversation_is_the_text_that_transformers_makes(tmp_path, monkeypatch, name):
    monkeypatch.setattr(chat, '_ask', ask_here)
    said,files = folders[name]
    folder = folder_of(tmp_path/'m', said, **files)
    source,tokenizer = open_source(folder),theirs(folder)
    every = [*itertools.product(settings, talks, (True, False))]
    for more,talk,reply in every[len(name)%4::4]:
        try: want = tokenizer.apply_chat_template(talk, tokenize=False,
                                                  add_generation_prompt=reply, **more)
        except ValueError as e:
            assert 'no default' in str(e)
            with pytest.raises(ValueError, match="has no chat template 'default'; it has"):
                source.chat(talk, reply=reply, **more)
        else: assert source.chat(talk, reply=reply, **more) == want, (more, talk)
    for named in source.named_templates:
        want = tokenizer.apply_chat_template(talks[0], chat_template=named, tokenize=False)
        assert source.chat(talks[0], chat_template=named, reply=False) == want

def test_what_no_template_is_given(tmp_path):
    source = open_source(folder_of(tmp_path/'m', dict(chat_template=listed('default', 'rag'))))
    talk = [dict(role='user', content='Hello')]
    for name in ('add_generation_prompt', 'continue_final_message', 'tokenize'):
        with pytest.raises(TypeError, match=f'chat takes no {name}'):
            source.chat(talk, **{name: True})
    for name,wrong in dict(tools=[lambda: 1], documents='a').items():
        with pytest.raises(TypeError, match=f'{name} must be a list of dictionaries'):
            source.chat(talk, **{name: wrong})
    with pytest.raises(TypeError, match='image must be what JSON can say'):
        source.chat(talk, image=object())
    with pytest.raises(ValueError, match='messages is empty'): source.chat([])
    with pytest.raises(ValueError, match=r"no chat template 'x'; it has \['rag', 'default'\]"):
        source.chat(talk, chat_template='x')

def test_templates_travel_with_a_tokenizer(tmp_path):
    said,files = folders['files']
    source = open_source(folder_of(tmp_path/'m', said, **files))
    for i,given in enumerate((source.folder, theirs(source.folder))):
        again = folder_of(tmp_path/f'{i}', {})
        for name,data in files_of(given).items(): (again/name).write_bytes(data)
        again = open_source(again)
        assert again.chat_template == source.chat_template
        assert again.named_templates == source.named_templates

def test_the_templates_of_a_gguf_file(tmp_path):
    key = 'tokenizer.chat_template'
    source = open_source(write(tmp_path/'m.gguf', more={key: template('default'),
        f'{key}.tool_use': template('tool_use'), 'tokenizer.chat_templates': ['tool_use']}))
    talk = [dict(role='user', content='Hello')]
    assert source.chat(talk).startswith('default|')
    assert source.chat(talk, tools=[tool]).startswith('tool_use|')
    assert json.loads(files_of(source)['tokenizer_config.json'])['chat_template'] == listed(
        'default', 'tool_use')

# %% templates that would never end; the notebook has loops, and a long text
hostile = dict(
    macros="{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    power="{{ 10 ** (10 ** 10) }}", words="{{ lipsum(n=10**8) }}",
    doubled="{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}"
            "{% endfor %}{{ n.x }}",
    padded="{{ '%10000000000d' % 1 }}", spaced="{{ 'a' | center(10**11) }}",
    range="{{ range(10**12) | list }}", itself="{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    deep="{{ " + '('*10**5 + '1' + ')'*10**5 + " }}")

@pytest.mark.parametrize('name', short(['power', 'range', 'itself', 'deep'], hostile))
def test_a_template_that_takes_too_much_ends_with_an_error(tmp_path, monkeypatch, name):
    monkeypatch.setattr(chat, '_seconds', 1)
    talk = [dict(role='user', content='Hello')]
    file = tmp_path/'m'/'chat_template.jinja'
    source = open_source(folder_of(tmp_path/'m', {}, chat_template_jinja=hostile[name]))
    with pytest.raises(ValueError, match='its chat template fails: ') as e: source.chat(talk)
    assert str(e.value).startswith(f'{file}: ')

def test_an_error_names_the_file_that_says_the_template(tmp_path):
    talk,bad = [dict(role='user', content='Hello')],'{{ no.such.thing }}'
    def fails(source, file, **more):
        with pytest.raises(ValueError) as e: source.chat(talk, **more)
        assert str(e.value).startswith(f'{file}: its chat template fails: UndefinedError')
    said = folder_of(tmp_path/'said', dict(chat_template=bad))
    fails(open_source(said), said/'tokenizer_config.json')
    files = folder_of(tmp_path/'files', {}, chat_template_jinja=bad,
                      additional_chat_templates__tool_use_jinja=bad)
    fails(open_source(files), files/'chat_template.jinja')
    fails(open_source(files), files/'additional_chat_templates'/'tool_use.jinja', tools=[tool])
    path = write(tmp_path/'m.gguf', more={'tokenizer.chat_template': bad})
    fails(open_source(path), path)

def test_a_long_conversation_fits_the_limits(tmp_path):
    "Two thousand messages of two kilobytes, asked twice each"
    text = "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}{{ messages }}"
    source = open_source(folder_of(tmp_path/'m', dict(chat_template=text)))
    talk = [dict(role='user', content=f'{i} <think>é</think> ' + 'word '*300) for i in range(2000)]
    want = theirs(source.folder).apply_chat_template(talk, tokenize=False)
    assert source.chat(talk, reply=False) == want and len(want) > 6e6
