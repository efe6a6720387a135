"""Tar shards in the layout of WebDataset: images, texts and records, here and at addresses."""

import io
import json
import tarfile
import warnings
from types import SimpleNamespace

import fsspec
import numpy as np
import pytest
import torch
from PIL import Image

from castalia import Callback, ConvNetClassifier, MLPClassifier, Training, read
from castalia.errors import DataWarning, InvalidData
from castalia.method.fit_outcome import _plan as kept_plan
from castalia.method.fit_plan import FitPlan
from castalia.train.strategy import DataParallel


def shard(samples):
    """Return the bytes of a tar file of (name, bytes)."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, content in samples:
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return raw.getvalue()


def png(value):
    raw = io.BytesIO()
    Image.fromarray(np.full((8, 8), value, np.uint8)).save(raw, "PNG")
    return raw.getvalue()


def pictures(number, rows=8):
    """Return a shard of images, dark and bright; names begin again in every shard."""
    files = []
    for i in range(rows):
        record = {"side": ["dark", "bright"][i % 2], "row": rows * number + i}
        files += [(f"{i:03d}.png", png(200 * (i % 2) + number)), (f"{i:03d}.cls", b"%d" % (i % 2))]
        files.append((f"{i:03d}.json", json.dumps(record).encode()))
    return shard(files)


def texts(number, rows=6, **more):
    """Return a shard of records with a text."""
    files = []
    for i in range(rows):
        record = {"a": rows * number + i + 0.5, **more}
        files += [(f"{i}.txt", b"word %d" % i), (f"{i}.json", json.dumps(record).encode())]
        files.append((f"{i}.cls", b"yes" if i % 2 else b"no"))
    return shard(files)


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        (tmp_path / f"part-{number:02d}.tar").write_bytes(pictures(number))
    return tmp_path


def test_images_come_with_their_class_or_a_field_of_their_record(folder):
    images = read(folder)
    assert len(images) == 24
    assert images.target.tolist() == [0, 1] * 12
    assert images.pixels([17], (8, 8), 1).unique().tolist() == [202]
    some = read(str(folder / "part-{00..01}.tar"), target="row")
    assert some.target.tolist() == list(range(16))
    assert read([folder / "part-02.tar"], target="side").target.tolist() == ["dark", "bright"] * 4
    with pytest.raises(InvalidData, match="must be `cls`, `row` or `side`.*got 'colour'"):
        read(folder, target="colour")


class Stop(Callback):
    """Ctrl-C in the middle of the second epoch."""

    def on_batch_end(self, state):
        if state.total == 4:
            raise KeyboardInterrupt


def test_a_training_on_shards_goes_on_inside_an_epoch_and_reads_a_rank_s_rows_only(folder):
    def fit(run, *callbacks):
        settings = {"watch": False, "verbose": False, "validation": 0, "checkpoint_every": 1}
        model = ConvNetClassifier(widths=(4,), convs=1, epochs=2, batch_size=8, random_state=0)
        model.training = Training(**settings, run=folder / run, callbacks=callbacks)
        images = read(str(folder / "*.tar"))
        return model.fit(images, images.target).module_.state_dict()

    with pytest.raises(KeyboardInterrupt):
        fit("runs/a", Stop())
    alone, again = fit("runs/b"), fit("runs/a")
    assert all(torch.equal(alone[name], again[name]) for name in alone)

    images, seen = read(str(folder / "*.tar")), []
    ranks = object.__new__(DataParallel)
    ranks.rank, ranks.world = 1, 2
    opened = images.source.store.open
    images.source.store.open = lambda name: seen.append(name) or opened(name)
    images.pixels(ranks.share(torch.arange(24)), (8, 8), 1)
    assert {name.split("/")[0] for name in seen} == {"part-01.tar", "part-02.tar"}


@pytest.mark.parametrize("stream", [False, True])
def test_shards_without_images_are_a_table(tmp_path, stream):
    for number in range(3):
        (tmp_path / f"{number}.tar").write_bytes(texts(number))
    table = read(tmp_path, target="cls", stream=stream)
    assert table.columns == ["txt", "a", "cls"]
    assert len(table) == 18
    assert table.column("a").tolist() == [i + 0.5 for i in range(18)]
    assert table.labels().tolist() == ["no", "yes"] * 9
    training = Training(validation=0, watch=False)
    model = MLPClassifier(hidden=(4,), epochs=1, random_state=0, training=training)
    assert (
        model.fit(table.select(["a", "cls"]).with_target("cls")).predict(table.select(["a"])).size
    )
    mark = table.fingerprint()
    (tmp_path / "0.tar").write_bytes(texts(7))
    assert read(tmp_path, target="cls", stream=stream).fingerprint() != mark


def test_a_shard_that_is_cut_off_is_named_or_left_out_and_counted(folder):
    whole = (folder / "part-01.tar").read_bytes()
    for cut in (0, 300, 700, len(whole) // 2, 512 * (len(whole) // 1024)):
        (folder / "part-01.tar").write_bytes(whole[:cut])
        with pytest.raises(InvalidData, match=r"part-01.tar` must be a whole tar file; it"):
            read(folder)
    with pytest.warns(DataWarning, match=r"1 of 3 files cannot be read and are left out: .*01.tar"):
        assert len(read(folder, broken="skip")) == 16
    for path in folder.iterdir():
        path.write_bytes(whole[:700])
    with pytest.raises(InvalidData, match="part-00.tar"):
        read(folder, broken="skip")


def test_an_empty_shard_is_said_and_shards_that_differ_are_named(folder):
    (folder / "part-01.tar").write_bytes(shard([]))
    with pytest.warns(DataWarning, match=r"1 shard of 3 hold no file, such as `.*part-01.tar`"):
        assert len(read(folder)) == 16
    (folder / "part-01.tar").write_bytes(shard([("a.png", png(3)), ("a.cls", b"1")]))
    with pytest.raises(InvalidData, match=r"sample `part-01.tar/a` of .*it lacks `.json`"):
        read(folder)
    (folder / "part-01.tar").write_bytes(shard([("a.wav", b"")]))
    with pytest.raises(InvalidData, match=r"must hold images, `.txt`"):
        read(folder / "part-01.tar")
    (folder / "part-00.tar").write_bytes(texts(0))
    (folder / "part-01.tar").write_bytes(texts(1, b=1))
    with pytest.raises(InvalidData, match=r"part-01.tar` must have the columns of .*it has `b`"):
        read(str(folder / "part-{00..01}.tar"))
    with pytest.raises(InvalidData, match=r"x.tar.gz` must be a plain .tar file"):
        read(folder / "x.tar.gz")


def test_shards_at_an_address_are_read_and_its_password_is_nowhere():
    system = fsspec.filesystem("memory")
    try:
        for number in range(2):
            system.pipe_file(f"/me:secret@host/{number}.tar", pictures(number))
        for pattern in ("*", "{0..1}"):
            images = read(f"memory://me:secret@host/{pattern}.tar")
            assert images.target.tolist() == [0, 1] * 8
            assert images.pixels([9], (8, 8), 1).unique().tolist() == [201]
        said = [repr(images), images.source.text, *images.source.names]
        system.pipe_file("/me:secret@host/1.tar", pictures(1)[:700])
        with pytest.raises(InvalidData, match="`memory://host/1.tar` must be a whole") as caught:
            read("memory://me:secret@host/*.tar")
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            read("memory://me:secret@host/*.tar", broken="skip")
        said += [str(caught.value), *(str(w.message) for w in warned)]
        assert warned
        assert not [words for words in said if "secret" in words]
    finally:
        system.store.clear()


def test_what_a_run_keeps_of_an_address_has_no_password():
    url = "memory://me:secret@host/a.csv"
    system = fsspec.filesystem("memory")
    system.pipe_file("/me:secret@host/a.csv", b"a,y\n1,u\n2,v\n")
    try:
        assert read(url, target="y").source == "memory://host/a.csv"
    finally:
        system.store.clear()
    plan = FitPlan(data=url, target="y")
    assert plan.command() == "castalia fit memory://host/a.csv --target y"
    assert kept_plan(SimpleNamespace(plan=plan))["data"] == "memory://host/a.csv"
