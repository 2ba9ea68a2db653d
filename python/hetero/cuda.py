"""Tensors on a GPU: copied out of the agent's memory on a stream of their own, converted there."""

from __future__ import annotations

import collections
import contextlib
import os
import sys
import weakref
from typing import Any, Deque, Dict, List, Tuple

from .arena import Arena, Owners
from .connection import Message
from .views import HandOver, Pictures, array_of

_COPIES_AT_ONCE = 2  # whose slots may still be taken


class CudaViews:
    """Copies run beside the model's kernels, two batches ahead; a slot is given back once its copy is done."""

    ahead = 2

    def __init__(self, pictures: Pictures, raw: bool, device: Any, arena: Arena) -> None:
        import torch

        self._pictures = pictures
        self._raw = raw
        self._device = device
        self._copies = torch.cuda.Stream(device)
        self._under_way: Deque[Tuple[Any, Any]] = collections.deque()  # (event after the copy, what keeps the slot)
        self._pin(arena)

    def arrays(self, owners: Owners, fields: List[Message]) -> Tuple[Dict[str, Any], HandOver]:
        import torch

        self._let_go()
        with torch.cuda.device(self._device), torch.cuda.stream(self._copies):
            copied = {
                str(field["name"]): torch.from_numpy(array_of(owners, field)).to(self._device, non_blocking=True)
                for field in fields
            }
            event = torch.cuda.Event()
            event.record(self._copies)
            self._under_way.append((event, owners))
            tensors = {name: self._finish(name, tensor) for name, tensor in copied.items()}
            finished = torch.cuda.Event()
            finished.record(self._copies)

        handed = list(tensors.values())  # the ids too, which the batch takes out of the dictionary

        def hand_over() -> None:
            computing = torch.cuda.current_stream(self._device)
            computing.wait_event(finished)
            for tensor in handed:
                tensor.record_stream(computing)  # its memory is not the copying stream's again before it was used

        return tensors, hand_over

    def _finish(self, name: str, tensor: Any) -> Any:
        if name not in self._pictures or self._raw:
            return tensor
        conversion = self._pictures[name]
        return conversion.with_torch(tensor) if conversion is not None else tensor.movedim(-1, -3)

    def _let_go(self) -> None:
        while self._under_way and (len(self._under_way) >= _COPIES_AT_ONCE or self._under_way[0][0].query()):
            event, _ = self._under_way[0]
            event.synchronize()
            self._under_way.popleft()

    def _pin(self, arena: Arena) -> None:
        """Without it the copies are slower and wait for the GPU, but right. Undone before the arena is unmapped."""
        import torch

        torch.cuda.init()
        with torch.cuda.device(self._device):
            result = torch.cuda.cudart().cudaHostRegister(arena.address(), arena.size, 0)
        if int(result) == 0:
            self._arena = arena
            weakref.finalize(self, _unpin, arena.address(), self._copies, os.getpid()).atexit = False
        else:
            _forget_error(self._device)
            print(
                f"hetero: the batches' {arena.size} bytes could not be pinned (cudaHostRegister: {int(result)}); "
                "copies to the GPU are slower. Is the locked memory limited (ulimit -l)?",
                file=sys.stderr,
                flush=True,
            )


def _unpin(address: int, copies: Any, pid: int) -> None:
    if os.getpid() != pid:
        return  # a child process has no use of its parent's GPU
    import torch

    copies.synchronize()
    torch.cuda.cudart().cudaHostUnregister(address)


def _forget_error(device: Any) -> None:
    """CUDA keeps the last error, and PyTorch would take it for that of its next kernel."""
    import torch

    with contextlib.suppress(RuntimeError):
        torch.zeros(1, device=device).add_(1)
