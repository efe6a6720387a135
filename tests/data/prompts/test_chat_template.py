"""Chat templates: transformers' text, a sandbox, and where answers stand."""

import json

import pytest

from castalia.data.prompts import CHATML, ChatTemplate
from castalia.data.prompts.chat_template import as_conversations
from castalia.errors import DamagedFile, InvalidData

TALK = [
    {"role": "system", "content": " Be brief. "},
    {"role": "user", "content": "What is <b>2 + 2</b>?"},
    {"role": "assistant", "content": "4"},
    {"role": "user", "content": "Größer als 3?\n"},
    {"role": "assistant", "content": "Ja"},
]
LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
    "{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}"
    "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}"
    "{% endif %}{% endfor %}"
)
LLAMA3 = """{{- bos_token }}
{%- set ns = namespace(first=true) %}
{%- for message in messages %}
    {%- if ns.first and message.role == 'system' %}
        {%- set ns.first = false %}
    {%- endif %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
    {{- message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
QWEN = """{%- if tools %}
    {{- '<|im_start|>system\\n# Tools\\n' }}
    {%- for tool in tools %}
        {{- tool | tojson }}
        {{- '\\n' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- generation %}
        {{- message.content + '<|im_end|>' }}
        {%- endgeneration %}
        {{- '\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
    {%- if loop.last %}{% break %}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
SOURCES = {"chatml": CHATML, "llama2": LLAMA2, "llama3": LLAMA3, "qwen": QWEN}
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.fixture(scope="module")
def theirs():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1}, unk_token="<s>"))
    return PreTrainedTokenizerFast(tokenizer_object=backend, **SPECIAL)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("asking", [False, True])
def test_the_text_is_that_of_transformers(theirs, name, asking):
    tools = [{"name": "über", "description": "a < b"}]
    for talk in (TALK[1:], TALK[:4], TALK[1:2]):
        settings = {"add_generation_prompt": asking, "tools": tools}
        wanted = theirs.apply_chat_template(
            talk, chat_template=SOURCES[name], tokenize=False, **settings
        )
        assert ChatTemplate(SOURCES[name], SPECIAL).render(talk, **settings) == wanted


@pytest.mark.parametrize("name", SOURCES)
def test_answers_are_found_with_the_end_of_their_turn(name):
    text, spans = ChatTemplate(SOURCES[name], SPECIAL).spans(TALK)
    ends = {"llama2": " </s>", "llama3": "<|eot_id|>"}.get(name, "<|im_end|>\n")
    begin = " " if name == "llama2" else ""
    assert [text[a:b] for a, b in spans] == [f"{begin}4{ends}", f"{begin}Ja{ends}"]


def test_a_folder_is_read(tmp_path):
    assert ChatTemplate.load(tmp_path) is None
    config = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": LLAMA2}
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps(config))
    assert ChatTemplate.load(tmp_path) == ChatTemplate(LLAMA2, SPECIAL)
    several = [{"name": "rag", "template": "x"}, {"name": "default", "template": CHATML}]
    file.write_text(json.dumps({"chat_template": several}))
    assert ChatTemplate.load(tmp_path) == ChatTemplate()
    (tmp_path / "chat_template.jinja").write_text(LLAMA3)
    assert ChatTemplate.load(tmp_path).source == LLAMA3
    file.write_text("{")
    with pytest.raises(DamagedFile, match="must be JSON"):
        ChatTemplate.load(tmp_path)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{% set ns = namespace() %}{% set ns._x = 1 %}",
        "{{ raise_exception('no') }}",
        "{% for %}",
    ],
)
def test_a_template_can_neither_reach_out_nor_change_anything(source):
    with pytest.raises(InvalidData, match="ChatTemplate: the conversation must be one that"):
        ChatTemplate(source).render(TALK)
    assert len(TALK) == 5


def test_a_template_sees_plain_values_only():
    class Word(str):
        def shout(self):
            return "!"

    plain = ChatTemplate("{{ messages[0].content }}|{{ messages[0].other }}")
    talk = [{"role": "user", "content": Word("a"), "other": object()}]
    assert plain.render(talk) == "a|<object>"
    with pytest.raises(InvalidData):
        ChatTemplate("{{ messages[0].content.shout() }}").render(talk)


def test_a_template_that_rewrites_the_past_is_refused():
    forgets = "{% for m in messages %}{{ m.content if loop.last else '…' }}{% endfor %}"
    with pytest.raises(InvalidData, match="message 2 changes what stands before it"):
        ChatTemplate(forgets).spans(TALK)


@pytest.mark.parametrize(
    "bad, message",
    [
        ([[]], "must be a list of messages; got .* in row 0"),
        ([TALK, ["hi"]], r"must be \{'role': …, 'content': …\} .* in row 1"),
        ([[{"role": "user"}]], "in row 0"),
        ([[{"role": "user", "content": 3}]], "in row 0"),
    ],
)
def test_what_is_no_conversation_is_refused(bad, message):
    with pytest.raises(InvalidData, match=message):
        as_conversations(bad, "fit")
