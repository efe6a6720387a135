"""The records that saved models may hold, by names that never change."""

from castalia.base.codec import register
from castalia.data.adapters import TableAdapter
from castalia.data.images import ImageAdapter
from castalia.data.signals import SignalAdapter
from castalia.optim import Schedule
from castalia.train import Training

__all__: list[str] = []

register(Training, "Training")
register(Schedule, "Schedule")
register(TableAdapter, "TableAdapter")
register(ImageAdapter, "ImageAdapter")
register(SignalAdapter, "SignalAdapter")
