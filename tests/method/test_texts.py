"""The method on text: what is read as what, what is compared, what the report shows."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.method.text_samples import (
    TINY_CLASSIFIER,
    TINY_READER,
    TINY_TRANSLATOR,
    text_plan,
    write_book,
    write_pairs,
    write_reviews,
)

import castalia
from castalia.data.tokenizers import CharTokenizer
from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate import bleu
from castalia.method import FitPlan, TunePlan, evaluate, predict, run, tune
from castalia.method.answer_scores import Answers, measure, stacked
from castalia.method.cure_plan import cure_plan
from castalia.method.fit_result import FitResult
from castalia.method.kinds import LabelledTexts, ParallelTexts, Prose, Table, open_data
from castalia.method.saved_model import load_model
from castalia.method.texts import text_model
from castalia.method.texts.passages import Passages, cut_passages
from castalia.method.texts.surprisal import surprises
from castalia.method.texts.text_baselines import informative_words, word_model
from castalia.method.texts.text_column import without_copies
from castalia.method.texts.text_model import choose_classifier, classifier_size
from castalia.models.language import NGramLanguageModel


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("texts")


@pytest.fixture(scope="module")
def book(place):
    return write_book(place / "book.txt")


@pytest.fixture(scope="module")
def read_book(book, place):
    return run(text_plan(str(book), TINY_READER, run=place / "runs" / "book"))


@pytest.fixture(scope="module")
def table(place):
    return write_reviews(place / "reviews.csv", stars=lambda i: i % 5, day=lambda i: i % 7)


@pytest.fixture(scope="module")
def classified(table, place):
    plan = text_plan(str(table), TINY_CLASSIFIER, "label", run=place / "runs" / "reviews")
    return run(plan)


@pytest.fixture(scope="module")
def pairs(place):
    return write_pairs(place)


@pytest.fixture(scope="module")
def translated(pairs, place):
    return run(text_plan(pairs, TINY_TRANSLATOR, run=place / "runs" / "pairs"))


# ---- what is read as what ----


def test_each_kind_of_text_is_known_by_what_is_named(book, table, pairs, place):
    plans = [
        (FitPlan(data=str(book)), Prose),
        (FitPlan(data="tinyshakespeare"), Prose),
        (FitPlan(data=str(table), target="label"), LabelledTexts),
        (FitPlan(data=str(table), target="label", text="none"), Table),
        (FitPlan(data=pairs), ParallelTexts),
    ]
    kinds = (ParallelTexts, Prose, LabelledTexts, Table)
    for plan, expected in plans:
        assert next(kind for kind in kinds if kind.holds(plan)) is expected, plan.data


def test_a_text_file_whose_lines_have_the_same_tabs_stays_a_table(place):
    path = place / "tabs.txt"
    path.write_text("a\tb\n1\t2\n3\t4\n")
    assert not Prose.holds(FitPlan(data=str(path)))


def write_names(path, **columns):
    """Write rows with names of two words, and further columns."""
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["name", *columns, "label"])
        for i in range(40):
            out.writerow([f"Person Number{i}", *(f(i) for f in columns.values()), "ab"[i % 2]])
    return str(path)


def test_names_beside_other_columns_are_no_text_but_alone_they_are(place):
    beside = write_names(place / "names.csv", age=lambda i: i * 1.5)
    alone = write_names(place / "only-names.csv")
    assert not LabelledTexts.holds(FitPlan(data=beside, target="label"))
    assert LabelledTexts.holds(FitPlan(data=alone, target="label"))
    assert LabelledTexts.holds(FitPlan(data=beside, target="label", text="name"))
    advice = open_data(FitPlan(data=beside, target="label")).advice
    assert "--text name learns from it instead" in " ".join(advice(_equal()))


def _equal():
    from castalia.evaluate import Interval
    from castalia.method.verdict import Verdict

    return Verdict("equal", "", "Guessing", Interval(0, 0, 0, 1))


def test_the_column_that_is_read_and_the_fate_of_the_others_are_reported(table):
    kind = open_data(text_plan(str(table), TINY_CLASSIFIER, "label"))
    (note,) = [n for n in kind.notes if n.startswith("Column")]
    assert note.startswith("Column `review` is read as text, 1")
    assert "learns from it alone; `stars` and `day` only serve one baseline" in note
    assert list(kind.baselines) == ["guess", "words", "columns"]


def test_empty_texts_and_copies_are_left_out_and_reported(place):
    path = place / "gaps.csv"
    rows = [f"a text of its own number {i}" for i in range(20)]
    rows += ["", rows[0], "said twice in two ways", "said twice in two ways"]
    path.write_text("review,label\n" + "".join(f"{r},{'ab'[i % 2]}\n" for i, r in enumerate(rows)))
    kind = open_data(text_plan(str(path), TINY_CLASSIFIER, "label"))
    notes = " ".join(kind.notes)
    assert len(kind) == 19  # the first text and its copy have two labels, too
    assert "1 row left out, as `review` is empty: rows 20." in notes
    assert "4 texts left out, for the same text has several labels." in notes


def test_a_copy_counts_whatever_its_spaces():
    kept, notes = without_copies(np.array(["a b", "c", "a  b "]), np.array([0, 1, 0]))
    assert kept.tolist() == [0, 1]
    assert "1 text left out as exact copies" in notes[0]


# ---- bad input ----


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"target": "review"}, r"target `review` must hold the labels of texts; it holds 60 diff"),
        ({"text": "revew"}, "`text` must be a column .* got 'revew'. Did you mean `review`"),
        ({"text": "stars"}, "column `stars` must hold texts; it is numeric"),
        ({"target": "stars", "task": "regression"}, "texts are classified"),
    ],
)
def test_a_table_that_cannot_be_read_as_texts_says_why(table, settings, said):
    with pytest.raises((InvalidData, InvalidParameter), match=said):
        open_data(text_plan(str(table), TINY_CLASSIFIER, **{"target": "label"} | settings))


@pytest.mark.parametrize(
    "content, settings, said",
    [
        (" \n", {}, "must hold a text; the file is empty"),
        ("a", {}, "must have 800 characters or more to train and test; got 1"),
        ("some words. " * 100, {"context": 5000}, "must be longer than the context of 5000 char"),
    ],
    ids=["empty", "one token", "context"],
)
def test_a_text_that_is_too_short_says_so(tmp_path, content, settings, said):
    path = tmp_path / "bad.txt"
    path.write_text(content)
    with pytest.raises(InvalidData, match=said):
        open_data(text_plan(str(path), TINY_READER | settings))


def test_an_unknown_encoding_is_reported_with_file_and_offset(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes(b"plain text, then caf\xe9 " * 99)
    with pytest.raises(InvalidData, match=r"latin.txt` must be UTF-8; got byte 0xe9 at offset 20"):
        open_data(FitPlan(data=str(path)))


def test_parallel_files_of_different_length_are_refused_with_both_counts(tmp_path):
    (tmp_path / "a.en").write_text("one\ntwo\nthree\n")
    (tmp_path / "a.de").write_text("eins\nzwei\n")
    with pytest.raises(InvalidData, match=r"got 3 and 2\."):
        open_data(FitPlan(data=(str(tmp_path / "a.en"), str(tmp_path / "a.de"))))


def test_pairs_with_an_empty_side_are_left_out_and_reported(tmp_path):
    lines = [f"line {i}" for i in range(14)]
    (tmp_path / "a.en").write_text("\n".join([*lines, " ", "last"]) + "\n")
    (tmp_path / "a.de").write_text("\n".join([*lines, "Zeile", ""]) + "\n\n")
    with pytest.raises(InvalidData, match="got 16 and 17"):
        open_data(FitPlan(data=(str(tmp_path / "a.en"), str(tmp_path / "a.de"))))
    (tmp_path / "a.de").write_text("\n".join([*lines, "Zeile", " "]) + "\n")
    kind = open_data(FitPlan(data=(str(tmp_path / "a.en"), str(tmp_path / "a.de"))))
    assert len(kind) == 14
    assert "2 pairs left out, as one side is empty: lines 15 and 16." in kind.notes
    assert "100 % of the pairs are equal texts" in " ".join(kind.notes)


@pytest.mark.parametrize("name", ["nowhere", "nowhere/"])
def test_a_folder_that_does_not_exist_is_refused(name):
    with pytest.raises(InvalidData, match=f"`{name}` must be .*; it does not exist."):
        open_data(FitPlan(data=name))


def test_text_is_not_searched(book, pairs):
    for data in (str(book), pairs):
        with pytest.raises(InvalidParameter, match="a search takes tables, images, tables"):
            tune(TunePlan(fit=text_plan(data, {}), trials=1))


# ---- passages and their scores ----


def test_passages_put_together_are_the_text():
    text = "First line.\nA second, longer line. And more of it! " * 60 + "x" * 500
    found = cut_passages(text)
    assert "".join(found.pieces) == text
    assert min(found.sizes()[:-1]) >= 80
    assert found.take(np.array([0, 1, 5])).texts() == [
        found.pieces[0] + found.pieces[1],
        found.pieces[5],
    ]


def test_the_bits_of_passages_are_those_of_the_text():
    train, test = "abcabcabc" * 30, ["abca", "bcab", "cabc"]
    model = NGramLanguageModel(order=3, tokenizer=CharTokenizer()).fit([train])
    logs = model.token_log_probabilities(["".join(test)])[0][:-1]  # without the end
    found = surprises(model, Passages(test, np.arange(3)))
    assert found[:, 1].tolist() == [4, 4, 4]
    np.testing.assert_allclose(found[:, 0], -logs.reshape(3, 4).sum(axis=1) / np.log(2))
    apart = surprises(model, Passages(test, np.array([0, 2, 4])))
    assert apart[1, 0] > found[1, 0]  # nothing is known of what stands before it


def test_measures_of_text_are_means_over_seeds():
    y = np.array([4, 6])
    said = [Answers(np.array([[8.0, 2], [12.0, 3]])), Answers(np.array([[4.0, 2], [6.0, 3]]))]
    table = stacked(y, said)
    assert measure("bits_per_character")(y, table) == 1.5
    assert measure("perplexity")(y, table) == (2**4 + 2**2) / 2
    wanted = np.array(["the cat sat on the mat", "a dog ran away today"], dtype=object)
    said = ["the cat sat on a mat", "a dog ran off today"]
    counts = stacked(wanted, [Answers(np.array(said))])
    assert measure("bleu")(wanted, counts) == pytest.approx(bleu(list(wanted), said).score)


def test_the_most_informative_words_are_those_of_the_classes():
    texts = ["good film , yes", "good one , yes", "bad film , no", "bad one , no"] * 5
    model = word_model("words", 20).fit(texts, ["up", "up", "down", "down"] * 5).estimator
    down, up = informative_words(model, ["down", "up"], most=2)
    assert set(down) == {"bad", "no"}
    assert set(up) == {"good", "yes"}


# ---- whole fits ----


def test_a_text_is_fitted_against_counted_letters(read_book, book):
    report = read_book.report
    names = [c.name for c in report.contenders]
    assert names == ["Guessing", "6-gram (Kneser–Ney)", "RNNLanguageModel"]
    assert report.metric == "bits_per_character"
    text = book.read_text()
    kind = open_data(text_plan(str(book), TINY_READER))
    cut = sum(len(kind.X.pieces[i]) for i in kind.parts[0].train)
    counted = NGramLanguageModel(order=1, tokenizer=CharTokenizer()).fit([text[:cut]])
    bits = -counted.token_log_probabilities([text[cut:]])[0][:-1].sum() / np.log(2)
    assert report.contenders[0].scores["bits_per_character"] == pytest.approx(
        bits / (len(text) - cut)
    )
    assert sum(report.data["split"].values()) == len(text)


def test_the_page_of_a_text_shows_continuations_and_hard_passages(read_book):
    page = read_book.page.read_text()
    for part in ("How it writes", "What it could not foresee", "Bits per character", "Perplexity"):
        assert part in page
    sample = read_book.report.panels[0]["samples"][0]
    assert sample["prompt"]
    assert sample["text"]
    assert "Confusion" not in page


def test_a_counted_model_can_be_asked_for(book, tmp_path):
    plan = text_plan(str(book), {"order": 3}, model="ngram", run=tmp_path / "counted")
    found = run(plan)
    assert found.report.contenders[-1].name == "NGramLanguageModel"
    assert evaluate(found.folder, str(book)).scores["bits_per_character"] < 2


def test_a_counted_model_that_does_as_well_is_what_one_gets(read_book, book):
    assert read_book.report.outcome in ("equal", "worse")  # the network saw one epoch
    model = load_model(read_book.folder)
    assert isinstance(model, NGramLanguageModel)
    kind = open_data(text_plan(str(book), TINY_READER))
    bits = surprises(model, kind.X.take(kind.parts[0].test))
    shown = next(c for c in read_book.report.contenders if c.name.startswith("6-gram"))
    assert bits[:, 0].sum() / kind.X.take(kind.parts[0].test).sizes().sum() == pytest.approx(
        shown.scores["bits_per_character"]
    )
    assert evaluate(read_book.folder, str(book)).metric == "bits_per_character"
    assert predict(read_book.folder, str(book)).rows()[0]["tokens"] > 0
    network = predict(read_book.folder, str(book), name="model").columns["bits_per_character"]
    assert network[0] != predict(read_book.folder, str(book)).columns["bits_per_character"][0]


def test_models_of_words_and_of_other_columns_are_saved(classified, table):
    words = load_model(classified.folder, "logistic regression")
    assert set(words.predict(["a good film", "bad"])) <= set(words.classes_)
    said = predict(classified.folder, str(table), name="words").columns["prediction"]
    assert len(said) == len(castalia.read(table))
    columns = predict(classified.folder, str(table), name="columns").columns["prediction"]
    assert len(columns) == len(said)


def test_what_cannot_be_saved_is_said(translated):
    with pytest.raises(InvalidParameter, match="must be `model` of .*; 'copy' cannot be saved"):
        load_model(translated.folder, "copy")


def test_few_texts_get_a_bag_of_n_grams_and_many_on_a_gpu_attention(table, monkeypatch):
    sizes = [classifier_size(n, gpu=False) for n in (100, 2_000, 20_000, 200_000)]
    assert [size.batch for size in sizes] == sorted({size.batch for size in sizes})
    assert [size.min_count for size in sizes] == [1, 1, 2, 2]
    assert classifier_size(50_001, gpu=True).depth > classifier_size(50_000, gpu=True).depth
    monkeypatch.setattr(text_model, "on_gpu", lambda device: device == "cuda")
    assert choose_classifier(50_001, "cuda", {}) == "TransformerClassifier"
    assert choose_classifier(50_000, "cuda", {}) == "FastTextClassifier"
    assert choose_classifier(50_001, "cpu", {"lr": 0.1}) == "FastTextClassifier"
    bag = open_data(text_plan(str(table), {}, "label"))
    model = bag.build(60)
    assert type(model).__name__ == "FastTextClassifier"
    assert (model.training.validation, model.training.patience) == (0.0, None)
    assert bag.build(5_001).epochs < model.epochs
    assert "not their order" in " ".join(bag.notes)
    asked = open_data(text_plan(str(table), {"depth": 2}, "label"))
    model = asked.build(60)
    assert (model.depth, model.positions, model.pool) == (2, "sinusoidal", "mean")
    assert (model.dim, model.dropout) == (64, 0.3)
    assert model.training.patience
    assert "not their order" not in " ".join(asked.notes)
    single = open_data(text_plan(str(table), {"depth": 0}, "label")).build(60)
    assert (single.depth, single.positions, single.pool) == (0, "none", "sum")


def test_the_default_classifier_keeps_up_with_weighed_words(place):
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(300)])
    lean = rng.normal(size=300)  # every word speaks a little for one class
    path = place / "leaning.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["review", "label"])
        for _ in range(400):
            drawn = rng.integers(300, size=20)
            out.writerow([" ".join(words[drawn]), "yes" if lean[drawn].sum() > 0 else "no"])
    found = run(text_plan(str(path), {}, "label", run=place / "runs" / "leaning"))
    score = {c.name: c.scores["accuracy"] for c in found.report.contenders}
    assert score["FastTextClassifier"] > score["Logistic regression"] - 0.05


def test_folds_of_a_text_test_every_passage_once(book):
    kind = open_data(text_plan(str(book), TINY_READER, cv=3))
    tested = np.concatenate([part.test for part in kind.parts])
    assert tested.tolist() == list(range(len(kind)))
    assert len(kind.rows(kind.parts[1].train)[0]) == 2  # the text before and behind the fold


def test_a_table_of_texts_is_fitted_against_words_and_the_other_columns(classified):
    notes = {c.name: c.note for c in classified.report.contenders}
    assert list(notes) == [
        "Guessing",
        "Logistic regression",
        "Gradient boosting",
        "TransformerClassifier",
    ]
    assert notes["Gradient boosting"] == "on the other columns: stars, day"
    assert classified.summary["text"] == "review"
    page = classified.page.read_text()
    for part in ("Confusion", "Worst mistakes", "Most informative words", "film"):
        assert part in page


def test_two_files_are_fitted_against_copying_the_source(translated, pairs):
    report, kind = translated.report, open_data(text_plan(pairs, TINY_TRANSLATOR))
    assert [c.name for c in report.contenders] == ["Copying the source", "Transformer"]
    test = kind.parts[0].test
    expected = bleu(list(kind.task.y[test]), list(kind.X[test])).score
    assert report.contenders[0].scores["bleu"] == pytest.approx(expected)
    assert report.reproduce.startswith(f"castalia fit {pairs[0]} {pairs[1]} ")
    assert report.outcome == "none"  # after one epoch; nobody is advised to copy
    assert report.verdict.startswith("Nothing here beats copying the source: the network has BLEU")
    page = translated.page.read_text()
    for part in ("ne, reference", "ne, translated", "Worst translations", kind.X[test[0]]):
        assert part in page


def test_a_source_is_never_trained_on_and_tested(tmp_path):
    lines = [f"text {i % 9}" for i in range(40)]
    (tmp_path / "a.x").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.y").write_text("\n".join(f"{line} {i}" for i, line in enumerate(lines)) + "\n")
    kind = open_data(text_plan((str(tmp_path / "a.x"), str(tmp_path / "a.y")), TINY_TRANSLATOR))
    (part,) = kind.parts
    assert not set(kind.X[part.train]) & set(kind.X[part.test])


def test_a_finished_run_of_text_is_read_again(read_book, translated, book, pairs, place):
    for data, settings, name in (
        (str(book), TINY_READER, "book"),
        (pairs, TINY_TRANSLATOR, "pairs"),
    ):
        before = FitResult.load(place / "runs" / name)
        again = run(text_plan(data, settings, run=place / "runs" / name))
        assert again.summary == before.summary


def test_a_pair_can_be_fitted_again_with_the_doctor(translated, pairs):
    plan = cure_plan(translated.folder)
    assert tuple(plan.data) == pairs
    assert plan.doctor
    assert FitPlan(data=pairs).name == "train-en-ne"
    assert replace(plan, run=None).folder.name == "train-en-ne"


# ---- saved models ----


def test_predictions_find_the_column_of_the_training(classified, table, tmp_path):
    found = predict(classified.folder, str(table))
    assert list(found.columns) == ["prediction", "probability_blame", "probability_praise"]
    lines = tmp_path / "new.txt"
    texts = castalia.read(str(table)).column("review")[:3]
    lines.write_text("\n".join(texts) + "\n")
    same_predictions(predict(classified.folder, str(lines)), found)
    other = tmp_path / "other.csv"
    other.write_text("id,body\n" + "".join(f"{i},{text}\n" for i, text in enumerate(texts)))
    same_predictions(predict(classified.folder, str(other), text="body"), found)
    with pytest.raises(InvalidData, match="must have the column `review` with the texts; it has"):
        predict(classified.folder, str(other))


def same_predictions(some, found):
    """Compare the first rows; a smaller batch may be computed by another kernel of BLAS."""
    for name, values in some.columns.items():
        first = found.columns[name][: len(some)]
        close = np.array_equal if name == "prediction" else np.allclose
        assert close(values, first), name


def test_evaluate_scores_every_kind_of_text(classified, read_book, translated, table, book, pairs):
    assert evaluate(classified.folder, str(table)).rows == 60
    assert evaluate(read_book.folder, str(book)).metric == "bits_per_character"
    found = evaluate(translated.folder, pairs)
    model = castalia.load(translated.model)
    X, y = (Path(path).read_text().split("\n")[:-1] for path in pairs)
    assert found.scores == {"bleu": pytest.approx(model.score(X, y))}
    with pytest.raises(InvalidData, match="scored on two files"):
        evaluate(translated.folder, pairs[0])


def test_a_translator_answers_lines_and_leaves_blank_ones(translated, tmp_path):
    (tmp_path / "new.en").write_text("a b c d\n\nb c d e\n")
    rows = predict(translated.folder, str(tmp_path / "new.en")).rows()
    assert [row["source"] for row in rows] == ["a b c d", "", "b c d e"]
    assert rows[1]["translation"] == ""


def test_a_language_model_says_how_surprising_lines_are(read_book, tmp_path):
    (tmp_path / "new.txt").write_text("a b c d\n\nd b f a\n")
    rows = predict(read_book.model, str(tmp_path / "new.txt")).rows()
    model = castalia.load(read_book.model)
    logs = model.token_log_probabilities(["d b f a"])[0][:-1]
    assert [row["tokens"] for row in rows] == [7, 7]
    assert rows[1]["bits_per_character"] == pytest.approx(-logs.mean() / np.log(2))


@pytest.mark.parametrize("model", ["gpt", "bert", "elmo", "attention", "transformer"])
def test_every_classifier_of_texts_gets_settings_it_can_be_trained_with(table, model):
    kind = open_data(text_plan(str(table), {"epochs": 1}, "label", model=model))
    made = kind.build(len(kind))
    assert made.set_params(training=None).fit(["so good", "so bad"] * 4, [1, 0] * 4).n_iter_ == 1


def test_a_llama_is_fitted_by_its_short_name_at_its_own_width(book, tmp_path):
    small = {"epochs": 1, "dim": 8, "depth": 1, "heads": 2, "context": 16}
    found = run(text_plan(str(book), small, model="llama", run=tmp_path / "run"))
    assert found.summary["models"]["model"] == "LlamaLanguageModel"
    model = castalia.load(found.model)
    assert model.hidden is None
    assert len(predict(found.folder, str(book), name="model")) > 0


@pytest.mark.parametrize("setting", [{"dim": -1}, {"optimizer": "none such"}])
def test_a_wrong_setting_is_refused_before_any_work(table, tmp_path, setting):
    plan = text_plan(str(table), setting, "label", run=tmp_path / "run")
    with pytest.raises(InvalidParameter, match=f"`{next(iter(setting))}` must be"):
        run(plan)
    assert not (tmp_path / "run").exists()
