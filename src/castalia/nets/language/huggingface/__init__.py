"""Folders of Hugging Face's libraries as networks, and networks as such folders."""

from castalia.nets.language.huggingface.checkpoint_folder import read_config
from castalia.nets.language.huggingface.pretrained_networks import load_pretrained, save_pretrained
from castalia.nets.language.huggingface.task_folders import TaskFolder, load_task, save_task

__all__ = [
    "TaskFolder",
    "load_pretrained",
    "load_task",
    "read_config",
    "save_pretrained",
    "save_task",
]
