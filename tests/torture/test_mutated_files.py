"""A sample of `python -m evidence.torture.mutated_files`, in this process."""

import random
import warnings

import pytest
from evidence.torture import file_samples
from evidence.torture.mutated_files import Sample, judged, written

QUICK = (
    *("model MLPClassifier", "model TabularRegressor", "model KMeans", "model GPTLanguageModel"),
    *("checkpoint", "folder gpt2", "tokenizer BPETokenizer", "chat template", "table.csv"),
    *("table.csv.gz", "table.csv.xz", "records.json", "table.parquet", "image png RGB"),
    *("images.npz", "images.zip", "idx", "voc", "coco", "vectors.txt", "vectors.bin"),
)


@pytest.fixture(scope="module")
def kinds():
    return {kind.name: kind for kind in file_samples.kinds()}


def test_every_reader_has_a_kind(kinds):
    assert set(QUICK) < set(kinds)
    assert len(kinds) > 120


@pytest.mark.parametrize("name", QUICK)
def test_damaged_files_give_our_errors_or_what_was_written(kinds, name, tmp_path):
    kind, whole, place = kinds[name], tmp_path / "whole", tmp_path / "place"
    whole.mkdir()
    place.mkdir()
    kind.make(whole)
    files = {str(p.relative_to(whole)): p.read_bytes() for p in whole.rglob("*") if p.is_file()}
    sample = Sample(kind, files, kind.read(whole))
    ends = set()
    for seed in range(25):
        damaged, sealed = kind.damage(random.Random(seed), files)
        written(damaged, place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome, detail = judged(sample, place, sealed)
        assert outcome in ("refused", "equal", "changed"), (seed, outcome, detail)
        ends.add(outcome)
    assert "refused" in ends


def test_what_is_not_our_error_is_counted(kinds, tmp_path):
    def raising(place):
        raise KeyError("x")

    broken = file_samples.Kind("x", lambda place: None, raising, kinds["table.csv"].damage)
    assert judged(Sample(broken, {}, None), tmp_path, False)[0] == "foreign error"
    other = file_samples.Kind("x", lambda place: None, lambda place: 1, broken.damage)
    assert judged(Sample(other, {}, 2), tmp_path, False)[0] == "silently wrong"
    assert judged(Sample(other, {}, 2), tmp_path, True)[0] == "changed"
