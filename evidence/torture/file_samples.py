"""Whole files of every kind that the library reads, and how each is read and damaged.

A kind makes its files in an empty folder, reads a folder of damaged ones, and says what it read.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import castalia
import castalia.base
from castalia.data import tokenizers
from castalia.data.images import read_idx
from castalia.data.images.image_reader import read_images
from castalia.data.prompts import ChatTemplate
from castalia.data.tokenizers import Tokenizer
from castalia.data.word_vectors import WordVectors, read_word_vectors, write_word_vectors
from castalia.diagnose import Diagnosis
from castalia.nets.language import load_pretrained, save_pretrained
from castalia.nets.language.huggingface.config_schema import SCHEMAS, checked_config
from castalia.nets.language.huggingface.pretrained_networks import KNOWN
from castalia.train.checkpoint import read_checkpoint, write_checkpoint
from castalia.train.runs import RunStore
from evidence.torture import file_mutations as mutations
from evidence.torture.file_mutations import Files, damage

GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / castalia.__version__
TEXT = "the cat sat on the mat. a dog, 12 cats & the größe of it!\n"


@dataclass(frozen=True)
class Kind:
    """How files of one kind are made, damaged and read."""

    name: str
    make: Callable[[Path], Any]
    read: Callable[[Path], Any]  # what was read, as something that can be compared; None: nothing
    damage: Callable[[random.Random, Files], tuple[Files, bool]]  # and whether it is sealed anew


# -- ways to damage --


def one_file(
    *ways: Callable[[random.Random, bytes], bytes], sealed: bool = True
) -> Callable[[random.Random, Files], tuple[Files, bool]]:
    """Damage one of the files in one of these ways."""

    def changed(rng: random.Random, files: Files) -> tuple[Files, bool]:
        name = rng.choice(sorted(name for name, raw in files.items() if raw))
        way = rng.choice(ways)
        if way is mutations.edit_json and not name.endswith(("json", "jsonl")):
            way = damage
        if way is mutations.edit_tensors and not name.endswith("safetensors"):
            way = mutations.edit_json if name.endswith("json") else damage
        return files | {name: way(rng, files[name])}, sealed

    return changed


def damaged_model(rng: random.Random, files: Files) -> tuple[Files, bool]:
    """Damage a saved model; two thirds get the checksums of what they then hold."""
    how = rng.random()
    if how < 0.33:
        return one_file(damage)(rng, files)[0], False
    name = "model.json" if how < 0.8 else "weights.safetensors"
    way = mutations.edit_json if how < 0.8 else mutations.edit_tensors
    files = files | {name: way(rng, files[name])}
    try:
        return mutations.seal_model(files), True
    except (ValueError, TypeError, KeyError, RecursionError):
        return files, True


def damaged_pipeline(rng: random.Random, files: Files) -> tuple[Files, bool]:
    """Damage a saved pipeline, most of them sealed anew."""
    if rng.random() < 0.3:
        return one_file(damage)(rng, files)[0], False
    name = rng.choice([name for name in files if name.endswith((".skops", "pipeline.json"))])
    way = mutations.inside_zip if name.endswith(".skops") else mutations.edit_json
    files = files | {name: way(rng, files[name])}
    try:
        return mutations.seal_pipeline(files), True
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return files, True


def damaged_checkpoint(rng: random.Random, files: Files) -> tuple[Files, bool]:
    """Damage a checkpoint; half get the digest of what they then hold."""
    (name,) = files
    if rng.random() < 0.5:
        return {name: damage(rng, files[name])}, False
    raw = mutations.edit_tensors(rng, files[name])
    try:
        return {name: mutations.seal_checkpoint(raw)}, True
    except (ValueError, TypeError, KeyError, RecursionError):
        return {name: raw}, True


# -- saved models --


def golden(name: str) -> Kind:
    folder = GOLDEN / name
    expected = json.loads((folder / "expected.json").read_text())

    def read(place: Path) -> Any:
        return fingerprint(castalia.load(place))

    del expected
    return Kind(
        f"model {name}", lambda place: _copied(folder / "model", place), read, damaged_model
    )


def fingerprint(value: Any) -> str:
    """Return a digest of all that an estimator has learnt and of its settings."""
    return hashlib.sha256(_bytes(value)).hexdigest()


def _bytes(value: Any) -> bytes:
    if hasattr(value, "state_dict"):
        value = dict(value.state_dict())
    if isinstance(value, torch.Tensor):
        return (
            str(value.dtype).encode()
            + value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        )
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return f"{value.dtype}{value.shape}".encode() + value.tobytes()
    if isinstance(value, dict):
        return (
            b"{" + b",".join(sorted(_bytes(k) + b":" + _bytes(v) for k, v in value.items())) + b"}"
        )
    if isinstance(value, list | tuple | np.ndarray):
        return b"[" + b",".join(map(_bytes, value)) + b"]"
    if hasattr(value, "__dict__") and not isinstance(value, type):
        kept = {k: v for k, v in vars(value).items() if not k.startswith("_")}
        return type(value).__name__.encode() + _bytes(kept)
    if type(value).__module__.startswith("sklearn"):  # a tree of compiled code
        return _bytes(value.__getstate__())
    return repr(value).encode()


def make_pipeline(place: Path) -> None:
    from sklearn.pipeline import make_pipeline as joined
    from sklearn.preprocessing import StandardScaler

    X = np.random.default_rng(0).normal(size=(20, 3))
    made = joined(StandardScaler(), castalia.MLPClassifier(hidden=(3,), epochs=1, random_state=0))
    _moved(lambda path: castalia.save(made.fit(X, (X[:, 0] > 0).astype(int)), path), place)


def read_pipeline(place: Path) -> Any:
    made = castalia.load(place)
    X = np.random.default_rng(1).normal(size=(4, 3))
    with contextlib.suppress(Exception):  # a sealed one may be a model of other columns
        return made.predict_proba(X).tobytes()
    return "loaded"


def make_checkpoint(place: Path) -> None:
    tensors = {"w": torch.arange(6.0).reshape(2, 3), "n": torch.tensor(3), "c": torch.ones(2) + 1j}
    state = {
        "epoch": 3,
        "history": [{"loss": 0.5, "lr": 1e-3}],
        "optimizer": {"$": "dict", "items": [[0, 1]]},
    }
    write_checkpoint(place, 12, tensors, state)


def read_one_checkpoint(place: Path) -> Any:
    tensors, state = read_checkpoint(next(place.iterdir()))
    return fingerprint(tensors), json.dumps(state)


# -- Hugging Face's folders and tokenizers --

SIZES: dict[str, Any] = {
    "vocab_size": 20, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2,
    "max_position_embeddings": 10, "hidden_size": 8, "num_hidden_layers": 1,
    "num_attention_heads": 2, "intermediate_size": 12, "d_model": 8, "d_kv": 4, "d_ff": 12,
    "num_layers": 1, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 12,
    "decoder_ffn_dim": 12,
}  # fmt: skip


def folder_of(kind: str) -> Kind:
    def make(place: Path) -> None:
        known = KNOWN[kind]
        sizes = {name: SIZES[name] for name in SCHEMAS[kind].fields if name in SIZES}
        torch.manual_seed(0)
        tied = {"tie_word_embeddings": True} if kind in ("llama", "mistral", "qwen2") else {}
        net: Any = known.build(checked_config(sizes | tied, kind), {})
        net.model_type = kind
        save_pretrained(net, place)

    return Kind(
        f"folder {kind}",
        make,
        lambda place: fingerprint(load_pretrained(place)),
        one_file(mutations.edit_json, mutations.edit_tensors, damage),
    )


TOKENIZERS = {
    "BPETokenizer": {"vocabulary_size": 60},
    "ByteBPETokenizer": {"vocabulary_size": 270},
    "CharTokenizer": {},
    "RuleTokenizer": {},
    "SentencePieceTokenizer": {"vocabulary_size": 320},
    "UnigramTokenizer": {"vocabulary_size": 60},
    "WhitespaceTokenizer": {},
    "WordPieceTokenizer": {"vocabulary_size": 60},
    "WordPunctTokenizer": {},
}


def tokenizer_of(name: str) -> Kind:
    def make(place: Path) -> None:
        getattr(tokenizers, name)(**TOKENIZERS[name]).fit([TEXT] * 3).save(place)

    return Kind(f"tokenizer {name}", make, read_tokenizer, one_file(mutations.edit_json, damage))


def read_tokenizer(place: Path) -> Any:
    made = Tokenizer.load(place)
    ids = made.encode(TEXT)
    return ids, made.decode(ids)


def make_word_pieces(place: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", "##a"]
    (place / "vocab.txt").write_text("\n".join(words) + "\n")
    (place / "tokenizer_config.json").write_text('{"do_lower_case": true}')


def make_merges(place: Path) -> None:
    made = tokenizers.ByteBPETokenizer(vocabulary_size=262).fit([TEXT] * 3)
    model = json.loads(made.backend_.to_str())["model"]
    (place / "vocab.json").write_text(json.dumps(model["vocab"]))
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    (place / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n")


def make_template(place: Path) -> None:
    source = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{{ eos_token }}{% endfor %}"
    config = {"chat_template": source, "eos_token": {"content": "</s>"}, "bos_token": "<s>"}
    (place / "tokenizer_config.json").write_text(json.dumps(config))
    (place / "chat_template.jinja").write_text(source)


def read_template(place: Path) -> Any:
    found = ChatTemplate.load(place)
    return None if found is None else found.render([{"role": "user", "content": "Hi"}])


# -- tables --

CSV = "age,name,town,when,paid\n" + "".join(
    f'{i},{"abc"[i % 3]} x,"to, wn{i}",2020-01-{i + 1:02d},"${i},{i:03d}.50"\n' for i in range(12)
)
ROWS = [{"age": i, "name": f"n{i}", "x": i / 3, "ok": i % 2 == 0, "l": [i]} for i in range(8)]


def table(name: str, make: Callable[[Path], Any], *ways: Any) -> Kind:
    def read(place: Path) -> Any:
        data = castalia.read(place / name)
        return str(data.table().schema), data.table().num_rows, data.source

    return Kind(name, lambda place: make(place / name), read, one_file(*ways or (damage,)))


def make_excel(path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in (["a", "b", "c"], [1, "x", 2.5], [2, "y", None], [3, "z", True]):
        book.active.append(row)
    book.save(path)


def make_parquet(path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    columns = {
        "a": list(range(50)), "b": [f"w{i % 5}" for i in range(50)],
        "c": [i / 7 for i in range(50)],
        "d": pa.array([f"k{i % 3}" for i in range(50)]).dictionary_encode(),
        "e": pa.array(list(range(50)), pa.timestamp("us")),
    }  # fmt: skip
    parquet.write_table(pa.table(columns), path)


def packed(ending: str) -> bytes:
    import bz2
    import lzma
    import zipfile

    raw = CSV.encode()
    if ending == "zip":
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("table.csv", raw)
        return out.getvalue()
    return {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[ending](raw)


# -- images --


def picture(seed: int = 0, mode: str = "RGB") -> Image.Image:
    values = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    return Image.fromarray(values).convert(mode)


def image(ending: str, mode: str = "RGB") -> Kind:
    def make(place: Path) -> None:
        for seed, name in enumerate(("cat", "dog")):
            (place / name).mkdir()
            picture(seed, mode).save(place / name / f"1.{ending}")

    return Kind(f"image {ending} {mode}", make, read_pixels, one_file(damage))


def read_pixels(place: Path) -> Any:
    found = castalia.read(place)
    size = found.source.sizes()[:1].tolist()[0]
    own = found.source.image  # at their own size, as a fit without `size` has them
    return [found.source.pixels(np.arange(len(found)), (8, 8), 3).sum().item(), size, bool(own)]


def make_arrays(path: Path) -> None:
    np.savez_compressed(path, x=np.arange(128, dtype=np.uint8).reshape(2, 8, 8), y=[3, 1])


def make_idx(place: Path) -> None:
    raw = b"\0\0\x08\x03" + np.array([2, 4, 4], ">u4").tobytes() + bytes(range(32))
    (place / "images-idx3-ubyte").write_bytes(raw)


def make_voc(place: Path) -> None:
    for name in ("Annotations", "JPEGImages"):
        (place / name).mkdir()
    box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>9</xmax><ymax>8</ymax></bndbox>"
    (place / "Annotations" / "1.xml").write_text(
        "<annotation><filename>1.png</filename><size><width>16</width><height>12</height><depth>3"
        f"</depth></size><object><name>cat</name>{box}</object></annotation>"
    )
    picture().save(place / "JPEGImages" / "1.png")


def make_coco(place: Path) -> None:
    picture().save(place / "1.png")
    content = {
        "images": [{"id": 1, "file_name": "1.png", "width": 16, "height": 12}],
        "categories": [{"id": 7, "name": "cat"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 7, "bbox": [1, 2, 5, 4]}],
    }  # fmt: skip
    (place / "boxes.json").write_text(json.dumps(content))


def make_masks(place: Path) -> None:
    for name, mode in (("images", "RGB"), ("masks", "L")):
        (place / name).mkdir()
        picture(0, mode).save(place / name / "1.png")


def make_image_zip(place: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        image("png").make(Path(folder))
        shutil.make_archive(str(place / "images"), "zip", folder)


def read_boxes(place: Path) -> Any:
    found = read_images(place)
    return len(found), str(found.target)[:200]


# -- the rest --


def make_runs(place: Path) -> None:
    with RunStore(place) as store:
        run = store.open_run("one", "abc", {"lr": 0.1})
        for step in range(5):
            run.log(step, 0, {"loss": 1.0 / (step + 1)})
        run.finish("finished")
    for extra in place.glob("castalia.db-*"):
        extra.unlink()
    for extra in place.iterdir():
        if extra.is_dir():
            shutil.rmtree(extra)


def read_runs(place: Path) -> Any:
    with RunStore(place) as store:
        found = store.runs()
        return [(run["name"], run["status"], str(run["config"])) for run in found]


def make_vectors(ending: str) -> Callable[[Path], Any]:
    def make(place: Path) -> None:
        words, table = ["cat", "dog", "größe"], np.arange(12.0, dtype=np.float32).reshape(3, 4)
        write_word_vectors(place / f"vectors.{ending}", WordVectors(words, table))

    return make


def read_vectors(place: Path) -> Any:
    found = read_word_vectors(next(place.iterdir()))
    return len(found), found.embed(["cat"]).tobytes() if "cat" in str(found) else ""


def make_diagnosis(place: Path) -> None:
    import castalia.diagnose as diagnose

    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with diagnose.watch(net, optimizer) as seen:
        for _ in range(5):
            optimizer.zero_grad()
            net(torch.ones(4, 2)).pow(2).mean().backward()
            optimizer.step()
    (place / "diagnosis.json").write_text(seen.diagnosis().to_json())


def read_diagnosis(place: Path) -> Any:
    return str(Diagnosis.from_json((place / "diagnosis.json").read_bytes()))


# -- all of them --


def _copied(source: Path, place: Path) -> None:
    shutil.copytree(source, place, dirs_exist_ok=True)


def _moved(make: Callable[[Path], Any], place: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder) / "model")
        _copied(Path(folder) / "model", place)


def _written(raw: bytes | str) -> Callable[[Path], Any]:
    data = raw.encode() if isinstance(raw, str) else raw
    return lambda path: path.write_bytes(data)


def kinds() -> list[Kind]:
    """Return every kind; one whose package is not installed is found out when it is made."""
    edit, inside = mutations.edit_json, mutations.inside_zip
    found = [golden(folder.name) for folder in sorted(GOLDEN.iterdir()) if folder.is_dir()]
    found += [
        Kind("pipeline", make_pipeline, read_pipeline, damaged_pipeline),
        Kind("checkpoint", make_checkpoint, read_one_checkpoint, damaged_checkpoint),
        *[folder_of(name) for name in KNOWN],
        *[tokenizer_of(name) for name in TOKENIZERS],
        Kind("tokenizer vocab.txt", make_word_pieces, read_tokenizer, one_file(edit, damage)),
        Kind("tokenizer vocab.json", make_merges, read_tokenizer, one_file(edit, damage)),
        Kind("chat template", make_template, read_template, one_file(edit, damage)),
        table("table.csv", _written(CSV)),
        table("table.tsv", _written(CSV.replace(",", "\t"))),
        table("wide.csv", _written(CSV.encode("utf-16"))),
        table("table.csv.gz", _written(packed("gz")), damage, mutations.inside_gzip),
        table("table.csv.bz2", _written(packed("bz2"))),
        table("table.csv.xz", _written(packed("xz"))),
        table("table.csv.zip", _written(packed("zip")), damage, inside),
        table("records.json", _written(json.dumps(ROWS)), damage, edit),
        table("columns.json", _written('{"a": [1, 2], "b": ["x", "y"]}'), damage, edit),
        table("records.jsonl", _written("\n".join(map(json.dumps, ROWS)))),
        table("book.xlsx", make_excel, damage, inside, inside),
        table("table.parquet", make_parquet),
        *[image(ending) for ending in ("png", "jpg", "gif", "bmp", "tiff", "webp", "ppm", "tga")],
        *[image(ending, mode) for ending, mode in (("png", "P"), ("png", "I;16"), ("tiff", "F"))],
        *[image(ending) for ending in ("jp2", "ico", "avif")],
        Kind("images.npz", lambda p: make_arrays(p / "images.npz"),
             lambda p: len(castalia.read(p / "images.npz")), one_file(damage, inside)),
        Kind("images.zip", make_image_zip, lambda p: read_pixels(p / "images.zip"),
             one_file(damage, inside)),
        Kind("idx", make_idx, lambda p: read_idx(p / "images-idx3-ubyte").shape, one_file(damage)),
        Kind("voc", make_voc, read_boxes, one_file(damage)),
        Kind("coco", make_coco, lambda p: len(castalia.read(p / "boxes.json")),
             one_file(edit, damage)),
        Kind("masks", make_masks, read_boxes, one_file(damage)),
        Kind("runs", make_runs, read_runs, one_file(damage)),
        Kind("vectors.txt", make_vectors("txt"), read_vectors, one_file(damage)),
        Kind("vectors.bin", make_vectors("bin"), read_vectors, one_file(damage)),
        Kind("diagnosis", make_diagnosis, read_diagnosis, one_file(edit, damage)),
    ]  # fmt: skip
    return found
