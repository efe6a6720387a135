"""The records that saved models may hold, by names that never change."""

from castalia.base.saved_values import register
from castalia.data import augment, tokenizers
from castalia.data.graphs import GraphSetAdapter, LinkAdapter, NodeAdapter
from castalia.data.images import ImageAdapter
from castalia.data.prompts import ChatTemplate
from castalia.data.row_adapter import RowAdapter
from castalia.data.sequences import SequenceAdapter, SeriesAdapter
from castalia.data.signal_adapter import SignalAdapter
from castalia.data.table_adapter import TableAdapter
from castalia.data.tabular_adapter import TabularAdapter
from castalia.data.text import (
    ConversationAdapter,
    DocumentAdapter,
    LanguageAdapter,
    LayoutAdapter,
    NGramAdapter,
    PairAdapter,
    SentenceAdapter,
    SpanAdapter,
    StreamAdapter,
    TextAdapter,
    TwinAdapter,
    WordAdapter,
)
from castalia.data.trees import TreeAdapter
from castalia.nn.adaptation.bottleneck_adapters import BottleneckAdapters
from castalia.nn.adaptation.lora import LoRA
from castalia.nn.adaptation.soft_prompts import Prompts
from castalia.optim import Schedule
from castalia.train import Training

__all__: list[str] = []

register(Training, "Training")
register(Schedule, "Schedule")
register(TableAdapter, "TableAdapter")
register(TabularAdapter, "TabularAdapter")
register(ImageAdapter, "ImageAdapter")
register(RowAdapter, "RowAdapter")
register(NodeAdapter, "NodeAdapter")
register(LinkAdapter, "LinkAdapter")
register(GraphSetAdapter, "GraphSetAdapter")

# Random changes of images are settings of an estimator; the name of a file's record is theirs.
for _transform in (
    augment.AlternatingFlip,
    augment.Augment,
    augment.Crop,
    augment.CutMix,
    augment.Cutout,
    augment.Flip,
    augment.LabelNoise,
    augment.Mask,
    augment.Mixup,
    augment.Noise,
    augment.RandAugment,
    augment.Recolor,
    augment.Rotate,
    augment.Shift,
    augment.TrivialAugment,
    augment.WithBoxes,
    augment.WithMasks,
    augment.Zoom,
):
    register(_transform, f"augment.{_transform.__name__}")
register(SignalAdapter, "SignalAdapter")
register(SequenceAdapter, "SequenceAdapter")
register(TreeAdapter, "TreeAdapter")
register(SeriesAdapter, "SeriesAdapter")
register(LanguageAdapter, "LanguageAdapter")
register(StreamAdapter, "StreamAdapter")
register(ConversationAdapter, "ConversationAdapter")
register(ChatTemplate, "ChatTemplate")
register(TextAdapter, "TextAdapter")
register(NGramAdapter, "NGramAdapter")
register(DocumentAdapter, "DocumentAdapter")
register(PairAdapter, "PairAdapter")
register(TwinAdapter, "TwinAdapter")
register(WordAdapter, "WordAdapter")
register(SpanAdapter, "SpanAdapter")
register(LayoutAdapter, "LayoutAdapter")
register(SentenceAdapter, "SentenceAdapter")
for _adaptation in (LoRA, BottleneckAdapters, Prompts):
    register(_adaptation, f"nn.{_adaptation.__name__}")
for _name in tokenizers.__all__:
    _kind = getattr(tokenizers, _name)
    if isinstance(_kind, type) and issubclass(_kind, tokenizers.Tokenizer):
        register(_kind, _name)
