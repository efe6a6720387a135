"""Locks between processes: one owner, gone with its process."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from castalia.errors import WriteFailed
from castalia.utils import file_locks
from castalia.utils.file_locks import FolderLock, held, is_held

OWNER = """
import sys, time
from castalia.utils.file_locks import FolderLock
lock = FolderLock(sys.argv[1])
lock.acquire("Owner")
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def other(tmp_path):
    """A process that holds the lock of the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_process_is_refused_by_a_sentence_with_host_and_process(tmp_path, other):
    lock = FolderLock(tmp_path)
    with pytest.raises(WriteFailed) as refused:
        lock.acquire("Training")
    words = str(refused.value)
    assert words.startswith(f"Training: `{tmp_path}` is in use by process {other.pid} on ")
    assert socket.gethostname() in words
    assert lock.held
    assert not lock.mine


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path, other):
    other.send_signal(signal.SIGKILL)
    other.wait()
    lock = FolderLock(tmp_path)
    assert lock.path.exists()
    assert not lock.held
    lock.acquire("Training")
    assert json.loads(lock.path.read_text())["pid"] == os.getpid()
    lock.release()
    assert os.listdir(tmp_path) == []


def test_another_thread_is_refused_and_the_same_one_goes_on(tmp_path):
    first, refused = FolderLock(tmp_path), []
    first.acquire("Training")

    def work():
        with pytest.raises(WriteFailed, match="another thread of this process") as found:
            FolderLock(tmp_path).acquire("Training")
        refused.append(found)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(refused) == 1
    again = FolderLock(tmp_path)
    again.acquire("Training")  # as in a notebook, where the first training failed
    assert again.mine
    first.release()  # it has nothing left to release
    assert again.held
    again.release()


def test_a_lock_nobody_refers_to_is_released(tmp_path):
    FolderLock(tmp_path).acquire("Training")
    assert not FolderLock(tmp_path).held


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_keep_the_lock(tmp_path):
    lock = FolderLock(tmp_path)
    lock.acquire("Training")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)  # until the parent is done
        os._exit(0)
    os.close(reading)
    try:
        lock.release()
        assert not is_held(tmp_path / ".lock")
        FolderLock(tmp_path).acquire("Training")
    finally:
        os.close(writing)
        os.waitpid(child, 0)


def test_without_locks_of_the_file_system_the_record_decides(tmp_path, monkeypatch):
    monkeypatch.setattr(file_locks, "_try", lambda handle, shared=False: None)
    me = file_locks._this_process()
    (tmp_path / ".lock").write_text(json.dumps(me))
    with pytest.raises(WriteFailed, match=f"process {os.getpid()}"):
        FolderLock(tmp_path).acquire("Training")
    (tmp_path / ".lock").write_text(json.dumps(me | {"birth": "1"}))  # the number was given again
    lock = FolderLock(tmp_path)
    lock.acquire("Training")
    lock.release()
    (tmp_path / ".lock").write_text(json.dumps(me | {"host": "elsewhere"}))
    assert FolderLock(tmp_path).held


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 3}', "null"])
def test_a_damaged_record_stops_nobody(tmp_path, text):
    (tmp_path / ".lock").write_text(text)
    lock = FolderLock(tmp_path)
    assert not lock.held
    lock.acquire("Training")
    lock.release()


def test_files_and_folders_are_held_for_a_block(tmp_path):
    with held(tmp_path):
        assert is_held(tmp_path)
    assert not is_held(tmp_path)
    assert not is_held(tmp_path / "missing")
