"""Loops over a stream: epochs, the batches of one, a validation pass."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Iterator, Optional

from .batch import Batch
from .errors import MisuseError, ProtocolError

if TYPE_CHECKING:
    from .stream import Stream


class Loop:
    """The batches that are left of one epoch."""

    def __init__(self, stream: "Stream", epoch: Optional[int] = None) -> None:
        self._stream = stream
        self._epoch = epoch  # None: the one at hand at the first batch
        self._over = False
        self._thread: Optional[int] = None
        stream._loop = self

    def __iter__(self) -> "Loop":
        return self

    def __next__(self) -> Batch:
        stream = self._stream
        if self._over:
            if stream._loop is self and stream.step >= stream.total_steps:
                _end(stream)
            raise StopIteration
        self._check()
        epoch, left = _epoch_at(stream, stream._position())
        if self._epoch is None:
            self._epoch = epoch
        if left and epoch != self._epoch:
            raise MisuseError(
                f"epoch {self._epoch} is over, and the stream is at epoch {epoch}: an epoch is read once. Take each "
                "from stream.epochs(), or loop over the stream itself"
            )
        if not left:
            self._over = True
            _end(stream)
            raise StopIteration
        batch = stream._next()
        if batch is None:
            self._over = True
            raise StopIteration
        if batch.epoch != self._epoch:
            raise ProtocolError(f"the agent gave a batch of epoch {batch.epoch} in epoch {self._epoch}")
        self._over = batch.place.last_of_epoch and batch.place.last_of_step
        return batch

    def _check(self) -> None:
        if self._stream._loop is not self:
            raise MisuseError(
                "another loop over this stream has begun since: a stream is read by one loop at a time; leave the "
                "other one, or keep its batches in a list"
            )
        thread = threading.get_ident()
        if self._thread is None:
            self._thread = thread
        if self._thread != thread:
            raise MisuseError(
                "two threads loop over one stream: its batches have an order. Let one thread read and hand batches to "
                "the others by a queue"
            )


class Epoch:
    """One epoch, or what is left of it; a number to Python (`f"{epoch}"`, `int(epoch)`)."""

    def __init__(self, stream: "Stream", index: int, batches: int) -> None:
        self._stream = stream
        self.index = index
        self._batches = batches

    def __iter__(self) -> Iterator[Batch]:
        return Loop(self._stream, self.index)

    def __len__(self) -> int:
        """Batches that were left when the epoch was handed out."""
        return self._batches

    def __index__(self) -> int:
        return self.index

    __int__ = __index__

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return str(self.index)

    def __repr__(self) -> str:
        return f"hetero.Epoch({self.index}, {self._batches} batches)"


class Epochs:
    """The epochs that are left."""

    def __init__(self, stream: "Stream") -> None:
        self._stream = stream
        self._handed_out_at: Optional[int] = None  # step

    def __iter__(self) -> "Epochs":
        return self

    def __next__(self) -> Epoch:
        step = self._stream._position()
        epoch, left = _epoch_at(self._stream, step)
        if not left:
            _end(self._stream)
            raise StopIteration
        if step == self._handed_out_at:
            raise MisuseError(
                f"no batch of epoch {epoch} was asked for, and the next one: epochs come in their order and none is "
                "skipped. To begin later, load a state (stream.load_state_dict)"
            )
        self._handed_out_at = step
        return Epoch(self._stream, epoch, left * self._stream.accumulation)


class ValidationLoop:
    """One pass over this rank's share of the validation set; the pass begins with the first batch asked for."""

    def __init__(self, stream: "Stream") -> None:
        self._stream = stream
        self._batches: Optional[int] = None
        self._over = False

    def __iter__(self) -> "ValidationLoop":
        return self

    def __len__(self) -> int:
        self._begin()
        return self._batches or 0

    def __next__(self) -> Batch:
        if self._over:
            raise StopIteration
        self._begin()
        batch = self._stream._next(validation=True) if self._batches else None
        if batch is None:
            self._over = True
            raise StopIteration
        return batch

    def _begin(self) -> None:
        if self._batches is None:
            self._batches = self._stream._begin_validation() if self._stream.validation_samples else 0


def _epoch_at(stream: "Stream", step: int) -> "tuple[int, int]":
    """The epoch that step `step` belongs to, and how many of its steps are left from there; none at the end."""
    if step >= stream.total_steps:
        return stream.total_steps // max(1, stream.steps_per_epoch), 0
    epoch, done = divmod(step, stream.steps_per_epoch)
    return epoch, min(stream.steps_per_epoch - done, stream.total_steps - step)


def _end(stream: "Stream") -> None:
    """Asks beyond the last batch, which tells the agent that its step is done, too."""
    if not stream._ended and stream._next() is not None:
        raise ProtocolError(f"the agent gave a batch after the last of {stream.total_steps} steps")
