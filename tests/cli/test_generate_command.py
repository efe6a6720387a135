"""``castalia generate``: texts, JSON, and one sentence for each mistake."""

import json

import pytest
from typer.testing import CliRunner

import castalia
from castalia.cli import app
from castalia.models.language import GPTLanguageModel, LlamaLanguageModel, NGramLanguageModel
from castalia.testing import toy

TEXTS = toy("chain")[0][:60]


def call(*words):
    return CliRunner().invoke(app, ["generate", *map(str, words)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    sizes = {"dim": 8, "depth": 1, "heads": 2, "context": 16, "epochs": 1, "random_state": 0}
    model = GPTLanguageModel(**sizes).fit(TEXTS)
    castalia.save(model, place / "gpt")
    model.save_pretrained(place / "huggingface")
    LlamaLanguageModel(**sizes).fit(TEXTS).save_pretrained(place / "llama")
    castalia.save(NGramLanguageModel().fit(TEXTS), place / "counted")
    castalia.save(castalia.MLPClassifier(hidden=(4,)), place / "mlp")
    return place


@pytest.mark.parametrize("name", ["gpt", "huggingface", "llama", "counted"])
def test_a_text_is_continued_and_a_seed_repeats_it(folder, name):
    one, two = (call(folder / name, "--prompt", "a b", "--seed", 1) for _ in range(2))
    assert one.exit_code == 0, one.output
    assert one.stdout.startswith("a b")
    assert one.stdout == two.stdout


@pytest.mark.parametrize("name", ["gpt", "counted"])
def test_every_way_to_draw_serves_every_writer(folder, name):
    ways = ("--top-p", 0.9, "--top-k", 5, "--repetition-penalty", 1.2, "--temperature", 0.7)
    done = call(folder / name, "-p", "a", "--tokens", 9, "--stop", "b", "--seed", 0, *ways)
    assert done.exit_code == 0, done.output
    assert "b" not in done.stdout.strip()[1:-1]


def test_json_holds_all_texts(folder):
    done = call(folder / "gpt", "-p", "a", "-n", 3, "--tokens", 4, "--seed", 0, "--json")
    found = json.loads(done.stdout)
    assert found["prompt"] == "a"
    assert len(found["texts"]) == 3


@pytest.mark.parametrize(
    "words, said",
    [
        (("mlp",), "must hold a language model; it holds a MLPClassifier"),
        (("nowhere",), "does not exist"),
        (("gpt", "--top-p", "0"), "`top_p` must be"),
        (("gpt", "--samples", "0"), "`samples` must be a whole number from 1; got 0"),
        (("counted", "--top-p", "0"), "`top_p` must be"),
        (("gpt", "--stop", ""), "`stop` must be texts of one character or more"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(folder, words, said):
    done = call(folder / words[0], *words[1:])
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
