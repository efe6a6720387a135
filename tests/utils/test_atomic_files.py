"""Files are whole or not there."""

import hashlib
import os
import signal
import time

import pytest

from castalia.utils import atomic_files as files
from castalia.utils.atomic_files import atomic_folder, atomic_write, digest, sync_folder
from castalia.utils.file_locks import held


class Halted(BaseException):
    """Stands for a killed process: no `except Exception` catches it."""


def halt(*_):
    raise Halted


def test_the_digest_is_the_sha256_of_the_bytes(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"castalia" * 10_000)
    assert digest(file) == hashlib.sha256(b"castalia" * 10_000).hexdigest()


@pytest.mark.parametrize("data, raw", [("é", "é".encode()), (b"\x00\xff", b"\x00\xff"), ("", b"")])
def test_text_and_bytes_are_written_and_the_path_returned(tmp_path, data, raw):
    path = atomic_write(str(tmp_path / "a.txt"), data)
    assert path == tmp_path / "a.txt"
    assert path.read_bytes() == raw


def test_writing_replaces_the_old_file_and_leaves_nothing_else(tmp_path):
    atomic_write(tmp_path / "a", "old")
    atomic_write(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_while_writing_leaves_the_old_file(tmp_path, monkeypatch, step):
    atomic_write(tmp_path / "a", "old")
    monkeypatch.setattr(files.os, step, halt)
    with pytest.raises(Halted):
        atomic_write(tmp_path / "a", "new")
    monkeypatch.undo()
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_the_new_file_is_on_disk_before_it_takes_the_name(tmp_path, monkeypatch):
    events, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(files.os, "fsync", lambda handle: events.append("fsync") or fsync(handle))
    monkeypatch.setattr(files.os, "replace", lambda a, b: events.append("replace") or replace(a, b))
    atomic_write(tmp_path / "a", "new")
    assert events == ["fsync", "replace", "fsync"]  # the file, the name, the folder


def test_a_folder_that_is_not_there_is_not_made_for_a_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        atomic_write(tmp_path / "missing" / "a", "x")


def test_syncing_what_cannot_be_opened_is_quiet(tmp_path):
    sync_folder(tmp_path)
    sync_folder(tmp_path / "missing")


def filled(folder, word):
    (folder / "inner").mkdir()
    (folder / "inner" / "a").write_text(word)


def words(folder):
    return {
        p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*") if p.is_file()
    }


def test_a_folder_appears_whole(tmp_path):
    target = tmp_path / "runs" / "model"
    with atomic_folder(target) as aside:
        filled(aside, "new")
        assert not target.exists()
    assert words(target) == {"inner/a": "new"}
    assert os.listdir(target.parent) == ["model"]


def test_a_folder_is_replaced_not_merged(tmp_path):
    target = tmp_path / "model"
    with atomic_folder(target) as aside:
        (aside / "old").write_text("old")
    with atomic_folder(target) as aside:
        filled(aside, "new")
        assert words(target) == {"old": "old"}
    assert words(target) == {"inner/a": "new"}
    assert os.listdir(tmp_path) == ["model"]


def test_a_failure_while_filling_leaves_the_old_folder(tmp_path):
    target = tmp_path / "model"
    with atomic_folder(target) as aside:
        filled(aside, "old")
    with pytest.raises(Halted):  # noqa: PT012, SIM117 - the scope is what fails
        with atomic_folder(target) as aside:
            filled(aside, "half")
            halt()
    assert words(target) == {"inner/a": "old"}
    assert os.listdir(tmp_path) == ["model"]


def test_a_failure_while_swapping_puts_the_old_folder_back(tmp_path, monkeypatch):
    target, replace = tmp_path / "model", os.replace
    monkeypatch.setattr(files, "_exchanged", lambda *_: False)  # as where no system call does it
    with atomic_folder(target) as aside:
        filled(aside, "old")
    calls = []

    def second_fails(source, destination):
        calls.append(source)
        if len(calls) == 2:
            raise OSError("disk gone")
        replace(source, destination)

    monkeypatch.setattr(files.os, "replace", second_fails)
    with pytest.raises(OSError, match="disk gone"), atomic_folder(target) as aside:
        filled(aside, "new")
    monkeypatch.undo()
    assert words(target) == {"inner/a": "old"}
    assert os.listdir(tmp_path) == ["model"]


def test_without_exchange_a_folder_is_replaced_in_two_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_exchanged", lambda *_: False)
    target = tmp_path / "model"
    for word in ("old", "new"):
        with atomic_folder(target) as aside:
            filled(aside, word)
    assert words(target) == {"inner/a": "new"}
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("call", ["replace", "fsync", "rename", "unlink", "rmdir"])
def test_a_writer_killed_anywhere_leaves_one_whole_folder(tmp_path, call):
    target = tmp_path / "model"
    with atomic_folder(target) as aside:
        filled(aside, "old")
    child = os.fork()
    if child == 0:
        setattr(files.os, call, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
        with atomic_folder(target) as aside:
            filled(aside, "new")
        os._exit(0)
    os.waitpid(child, 0)
    assert words(target) in ({"inner/a": "old"}, {"inner/a": "new"})


def leftovers(folder, age):
    """Leave behind what killed writers leave: folders and a file, all of them some time ago."""
    made = [folder / f".model.abcd012{n}" for n in range(2)]
    for path in made:
        path.mkdir()
        (path / "weights").write_text("half")
    made.append(folder / ".model.abcd_ef9")
    made[-1].write_text("half")
    made.append(folder / ".model.abcd0123.old")
    made[-1].mkdir()
    for path in made:
        os.utime(path, (time.time() - age,) * 2)
    return made


def save_folder(target):
    with atomic_folder(target) as aside:
        filled(aside, "new")


def save_file(target):
    atomic_write(target, "new")


@pytest.mark.parametrize("save", [save_folder, save_file])
def test_leftovers_of_killed_writers_are_swept_by_the_next_one(tmp_path, save):
    save(tmp_path / "model")
    leftovers(tmp_path, 3700)
    others = [".model.backup", ".model.abcd012", "other", ".other.abcd0123"]
    for name in others:
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    save(tmp_path / "model")
    assert sorted(os.listdir(tmp_path)) == sorted(["model", *others])


def test_what_is_young_or_held_is_no_leftover(tmp_path):
    save_folder(tmp_path / "model")
    young = leftovers(tmp_path, 60)
    save_folder(tmp_path / "model")
    assert all(path.exists() for path in young)
    os.utime(young[0], (0, 0))
    with held(young[0]):
        save_folder(tmp_path / "model")
        assert young[0].exists()
    save_folder(tmp_path / "model")
    assert not young[0].exists()


def test_the_only_copy_is_no_leftover(tmp_path):
    """Where folders cannot be exchanged, a kill between two renames leaves the old one aside."""
    *_, old = leftovers(tmp_path, 3700)
    with pytest.raises(Halted), atomic_folder(tmp_path / "model"):
        halt()
    assert os.listdir(tmp_path) == [old.name]
