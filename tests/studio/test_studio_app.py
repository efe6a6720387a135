"""The studio over HTTP: who may use it, what it answers, and what it never lets through."""

import asyncio
import json
import re
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import castalia.studio
from castalia.diagnose import Diagnosis, Evidence, finding
from castalia.diagnose.finding_record import Remedy
from castalia.method import FitResult
from castalia.method.report import RunReport
from castalia.studio import StudioSettings, make_studio
from castalia.studio.live_changes import change_events
from castalia.studio.process_resources import gpu_memory
from castalia.studio.run_index import RunIndex
from castalia.studio.studio_app import PAGES
from castalia.train.runs import RunStore

HOST = "http://127.0.0.1:8765"
TOKEN = "a-token-of-the-test"
EVIL = "<script>alert('x')<&script>"


@pytest.fixture
def store(tmp_path):
    with RunStore(tmp_path / "runs") as found:
        yield found


def trained(store, name, lr=0.1, last=1.0, status="finished"):
    run = store.open_run(name, name, {"estimator": "MLPClassifier", "parameters": {"lr": lr}})
    run.resume()
    for epoch in range(3):
        run.log(10 * epoch, epoch, {"val_loss": last + 2 - epoch, "seconds": 2.0})
    run.finish(status)
    return run


@pytest.fixture
def app(store):
    return make_studio(store, StudioSettings(token=TOKEN, beat=0.01))


@pytest.fixture
def client(app):
    with TestClient(app, base_url=HOST, headers={"origin": HOST}) as found:
        found.get("/", params={"token": TOKEN})
        yield found


# ---- who may use it ----


def test_the_token_becomes_a_cookie_and_leaves_the_address(app):
    client = TestClient(app, base_url=HOST)
    assert client.get("/").status_code == client.get("/api/runs").status_code == 401
    answer = client.get("/run", params={"run": "a b", "token": TOKEN}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/run?run=a+b")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.get("/api/runs").status_code == 200


def test_two_studios_on_two_ports_do_not_close_each_other(app):
    client = TestClient(app, base_url=HOST)
    client.get("/", params={"token": TOKEN})
    other = "castalia-studio-9000=another; castalia-studio=third"
    cookies = f"{other}; castalia-studio-8765={TOKEN}"
    assert client.get("/api/runs", headers={"cookie": cookies}).status_code == 200
    assert client.get("/api/runs", headers={"cookie": other}).status_code == 401


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "ü"])
def test_a_wrong_token_opens_nothing(app, token):
    client = TestClient(app, base_url=HOST)
    assert client.get("/", params={"token": token}).status_code == 401
    assert (
        client.get("/api/runs", headers={"cookie": f"castalia-studio-8765={TOKEN}x"}).status_code
        == 401
    )


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example:80", ""]
)
def test_a_foreign_name_of_this_machine_is_refused(client, host):
    assert client.get("/api/runs", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999"])
def test_a_foreign_page_can_neither_read_nor_change(client, store, origin):
    trained(store, "one")
    body = {"run": "one", "tags": ["x"]}
    assert client.post("/api/mark", json=body, headers={"origin": origin}).status_code == 403
    assert client.get("/api/runs", headers={"origin": origin}).status_code == 403
    assert client.get("/api/runs", headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_a_change_without_an_origin_is_refused(app):
    client = TestClient(app, base_url=HOST, cookies={"castalia-studio-8765": TOKEN})
    assert client.post("/api/mark", json={"run": "one"}).status_code == 403


def test_a_redirect_stays_on_this_site(app):
    client = TestClient(app, base_url=HOST)
    answer = client.get("//evil.example/", params={"token": TOKEN}, follow_redirects=False)
    assert not answer.headers["location"].startswith("//")


def test_pages_run_no_script_of_others_and_carry_no_names(client, store):
    trained(store, EVIL)
    for path in ("/", "/run?run=" + EVIL, "/compare"):
        answer = client.get(path)
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert "alert" not in answer.text
        assert "<script>" not in answer.text
    assert client.get("/api/runs").headers["content-type"] == "application/json"


def test_the_report_is_shown_without_any_power(client, store):
    folder = trained(store, "one").folder
    assert client.get("/report?run=one").status_code == 404
    (folder / "report.html").write_text("<script>alert(1)</script>")
    policy = client.get("/report?run=one").headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'")
    assert "script-src" not in policy


@pytest.mark.parametrize("path", ["/static/../studio_app.py", "/static/%2e%2e/studio_app.py"])
def test_files_beside_the_static_ones_are_not_given(client, path):
    assert client.get(path).status_code == 404


# ---- what it answers ----


def test_runs_are_searched_sorted_and_paged(client, store):
    for i in range(7):
        trained(
            store, f"run-{i}", lr=i / 10, last=float(i), status="failed" if i == 3 else "finished"
        )

    def names(**asked):
        return [r["name"] for r in client.get("/api/runs", params=asked).json()["rows"]]

    assert names(sort="name", down="0", limit=3, offset=2) == ["run-2", "run-3", "run-4"]
    assert names(sort="score", down="1", limit=2) == ["run-0", "run-1"]  # a loss: the lowest first
    assert names(search='"lr": 0.5') == names(search="RUN-5") == ["run-5"]
    assert names(status="failed") == ["run-3"]
    client.post("/api/mark", json={"run": "run-4", "tags": [" best ", "best"], "note": "zebra"})
    assert names(search="#best") == names(search="zebra") == ["run-4"]
    client.post("/api/mark", json={"run": "run-4", "archived": True})
    assert "run-4" not in names()
    assert names(archived="1") == ["run-4"]
    assert client.get("/api/runs").json()["total"] == 6


def test_marks_survive_the_studio(client, store):
    trained(store, "one")
    client.post("/api/mark", json={"run": "one", "tags": ["a"], "note": "n"})
    row = RunIndex(store).find("one")
    assert (row.marks.tags, row.marks.note) == (("a",), "n")


@pytest.mark.parametrize(
    "body, said",
    [
        ({"run": "none"}, "there is no run 'none'"),
        ({"run": "one", "tags": ["x" * 41]}, "at most 20 tags"),
        ({"run": "one", "note": "x" * 10_001}, "10,000 characters"),
    ],
)
def test_marks_that_do_not_fit_are_refused_in_a_sentence(client, store, body, said):
    trained(store, "one")
    answer = client.post("/api/mark", json=body)
    assert answer.status_code == 422
    assert said in answer.json()["error"]


def test_a_body_too_large_or_no_json_is_refused(client):
    assert client.post("/api/mark", content=b"x" * 1_000_001).status_code == 413
    assert client.post("/api/mark", content=b"[1").status_code == 422
    assert client.get("/api/runs?sort=size").status_code == 422
    assert client.get("/api/runs?limit=-1").status_code == 422


def test_one_run_has_settings_findings_and_the_line_that_cures_it(client, store):
    run = trained(store, "sick", lr=3.0)
    remedy = Remedy("lr=3.0 → 0.05", {"lr": 0.05})
    ratio = Evidence("update-to-weight ratio", 0.31, 0.1)
    found = finding("CST101", "error", 0.9, "The loss grows.", remedy, ratio, step=20)
    curves = {"gradient_norm": [("fc1", 1.0), ("fc2", float("inf"))]}
    (run.folder / "diagnosis.json").write_text(Diagnosis((found,), curves=curves).to_json())
    over = {"activation_std/fc1": {"step": [0, 5], "value": [1.0, None]}}
    (run.folder / "layers.json").write_text(json.dumps(over))
    seen = client.get("/api/run", params={"run": "sick"}).json()
    assert seen["settings"]["parameters.lr"] == 3.0
    assert seen["worst"] == "error"
    (shown,) = seen["doctor"]["findings"]
    assert shown["step"] == 20
    assert shown["evidence"][0]["text"].endswith("0.31 (above 0.1)")
    assert shown["code_line"] == "MLPClassifier(…).set_params(lr=0.05)"
    assert seen["doctor"]["layers"]["gradient_norm"] == [["fc1", 1.0], ["fc2", None]]
    assert seen["doctor"]["curves"] == over
    assert seen["trainings"][0]["keys"] == ["seconds", "val_loss"]


def test_a_remedy_of_a_fit_is_its_command_with_the_setting(client, store):
    run = store.open_run("fit", "f", {"command": "castalia fit a.csv --target y"})
    run.finish("finished")
    found = finding("CST101", "error", 0.9, "It grows.", Remedy("…", {"hidden": (8, 8)}))
    (run.folder / "diagnosis.json").write_text(Diagnosis((found,)).to_json())
    (shown,) = client.get("/api/run", params={"run": "fit"}).json()["doctor"]["findings"]
    assert shown["code_line"] == "castalia fit a.csv --target y --set hidden=8,8"


def test_a_curve_has_steps_epochs_and_seconds(client, store):
    trained(store, "one")
    asked = {"run": "one", "key": "val_loss"}
    curve = client.get("/api/curve", params=asked).json()
    assert (curve["step"], curve["epoch"], curve["mean"]) == ([0, 10, 20], [0, 1, 2], [3, 2, 1])
    assert curve["time"][1:] == [4.0, 6.0]
    assert curve["low"] is None
    part = client.get("/api/curve", params={**asked, "first": "5", "last": "15"}).json()
    assert part["step"] == [10]


def test_the_trainings_inside_a_run_have_their_curves(client, store):
    outer = store.open_run("fit", "f", {})
    with RunStore(outer.folder) as inner:
        trained(inner, "training")
    outer.finish("finished")
    parts = client.get("/api/run", params={"run": "fit"}).json()["trainings"]
    assert [part["part"] for part in parts] == ["", "training"]
    asked = {"run": "fit", "part": "training", "key": "val_loss"}
    assert client.get("/api/curve", params=asked).json()["mean"] == [3, 2, 1]
    assert client.get("/api/curve", params={**asked, "part": "none"}).json()["step"] == []


def test_a_run_whose_process_died_is_interrupted_and_a_living_one_is_named(client, store):
    dead = store.open_run("dead", "d", {})
    alive = store.open_run("alive", "a", {})
    alive.resume()
    seen = {r["name"]: r["status"] for r in client.get("/api/runs").json()["rows"]}
    assert seen == {"dead": "interrupted", "alive": "running"}
    process = client.get("/api/run", params={"run": "alive"}).json()["process"]
    assert process["pid"] > 0
    assert process["memory"] > 1_000_000
    assert "gpu" not in process
    alive.finish("finished")
    dead.finish("finished")
    assert client.get("/api/run", params={"run": "alive"}).json()["process"] is None


def test_memory_on_gpus_is_what_nvidia_s_tool_says_of_the_process(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '7, 300'\necho '70, 50'\necho '7, 20'\necho '8, [N/A]'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [gpu_memory(pid) for pid in (7, 70, 8, 9)] == [320 << 20, 50 << 20, 0, 0]
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert gpu_memory(7) == 0


def test_a_run_says_how_often_its_confidence_is_right(client, store):
    run = store.open_run("sure", "s", {})
    run.finish("finished")
    sure = np.array([[0.9, 0.1]] * 10)
    report = RunReport(
        "sure", "classification", "y", y_true=["a"] * 6 + ["b"] * 4, y_pred=["a"] * 10,
        probability=sure, classes=["a", "b"],
    )  # fmt: skip
    FitResult(run.folder, report, {}).save()
    found = client.get("/api/run?run=sure").json()["calibration"]
    assert (found["accuracy"], found["rows"]) == ([0.6], [10])
    assert found["confidence"] == [pytest.approx(0.9)]
    assert found["error"] == pytest.approx(0.3)


# ---- comparison ----


def reported(store, name, answers, truth, lr=0.1):
    run = store.open_run(name, name, {"lr": lr, "command": name})
    run.finish("finished")
    accuracy = float(np.mean(np.array(answers) == truth))
    contender = {"name": "Net", "role": "model", "scores": {"accuracy": accuracy}}
    report = RunReport(
        name, "classification", "y", metric="accuracy", recommended="Net",
        contenders=[contender], y_true=list(truth), y_pred=list(answers),
    )  # fmt: skip
    summary = {"metric": "accuracy", "contenders": [contender], "models": {"model": "Net"}}
    FitResult(run.folder, report, summary | {"recommended": "model"}).save()


def test_a_difference_is_called_sure_only_beyond_chance(client, store):
    truth = [0, 1] * 100
    reported(store, "base", [0, 1] * 80 + [1, 0] * 20, truth)
    reported(store, "same", [0, 1] * 79 + [1, 0] * 21, truth)
    reported(store, "better", [0, 1] * 99 + [1, 0], truth, lr=0.2)
    asked = [("run", name) for name in ("base", "same", "better")]
    found = client.get("/api/compare", params=asked).json()
    same, better = found["differences"]
    assert not same["sure"]
    assert same["value"] == pytest.approx(-0.01)
    assert better["sure"]
    assert better["better"]
    assert better["value"] == pytest.approx(0.19)
    assert better["interval"][0] > 0.1
    assert "paired" in better["words"]
    assert found["settings"] == [{"name": "lr", "values": [0.1, 0.1, 0.2]}]
    assert found["runs"][2]["score"]["value"] == 0.99


def test_runs_without_scores_are_compared_by_settings_alone(client, store):
    trained(store, "a", lr=0.1)
    trained(store, "b", lr=0.2)
    found = client.get("/api/compare?run=a&run=b").json()
    assert found["differences"][0]["words"] == "no test scores"
    assert found["settings"] == [{"name": "parameters.lr", "values": [0.1, 0.2]}]


# ---- live ----


def test_changes_arrive_as_events(store):
    index = RunIndex(store)
    run = trained(store, "one")

    async def read():
        async def left():
            return False

        events = change_events(index, 0.01, left)
        assert "retry" in await anext(events)
        run.log(99, 9, {"val_loss": 0.5})
        run.flush()
        trained(store, "two")
        seen = set()
        while seen != {"one", "two"}:
            event = await anext(events)
            if event.startswith("event: runs"):
                seen |= set(json.loads(event.split("data: ")[1]))
        await events.aclose()

    asyncio.run(asyncio.wait_for(read(), 20))


def test_a_damaged_row_and_damaged_files_do_not_hide_the_others(client, store):
    trained(store, "one")
    broken = trained(store, "two")
    for name in ("result.json", "diagnosis.json", "marks.json"):
        (broken.folder / name).write_text("{")
    with store.database.writing() as connection:
        connection.execute("UPDATE runs SET config = '{' WHERE name = 'one'")
    assert [r["name"] for r in client.get("/api/runs").json()["rows"]] == ["two"]
    assert client.get("/api/run", params={"run": "two"}).json()["doctor"] is None


# ---- what pages are made of ----

STATIC = Path(castalia.studio.__file__).parent / "static"
OWN = [path for path in STATIC.glob("*.*") if path.suffix in (".js", ".css", ".html")]


def test_pages_find_their_files_and_ask_no_other_machine(client):
    named = set()
    for path in OWN:
        text = path.read_text()
        assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []
        named |= {f"/static/{name}" for name in re.findall(r'from "\./([\w.]+)"', text)}
        named |= set(re.findall(r'(?:href|src)="(/static/[\w./]+)"', text))
    named |= {f"/static/{page}_page.js" for page in PAGES.values()}
    assert len(named) > 15
    assert {name: client.get(name).status_code for name in named} == dict.fromkeys(named, 200)
    assert (STATIC / "vendor" / "uplot" / "LICENSE").is_file()
    for page in PAGES:
        assert client.get(page).status_code == 200
