"""Predictions of many files: streamed, and every row once however often the work is cut off."""

import numpy as np
import pandas as pd
import pytest

from castalia import MLPClassifier, Training, read, save
from castalia.errors import InvalidParameter
from castalia.method import batch_predictions
from castalia.method.batch_predictions import predict_files
from castalia.method.predictions import predict


def many_files(home):
    """A saved model, files of rows for it, and all their rows."""
    random = np.random.default_rng(0)
    table = pd.DataFrame({"id": np.arange(60), "a": random.normal(size=60), "c": ["u", "v"] * 30})
    table["y"] = np.where(table["a"] > 0, "yes", "no")
    training = Training(verbose=False, watch=False)
    est = MLPClassifier(hidden=(3,), epochs=2, random_state=0, training=training)
    est.fit(read(table[["a", "c", "y"]], target="y"))
    save(est, home / "model")
    (home / "parts" / "b").mkdir(parents=True)
    for i in range(3):
        part = table.drop(columns="y").iloc[20 * i : 20 * i + 20]
        part.to_parquet(home / "parts" / f"{i}.parquet")
        part.to_csv(home / "parts" / "b" / f"{i}.csv.gz", index=False)
    return home / "model", sorted((home / "parts").rglob("*.*")), table


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return many_files(tmp_path_factory.mktemp("many"))


def test_every_format_gets_the_answers_of_one_table_whatever_the_chunks(
    model, tmp_path, monkeypatch
):
    monkeypatch.setattr(batch_predictions, "ROWS", 7)
    folder, files, table = model
    whole = predict(folder, table.drop(columns="y"), keep=["id"]).columns
    found = dict(predict_files(folder, files, tmp_path, keep=["id"]))
    assert sorted(str(path.relative_to(tmp_path)) for path in found) == [
        *(f"{i}.parquet" for i in range(3)),
        *(f"b/{i}.csv" for i in range(3)),
    ]
    assert set(found.values()) == {20}
    tables = pd.concat([pd.read_parquet(tmp_path / f"{i}.parquet") for i in range(3)])
    texts = pd.concat([pd.read_csv(tmp_path / "b" / f"{i}.csv") for i in range(3)])
    for answers in (tables, texts):
        assert list(answers["id"]) == list(range(60))
        assert list(answers["prediction"]) == list(whole["prediction"])
        np.testing.assert_allclose(answers["probability_yes"], whole["probability_yes"], rtol=1e-6)


def test_what_is_there_is_done_and_what_was_cut_off_leaves_nothing(model, tmp_path, monkeypatch):
    folder, files, _ = model
    answer, calls = batch_predictions.answer_rows, []

    def cut_off(*args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return answer(*args)

    monkeypatch.setattr(batch_predictions, "answer_rows", cut_off)
    with pytest.raises(KeyboardInterrupt):
        list(predict_files(folder, files, tmp_path))
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2
    again = [rows for _, rows in predict_files(folder, files, tmp_path)]
    assert again == [None, None, 20, 20, 20, 20]
    assert len(calls) == 7  # the two files that were whole are not answered again


def test_files_whose_answers_would_be_one_file_are_refused(model, tmp_path):
    with pytest.raises(InvalidParameter, match="different names before their endings"):
        list(predict_files(model[0], ["a/x.csv", "a/x.csv.gz"], tmp_path))
