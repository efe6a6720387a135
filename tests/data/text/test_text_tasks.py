"""Benchmarks as records: their files, their rows, and T5's words for them."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from castalia.data.text import TASKS, LayoutAdapter, text_task, translation_prompt
from castalia.errors import DataWarning, InvalidData, InvalidParameter

GLUE = {  # a line of each benchmark's own file, header first, and what it says
    "sst2": ("sentence\tlabel\nhide new secretions \t0\n", "hide new secretions ", "negative"),
    "mrpc": (
        'Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe said "so\t"So," he said\n',
        ['He said "so', '"So," he said'],
        "equivalent",
    ),
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tWhy?\tHow so?\t0\n",
        ["Why?", "How so?"],
        "not_duplicate",
    ),
    "stsb": (
        "index\tgenre\tsentence1\tsentence2\tscore\n0\tnews\tA man.\tA boy.\t3.25\n",
        ["A man.", "A boy."],
        3.25,
    ),
    "mnli": (
        "index\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n"
        "0\tfiction\tI hate pigeons.\tI like them.\tneutral\tcontradiction\n",
        ["I hate pigeons.", "I like them."],
        "contradiction",
    ),
    "qnli": (
        "index\tquestion\tsentence\tlabel\n0\tWho?\tAnn did.\tentailment\n",
        ["Who?", "Ann did."],
        "entailment",
    ),
    "rte": (
        "index\tsentence1\tsentence2\tlabel\n0\tIt rains.\tIt is dry.\tnot_entailment\n",
        ["It rains.", "It is dry."],
        "not_entailment",
    ),
    "cola": (
        "gj04\t1\t\tOur friends won't buy this.\n",
        "Our friends won't buy this.",
        "acceptable",
    ),
}
SQUAD = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": "Ann is in Rome, not in old Rome.",
                    "qas": [
                        {
                            "question": "Where?",
                            "id": "1",
                            "answers": [
                                {"text": "old Rome", "answer_start": 23},
                                {"text": "Rome", "answer_start": 10},
                            ],
                        },
                        {"question": "When?", "id": "2", "answers": [], "is_impossible": True},
                    ],
                }
            ]
        }
    ]
}
SWAG = (
    ",video-id,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"
    '0,v1,"She sits, then stands.",She,gold,walks off.,"flies, at last.",sings.,eats.,2\n'
)


@pytest.mark.parametrize("name", GLUE)
def test_the_file_of_a_benchmark_is_read_as_it_is(name, tmp_path):
    file, text, label = GLUE[name]
    path = tmp_path / "dev.tsv"
    path.write_text(file, encoding="utf-8")
    X, y = TASKS[name].read(path)
    assert X.tolist() == [text]
    assert y.tolist() == [label]


def test_a_line_with_other_columns_is_left_out_and_named(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text(GLUE["sst2"][0] + "half a line\n", encoding="utf-8")
    with pytest.warns(DataWarning, match="1 line of .*left out.*line 3"):
        X, _ = TASKS["sst2"].read(path)
    assert len(X) == 1


def test_swag_gives_each_ending_behind_its_beginning(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(SWAG, encoding="utf-8")
    X, y = TASKS["swag"].read(path)
    assert X.shape == (1, 4, 2)
    assert X[0, 1].tolist() == ["She sits, then stands.", "She flies, at last."]
    assert y.tolist() == [2]
    adapter = LayoutAdapter("words", layout=TASKS["swag"].layout)
    assert adapter.fit(adapter.check(X, "fit")).readings == 4


def test_squad_gives_questions_with_their_texts_and_where_answers_stand(tmp_path):
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(SQUAD), encoding="utf-8")
    X, y = TASKS["squad2"].read(path)
    assert X.tolist() == [["Where?", "Ann is in Rome, not in old Rome."]] + [
        ["When?", "Ann is in Rome, not in old Rome."]
    ]
    (begin, end), none = y
    assert X[0, 1][begin:end] == "old Rome"
    assert none is None
    assert TASKS["squad2"].references(path) == [("old Rome", "Rome"), ()]


def test_an_answer_that_stands_elsewhere_is_refused():
    row = {"question": "Who?", "context": "Ann.", "answers": {"text": ["Bob"], "answer_start": [0]}}
    with pytest.raises(InvalidData, match="got 'Bob' at 0, where the text of example 0 has 'Ann'"):
        TASKS["squad"].examples([row])


def test_rows_come_as_mappings_tables_and_files_of_columns(tmp_path):
    rows = [{"premise": "a", "hypothesis": "b", "label": k} for k in (0, 1, 2)]
    table = pa.Table.from_pylist(rows)
    parquet.write_table(table, tmp_path / "m.parquet")
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    mnli = TASKS["mnli"]
    for X, y in (
        mnli.examples(rows),
        mnli.examples(pd.DataFrame(rows, index=[5, 6, 7])),
        mnli.examples(table),
        mnli.read(tmp_path / "m.parquet"),
        mnli.read(tmp_path / "m.jsonl"),
    ):
        assert X.tolist() == [["a", "b"]] * 3
        assert y.tolist() == list(mnli.labels)


def test_labels_that_are_kept_back_are_none():
    assert TASKS["sst2"].examples([{"sentence": "a", "label": -1}])[1] is None
    assert TASKS["sst2"].examples([{"sentence": "a"}])[1] is None
    assert TASKS["squad"].examples([{"question": "a", "context": "b"}])[1] is None


@pytest.mark.parametrize(
    ("task", "rows", "said"),
    [
        ("sst2", [], "at least one example"),
        ("sst2", [{"sentense": "a"}], "a column `sentence`; got `sentense`. Did you mean"),
        ("sst2", [{"sentence": None}], "`sentence` must be a text; got None in example 0"),
        ("sst2", [{"sentence": "a", "label": 5}], "must be `negative` or `positive`; got 5"),
        ("stsb", [{"sentence1": "a", "sentence2": "b", "score": "x"}], "a number; got 'x'"),
        ("rte", ["text"], "an example must be a mapping.*got 'text' at place 0"),
    ],
    ids=["empty", "column", "text", "label", "number", "mapping"],
)
def test_rows_that_do_not_fit_are_named(task, rows, said):
    with pytest.raises(InvalidData, match=said):
        TASKS[task].examples(rows)


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "a.json").write_text("{", encoding="utf-8")
    (tmp_path / "b.json").write_text("[]", encoding="utf-8")
    for name, said in (("a.json", "must be JSON.*line 1"), ("b.json", "a file of SQuAD")):
        with pytest.raises(InvalidData, match=said):
            TASKS["squad"].read(tmp_path / name)
    with pytest.raises(InvalidData, match=r"must end in \.tsv"):
        TASKS["rte"].read("rte.xlsx")


def test_names_are_found_in_any_spelling():
    assert text_task("SST-2").name == "sst2"
    assert [text_task(f"SQuAD {v}").name for v in ("1.1", "2.0")] == ["squad", "squad2"]
    with pytest.raises(InvalidParameter, match="got 'MNLY'. Did you mean `mnli`"):
        text_task("MNLY")


PIGEONS = ("I hate pigeons.", "My feelings towards pigeons are filled with animosity.")


@pytest.mark.parametrize(
    ("task", "x", "source"),
    [
        (
            "cola",
            "John made Bill master of himself.",
            "cola sentence: John made Bill master of himself.",
        ),
        ("sst2", "it is fun", "sst2 sentence: it is fun"),
        ("rte", ("a", "b"), "rte sentence1: a sentence2: b"),
        ("mrpc", ("a", "b"), "mrpc sentence1: a sentence2: b"),
        ("stsb", ("a", "b"), "stsb sentence1: a sentence2: b"),
        ("qqp", ("a", "b"), "qqp question1: a question2: b"),
        ("qnli", ("a", "b"), "qnli question: a sentence: b"),
        ("mnli", PIGEONS, f"mnli hypothesis: {PIGEONS[1]} premise: {PIGEONS[0]}"),
        ("squad", ("a", "b"), "question: a context: b"),
    ],
    ids=lambda value: value if isinstance(value, str) and value in TASKS else "",
)
def test_sources_are_those_of_the_appendix(task, x, source):
    assert TASKS[task].sources([x]) == [source]


def test_the_pigeons_and_the_translation_of_the_notes():
    mnli = TASKS["mnli"]
    assert mnli.sources([PIGEONS], order=(0, 1)) == [
        "mnli premise: I hate pigeons. hypothesis: My feelings towards pigeons are filled with "
        "animosity."
    ]
    assert mnli.answers(["entailment"]) == ["entailment"]
    assert translation_prompt("That is good") == "translate English to German: That is good"


def test_numbers_are_written_in_steps_of_a_fifth_and_read_back():
    stsb = TASKS["stsb"]
    assert stsb.answers([2.57, 3.25, 5]) == ["2.6", "3.2", "5.0"]
    assert stsb.parse(["2.6", "no"]).tolist() == [2.6, -1.0]
    assert len({stsb.answers([v])[0] for v in np.linspace(0, 5, 501)}) == 26
    assert TASKS["rte"].parse([" entailment"]).tolist() == ["entailment"]
    with pytest.raises(InvalidParameter, match="swag: T5 has no words for this task"):
        TASKS["swag"].sources([("a", "b")])
    with pytest.raises(InvalidParameter, match="only questions"):
        TASKS["rte"].references([])
