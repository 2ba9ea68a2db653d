"""The agent's memory with the batches, mapped once, and who still looks at which part of it."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import mmap
import os
import select
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from .errors import MisuseError, ProtocolError

_SAY_AFTER = 30.0  # seconds of waiting for a slot


class Arena:
    """The mapping of one stream: `slots` parts of `slot_bytes` each, of which a batch has one.

    A batch's pictures may lie in another file instead, which the agent has passed on. A slot, and what lies there
    besides, is given back when the last array or tensor over its bytes has died, in whichever order and thread that
    happens. The memory of a process that was forked meanwhile shows the same bytes, so the slot stays taken until that
    child has ended or become another program.
    """

    def __init__(
        self, descriptor: int, *, slots: int, slot_bytes: int, may_hold: int, give_back: Callable[[int], None]
    ) -> None:
        """Takes the descriptor over. `may_hold`: batches at a time, then the agent waits for one to be given back.

        `give_back(slot)` may be called from any thread, also by the garbage collector.
        """
        self.size = slots * slot_bytes
        self._map = _map(descriptor, self.size)
        self._files: Dict[int, _File] = {}  # beside the arena, by number
        self.may_hold = may_hold
        self._slots = slots
        self._slot_bytes = slot_bytes
        self._type = ctypes.c_ubyte * slot_bytes
        self._give_back = give_back
        self._taken: Dict[int, _Taken] = {}  # by their number
        self._numbers = itertools.count()
        self._forks: List[_Fork] = []
        self._pid = os.getpid()
        _arenas.add(self)

    def take(self, slot: int, content: str, files: Sequence[int] = ()) -> "Owners":
        """The bytes of a slot, and of files in which its batch lies besides.

        From `commit(owners)` on they are given back once all of them have died; before, the slot may be taken again.
        """
        if not 0 <= slot < self._slots:
            raise ProtocolError(
                f"there is no slot {slot} among the arena's {self._slots}; this is an error of the agent"
            )
        owners = Owners(next(self._numbers))
        owners[0] = self._type.from_buffer(self._map, slot * self._slot_bytes)
        for file in files:
            if file not in self._files:
                raise ProtocolError(f"there is no file {file} of batches; this is an error of the agent")
            owners[file] = self._files[file].whole()
        self._taken[owners.number] = _Taken(slot, content, len(owners))
        for owner in owners.values():
            weakref.finalize(owner, Arena._released, weakref.ref(self), owners.number, self._pid).atexit = False
        return owners

    def commit(self, owners: "Owners") -> None:
        taken = self._taken.get(owners.number)
        if taken is not None:
            taken.committed = True

    def add_file(self, number: int, descriptor: int, size: int) -> None:
        """Takes the descriptor over."""
        self._files[number] = _File(_map(descriptor, size), ctypes.c_ubyte * size)

    def forget_file(self, number: int) -> None:
        """It is unmapped once the last array over it has died."""
        self._files.pop(number, None)

    def address(self) -> int:
        return ctypes.addressof(ctypes.c_ubyte.from_buffer(self._map))

    def held(self) -> List[str]:
        """What was not given back, oldest first."""
        return [taken.content for taken in list(self._taken.values())]

    def abandon(self) -> None:
        """In a child process: the slots are the parent's business."""
        self._pid = -1

    @staticmethod
    def _released(reference: "weakref.ref[Arena]", number: int, pid: int) -> None:
        arena = reference()
        if arena is None or os.getpid() != pid:
            return
        taken = arena._taken.get(number)
        if taken is None or not taken.release():
            return
        if not taken.committed:
            arena._taken.pop(number, None)
            return
        for fork in list(arena._forks):
            if number in fork.taken:
                fork.released.add(number)
        arena._free_unless_forked({number})

    def _free_unless_forked(self, numbers: Set[int]) -> None:
        for number in numbers:
            if any(number in fork.taken for fork in list(self._forks)):
                continue
            taken = self._taken.pop(number, None)
            if taken is not None:
                self._give_back(taken.slot)

    # A child of fork() inherits the write end of a pipe, and so do its own children. That all of them have ended, or
    # have become other programs, is the end of file at the read end.

    def before_fork(self) -> None:
        if self._taken and os.getpid() == self._pid:
            self._forks.append(_Fork(set(self._taken)))

    def after_fork_in_parent(self) -> None:
        for fork in list(self._forks):
            if fork.thread == threading.get_ident():  # others are about to fork, too
                fork.close_write_end()

    def after_fork_in_child(self) -> None:
        for fork in self._forks:
            fork.close_read_end()
        self._forks = []
        self.abandon()

    def look_after_forks(self, poll: Optional["select.poll"] = None) -> None:
        """Gives back what only children that are gone have held; `poll` gets the pipes of the others."""
        for fork in list(self._forks):
            if fork.over():
                self._forks.remove(fork)
                if poll is not None:
                    with contextlib.suppress(KeyError):
                        poll.unregister(fork.read_end)
                fork.close_read_end()
                self._free_unless_forked(set(fork.released))
            elif poll is not None and fork.released and fork.read_end >= 0:
                poll.register(fork.read_end, select.POLLIN)


class Owners(Dict[int, Any]):
    """What arrays are made over, each with the buffer protocol: the slot (0), and files by their number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number  # of the taking


class _Taken:
    def __init__(self, slot: int, content: str, owners: int) -> None:
        self.slot = slot
        self.content = content  # for messages
        self.committed = False
        self._left = itertools.count(owners - 1, -1)  # counted in one step: threads and finalizers are many

    def release(self) -> bool:
        """Whether the last of the owners has died."""
        return next(self._left) == 0


class _File(NamedTuple):
    map: mmap.mmap
    type: Any

    def whole(self) -> Any:
        return self.type.from_buffer(self.map)


def _map(descriptor: int, size: int) -> mmap.mmap:
    """Takes the descriptor over."""
    try:
        return mmap.mmap(descriptor, size)
    except (OSError, ValueError) as error:
        raise MisuseError(
            f"cannot map the agent's {size} bytes of batches ({error}); is the address space limited (ulimit -v)?"
        ) from None
    finally:
        os.close(descriptor)


class _Fork:
    def __init__(self, taken: Set[int]) -> None:
        self.taken = taken  # when the child began
        self.released: Set[int] = set()  # of these, what this process no longer looks at
        self.thread = threading.get_ident()
        try:
            self.read_end, self._write_end = os.pipe()
        except OSError:  # too many open files: it is never known that the child has ended
            self.read_end = self._write_end = -1

    def close_write_end(self) -> None:
        if self._write_end >= 0:
            os.close(self._write_end)
            self._write_end = -1

    def close_read_end(self) -> None:
        if self.read_end >= 0:
            os.close(self.read_end)
            self.read_end = -1

    def over(self) -> bool:
        if self.read_end < 0:
            return False
        poll = select.poll()
        poll.register(self.read_end, select.POLLIN)
        return bool(poll.poll(0))


_arenas: "weakref.WeakSet[Arena]" = weakref.WeakSet()


def _before_fork() -> None:
    for arena in list(_arenas):
        arena.before_fork()


def _after_fork_in_parent() -> None:
    for arena in list(_arenas):
        arena.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for arena in list(_arenas):
        arena.after_fork_in_child()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


class HoldingWatch:
    """Watches one wait for a batch: slots that children held, and whether the script itself is what it waits for."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._began = time.monotonic()
        self._said = False

    def __call__(self, poll: "select.poll") -> float:
        self._arena.look_after_forks(poll)
        waited = time.monotonic() - self._began
        held = self._arena.held()
        if not self._said and waited >= _SAY_AFTER and len(held) >= self._arena.may_hold:
            self._said = True
            print(
                f"hetero: waiting for a batch for {waited:.0f} s: the script holds all {self._arena.may_hold} that it "
                f"may ({', '.join(held[:8])}{', ...' if len(held) > 8 else ''}). Let go of them, or keep "
                "copies (tensor.clone(), array.copy()): a view of a part keeps its whole batch.",
                file=sys.stderr,
                flush=True,
            )
        return 1.0 if self._said else max(0.05, min(1.0, _SAY_AFTER - waited))
