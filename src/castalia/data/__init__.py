"""Data: reading it, knowing what is in it, and making networks' inputs of it.

Names are loaded when first used: neither torch nor Arrow is imported before it is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from castalia.data import datasets as datasets
    from castalia.data.data_reader import read as read
    from castalia.data.graphs import Graph as Graph
    from castalia.data.graphs import Graphs as Graphs
    from castalia.data.images import Images as Images
    from castalia.data.sequences import Sequences as Sequences
    from castalia.data.sequences import read_sequences as read_sequences
    from castalia.data.sequences import read_signals as read_signals
    from castalia.data.sequences import windows as windows
    from castalia.data.stream import DiskMatrix as DiskMatrix
    from castalia.data.tables import Column as Column
    from castalia.data.tables import Dataset as Dataset
    from castalia.data.tables import Schema as Schema
    from castalia.data.tables import TableEncoder as TableEncoder
    from castalia.data.trees import Tree as Tree

_HOMES = {
    "augment": "Augment Crop Cutout Flip LabelNoise Mask Mixup Noise Recolor Rotate Shift Zoom",
    "data_reader": "read",
    "graphs": "Graph Graphs graph_profile read_graph read_graphs",
    "images": "ImageAdapter Images",
    "row_splits": "grouped holdout kfold leave_one_out temporal",
    "sequences": "SequenceAdapter Sequences read_sequences read_signals windows",
    "signal_adapter": "SignalAdapter",
    "stream": "DiskMatrix",
    "table_adapter": "TableAdapter",
    "tables": "Column Dataset Schema TableEncoder",
    "text": "TextAdapter",
    "tokenizers": "BPETokenizer ByteBPETokenizer CharTokenizer PretrainedTokenizer RuleTokenizer "
    "SentencePieceTokenizer Tokenizer UnigramTokenizer WhitespaceTokenizer WordPieceTokenizer "
    "WordPunctTokenizer",
    "trees": "Tree TreeAdapter",
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = ["datasets", *_NAMES]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'castalia.data' has no attribute {name!r}")
    home = import_module(f"castalia.data.{_NAMES.get(name, name)}")
    value = globals()[name] = getattr(home, name) if name in _NAMES else home
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
