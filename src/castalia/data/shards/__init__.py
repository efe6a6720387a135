"""Tar shards in the layout of WebDataset: images, texts and records, several files a sample."""

from castalia.data.shards.shard_reader import hold_images, read_shards, shard_files
from castalia.data.shards.tar_store import TarStore

__all__ = ["TarStore", "hold_images", "read_shards", "shard_files"]
