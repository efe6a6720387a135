"""Rows of tables over HTTP: answers, refusals, batches, reloads, counters."""

import json
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from tests.serve.running import running

import castalia
from castalia.errors import InvalidParameter
from castalia.serve import ServeSettings, serve
from castalia.serve.served_model import ServedModel


def table(rows=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 9, rows).round(1),
            "city": rng.choice(["Pisa", "Lucca", "Siena"], rows),
            "member": rng.choice([True, False], rows),
            "since": pd.date_range("2020-01-01", periods=rows, freq="3D"),
        }
    )
    frame.loc[::7, "age"] = np.nan
    return frame, np.where(frame["age"].fillna(40) > 40, "old", "young")


def as_json(frame):
    text = frame.assign(since=frame["since"].astype(str)).to_json(orient="records")
    return json.loads(text)


def fitted(seed):
    X, y = table()
    return castalia.MLPClassifier(hidden=(4,), epochs=2, random_state=seed).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return fitted(0)


@pytest.fixture
def folder(model, tmp_path):
    castalia.save(model, tmp_path / "people" / "model")
    return tmp_path / "people" / "model"


@pytest.fixture
def ask(folder):
    with running({"people": ServedModel("people", folder)}) as found:
        yield found


def test_rows_by_column_names_are_answered_as_predict_does(ask, model):
    X, _ = table(9)
    status, found = ask("POST", "/predict", {"rows": as_json(X)})
    assert status == 200
    answers = found["predictions"]
    assert [row["prediction"] for row in answers] == model.predict(X).tolist()
    both = [[row["probability_old"], row["probability_young"]] for row in answers]
    np.testing.assert_allclose(both, model.predict_proba(X), atol=1e-6)
    one = ask("POST", "/predict/people", as_json(X)[0])[1]["predictions"]
    np.testing.assert_allclose(one[0]["probability_old"], both[0][0], atol=1e-6)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"age": "forty"}, "column `age` must hold numbers; got 'forty' in row 1"),
        ({"city": ["Pisa"]}, "column `city` must hold words; got ['Pisa'] in row 1"),
        ({"since": "yesterday"}, "column `since` must hold dates"),
        ({"age": 1e999}, "column `age` must hold finite numbers"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_column_and_row(ask, change, said):
    rows = as_json(table(2)[0])
    rows[1] |= change
    status, found = ask("POST", "/predict", json.dumps(rows).encode())
    assert status == 422
    assert said in found["error"]


def test_a_missing_column_is_named_and_a_near_one_suggested(ask):
    rows = as_json(table(1)[0])
    rows[0]["town"] = rows[0].pop("city")
    rows[0]["citi"] = "Pisa"
    status, found = ask("POST", "/predict", rows)
    assert status == 422
    assert "`city` is missing in row 0" in found["error"]
    assert "citi" in found["error"]


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"[1]", b"[" * 100_000])
def test_a_body_that_holds_no_rows_is_refused_in_a_sentence(ask, body):
    status, found = ask("POST", "/predict", body)
    assert status == 422
    assert found["error"].startswith("serve: ")


def test_the_open_inference_protocol_describes_and_answers(ask, model):
    X, _ = table(3)
    assert ask("GET", "/v2/health/ready")[0] == ask("GET", "/v2/models/people/ready")[0] == 200
    _, about = ask("GET", "/v2/models/people")
    assert {each["name"]: each["datatype"] for each in about["inputs"]} == {
        "age": "FP64", "member": "FP64", "since": "BYTES", "city": "BYTES",
    }  # fmt: skip
    assert [each["name"] for each in about["outputs"]] == ["prediction", "probability"]
    rows = as_json(X)
    inputs = [
        {"name": name, "shape": [3, 1], "datatype": kind, "data": [row[name] for row in rows]}
        for name, kind in (("age", "FP64"), ("member", "BOOL"), ("since", "BYTES"))
    ]
    words = b"".join(struct.pack("<I", len(c)) + c.encode() for c in X["city"])
    city = {"name": "city", "shape": [3], "datatype": "BYTES"}
    body = {"id": "7", "inputs": [*inputs, city | {"parameters": {"binary_data_size": len(words)}}]}
    head = json.dumps(body).encode()
    size = {"Inference-Header-Content-Length": str(len(head))}
    status, found = ask("POST", "/v2/models/people/infer", head + words, size)
    assert status == 200, found
    assert found["id"] == "7"
    label, chance = found["outputs"]
    assert label["data"] == model.predict(X).tolist()
    assert chance["shape"] == [3, 2]
    np.testing.assert_allclose(chance["data"], model.predict_proba(X).ravel(), atol=1e-6)
    body["inputs"][0]["shape"] = [4, 1]
    status, found = ask("POST", "/v2/models/people/infer", body)
    assert status == 422
    assert "input `age`" in found["error"]


def test_requests_at_once_share_batches_and_get_their_own_answers(ask, model):
    X, _ = table(32)
    rows, wanted = as_json(X), model.predict_proba(X)[:, 0]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda row: ask("POST", "/predict", [row])[1], rows))
    said = [each["predictions"][0]["probability_old"] for each in found]
    np.testing.assert_allclose(said, wanted, atol=1e-6)
    batches = ask.app.state.server.counters.batches
    assert batches.total == 32
    assert sum(batches.counts) <= 32


def test_a_new_version_is_loaded_and_a_broken_one_is_not(ask, model, folder):
    row, other = as_json(table(1)[0]), fitted(1)
    before = ask("POST", "/predict", row)[1]
    castalia.save(other, folder)
    status, found = ask("POST", "/v2/repository/models/people/load")
    assert status == 200
    after = ask("POST", "/predict", row)[1]
    assert found["version"] == after["version"] != before["version"]
    wanted = other.predict_proba(table(1)[0])[0, 0]
    assert after["predictions"][0]["probability_old"] == pytest.approx(wanted, abs=1e-6)
    (folder / "weights.safetensors").write_bytes(b"broken")
    status, found = ask("POST", "/v2/repository/models/people/load")
    assert status == 409
    assert ask("POST", "/predict", row)[1]["version"] == after["version"]
    status, found = ask("POST", "/v2/repository/models/people/rollback")
    assert ask("POST", "/predict", row)[1]["predictions"] == before["predictions"]
    lines = ask("GET", "/metrics", raw=True)[1]
    assert 'castalia_reloads_total{model="people",outcome="failed"} 1' in lines


def test_metrics_count_requests_and_what_differs_from_the_training_rows(ask):
    rows = as_json(table(4)[0])
    rows[0]["city"], rows[1]["city"], rows[2]["age"] = "Roma", None, 4_000
    ask("POST", "/predict", rows)
    ask("POST", "/predict", b"{")
    status, lines = ask("GET", "/metrics", raw=True)
    assert status == 200
    for line in (
        'castalia_requests_total{route="/predict",status="200"} 1',
        'castalia_requests_total{route="/predict",status="422"} 1',
        'castalia_column_unseen_total{model="people",column="city"} 1',
        'castalia_column_missing_total{model="people",column="city"} 1',
        'castalia_column_far_total{model="people",column="age"} 1',
    ):
        assert line in lines


def test_limits_and_the_token_hold(folder):
    settings = ServeSettings(token="secret", most_bytes=500, most_rows=2)
    with running({"people": ServedModel("people", folder)}, settings) as ask:
        row, right = as_json(table(1)[0]), {"Authorization": "Bearer secret"}
        assert ask("GET", "/v2/health/live")[0] == 200
        assert ask("POST", "/predict", row)[0] == 401
        assert ask("POST", "/predict", row, {"Authorization": "Bearer secre"})[0] == 401
        assert ask("POST", "/predict", row, right)[0] == 200
        assert ask("POST", "/predict", row * 3, right)[0] == 422
        assert ask("POST", "/predict", row * 50, right)[0] == 413
        assert ask("POST", "/predict/nobody", row, right)[0] == 404


@pytest.mark.parametrize(
    "header, value, status",
    [
        ("host", "localhost:8000", 200),
        ("host", "rebound.example.org:8000", 421),
        ("host", "localhost.example.org", 421),
        ("origin", "http://127.0.0.1:5000", 200),
        ("origin", "https://example.org", 403),
        ("origin", "null", 403),
    ],
)
def test_without_a_token_only_this_machine_asks(folder, header, value, status):
    with running({"people": ServedModel("people", folder)}, ServeSettings(local=True)) as ask:
        assert ask("POST", "/predict", as_json(table(1)[0]), {header: value})[0] == status


def test_a_server_without_a_token_listens_to_this_machine_alone(monkeypatch):
    apps = []
    monkeypatch.setattr("uvicorn.run", lambda app, **words: apps.append(app))
    serve({}, ServeSettings(), "127.0.0.1", 1)
    serve({}, ServeSettings(token="secret"), "127.0.0.1", 1)
    assert [app.state.server.settings.local for app in apps] == [True, False]


def test_a_server_for_everybody_must_have_a_token():
    with pytest.raises(InvalidParameter, match="must have a token"):
        serve({}, ServeSettings(), "0.0.0.0", 1)


def test_a_version_that_wants_other_columns_is_refused(folder, model):
    served = ServedModel("people", folder)
    X, y = table()
    shutil.rmtree(folder)
    wider = castalia.MLPClassifier(hidden=(2,), epochs=1, random_state=0)
    castalia.save(wider.fit(X.assign(weight=np.arange(len(X)) % 9), y), folder)
    with pytest.raises(InvalidParameter, match="wants `weight` too"):
        served.reload()
    with pytest.raises(InvalidParameter, match="no version before"):
        served.rollback()


def test_a_length_that_is_no_number_is_one_sentence(ask):
    headers = {"Inference-Header-Content-Length": "many"}
    status, answer = ask("POST", "/v2/models/people/infer", {"inputs": []}, headers)
    assert status == 422
    assert "`inference-header-content-length` must be a number of bytes" in answer["error"]
