import json
import math
import multiprocessing
import os
import sqlite3
import threading
import time

import pytest

from castalia.errors import CheckpointMismatch, DamagedFile, InvalidParameter, WriteFailed
from castalia.train.runs import RunStore


@pytest.fixture
def store(tmp_path):
    with RunStore(tmp_path / "runs") as made:
        yield made


def test_a_new_run_has_a_folder_and_a_config_and_is_running_once_taken(store):
    run = store.open_run("titanic", "abc", {"lr": 0.1, "hidden": (3, 4)})
    assert run.folder == store.root / "titanic"
    assert run.status == "interrupted"
    run.resume()
    assert run.status == "running"
    assert json.loads((run.folder / "config.json").read_text()) == run.config
    assert run.config == {"lr": 0.1, "hidden": [3, 4]}


def test_the_same_name_and_fingerprint_give_the_same_run(store):
    store.open_run("a", "1", {"lr": 1}).finish("finished")
    again = store.open_run("a", "1", {"lr": 2})
    assert (again.name, again.status, again.config) == ("a", "finished", {"lr": 1})
    again.resume()
    assert again.status == "running"


def test_another_fingerprint_gets_the_next_number_and_finds_it_again(store):
    names = [store.open_run("a", print_, {}).name for print_ in ("1", "2", "3", "2", "1", "3")]
    assert names == ["a", "a-2", "a-3", "a-2", "a", "a-3"]


def test_a_folder_that_is_not_a_run_is_left_alone(store):
    (store.root / "a").mkdir()
    (store.root / "a" / "thesis.txt").write_text("mine")
    (store.root / "b").mkdir()
    assert store.open_run("a", "1", {}).name == "a-2"
    assert store.open_run("b", "1", {}).name == "b"
    assert os.listdir(store.root / "a") == ["thesis.txt"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", ".hidden", "castalia.db", " a", "a\n"]
)
def test_names_that_leave_the_root_are_refused(store, name):
    with pytest.raises(InvalidParameter, match="`name` must be a plain folder name"):
        store.open_run(name, "1", {})


def test_points_are_read_back_in_order_and_per_key(store):
    run = store.open_run("a", "1", {})
    other = store.open_run("b", "1", {})
    for step in (3, 1, 2):
        run.log(step, 0, {"loss": step / 10, "score": 1})
    other.log(9, 0, {"loss": 9.0})
    assert run.metric("loss") == ([1, 2, 3], [0.1, 0.2, 0.3])
    assert run.metric("nothing") == ([], [])
    assert run.keys() == ["loss", "score"]


def test_nan_and_infinity_are_kept(store):
    run = store.open_run("a", "1", {})
    run.log(1, 0, {"x": math.nan})
    run.log(2, 0, {"x": math.inf})
    steps, values = run.metric("x")
    assert steps == [1, 2]
    assert math.isnan(values[0])
    assert values[1] == math.inf


def test_logging_a_step_again_replaces_its_points(store):
    run = store.open_run("a", "1", {})
    for value in (1.0, 2.0):
        run.log(1, 0, {"x": value})
        run.flush()
    assert run.metric("x") == ([1], [2.0])


def test_truncate_drops_later_points_written_or_held_back(store):
    run = store.open_run("a", "1", {})
    other = store.open_run("b", "1", {})
    for step in range(6):
        run.log(step, 0, {"x": step, "y": step})
        other.log(step, 0, {"x": step})
        if step == 3:
            run.flush()
    run.truncate(2)
    assert run.metric("x")[0] == run.metric("y")[0] == [0, 1, 2]
    assert len(other.metric("x")[0]) == 6


def test_points_survive_closing_and_are_seen_by_others(tmp_path):
    with RunStore(tmp_path) as first, RunStore(tmp_path) as second:
        run = first.open_run("a", "1", {})
        run.log(1, 0, {"x": 1.0})
        run.flush()
        assert second.open_run("a", "1", {}).metric("x") == ([1], [1.0])
    with RunStore(tmp_path) as third:
        assert third.open_run("a", "1", {}).metric("x") == ([1], [1.0])


def test_many_points_are_written_unasked(store):
    run = store.open_run("a", "1", {})
    for step in range(2000):
        run.log(step, 0, {"x": 0.0})
    with RunStore(store.root) as onlooker:
        assert len(onlooker.open_run("a", "1", {}).metric("x")[0]) >= 1024


def test_findings_come_back_in_order_and_once(store):
    run = store.open_run("a", "1", {})
    finding = {
        "code": "CST103",
        "name": "vanishing-gradient",
        "severity": "error",
        "evidence": {"n": 1e-9},
    }
    run.add_finding(finding)
    run.add_finding(finding | {"code": "CST104"})
    run.add_finding(finding)
    assert run.findings() == [finding, finding | {"code": "CST104"}]
    with pytest.raises(InvalidParameter, match="must have `name` and `severity`"):
        run.add_finding({"code": "CST1"})


def test_finish_writes_what_was_held_back_and_checks_the_status(store):
    run = store.open_run("a", "1", {})
    run.log(1, 0, {"x": 1.0})
    run.finish("failed")
    assert store.runs("a")[0]["status"] == "failed"
    with pytest.raises(InvalidParameter, match="`status` must be `running`, `finished`"):
        run.finish("done")


def test_runs_lists_oldest_first_and_by_name(store):
    for name in ("b", "a"):
        store.open_run(name, "1", {"n": name})
    assert [run["name"] for run in store.runs()] == ["b", "a"]
    (only,) = store.runs("a")
    assert only["config"] == {"n": "a"}
    assert only["folder"] == store.root / "a"
    assert store.runs("c") == []


def test_delete_removes_rows_and_folder_of_that_run_only(store):
    run, other = store.open_run("titanic", "1", {}), store.open_run("b", "1", {})
    for one in (run, other):
        one.log(1, 0, {"x": 1.0})
        one.flush()
    store.delete("titanic")
    assert not run.folder.exists()
    assert run.status == "deleted"
    assert run.metric("x") == ([], [])
    assert other.metric("x") == ([1], [1.0])
    with pytest.raises(InvalidParameter, match="got 'titanik'"):
        store.delete("titanik")


def test_a_newer_schema_asks_for_an_upgrade(tmp_path):
    RunStore(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "castalia.db")
    connection.execute("UPDATE schema SET version = 7")
    connection.commit()
    connection.close()
    with pytest.raises(
        CheckpointMismatch, match=r"schema 7; this Castalia knows up to 1\. Upgrade"
    ):
        RunStore(tmp_path)


def test_a_file_that_is_no_database_is_named(tmp_path):
    (tmp_path / "castalia.db").write_bytes(b"not a database, but long enough to look at" * 50)
    with pytest.raises(DamagedFile, match=r"castalia\.db` is not a whole database"):
        RunStore(tmp_path)


def test_a_root_that_is_a_file_is_named(tmp_path):
    (tmp_path / "runs").write_text("x")
    with pytest.raises(WriteFailed, match="could not be written"):
        RunStore(tmp_path / "runs")


def test_a_full_disk_keeps_the_points_for_the_next_flush(store):
    run = store.open_run("a", "1", {})
    run.log(0, 0, {"x": 0.0})
    run.flush()
    connection = store.database.connection()
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages}")
    for step in range(1000):
        run.log(step, 0, {"x": 1.0})
    with pytest.raises(WriteFailed, match="full"):
        run.flush()
    connection.execute("PRAGMA max_page_count=100000")
    assert len(run.metric("x")[0]) == 1000


def _work(root, number):
    with RunStore(root) as store:
        run = store.open_run("shared", str(number % 2), {})
        for step in range(20):
            run.log(step, 0, {f"x{number}": step})
            run.flush()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_several_processes_write_at_once(tmp_path, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("not on this system")
    context = multiprocessing.get_context(method)
    count = 3 if method == "fork" else 2  # each that is spawned imports torch again
    workers = [context.Process(target=_work, args=(tmp_path, n)) for n in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * count
    with RunStore(tmp_path) as store:
        assert sorted(run["name"] for run in store.runs()) == ["shared", "shared-2"]
        assert sum(len(store.open_run("shared", f, {}).keys()) for f in "01") == count


def test_threads_have_their_own_connections(store):
    run = store.open_run("a", "1", {})
    seen = []

    def work():
        own = store.open_run("a", "1", {})
        own.log(1, 0, {"x": 1.0})
        seen.append(own.metric("x"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [([1], [1.0])] == [run.metric("x")]
    store.close()
    assert store.database._connections == {}


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_does_not_use_its_parents_connection(store):
    run = store.open_run("a", "1", {})
    child = multiprocessing.get_context("fork").Process(target=lambda: run.finish("interrupted"))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert run.status == "interrupted"


def test_an_epoch_is_logged_in_well_under_a_millisecond(store):
    run = store.open_run("a", "1", {})
    times = []
    for epoch in range(100):
        start = time.perf_counter()
        run.log(epoch, epoch, {f"metric {n}": 0.1 * n for n in range(12)})
        run.flush()
        times.append(time.perf_counter() - start)
    assert sorted(times)[50] < 1e-3
