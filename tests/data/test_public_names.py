"""The names that `castalia.data` promises."""

import subprocess
import sys

import pytest

import castalia.data

PROMISED = [
    "read",
    "Dataset",
    "Schema",
    "datasets",
    "TableEncoder",
    "Rotate",
    "Flip",
    "Shift",
    "Zoom",
    "Recolor",
    "Noise",
    "Mask",
    "Mixup",
    "LabelNoise",
    "holdout",
    "kfold",
    "leave_one_out",
    "grouped",
    "temporal",
    "WhitespaceTokenizer",
    "WordPunctTokenizer",
    "CharTokenizer",
    "BPETokenizer",
    "ByteBPETokenizer",
    "WordPieceTokenizer",
    "UnigramTokenizer",
]


@pytest.mark.parametrize("name", sorted({*PROMISED, *castalia.data.__all__}))
def test_a_public_name_is_there_and_listed(name):
    assert getattr(castalia.data, name) is not None
    assert name in dir(castalia.data)
    assert name in castalia.data.__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'castalia.data' has no attribute 'kfolds'"):
        castalia.data.kfolds  # noqa: B018


def test_splits_are_found_without_torch():
    code = "import sys; from castalia.data import kfold; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
