"""Data files that scripts expect beside them, filled with the small data of ``scripts_data``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evidence import scripts_data as data


def _put(file: Path, words: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(words)


def sentences(folder: Path) -> None:
    """Write training, validation and test sentences, as language models read them."""
    lines = data.words()
    a, b = int(0.8 * len(lines)), int(0.9 * len(lines))
    parts = {"train": lines[:a], "valid": lines[a:b], "test": lines[b:]}
    for name, part in parts.items():
        for place in ("data", "data/wikitext-2", "data/penn"):
            _put(folder / place / f"{name}.txt", "\n".join(part))


def prose(folder: Path) -> None:
    """Write running text."""
    _put(folder / "input.txt", data.text(100_000))


def letters(folder: Path) -> None:
    """Write the numbers of letters, two bytes each, and what they stand for."""
    import pickle

    import numpy as np

    text = data.text(100_000)
    kinds = sorted(set(text))
    numbers = np.array([kinds.index(letter) for letter in text], dtype=np.uint16)
    place = folder / "data" / "shakespeare_char"
    place.mkdir(parents=True, exist_ok=True)
    numbers[:90_000].tofile(place / "train.bin")
    numbers[90_000:].tofile(place / "val.bin")
    table = {"vocab_size": len(kinds), "stoi": {c: i for i, c in enumerate(kinds)}}
    table["itos"] = dict(enumerate(kinds))
    (place / "meta.pkl").write_bytes(pickle.dumps(table))


def waves(folder: Path) -> None:
    """Write sine waves, a row each."""
    import numpy as np
    import torch

    shift = np.random.default_rng(2).integers(-80, 80, (60, 1))
    torch.save(np.sin((np.arange(200) + shift) / 20.0), folder / "traindata.pt")


def cora(folder: Path) -> None:
    """Write a graph of papers as the Cora archive has it."""
    x, y, edges = data.citations()
    rows = [
        f"{i}\t" + "\t".join(str(int(v)) for v in x[i]) + f"\tclass{y[i]}" for i in range(len(x))
    ]
    for place in ("cora", "data/cora"):
        _put(folder / place / "cora.content", "\n".join(rows) + "\n")
        _put(folder / place / "cora.cites", "\n".join(f"{a}\t{b}" for a, b in edges) + "\n")


def planetoid(folder: Path) -> None:
    """Write a graph of papers as Planetoid has it: pickles of rows, classes and neighbours."""
    import pickle

    import numpy as np
    from scipy import sparse

    x, y, edges = data.citations()
    known, rest = sparse.csr_matrix(x[:500]), sparse.csr_matrix(x[500:])
    classes = np.eye(y.max() + 1)[y]
    graph: dict[int, list[int]] = {i: [] for i in range(len(x))}
    for a, b in edges.tolist():
        graph[a].append(b)
        graph[b].append(a)
    (folder / "data").mkdir(exist_ok=True)
    parts = {"x": known[:140], "y": classes[:140], "allx": known, "ally": classes[:500]}
    parts |= {"tx": rest, "ty": classes[500:], "graph": graph}
    for name, part in parts.items():
        (folder / "data" / f"ind.cora.{name}").write_bytes(pickle.dumps(part))
    _put(folder / "data" / "ind.cora.test.index", "\n".join(map(str, range(500, 600))))


def photographs(folder: Path) -> None:
    """Write coloured pictures, in the folders where scripts look for them."""
    from PIL import Image

    pictures, _ = data.digits(48, colours=True)
    for part, rows in (("train", pictures[:64]), ("test", pictures[64:84])):
        place = folder / "dataset" / "BSDS300" / "images" / part
        place.mkdir(parents=True, exist_ok=True)
        for i, picture in enumerate(rows):
            Image.fromarray(picture).save(place / f"{i}.png")


def classes(folder: Path) -> None:
    """Write coloured pictures in a folder for each class."""
    from PIL import Image

    pictures, labels = data.digits(32, colours=True)
    for part, rows in (("train", range(1200)), ("val", range(1200, 1500))):
        for i in rows:
            place = folder / "pictures" / part / str(labels[i])
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pictures[i]).save(place / f"{i}.png")


def sounds(folder: Path) -> None:
    """Write the table of sound files: name, and the class in the seventh column."""
    _, y = data.tones()
    rows = [f"{i}.wav,{i},0,1,1,1,{label},tone" for i, label in enumerate(y)]
    head = "slice_file_name,fsID,start,end,salience,fold,classID,class"
    _put(folder / "UrbanSound8K.csv", "\n".join([head, *rows]) + "\n")


def sound_folders(folder: Path) -> None:
    """Make a folder of sound files for each class; a file's name is its number."""
    _, y = data.tones()
    for i, label in enumerate(y):
        part = "train" if i < 400 else "valid" if i < 500 else "test"
        _put(folder / "gcommands" / part / str(label) / f"{i}.wav", "")


def packed_digits(folder: Path) -> None:
    """Write the digits as MNIST has them: packed bytes after a head."""
    import gzip

    x, y = data.digits(28)
    place = folder / "datasets" / "mnist"
    place.mkdir(parents=True, exist_ok=True)
    for part, rows in (("train", slice(0, 1500)), ("t10k", slice(1500, None))):
        pictures, labels = x[rows].tobytes(), y[rows].astype("uint8").tobytes()
        packed = {"images-idx3": 16 * b"0" + pictures, "labels-idx1": 8 * b"0" + labels}
        for name, content in packed.items():
            (place / f"{part}-{name}-ubyte.gz").write_bytes(gzip.compress(content, 1))


def postal_digits(folder: Path) -> None:
    """Write digits of 16 by 16 between -1 and 1, with a target of 1 for their class."""
    import numpy as np
    import torch

    x, y = data.digits(16)
    pictures = torch.from_numpy(x / 127.5 - 1).float()[:, None]
    targets = torch.from_numpy(2 * np.eye(10)[y] - 1).float()
    for part, rows in (("train", slice(0, 500)), ("test", slice(500, 600))):
        torch.save((pictures[rows].clone(), targets[rows].clone()), folder / f"{part}1989.pt")


def masks(folder: Path) -> None:
    """Write coloured pictures, and for each which of its points belong to the digit."""
    from PIL import Image

    coloured, grey = data.digits(64, colours=True)[0], data.digits(64)[0]
    for place, rows in (("imgs", coloured), ("masks", (grey > 100) * 255)):
        (folder / "data" / place).mkdir(parents=True, exist_ok=True)
        for i, picture in enumerate(rows[:60]):
            Image.fromarray(picture.astype("uint8")).save(folder / "data" / place / f"{i}.png")


def hours(folder: Path) -> None:
    """Write seven series by the hour: days and weeks that they share, and noise."""
    import numpy as np

    rng, time = np.random.default_rng(0), np.arange(1200)
    days = np.sin(2 * np.pi * (time[:, None] / 24 + rng.random(7)))
    weeks = np.sin(2 * np.pi * (time[:, None] / 168 + rng.random(7)))
    values = rng.uniform(1, 9, 7) * (days + weeks + 0.3 * rng.standard_normal((len(time), 7)))
    dates = np.datetime64("2020-01-01T00:00:00") + time.astype("timedelta64[h]")
    rows = [
        f"{str(day).replace('T', ' ')}," + ",".join(map("{:.3f}".format, row))
        for day, row in zip(dates, values, strict=True)
    ]
    _put(folder / "data" / "hours.csv", "\n".join(["date,a,b,c,d,e,f,OT", *rows]) + "\n")


def ratings(folder: Path) -> None:
    """Write what people think of films: stars, films seen, and for each one to be found again."""
    import numpy as np

    rng = np.random.default_rng(0)
    people, films = rng.normal(size=(120, 4)), rng.normal(size=(150, 4))
    liked = people @ films.T + 0.5 * rng.standard_normal((120, 150))
    stars, asked = np.clip(np.round(3.5 + liked), 1, 5).astype(int), rng.random((120, 150)) < 0.4
    rows = [f"{u + 1}::{i + 1}::{stars[u, i]}::0" for u, i in np.argwhere(asked)]
    _put(folder / "ml-1m" / "ratings.dat", "\n".join(rows) + "\n")
    best = np.argsort(-liked, axis=1)[:, :21]
    seen = [f"{u}\t{i}\t5\t0" for u in range(120) for i in best[u, 1:]]
    _put(folder / "ml-1m.train.rating", "\n".join([*seen, "0\t149\t5\t0"]) + "\n")
    others = [rng.choice(np.setdiff1d(range(150), best[u]), 99) for u in range(120)]
    found = [f"({u},{best[u, 0]})\t" + "\t".join(map(str, others[u])) for u in range(120)]
    _put(folder / "ml-1m.test.negative", "\n".join(found) + "\n")


def tables(folder: Path) -> None:
    """Write small tables under the names of those that every book takes."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer, load_iris

    iris, rng = load_iris(), np.random.default_rng(0)
    rows = [[*map(str, x), f"Iris-{y}"] for x, y in zip(iris.data, iris.target, strict=True)]
    _put(folder / "iris.csv", "\n".join(map(",".join, rows)))
    x, y = load_breast_cancer(return_X_y=True)
    x = (x - x.min(axis=0)) / np.ptp(x, axis=0)
    for name, width, count, words in (("sonar", 60, 208, "RM"), ("ionosphere", 34, 351, "bg")):
        wide = np.hstack([x, x @ rng.normal(size=(x.shape[1], width - x.shape[1])) / 4])[:count]
        rows = [[*map("{:.4f}".format, row), words[k]] for row, k in zip(wide, y, strict=False)]
        _put(folder / f"{name}.csv", "\n".join(map(",".join, rows)))
    month = np.arange(144)
    flown = (120 + 2.5 * month) * (1 + 0.2 * np.sin(month * np.pi / 6)) + rng.normal(0, 8, 144)
    lines = [f"1949-{m},{n:.0f}" for m, n in zip(month, flown, strict=True)]
    _put(folder / "airline-passengers.csv", "\n".join(["Month,Passengers", *lines]))


def digit_table(folder: Path) -> None:
    """Write the digits as a table: the label, then a column for each point."""
    x, y = data.digits(28)
    head = ",".join(["label", *(f"pixel{i}" for i in range(784))])
    rows = [
        ",".join(map(str, (k, *p)))
        for k, p in zip(y.tolist(), x.reshape(-1, 784).tolist(), strict=True)
    ]
    _put(folder.parent / "large_files" / "train.csv", "\n".join([head, *rows]))


def pairs(folder: Path) -> None:
    """Write two sentences on a line, with a tab between."""
    lines = [f"{a}\t{b}" for a, b, _ in data.sentence_pairs(1200)]
    _put(folder / "pairs.txt", "\n".join(lines) + "\n")


def series(folder: Path) -> None:
    """Write the seven series by the hour as bare numbers."""
    hours(folder)
    rows = (folder / "data" / "hours.csv").read_text().split("\n")[1:-1]
    _put(folder / "data" / "series.txt", "\n".join(row.split(",", 1)[1] for row in rows) + "\n")


def stories(folder: Path) -> None:
    """Write who went where, and questions where somebody is, as the bAbI tasks have them."""
    import numpy as np

    rng = np.random.default_rng(0)
    people, rooms = ("Ann", "Ben", "Eve", "Tom"), ("attic", "garden", "hall", "kitchen")
    for part, count in (("train", 250), ("test", 50)):
        lines = []
        for _ in range(count):
            at = {}
            for number in range(1, 10):
                if number % 3:
                    who, room = rng.choice(people), rng.choice(rooms)
                    at[who] = room
                    lines.append(f"{number} {who} went to the {room}.")
                else:
                    asked = rng.choice(list(at))
                    lines.append(f"{number} Where is {asked}? \t{at[asked]}\t1")
        place = folder / "data" / "tasks_1-20_v1-2" / "en-10k"
        _put(place / f"qa1_stories_{part}.txt", "\n".join(lines) + "\n")


def clicks(folder: Path) -> None:
    """Write 13 counts, 26 classes and a click in each row, and how many classes there are."""
    import numpy as np

    rng = np.random.default_rng(0)
    sizes = rng.integers(3, 30, 26)
    kinds = rng.integers(0, sizes, (2000, 26))
    weights = rng.normal(size=(26, 30)) * (np.arange(26) < 8)[:, None]
    clicked = weights[np.arange(26), kinds].sum(axis=1) + rng.logistic(size=2000) > 0
    table = np.hstack([rng.poisson(2, (2000, 13)), kinds, clicked[:, None]])
    _put(folder / "data" / "train.txt", "\n".join(",".join(map(str, row)) for row in table))
    _put(folder / "data" / "feature_sizes.txt", ",".join(map(str, [1] * 13 + sizes.tolist())))


def places(folder: Path) -> None:
    """Make the folders that a script saves into."""
    for name in ("samples", "results", "contents", "figs", "images", "data/diffusion_outputs10"):
        (folder / name).mkdir(parents=True, exist_ok=True)


FILES: dict[str, Callable[[Path], None]] = {
    one.__name__: one
    for one in (
        sentences,
        prose,
        letters,
        waves,
        cora,
        planetoid,
        photographs,
        classes,
        sounds,
        sound_folders,
        packed_digits,
        postal_digits,
        masks,
        hours,
        ratings,
        tables,
        digit_table,
        pairs,
        series,
        stories,
        clicks,
        places,
    )
}
