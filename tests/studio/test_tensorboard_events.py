"""Event files that TensorBoard's own writer wrote (``SummaryWriter`` of torch 2.13)."""

import random
from contextlib import suppress
from pathlib import Path

import pytest

from castalia.errors import InvalidData
from castalia.studio.tensorboard_events import import_events, read_scalars
from castalia.train.runs import RunStore

SAMPLE = Path(__file__).parent / "data" / "events.out.tfevents.sample"
SCALARS = [(0, "loss/train", 1.0), (1, "loss/train", 0.5), (2, "loss/train", pytest.approx(1 / 3))]


def test_scalars_of_both_styles_are_read_and_texts_and_histograms_left():
    assert list(read_scalars(SAMPLE)) == [*SCALARS, (300, "new", 2.5)]


def test_folders_become_runs_once(tmp_path):
    for name in ("a", "b/c"):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / SAMPLE.name).write_bytes(SAMPLE.read_bytes())
    with RunStore(tmp_path / "runs") as store:
        names = import_events(tmp_path / "logs", store)
        assert names == import_events(tmp_path / "logs", store) == ["logs-a", "logs-b-c"]
        runs = {run["name"]: run for run in store.runs()}
        assert {run["status"] for run in runs.values()} == {"finished"}
        steps, values = store.open_run("logs-a", *_marks(tmp_path)).metric("loss/train")
    assert (list(steps), list(values)) == ([0, 1, 2], [1.0, 0.5, pytest.approx(1 / 3)])
    with pytest.raises(InvalidData, match="has none"):
        import_events(tmp_path / "runs", store)


def _marks(tmp_path):
    import hashlib

    mark = f"tensorboard {(tmp_path / 'logs' / 'a').resolve()}"
    return hashlib.sha256(mark.encode()).hexdigest(), {}


def test_a_file_that_is_being_written_or_damaged_ends_or_is_refused(tmp_path):
    content, path = SAMPLE.read_bytes(), tmp_path / "x.tfevents.1"
    whole = [*SCALARS, (300, "new", 2.5)]
    draw = random.Random(0)
    for cut in range(0, len(content), 97):
        path.write_bytes(content[:cut])
        found = list(read_scalars(path))
        assert found == whole[: len(found)]
    for _ in range(200):
        noise = bytearray(content)
        noise[draw.randrange(len(noise))] = draw.randrange(256)
        path.write_bytes(noise)
        with suppress(InvalidData):
            list(read_scalars(path))
