"""Folders of Hugging Face's libraries as networks, and networks as such folders."""

from castalia.nets.language.huggingface.checkpoint_folder import read_config
from castalia.nets.language.huggingface.pretrained_networks import load_pretrained, save_pretrained

__all__ = ["load_pretrained", "read_config", "save_pretrained"]
