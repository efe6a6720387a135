"""What a training leaves in its run folder: metrics in the store, checkpoints in files."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from castalia.errors import DamagedFile, WriteFailed
from castalia.train.checkpoint import latest_checkpoint, write_checkpoint
from castalia.train.checkpoint_pace import CheckpointPace
from castalia.train.runs import Run, RunStore
from castalia.train.shard_files import read_shards, shards_are_whole, write_shards
from castalia.train.state import TrainState
from castalia.train.state_trees import flatten, unflatten
from castalia.train.strategy import Single
from castalia.utils.held_signals import uninterrupted

__all__ = ["Recorder"]

CLOCKED = 50  # steps after which the clock is asked
SHOWN = 1.0  # seconds after which an epoch's line is there for others to read
SHARDED = ("net", "optimizers", "objective", "average", "best", "random")  # of a checkpoint
POSITION = ("stage", "stage_index", "epoch", "step", "total", "lr", "history", "best", "stopped")


class Recorder:
    """Writes and resumes one run; does nothing without a folder.

    Parameters
    ----------
    path
        Folder of the run, or None.
    seed
        Seed of a new run; a resumed one keeps the seed it began with.
    fingerprint
        Identifies settings and data: a run is resumed only by the training that began it.
    config
        Settings shown to people who read the run later.
    """

    def __init__(
        self, path: Any, seed: int = 0, fingerprint: str = "", config: dict[str, Any] | None = None
    ) -> None:
        self.seed, self.pace, self._shown = seed, CheckpointPace(), 0.0
        self.strategy: Single = Single()
        self.run: Run | None = None
        self.folder: Path | None = None
        if path is not None:
            path = Path(path)
            self.store = RunStore(path.parent)
            self.run = self.store.open_run(path.name, fingerprint, {**(config or {}), "seed": seed})
            self.seed = self._kept_seed()
            self.folder = self.run.folder / "checkpoints"

    @property
    def active(self) -> bool:
        """Whether there is a run to record to."""
        return self.run is not None

    def _kept_seed(self) -> int:
        seed = self.run.config.get("seed") if self.run is not None else None
        if type(seed) is not int:
            raise DamagedFile(
                f"Training: the run `{self.run}` must have a whole number as its seed; got "
                f"{seed!r}. Choose another `run`."
            )
        return seed

    def resume(self, device: torch.device) -> dict[str, Any] | None:
        """Take the run's folder; return its last checkpoint, or None to start afresh."""
        if self.run is None or self.folder is None:
            return None
        self._begin(self.run)
        found = latest_checkpoint(
            self.folder, clean=self.strategy.rank == 0, shards_are_whole=self._whole
        )
        if found is None:
            return None
        tensors, state = found
        saved = unflatten(tensors, state)
        if self.strategy.rank == 0:
            self.run.truncate(saved["position"]["total"])
        if saved["finished"]:
            self.finish()
        return saved

    def _begin(self, run: Run) -> None:
        """Take the run from the first process; where it cannot have it, no process goes on."""
        if self.strategy.rank == 0:
            try:
                run.resume()
            except BaseException:
                self.strategy.agree(0)
                raise
        if not self.strategy.agree(1):
            raise WriteFailed("Training: the first process could not use the run's folder.")

    def save(self, state: TrainState, payload: dict[str, Any]) -> None:
        """Write a checkpoint, from the first process; where they divide weights, from all."""
        if self.run is None or self.folder is None:
            return
        here = self.strategy.rank == 0 and not self.run.gone
        if not (self.strategy.agree(int(here)) if self.strategy.sharded else here):
            return
        with self.pace.writing():
            if here:
                self.run.flush()  # a resumed run has every point up to here
                self.folder.mkdir(parents=True, exist_ok=True)
            if self.strategy.sharded:
                payload = self._divided(self.folder, payload)
            if here:
                position = {name: getattr(state, name) for name in POSITION}
                tensors, tree = flatten({"position": position, **payload})
                write_checkpoint(self.folder, state.total, tensors, tree)

    def _divided(self, folder: Path, payload: dict[str, Any]) -> dict[str, Any]:
        """Write the tensors of all processes as shards; return the rest, which names them."""
        tensors, tree = flatten({name: payload.pop(name) for name in SHARDED})
        name = f"{self.strategy.agree(secrets.randbits(31)):08x}.shards"
        digests = write_shards(folder / name, tensors)
        return {**payload, "shards": {"folder": name, "digests": digests, "tree": tree}}

    def _whole(self, folder: Path, digests: dict[str, str]) -> bool:
        """Whether shards are as they were written; each process checks some."""
        rank, world = self.strategy.rank, self.strategy.world
        bad = torch.tensor(float(not shards_are_whole(folder, digests, rank, world)))
        return not any(map(bool, self.strategy.gather(bad)))

    def fetch(
        self, saved: dict[str, Any], template: dict[str, Any], kinds: tuple[str, ...] = SHARDED
    ) -> dict[str, Any]:
        """Return a checkpoint with what it keeps in shards: as ``template``, or else whole."""
        shards = saved.get("shards")
        if shards is None or self.folder is None:
            return saved
        tree = {name: shards["tree"][name] for name in kinds}
        tensors = read_shards(self.folder / shards["folder"], flatten(template)[0], kinds)
        return {**saved, **unflatten(tensors, tree)}

    def is_due(self, every: int | None = None, step: int = 0) -> bool:
        """Whether a checkpoint is due: after so many steps, or by the first process's clock."""
        if not self.active or step % (every or CLOCKED):
            return False
        return every is not None or bool(self.strategy.agree(int(self.pace.is_due)))

    def log(self, state: TrainState, line: dict[str, Any]) -> None:
        """Add an epoch's line to the metrics."""
        if self.run is not None and self.strategy.rank == 0:
            numbers = {
                k: float(v)
                for k, v in line.items()
                if isinstance(v, int | float) and math.isfinite(v)
            }
            self.run.log(state.total, int(line["epoch"]), numbers)
            if time.monotonic() - self._shown >= SHOWN:
                self.run.flush()
                self._shown = time.monotonic()

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Mark the run as failed, or as interrupted by Ctrl-C, where the work inside ends so.

        Its last checkpoint stays.
        """
        try:
            yield
        except BaseException as error:
            self._close("failed" if isinstance(error, Exception) else "interrupted")
            raise

    def finish(self) -> None:
        """Mark the run as finished."""
        self._close("finished")

    def _close(self, status: str) -> None:
        if self.run is not None:
            with uninterrupted():
                if self.strategy.rank == 0:
                    self.run.finish(status)
                self.store.close()
