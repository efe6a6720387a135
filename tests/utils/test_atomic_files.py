"""Files are whole or not there."""

import hashlib
import os

import pytest

from castalia.utils import atomic_files as files
from castalia.utils.atomic_files import atomic_folder, atomic_write, digest, sync_folder


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
