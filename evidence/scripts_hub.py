"""Small new models, tokenizers and data sets under the names of pretrained ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

from evidence import scripts_data as data
from evidence.scripts_start import after_import


class Table:
    """Rows with named columns, as ``datasets.Dataset`` has them."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns = columns
        self.column_names = list(columns)
        self.features = {name: _Feature(column) for name, column in columns.items()}

    num_rows = property(lambda self: len(self))

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self.columns[key]
        if isinstance(key, slice):
            return {name: column[key] for name, column in self.columns.items()}
        if isinstance(key, int):
            return {name: column[key] for name, column in self.columns.items()}
        return {name: [column[i] for i in key] for name, column in self.columns.items()}

    def __getitems__(self, keys: list[int]) -> list[dict]:
        return [self[i] for i in keys]

    def map(self, change: Callable[[Any], Any], **options: Any) -> Table:
        """Return a table with what a function of all rows gives."""
        made = change(dict(self.columns))
        gone = set(options.get("remove_columns") or ())
        kept = {name: column for name, column in self.columns.items() if name not in gone}
        return Table({**kept, **{name: list(made[name]) for name in made}})

    def rename_column(self, old: str, new: str) -> Table:
        """Return a table with another name for a column."""
        return Table({new if name == old else name: c for name, c in self.columns.items()})

    def select(self, rows: Any) -> Table:
        """Return a table of some rows."""
        return Table({name: [c[i] for i in rows] for name, c in self.columns.items()})

    def remove_columns(self, names: Any) -> Table:
        """Return a table without some columns."""
        return Table({name: c for name, c in self.columns.items() if name not in names})

    def same(self, *_: Any, **__: Any) -> Table:
        """Return the table itself."""
        return self

    set_format = with_format = shuffle = same


class _Feature:
    def __init__(self, column: list[Any]) -> None:
        self.dtype = type(column[0]).__name__
        self.names = [str(one) for one in sorted(set(column))] if self.dtype == "int" else []
        self.num_classes = len(self.names)


class Tables(dict):
    """A table for each part."""

    column_names = property(lambda self: {k: v.column_names for k, v in self.items()})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def each(*args: Any, **kwargs: Any) -> Tables:
            return Tables({k: getattr(v, name)(*args, **kwargs) for k, v in self.items()})

        return each


def load_dataset(*wanted: Any, **options: Any) -> Any:
    """Return pairs of sentences for GLUE, else lines of text."""
    if "mrpc" in wanted:
        rows = data.sentence_pairs()
        names = ("sentence1", "sentence2", "label")
        columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        columns["idx"] = list(range(len(rows)))
    else:
        columns = {"text": data.words(60_000)}
    n = len(next(iter(columns.values())))
    whole, cut = Table(columns), int(0.8 * n)
    parts = {"train": whole.select(range(cut)), "validation": whole.select(range(cut, n))}
    found = Tables({**parts, "test": parts["validation"]})
    return found[options["split"]] if options.get("split") in found else found


class Accuracy:
    """The metric of the package ``evaluate``."""

    def __init__(self) -> None:
        self.right: list[bool] = []

    def add_batch(self, *, predictions: Any, references: Any) -> None:
        """Note a batch."""
        self.right += [int(p) == int(r) for p, r in zip(predictions, references, strict=True)]

    def compute(self, predictions: Any = (), references: Any = (), **_: Any) -> dict[str, float]:
        """Return the share that is right."""
        self.add_batch(predictions=predictions, references=references)
        right, self.right = self.right, []
        return {"accuracy": sum(right) / max(len(right), 1), "f1": 0.0}


def install(module: Callable[..., Any]) -> None:
    """Make the modules, and change those of transformers when they are imported."""
    made = module("datasets", load_dataset=load_dataset, Dataset=Table, DatasetDict=Tables)
    made.__version__, made.utils = "4.0.0", MagicMock()
    module("evaluate", load=lambda *_, **__: Accuracy())
    after_import("transformers", _small_models)


def _small_models() -> None:
    import transformers

    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    size |= {
        "intermediate_size": 64,
        "vocab_size": len(tokenizer()),
        "max_position_embeddings": 128,
    }
    size |= {"pad_token_id": 0}
    config = transformers.BertConfig(**size)
    for kind in ("SequenceClassification", "MaskedLM"):
        new = getattr(transformers, f"BertFor{kind}")
        auto = getattr(transformers, f"AutoModelFor{kind}")
        auto.from_pretrained = staticmethod(lambda *_, new=new, **__: new(config))
    transformers.AutoConfig.from_pretrained = staticmethod(lambda *_, **__: config)
    transformers.AutoTokenizer.from_pretrained = staticmethod(lambda *_, **__: tokenizer())


def tokenizer() -> Any:
    """Return a tokenizer of whole words, with the marks that BERT has."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pairs = data.sentence_pairs()
    known = sorted({word for a, b, _ in pairs for word in f"{a} {b}".split()})
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    table = {word: i for i, word in enumerate([*marks, *known])}
    inner = Tokenizer(models.WordLevel(table, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), marks, strict=True))
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        model_max_length=128,
        **{f"{name}_token": mark for name, mark in names.items()},
    )
