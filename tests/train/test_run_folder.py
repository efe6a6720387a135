"""One run folder: one process at a time, also after signals, deletion and on a read-only disk."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from contextlib import closing, contextmanager

import numpy as np
import pytest
from typer.testing import CliRunner

from castalia import Callback, MLPClassifier, Training
from castalia.cli import app
from castalia.errors import DamagedFile, TrainingWarning, WriteFailed
from castalia.train import RunStore, run_database
from castalia.train import runs as runs_module

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


def model(run, *callbacks, **settings):
    every = None if run is None else 1
    settings = {"watch": False, "checkpoint_every": every, **settings}
    training = Training(run=run, callbacks=list(callbacks), **settings)
    return MLPClassifier(hidden=(4,), epochs=3, random_state=0, training=training)


def weights(fitted):
    return {name: tensor.tolist() for name, tensor in fitted.module_.state_dict().items()}


def statuses(root):
    with RunStore(root) as store:
        return [run["status"] for run in store.runs()]


class Wait(Callback):
    """Waits inside the second epoch: says so, and goes on when allowed to."""

    def __init__(self, folder):
        self.folder = folder

    def on_epoch_start(self, state):
        if state.epoch == 1:
            (self.folder / "waiting").touch()
            while not (self.folder / "go").exists():
                time.sleep(0.005)


@contextmanager
def training_elsewhere(folder, run):
    """Fork a process that trains and waits in its second epoch."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            fitted = model(run, Wait(folder)).fit(X, Y)
            (folder / "weights").write_text(repr(weights(fitted)))
            code = 0
        finally:
            os._exit(code)
    while not (folder / "waiting").exists():
        time.sleep(0.005)
    try:
        yield child
    finally:
        (folder / "go").touch()
        os.waitpid(child, 0)


def test_a_second_process_is_refused_and_the_first_one_ends_undisturbed(tmp_path):
    run = tmp_path / "runs" / "shared"
    with training_elsewhere(tmp_path, run) as child:
        aside = run / "checkpoints" / ".step-00000004.safetensors.abcd0123"
        aside.write_text("being written by the first")
        with pytest.raises(WriteFailed, match=f"is in use by process {child} on"):
            model(run).fit(X, Y)
        assert aside.exists()
        assert statuses(run.parent) == ["running"]
        with RunStore(run.parent) as store, pytest.raises(WriteFailed, match="in use by process"):
            store.delete("shared")
    assert statuses(run.parent) == ["finished"]
    assert (tmp_path / "weights").read_text() == repr(weights(model(None).fit(X, Y)))
    assert weights(model(run).fit(X, Y)) == weights(model(None).fit(X, Y))
    assert statuses(run.parent) == ["finished"]
    assert not (run / ".lock").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_whose_process_is_dead_is_not_running_and_can_be_resumed(tmp_path, number):
    run = tmp_path / "runs" / "shared"
    with training_elsewhere(tmp_path, run) as child:
        # a first SIGTERM lets the step, which waits here, come to its end
        while os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            os.kill(child, number)
            time.sleep(0.02)
        assert statuses(run.parent) == ["interrupted"]
    assert weights(model(run).fit(X, Y)) == weights(model(None).fit(X, Y))
    assert statuses(run.parent) == ["finished"]


class Interrupt(Callback):
    """Ctrl-C in the second epoch, and once more while the run is being closed."""

    def __init__(self, run):
        self.run = run

    def on_epoch_start(self, state):
        if state.epoch == 1:
            raise KeyboardInterrupt

    def on_failure(self, state):
        os.kill(os.getpid(), signal.SIGINT)


def test_double_ctrl_c_leaves_the_run_interrupted(tmp_path, monkeypatch):
    finish = runs_module.Run.finish

    def third(self, status):
        os.kill(os.getpid(), signal.SIGINT)  # inside the closing itself
        finish(self, status)

    monkeypatch.setattr(runs_module.Run, "finish", third)
    with pytest.raises(KeyboardInterrupt):
        model(tmp_path / "runs" / "a", Interrupt(tmp_path)).fit(X, Y)
    with closing(sqlite3.connect(tmp_path / "runs" / "castalia.db")) as rows:
        assert rows.execute("SELECT status FROM runs").fetchall() == [("interrupted",)]
    monkeypatch.undo()
    again = model(tmp_path / "runs" / "a").fit(X, Y)
    assert weights(again) == weights(model(None).fit(X, Y))


class Fail(Callback):
    def on_fit_start(self, state):
        raise RuntimeError("a callback")

    on_failure = on_fit_start


def test_a_callback_that_fails_early_or_late_closes_the_run(tmp_path):
    with pytest.raises(RuntimeError, match="a callback"):
        model(tmp_path / "a", Fail()).fit(X, Y)
    assert statuses(tmp_path) == ["failed"]
    assert not (tmp_path / "a" / ".lock").exists()


class Delete(Callback):
    def __init__(self, root):
        self.root = root

    def on_epoch_start(self, state):
        if state.epoch == 1:
            shutil.rmtree(self.root)


@pytest.mark.parametrize("part", ["", "a"], ids=["root", "run"])
def test_a_training_whose_folder_is_deleted_goes_on_and_says_so_once(tmp_path, part):
    root = tmp_path / "runs"
    with pytest.warns(TrainingWarning, match="was deleted meanwhile") as caught:
        fitted = model(root / "a", Delete(root / part)).fit(X, Y)
    assert len(caught) == 1
    assert weights(fitted) == weights(model(None).fit(X, Y))
    assert not (root / "a").exists()


READ_ONLY = """
import sys
from castalia.cli import main
sys.argv = ["castalia", "runs", sys.argv[1]]
try:
    main()
finally:
    assert "torch" not in sys.modules  # a list is there at once
"""


def test_runs_on_a_read_only_mount_are_listed(tmp_path):
    """The database still has its journal, as after a kill: what is in it counts."""
    root = tmp_path / "runs"
    store = RunStore(root)
    for name in ("first", "second"):
        run = store.open_run(name, "1", {})
        run.log(1, 0, {"loss": 0.25})
        run.finish()
    shutil.copytree(root, tmp_path / "copy")
    store.close()
    assert (tmp_path / "copy" / "castalia.db-wal").stat().st_size
    mounted = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" -c "$3" "$1"'
    words = ["unshare", "-rm", "sh", "-c", mounted, "sh", str(tmp_path / "copy")]
    try:
        done = subprocess.run([*words, sys.executable, READ_ONLY], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("needs `unshare`")
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("mounting is not allowed here")
    assert done.returncode == 0, done.stderr
    assert "first" in done.stdout
    assert "second" in done.stdout
    assert "0.25" in done.stdout


def test_a_database_that_cannot_be_written_is_read_and_says_so_when_written(tmp_path, monkeypatch):
    with RunStore(tmp_path) as store:
        store.open_run("a", "1", {}).finish()

    def refused(connection):
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr(run_database, "_enter_wal", refused)
    monkeypatch.setattr(run_database.os, "access", lambda *_: False)
    with RunStore(tmp_path) as store:
        assert [run["name"] for run in store.runs()] == ["a"]
        with pytest.raises(WriteFailed, match="readonly"):
            store.open_run("b", "1", {})


# -- rows that a damaged disk or another program left ---------------------------------------------


@pytest.fixture
def damaged(tmp_path):
    """Return a function that changes the database of three runs behind the store's back."""
    with RunStore(tmp_path) as store:
        for name in ("a", "b", "c"):
            run = store.open_run(name, "1", {"seed": 1})
            run.log(1, 0, {"loss": 1.0})
            run.add_finding({"code": "CST1", "name": "x", "severity": "error"})
            run.finish()

    def change(statement, *values):
        with closing(sqlite3.connect(tmp_path / "castalia.db")) as connection:
            connection.execute("PRAGMA ignore_check_constraints=ON")
            connection.execute(statement, values)
            connection.commit()
        return tmp_path

    return change


@pytest.mark.parametrize(
    "column, value",
    [
        ("config", "{"),
        ("config", "[1]"),
        ("config", "[" * 100_000),
        ("config", b"\xff\xfe"),
        ("status", "sleeping"),
        ("status", 3),
        ("created", "yesterday"),
        ("updated", 1e300),
        ("updated", -1.0),
        ("name", "../../etc"),
        ("name", 7),
        ("name", b"b"),
    ],
)
def test_a_damaged_row_is_left_out_with_a_warning_and_the_others_stay(damaged, column, value):
    root = damaged(f"UPDATE runs SET {column} = ? WHERE name = 'b'", value)
    with RunStore(root) as store:
        if value == 7:  # SQLite keeps it as text: a plain name
            assert [run["name"] for run in store.runs()] == ["a", "7", "c"]
            return
        with pytest.warns(TrainingWarning, match="1 damaged row of .* left out"):
            assert [run["name"] for run in store.runs()] == ["a", "c"]


def test_text_that_is_not_utf8_is_damage(damaged):
    root = damaged("UPDATE runs SET config = CAST(x'fffe' AS TEXT) WHERE name = 'b'")
    with RunStore(root) as store, pytest.raises(DamagedFile, match="not a whole database"):
        store.runs()


def test_a_run_with_damaged_settings_is_named_when_opened(damaged):
    root = damaged("UPDATE runs SET config = '{' WHERE name = 'b'")
    with RunStore(root) as store:
        with pytest.raises(DamagedFile, match="settings of run `b`"):
            store.open_run("b", "1", {})
        store.delete("b")
        assert store.open_run("b", "1", {}).name == "b"


@pytest.mark.parametrize("config", ["{}", '{"seed": "x"}', '{"seed": null}'])
def test_a_training_without_its_seed_is_named(tmp_path, config):
    model(tmp_path / "a").fit(X, Y)
    with closing(sqlite3.connect(tmp_path / "castalia.db")) as connection:
        connection.execute("UPDATE runs SET config = ?", (config,))
        connection.commit()
    with pytest.raises(DamagedFile, match="whole number as its seed"):
        model(tmp_path / "a").fit(X, Y)


@pytest.mark.parametrize("column, value", [("value", "high"), ("value", b"1")])
def test_points_that_are_no_numbers_are_named(damaged, column, value):
    root = damaged(f"UPDATE metrics SET {column} = ?", value)
    with RunStore(root) as store, pytest.raises(DamagedFile, match="`loss` of `b`"):
        store.open_run("b", "1", {}).metric("loss")


def test_damaged_findings_are_left_out(damaged):
    root = damaged("UPDATE findings SET body = 'x' WHERE run = 2")
    with RunStore(root) as store:
        assert store.open_run("b", "1", {}).findings() == []
        assert len(store.open_run("a", "1", {}).findings()) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE runs",
        "DROP TABLE keys",
        "DROP TABLE metrics",
        "DROP TABLE findings",
        "DELETE FROM schema",
        "UPDATE schema SET version = 'one'",
        "ALTER TABLE runs RENAME COLUMN status TO state",
    ],
)
def test_missing_tables_and_columns_are_damage(damaged, statement):
    root = damaged(statement)
    with pytest.raises(DamagedFile, match="not a whole database"):
        RunStore(root)


def test_a_locked_database_is_reported_when_patience_ends(damaged, monkeypatch):
    root = damaged("UPDATE runs SET updated = 5")
    monkeypatch.setattr(run_database, "_PATIENCE", 0.05)
    with closing(sqlite3.connect(root / "castalia.db")) as other, warnings.catch_warnings():
        other.execute("BEGIN EXCLUSIVE")
        with RunStore(root) as store, pytest.raises(WriteFailed, match="locked"):
            store.open_run("d", "1", {})


@pytest.mark.filterwarnings("default::castalia.errors.TrainingWarning")
@pytest.mark.parametrize(
    "result",
    [
        "{",
        "[]",
        '{"summary": 3}',
        '{"summary": {"metric": 1, "contenders": [{"name": 2, "scores": {"1": "x"}}]}}',
        '{"summary": {"metric": "r2", "contenders": [{"name": "a", "scores": {"r2": "high"}}]}}',
        "[" * 100_000,
    ],
)
def test_runs_are_listed_whatever_their_files_and_points_hold(damaged, result):
    root = damaged("UPDATE metrics SET value = 'high' WHERE run = 1")
    damaged("UPDATE runs SET status = 'nonsense' WHERE name = 'c'")
    (root / "b" / "result.json").write_text(result)
    listed = CliRunner().invoke(app, ["runs", str(root)])
    assert listed.exit_code == 0, listed.output
    assert "1 damaged row" in listed.output
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:] if line][-2:] == ["a", "b"]
