"""One token after the other, with everything on the device.

A step reads nothing back: the last token, what was written, which rows have ended and whether a
score was no number are tensors. On CUDA a step is therefore recorded once as a graph and replayed,
which costs one launch a token instead of hundreds; `recordings` keeps the graph for later calls.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from castalia.errors import InvalidData
from castalia.nets.language.decoding.fused_decode import Step
from castalia.nets.language.decoding.greedy_choice import write_greatest
from castalia.nets.language.decoding.prompt_tensors import Reader
from castalia.nets.language.decoding.token_picker import Picker
from castalia.nn.attention import Cache

__all__ = ["Loop"]

WARM_UP = 2  # eager steps on a side stream before recording, as torch asks for
LOOK = 16  # tokens between two checks whether all rows have ended
SHORT = 2048  # tokens of prompts: reading more keeps the device busy, and recorded needs memory


class Loop:
    """The state of a generation.

    Parameters
    ----------
    read
        The network and the prompts.
    pick
        How a token is chosen.
    room
        New tokens at most.
    stop
        Tokens that end a row.
    cache
        What was seen; None computes everything again for each token.
    context
        With no cache: the longest text the network reads; older tokens fall out. None: no bound.
    """

    def __init__(
        self,
        read: Reader,
        pick: Picker,
        *,
        room: int,
        stop: tuple[int, ...] = (),
        cache: Cache | None,
        context: int | None = None,
    ) -> None:
        self.read, self.pick, self.cache, self.context = read, pick, cache, context
        ids = read.first.ids
        rows, device = len(ids), ids.device
        self.stop = torch.tensor(stop, dtype=torch.long, device=device) if stop else None
        self.written = torch.zeros(room, rows, dtype=torch.long, device=device)
        self.cursor = torch.zeros(1, dtype=torch.long, device=device)
        self.last = torch.zeros(rows, 1, dtype=torch.long, device=device)
        self.ended = torch.zeros(rows, dtype=torch.bool, device=device)
        self.sound = torch.zeros(rows, device=device)  # NaN where a score was no number
        self.used: Tensor | None = None  # (B, V): tokens that occurred
        self.records = cache is not None and ids.is_cuda
        self.ids = ids.clone()  # a recording reads them here
        self.begins_again = False
        self.beginning: torch.cuda.CUDAGraph | None = None  # reads the prompts
        self.graph: torch.cuda.CUDAGraph | None = None  # a step
        self.fused: Step | None = None  # reads the last tokens in its own way

    def restart(self, read: Reader) -> None:
        """Begin with other prompts of the same sizes; what was recorded stays."""
        self.read, self.begins_again = read, True
        self.ids.copy_(read.first.ids)
        for state in (self.cursor, self.ended, self.sound):
            state.zero_()
        if self.used is not None:
            self.used.copy_(self._occurring(self.used))
        if self.cache is not None:
            self.cache.restart(read.first.keep)
        if self.fused is not None:
            self.fused.restart()

    def run(self, tokens: int, pad: int = 0) -> Tensor:
        """Return the new tokens, (B, N); after the end of a row stands ``pad``."""
        if self.cache is None:
            self.step_from_start()
        else:
            self._begin(self.cache)
        for count in range(1, tokens):
            if (count % LOOK == 0 or not self.records) and self._all_ended():
                break
            self._next(count)
        self._check()
        return self._result(tokens, pad)

    def _begin(self, cache: Cache) -> None:
        """Read the prompts and write the first tokens; from the second time on as recorded."""
        short = self.begins_again and self.ids.numel() <= SHORT
        if self.beginning is None and short and self.records:
            self.beginning = self._record(self.read_prompts, cache)
        if self.beginning is None:
            self.read_prompts()
        else:
            self.beginning.replay()
            cache.seen = self.ids.shape[1]

    def read_prompts(self) -> None:
        """Read the prompts and write the first tokens."""
        self.take(self.read(self.ids, None, self.cache))

    def _next(self, count: int) -> None:
        if self.cache is None:
            self.step_from_start()
        elif not self.records:
            self.step()
        elif self.graph is None and count <= WARM_UP:
            _aside(self.step)
        else:
            self.graph = self.graph or self._record(self.step, self.cache)
            self.step() if self.graph is None else self.graph.replay()

    def step(self) -> None:
        """Read the last token and write the next."""
        if self.fused is not None:
            self.take(self.fused(self.last))
        else:
            self.take(self.read(self.last, None, self.cache))

    def step_from_start(self) -> None:
        """Read the whole text and write the next token."""
        count = int(self.cursor)
        new, first = self.written[:count].T, self.read.first
        ids = torch.cat([first.ids, new], dim=1)
        keep = first.keep
        if keep is not None:
            keep = torch.cat([keep, torch.ones_like(new, dtype=torch.bool)], dim=1)
        if self.context is not None and ids.shape[1] > self.context:
            ids = ids[:, -self.context :]
            keep = None if keep is None else keep[:, -self.context :]
        self.take(self.read(ids, keep, None))

    def take(self, logits: Tensor) -> None:  # (B, V)
        """Choose the next tokens and write them."""
        used = self._note(logits)
        greedy = self.pick.temperature == 0 and used is None
        if not (greedy and write_greatest(logits, *self._places())):
            self._write(*self.pick.choose(logits, used))
        if self.stop is not None:
            self.ended |= (self.last == self.stop).any(dim=1)
        if used is not None:
            used.scatter_(1, self.last, True)

    def _places(self) -> tuple[Tensor, ...]:
        return self.sound, self.written, self.cursor, self.last

    def _write(self, score: Tensor, chosen: Tensor) -> None:
        self.sound.add_(score, alpha=0)  # 0 times NaN or infinity is NaN
        self.written.index_copy_(0, self.cursor, chosen[None])
        self.last.copy_(chosen[:, None])
        self.cursor.add_(1)

    def _note(self, logits: Tensor) -> Tensor | None:
        """Return which tokens have occurred, where a penalty needs it."""
        if self.used is None and self.pick.repetition_penalty != 1:
            self.used = self._occurring(logits)
        return self.used

    def _occurring(self, like: Tensor) -> Tensor:
        """Return which tokens the prompts hold, (B, V)."""
        first = self.read.first
        real = torch.ones_like(first.ids) if first.keep is None else first.keep.long()
        return torch.zeros_like(like, dtype=torch.long).scatter_add_(1, first.ids, real) > 0

    def _record(self, act: Callable[[], None], cache: Cache) -> torch.cuda.CUDAGraph | None:
        """Return an act recorded, which computed nothing; None where it cannot be."""
        graph, seen = torch.cuda.CUDAGraph(), cache.seen
        torch.cuda.synchronize()
        try:
            with torch.cuda.graph(graph):
                act()
        except Exception:  # a network of the user's own that reads back or changes shapes
            torch.cuda.synchronize()
            chance = torch.cuda.default_generators[torch.cuda.current_device()]
            chance.graphsafe_set_state(chance.clone_state())  # or it waits for the recording's end
            self.records = False
            return None
        finally:
            cache.seen = seen
        return graph

    def _result(self, tokens: int, pad: int) -> Tensor:
        """Return what was written, (B, N), with padding after the first stop token."""
        written = self.written[:tokens]
        if self.stop is None:
            return written.T.clone()
        stops = torch.isin(written, self.stop)
        after = stops.cumsum(dim=0) - stops.long() > 0
        return written.masked_fill(after, pad).T

    def _all_ended(self) -> bool:
        return self.stop is not None and bool(self.ended.all())

    def _check(self) -> None:
        broken = self.sound.isnan()
        if bool(broken.any()):
            rows = broken.nonzero().flatten().tolist()
            raise InvalidData(
                "generate: the scores of the next token must be finite numbers; got NaN or "
                f"infinity in row {rows[0]} ({len(rows)} of {len(broken)} rows). Look for NaN "
                "in the weights, or use a wider precision."
            )


def _aside(step: Callable[[], None]) -> None:
    """Take a step on a side stream."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
