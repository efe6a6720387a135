"""The records that saved models may hold, by names that never change."""

from castalia.base.codec import register
from castalia.data import tokenizers
from castalia.data.adapters import TableAdapter
from castalia.optim import Schedule
from castalia.train import Training

__all__: list[str] = []

register(Training, "Training")
register(Schedule, "Schedule")
register(TableAdapter, "TableAdapter")
for _name in tokenizers.__all__:
    _kind = getattr(tokenizers, _name)
    if isinstance(_kind, type) and issubclass(_kind, tokenizers.Tokenizer):
        register(_kind, _name)
