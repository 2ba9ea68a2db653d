"""The stream of batches of one rank."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import weakref
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Union

import numpy as np

from .batch import Batch, Place
from .batches import Batches
from .connection import Connection, Message
from .errors import HeteroError, MisuseError, ProtocolError
from .facts import JobFacts
from .loops import Epoch, Epochs, Loop, ValidationLoop
from .numbers import numbers_of
from .standalone import Attached, place_of
from .version import __version__
from .views import torch_is_imported

PROTOCOL = 1
SOCKET = "HETERO_STREAM_SOCKET"
STATE_FORMAT = 1

_HELLO_TIMEOUT = 60.0


class Stream(JobFacts):
    """Batches that the job's CPU workers have prepared, each a function of the manifest, each sample once.

    Inside a job `hetero.Stream()` finds its agent by the environment. `hetero.Stream("job.yaml")` needs no job: it
    starts head and CPU workers on this machine and ends them with the process.

        stream = hetero.Stream()
        for epoch in stream.epochs():
            for images, labels in epoch:
                ...

    With torch imported the stream is a `torch.utils.data.IterableDataset` whose `iter()` is one epoch:
    `DataLoader(stream, batch_size=None, num_workers=0)`.

    One thread loops over the batches; the other methods may be called from any thread. The agent serves the process
    that opened the stream and no child of it.
    """

    def __new__(cls, *_: Any, device: Any = None, **__: Any) -> "Stream":
        if cls is Stream and (device is not None or torch_is_imported()):
            from .torch_stream import TorchStream

            return object.__new__(TorchStream)
        return object.__new__(cls)

    def __init__(
        self,
        job: Union[str, "os.PathLike[str]", None] = None,
        *,
        device: Any = None,
        raw: bool = False,
        channels_last: bool = False,
        overrides: Optional[Mapping[str, Any]] = None,
        output: Union[str, "os.PathLike[str]", None] = None,
    ) -> None:
        """Connects to the agent; no batch is asked for yet.

        `job`: a manifest to run on this machine, for a script that no job has started; `overrides`
        ({"training.maxSteps": 10}) and the folder `output` are its alone. `device`: where tensors go (torch is imported
        for it); None leaves them in the agent's memory or, converted, on the CPU. `raw`: pictures as uint8
        [n, H, W, C], without Normalize and Cast. `channels_last`: converted pictures lie in memory as
        torch.channels_last has them, for a model that does, too; the shape is [n, C, H, W] either way. Of several views
        of a sample, [n, views, ...], each is laid out so.
        """
        self._attached: Optional[Attached] = None
        path = os.environ.get(SOCKET)
        if path is None:
            if job is None:
                raise MisuseError(
                    "no job has started this script: run it by a manifest with training.script (hetero-runtime local "
                    'job.yaml), or name one: hetero.Stream("job.yaml")'
                )
            _close_earlier(place_of(job, output))
            self._attached = Attached(job, overrides or {}, output)
            path = self._attached.socket
        elif overrides or output is not None:
            raise MisuseError("a job has started this script: its manifest cannot be changed by overrides or output")
        self._lock = _CallLock()
        self._begun = False
        self._ended = False
        self._loaded: Optional[Dict[str, Any]] = None
        self._step = 0  # steps of which every batch was yielded
        self._last: Optional[Place] = None  # of the batch yielded last
        self._loop: Optional[Loop] = None
        self._checkpoints: Dict[int, bool] = {}
        connection: Optional[Connection] = None
        try:
            self._connection = connection = Connection(path)
            _connections.add(connection)
            self._welcome = self._hello(device)
            self._batches = Batches(self._connection, self._welcome, device, raw, channels_last)
            _streams.add(self)
        except BaseException:
            if connection is not None:
                connection.close()
            if self._attached is not None:
                self._attached.close()
            raise

    def __len__(self) -> int:
        """Batches of one whole epoch; `len(epoch)` counts what is left of one."""
        return min(self.steps_per_epoch, self.total_steps) * self.accumulation

    # --- Batches ---

    @property
    def step(self) -> int:
        """Steps that were yielded, the one in hand included; what `state_dict()` counts."""
        return self._step

    @property
    def weight(self) -> float:
        """Of the batch yielded last; see Batch."""
        return self._last.weight if self._last is not None else 1.0

    def epochs(self) -> Iterator[Epoch]:
        """The epochs that are left, the first of them from the position that was loaded.

        An epoch that is left early goes on where it was left.
        """
        return Epochs(self)

    def __iter__(self) -> Iterator[Batch]:
        """The batches that are left of the epoch at hand; none after the last epoch."""
        return Loop(self)

    def validation(self) -> ValidationLoop:
        """The validation set, every sample once over all ranks; training stands still where it is.

        All ranks ask for a pass alike. Empty without `dataset.validation`.
        """
        return ValidationLoop(self)

    # --- Position ---

    def state_dict(self) -> Dict[str, Any]:
        """The position after the batches yielded so far, the one in hand included: take it after the optimiser's step.

        Plain numbers and strings, the same on every rank at the same step: any rank's may be saved.
        """
        with self._lock:
            if not self._begun:
                return dict(self._loaded) if self._loaded is not None else self._first_state()
            self._check_step_end("a state")
            return dict(self._connection.request({"type": "state", "step": self._step})["state"])

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on after the batches that a state has counted; before the first batch, the same state on every rank."""
        state = dict(state_dict)
        if state.get("format") != STATE_FORMAT:
            raise MisuseError(
                f"this is no state of a stream, or one of a later version: format {state.get('format')!r} instead of "
                f"{STATE_FORMAT}; load what stream.state_dict() returned"
            )
        with self._lock:
            if self._begun and state.get("step") != self._step:
                raise MisuseError(
                    f"the stream has begun and is at step {self._step}; a state (of step {state.get('step')}) is "
                    "loaded before the first batch, right after hetero.Stream()"
                )
            if not self._begun:
                self._loaded = state
                self._step = int(state.get("step", 0))

    def should_checkpoint(self) -> bool:
        """Whether to save now, after the step yielded last: by training.checkpoint of the manifest, and before the job
        stops or this pod leaves it. The same on all ranks for the same step; every rank has to ask after every step."""
        with self._lock:
            if self._last is None or not self._last.last_of_step:
                return False
            if self._step not in self._checkpoints:
                answer = self._connection.request({"type": "checkpoint", "step": self._step})
                self._checkpoints = {self._step: bool(answer["save"])}
            return self._checkpoints[self._step]

    def report(self, **values: Any) -> None:
        """Numbers for the job's report and status: `stream.report(loss=loss, accuracy=0.9)`. Tensors of one element are
        read, which waits for a GPU; so not necessarily after every step."""
        self._connection.check_process()
        numbers = numbers_of(values)
        # The agent has given out more when batches are fetched ahead.
        self._connection.post({"type": "report", "values": numbers, "step": self._step}, now=True)

    # --- The end ---

    def close(self) -> None:
        """No more batches will be asked for. Arrays of batches stay valid."""
        if not self._connection.closed:
            with contextlib.suppress(HeteroError, SystemExit):  # it is over either way
                if self._has_all and not self._ended:
                    self._next()  # a framework that counts steps leaves its loop before the end
                self._connection.request({"type": "bye"}, timeout=10.0)
            self._connection.close()
        if self._attached is not None:
            self._attached.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"hetero.Stream(rank {self.rank} of {self.world_size}, step {self._step} of {self.total_steps})"

    def __getitem__(self, _: Any) -> Any:
        raise MisuseError(
            "a stream has no random access. For a DataLoader, import torch before hetero.Stream() is called: it is "
            "then an IterableDataset"
        )

    def __reduce__(self) -> Any:
        raise MisuseError(
            "a stream cannot be sent to another process: DataLoader(stream, batch_size=None, num_workers=0) reads it "
            "in this one; the agent and the CPU workers do what loader workers are for"
        )

    def _first_state(self) -> Dict[str, Any]:
        # Known without the other ranks, which may be waiting for this one somewhere else.
        return {
            "format": STATE_FORMAT,
            "fingerprint": self._welcome["fingerprint"],
            "seed": self.seed,
            "epoch": 0,
            "step": 0,
            "slot": 0,
            "global_batch": self.batch_size * self.world_size * self.accumulation,
            "digest": "0" * 32,
        }

    @property
    def _has_all(self) -> bool:
        return self._begun and self._step >= self.total_steps

    # --- For the loops ---

    def _begin(self) -> None:
        """States this rank's position; returns when all ranks have stated the same one."""
        if self._begun:
            return
        answer = self._connection.request({"type": "begin", "position": self._loaded})
        self._begun = True
        self._step = int(answer["step"])

    def _position(self) -> int:
        with self._lock:
            self._begin()
            return self._step

    def _next(self, validation: bool = False) -> Optional[Batch]:
        """The next batch, or None at the end of the stream or of a validation pass."""
        with self._lock:
            if validation:
                return self._batches.next(validation=True)
            self._begin()
            batch = self._batches.next()
            if batch is None:
                self._ended = True
                return None
            try:
                self._batches.fetch_ahead(batch.place)
            except BaseException:  # Ctrl-C
                self._batches.put_back(batch)
                raise
            self._last = batch.place
            self._step = batch.step + (1 if batch.place.last_of_step else 0)
            return batch

    def _begin_validation(self) -> int:
        with self._lock:
            return self._batches.begin_validation()

    def _check_step_end(self, what: str) -> None:
        if self._last is not None and not self._last.last_of_step:
            raise MisuseError(
                f"{what} can be taken at the end of a step: this is batch {self._last.micro + 1} of "
                f"{self.accumulation} of step {self._last.step} (gradientAccumulationSteps)"
            )

    # --- Opening ---

    def _hello(self, device: Any) -> Message:
        one_file = False
        if device is not None:
            import torch as framework

            one_file = framework.device(device).type != "cpu"  # it is pinned once
        torch = sys.modules.get("torch")
        answer = self._connection.request(
            {
                "type": "hello",
                "protocol": PROTOCOL,
                "package": __version__,
                "pid": os.getpid(),
                "python": ".".join(str(part) for part in sys.version_info[:3]),
                "numpy": np.__version__,
                "torch": str(getattr(torch, "__version__", "")) or None,
                "one_file": one_file,
            },
            timeout=_HELLO_TIMEOUT,
        )
        if answer["type"] != "welcome":
            raise ProtocolError(f"the agent answered 'hello' by '{answer['type']}'")
        return answer


class _CallLock:
    """One call at a time; a thread that is inside one, and in a signal's handler, is told so instead of waiting."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: Optional[int] = None

    def __enter__(self) -> None:
        thread = threading.get_ident()
        if self._owner == thread:
            raise MisuseError(
                "the stream is in the middle of another call of this thread: a signal's handler cannot use it. Let the "
                "handler set a flag and look at it after the step; should_checkpoint() is true before a stop anyway"
            )
        self._lock.acquire()
        self._owner = thread

    def __exit__(self, *_: Any) -> None:
        self._owner = None
        self._lock.release()


_streams: "weakref.WeakSet[Stream]" = weakref.WeakSet()
_connections: "weakref.WeakSet[Connection]" = weakref.WeakSet()


def _abandon() -> None:
    # A child that kept the socket open would hide from the agent that the script has ended.
    for connection in list(_connections):
        connection.abandon()
    for stream in list(_streams):
        stream._lock = _CallLock()  # another thread may have had it


def _close_earlier(place: Tuple[str, str]) -> None:
    # A notebook's cell that is run again: its variable still holds the stream of the last time.
    for stream in list(_streams):
        if stream._attached is not None and stream._attached.place == place:
            stream.close()


@atexit.register
def _close_at_exit() -> None:
    # A script that ends well need not close the stream that it has opened by a manifest, or has read to the end.
    for stream in list(_streams):
        if getattr(sys, "last_value", None) is None and (stream._attached is not None or stream._has_all):
            stream.close()


os.register_at_fork(after_in_child=_abandon)
