"""New networks from trained ones: LoRA, bottleneck adapters, prompt tuning, copied weights."""

from castalia.nn.adaptation.bottleneck_adapters import Bottleneck, BottleneckAdapters
from castalia.nn.adaptation.lora import LoRA, LoRALinear, merge_lora, unmerge_lora
from castalia.nn.adaptation.soft_prompts import Prompted, Prompts
from castalia.nn.adaptation.weight_transfer import CopiedWeights, copy_weights

__all__ = [
    "Bottleneck",
    "BottleneckAdapters",
    "CopiedWeights",
    "LoRA",
    "LoRALinear",
    "Prompted",
    "Prompts",
    "copy_weights",
    "merge_lora",
    "unmerge_lora",
]
