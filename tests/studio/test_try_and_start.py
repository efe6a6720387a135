"""The form of a model, and fits that are started from the page."""

import os
import sys
import time

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

import castalia
from castalia.method.fit_result import FitResult
from castalia.method.report import RunReport
from castalia.studio import StudioSettings, make_studio
from castalia.studio.fit_start import FitStart
from castalia.train.runs import RunStore

HOST = "http://127.0.0.1:8765"


def people(rows=40):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.normal(40, 9, rows), "city": rng.choice(["Pisa", "Lucca"], rows)}
    )
    return frame, np.where(frame["age"] > 40, "old", "young")


@pytest.fixture(scope="module")
def model():
    X, y = people()
    return castalia.MLPClassifier(hidden=(4,), epochs=2, random_state=0).fit(X, y)


@pytest.fixture
def home(tmp_path):
    (tmp_path / "data").mkdir()
    X, y = people(60)
    X.assign(group=y).to_csv(tmp_path / "data" / "people.csv", index=False)
    (tmp_path / "data" / "notes.py").write_text("")
    return tmp_path


@pytest.fixture
def client(home):
    with RunStore(home / "runs") as store:
        store.open_run("people", "x", {}).finish("finished")
        app = make_studio(store, StudioSettings(token="t", home=home))
        with TestClient(app, base_url=HOST, headers={"origin": HOST}) as found:
            found.get("/", params={"token": "t"})
            yield found


def test_the_form_has_the_columns_of_the_model_and_answers_as_predict_does(client, home, model):
    castalia.save(model, home / "runs" / "people" / "model")
    schema = client.get("/api/schema?run=people").json()
    kinds = {each["name"]: (each["kind"], each["choices"]) for each in schema["fields"]}
    assert kinds == {"age": ("numeric", []), "city": ("categorical", ["Lucca", "Pisa"])}
    body = {"run": "people", "row": {"age": "55.5", "city": "Pisa"}}
    found = client.post("/api/predict", json=body).json()
    X = pd.DataFrame({"age": [55.5], "city": ["Pisa"]})
    assert found["prediction"] == model.predict(X)[0]
    wanted = dict(zip(model.classes_, model.predict_proba(X)[0], strict=True))
    assert dict(found["classes"]) == pytest.approx(wanted, abs=1e-6)
    assert found["classes"][0][0] == found["prediction"]
    missing = client.post("/api/predict", json={"run": "people", "row": {"age": ""}})
    assert missing.status_code == 200


def test_reasons_add_up_and_come_with_training_rows_like_it(client, home, model):
    folder, data = home / "runs" / "people", home / "data" / "people.csv"
    castalia.save(model, folder / "model")
    report = RunReport(
        title="people", target="group", task="classification", metric="accuracy", contenders=[]
    )
    summary = {"metric": "accuracy", "contenders": [], "recommended": "model"}
    FitResult(folder, report, summary | {"plan": {"data": str(data)}}).save()
    assert client.get("/api/schema?run=people").json()["reasons"] is True
    table = pd.read_csv(data)
    cells = {"age": str(table["age"][3]), "city": table["city"][3]}
    found = client.post("/api/why", json={"run": "people", "row": cells}).json()
    effects = sum(each["effect"] for each in found["columns"])
    assert effects == pytest.approx(found["output"] - found["background"], abs=1e-6)
    assert found["output"] == pytest.approx(model.predict_proba(table[["age", "city"]])[3].max())
    assert found["similar"]["columns"] == ["group", "age", "city"]
    assert found["similar"]["rows"][0][1] == pytest.approx(table["age"][3])
    assert found["similar"]["distances"] == sorted(found["similar"]["distances"])
    data.unlink()
    lost = client.post("/api/why", json={"run": "people", "row": cells})
    assert (lost.status_code, "no longer" in lost.json()["error"]) == (422, True)


def test_a_wrong_value_and_a_run_without_a_model_get_a_sentence(client, home, model):
    answer = client.get("/api/schema?run=people")
    assert answer.status_code == 422
    castalia.save(model, home / "runs" / "people" / "model")
    answer = client.post("/api/predict", json={"run": "people", "row": {"age": "forty"}})
    assert answer.json()["error"] == "studio: `age` must be a number; got 'forty'."


def test_files_are_listed_and_profiled_below_the_home_only(client, home):
    found = client.get("/api/files").json()
    assert found["folders"] == ["data", "runs"]
    assert client.get("/api/files?folder=data").json()["files"] == ["people.csv"]
    profile = client.get("/api/profile?path=data/people.csv").json()
    assert [each["name"] for each in profile["columns"]] == ["age", "city", "group"]
    assert profile["rows"] == 60
    (home / "out").symlink_to("/etc")
    for path in ("..", "/etc", "out", "data/../../", "nowhere.csv"):
        assert client.get("/api/profile", params={"path": path}).status_code == 422
        assert client.post("/api/start", json={"path": path}).status_code == 422


@pytest.mark.parametrize("more", [{"seeds": "-1"}, {"time_limit": "x; rm"}, {"seeds": "--help"}])
def test_options_that_are_no_numbers_start_nothing(client, home, more):
    answer = client.post("/api/start", json={"path": "data/people.csv", "target": "group", **more})
    assert answer.status_code == 422
    assert not (home / "runs" / ".studio").exists()


def test_a_fit_is_a_process_of_its_own_and_says_how_it_ends(client, home, monkeypatch):
    python = home / "python"  # says what it was asked for, and fails
    python.write_text('#!/bin/sh\necho "$*" in $PWD\necho no >&2\nexit 2\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    body = {"path": "data/people.csv", "target": "grup"}
    started = client.post("/api/start", json=body).json()
    assert os.getsid(started["pid"]) == started["pid"]  # closing the studio does not end it
    state, deadline = {"code": None}, time.monotonic() + 240
    while state["code"] is None and time.monotonic() < deadline:
        time.sleep(0.1)
        state = client.get("/api/started", params={"number": started["number"]}).json()
    words = FitStart(home, home / "runs").command(body)
    assert state == {"code": 2, "said": f"-m castalia {' '.join(words)} in {home}\nno\n"}
    assert client.get("/api/started?number=7").status_code == 422


def test_the_command_is_what_one_would_type(home):
    words = FitStart(home, home / "runs").command(
        {"path": "data/people.csv", "target": "--help", "seeds": "2", "doctor": True}
    )
    run = f"--run={home / 'runs' / 'people-help'}"
    data = str(home / "data" / "people.csv")
    assert words == ["fit", data, run, "--target=--help", "--seeds=2", "--doctor"]
