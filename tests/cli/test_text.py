"""The command line on text files, tables of texts and parallel files."""

import csv
import json

import pytest
from tests.cli.test_cli import call, sentence
from tests.method.text_samples import write_book, write_pairs, write_reviews

QUICK = ["--seeds", "1", "--preflight-seconds", "0", "--quiet", "--set", "epochs=1"]
READER = [*QUICK, "--set", "hidden=8", "--set", "context=16"]
SMALL = [*QUICK, "--set", "dim=8", "--set", "depth=1", "--set", "heads=2"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    found = tmp_path_factory.mktemp("text")
    write_book(found / "book.txt", 120)
    write_reviews(found / "reviews.csv", 40)
    write_pairs(found, 40)
    return found


def fitted(place, *words):
    done = call("fit", *words)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def book(place):
    return fitted(place, place / "book.txt", "--run", place / "book", *READER)


def test_a_book_is_fitted_and_continued(book, place):
    assert "Target: next character (language modelling)" in book
    assert "the last 20 % of the text tested, in passages" in book
    assert "6-gram (Kneser–Ney)" in book
    words = ("--prompt", "a b c", "--tokens", "8", "--seed", "1", "--json")
    found = json.loads(call("generate", place / "book", *words).stdout)
    assert found["texts"][0].startswith("a b c")
    assert len(found["texts"][0]) > len("a b c")


def test_a_prompt_with_unknown_symbols_is_refused(book, place):
    words = sentence("generate", place / "book", "--prompt", "a ü b Ω")
    assert words.endswith("it does not know `ü` and `Ω`.")


def test_a_table_of_texts_is_fitted_and_answers(place):
    run, table = place / "opinions", place / "reviews.csv"
    shown = fitted(place, table, "--target", "label", "--run", run, *SMALL)
    assert "Note: Column `review` is read as text" in shown
    done = call("predict", run, table)
    assert {row["prediction"] for row in csv.DictReader(done.stdout.splitlines())} <= {
        "praise",
        "blame",
    }
    assert json.loads(call("evaluate", run, table, "--json").stdout)["unit"] == "text"


def test_two_files_are_fitted_and_translate(place):
    run, (one, two) = place / "pairs", (place / "train.en", place / "train.ne")
    shown = fitted(place, one, two, "--run", run, *SMALL)
    assert "Copying the source" in shown
    assert call("predict", run, one).stdout.startswith("source,translation\n")
    assert json.loads(call("evaluate", run, one, two, "--json").stdout)["metric"] == "bleu"
    assert "it holds a Transformer" in sentence("generate", run, "--prompt", "a")


def test_bad_input_gets_one_sentence(place):
    assert "it does not exist" in sentence("fit", place / "nowhere")
    (place / "long.en").write_text("one\ntwo\n")
    done = call("fit", place / "train.en", place / "long.en")
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.endswith("got 40 and 2.")
    assert "must hold the labels of texts" in sentence("fit", place / "reviews.csv", "-t", "review")
