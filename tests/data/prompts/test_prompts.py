"""Prompts are exact strings, and arithmetic questions have the right answers."""

import re

import pytest

from castalia.data.prompts import (
    ANSWER_QUESTION,
    FILL_BLANK,
    FINAL_WORD,
    FORMATS,
    SUMMARISE,
    TRANSLATE_LIST,
    TRANSLATE_TO,
    PromptTemplate,
    arithmetic_probe,
    compose,
    compute,
    last_word_off,
    read_document,
)
from castalia.errors import InvalidData, InvalidParameter

OTTER = ("sea otter", "loutre de mer")


def test_a_list_of_translations_is_written_line_by_line():
    prompt = TRANSLATE_LIST(
        "cheese",
        examples=[OTTER, {"source": "sea", "target": "mer"}],
        instruction="Translate English to French:",
    )
    assert prompt.text == (
        "Translate English to French:\nsea otter = loutre de mer\nsea = mer\ncheese ="
    )
    assert prompt.answered("fromage").endswith("\ncheese = fromage")
    assert (prompt.shots, prompt.lead, prompt.stop) == (2, " ", "\n")


def test_a_translation_names_its_language():
    prompt = TRANSLATE_TO(("French", "cheese"), examples=[("French", *OTTER)])
    assert prompt.text == (
        "(translate to French, sea otter, loutre de mer)\n(translate to French, cheese,"
    )
    assert prompt.answered("fromage").endswith("(translate to French, cheese, fromage)")
    assert prompt.stop == ")"


def test_questions_and_answers_are_marked():
    sums = [compute(98, "+", 45)]
    prompt = ANSWER_QUESTION("What is 48 plus 76?", examples=sums)
    assert prompt.text == "Q: What is 98 plus 45?\nA: 143\n\nQ: What is 48 plus 76?\nA:"


def test_a_summary_is_asked_for_behind_the_article():
    assert SUMMARISE("It rained all day.").text == "It rained all day.\nTL;DR:"


def test_reading_is_a_document_a_dialogue_and_a_question():
    prompt = read_document("Ann is in Rome.", "Where?", [("Who is away?", "Ann")])
    assert prompt.text == "Ann is in Rome.\nQ: Who is away?\nA: Ann\nQ: Where?\nA:"
    assert read_document("Ann is in Rome.", "Where?").text == "Ann is in Rome.\nQ: Where?\nA:"


def test_a_passage_is_cut_before_its_final_word():
    passage, word = last_word_off("the cat sat on the mat ")
    prompt = FINAL_WORD(passage)
    assert (prompt.text, word) == ("the cat sat on the", "mat")
    assert prompt.answered(word) == "the cat sat on the mat"
    solved = [("Ann met her friend", "Bob")]
    assert FILL_BLANK("Eve called", examples=solved).text == (
        "Ann met her friend ____. -> Bob\nEve called ____. ->"
    )
    with pytest.raises(InvalidData, match="two words or more; got 'mat'"):
        last_word_off("mat")


@pytest.mark.parametrize("name", FORMATS)
def test_a_query_is_an_example_without_its_answer(name):
    template = FORMATS[name]
    values = [f"<{field}>" for field in template.fields]
    assert template(values[:-1]).answered(values[-1]) == template.example(values)


def test_zero_one_and_few_shots_differ_by_the_examples_alone():
    texts = [TRANSLATE_LIST("cheese", examples=[OTTER] * k) for k in (0, 1, 3)]
    assert [prompt.shots for prompt in texts] == [0, 1, 3]
    assert all(prompt.text.endswith("cheese =") for prompt in texts)
    assert [prompt.text.count("loutre") for prompt in texts] == [0, 1, 3]


def test_the_answer_ends_where_the_next_example_begins():
    prompt = TRANSLATE_LIST("cheese")
    assert prompt.read_answer(" fromage\nsea = mer") == "fromage"
    assert TRANSLATE_TO(("French", "cheese")).read_answer(" fromage)\n(translate") == "fromage"


def test_braces_of_a_value_are_text_and_those_of_a_pattern_are_doubled():
    assert TRANSLATE_LIST("{x}").text == "{x} ="
    assert PromptTemplate("{{{a}}}: {b}")("1").text == "{1}:"


@pytest.mark.parametrize("pattern", ["no field", "{a} = {a}", "{}", "{0} = {1}", "{a:>3}", "{a"])
def test_a_pattern_without_plain_fields_is_refused(pattern):
    with pytest.raises(InvalidParameter, match=re.escape(f"got {pattern!r}")):
        PromptTemplate(pattern)


def test_fields_that_are_missing_are_named():
    with pytest.raises(InvalidData, match=r"a query must have the fields `language` and `source`"):
        TRANSLATE_TO("cheese")
    with pytest.raises(InvalidData, match=r"an example must have the field `target`"):
        TRANSLATE_LIST("cheese", examples=[{"source": "sea", "targte": "mer"}])


def test_the_sums_of_the_notes_are_right():
    assert compute(48, "+", 76) == ("What is 48 plus 76?", "124")
    assert compute(34, "-", 53) == ("What is 34 minus 53?", "-19")
    assert compute(17, "-", 14) == ("What is 17 minus 14?", "3")
    assert compose(2, "*", 4, "*", 6) == ("What is (2*4)*6?", "48")


@pytest.mark.parametrize(
    "kind, digits",
    [("addition", 2), ("subtraction", 2), ("addition", 3), ("multiplication", 2), ("composite", 1)],
)
def test_every_answer_of_the_probe_is_what_python_computes(kind, digits):
    sums = arithmetic_probe(kind, 200, digits=digits, random_state=0)
    for question, answer in sums:
        said = question.removeprefix("What is ").removesuffix("?")
        for word, sign in {"plus": "+", "minus": "-", "times": "*"}.items():
            said = said.replace(word, sign)
        assert re.fullmatch(r"[\d+*() -]+", said)
        assert int(answer) == eval(said)
    longest = max(len(number) for sum_ in sums for number in re.findall(r"\d+", sum_.question))
    assert longest == digits
    assert sums == arithmetic_probe(kind, 200, digits=digits, random_state=0)


def test_composite_sums_have_brackets_on_both_sides():
    asked = [sum_.question for sum_ in arithmetic_probe("composite", 50, random_state=0)]
    assert any(question.startswith("What is (") for question in asked)
    assert any(question.endswith(")?") for question in asked)


def test_a_probe_of_nothing_is_refused():
    with pytest.raises(InvalidParameter, match="got 'adition'. Did you mean `addition`"):
        arithmetic_probe("adition")
    with pytest.raises(InvalidParameter, match="whole numbers from 1; got 0 and 2"):
        arithmetic_probe("addition", 0)
    with pytest.raises(InvalidParameter, match="a sign must be"):
        compute(1, "/", 2)
