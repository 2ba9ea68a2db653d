"""A stream's batches, from the agent's answers to arrays."""

from __future__ import annotations

import collections
from typing import Any, Deque, Dict, List, Optional, Tuple, Union

from .arena import Arena, HoldingWatch
from .batch import Batch, Place
from .connection import DESCRIPTOR, Connection, Message
from .conversion import Conversion
from .errors import MisuseError, ProtocolError
from .views import HandOver, NumpyViews, Pictures, TorchViews, torch_is_imported

_NEXT: Message = {"type": "next"}
_NEXT_VALIDATION: Message = {"type": "next", "validation": True}

# A batch with what is to be done when the script gets it, the end, or what the script is to be told instead.
_Fetched = Union[Tuple[Batch, HandOver], BaseException, None]


class Batches:
    """One thread at a time uses it."""

    def __init__(self, connection: Connection, welcome: Message, device: Any, raw: bool, channels_last: bool) -> None:
        """Takes over the file descriptor that came with `welcome`."""
        self._connection = connection
        self._welcome = welcome
        self._accumulation = int(welcome["accumulation"])
        self._total_steps = int(welcome["total_steps"])
        self.arena = self._map()
        self.views = self._make_views(device, raw, channels_last)
        self.fetched: Deque[_Fetched] = collections.deque()  # ahead of the script
        # By whether they are of validation: answers of which no batch was made yet. Making one may be interrupted.
        self._unmade: Dict[bool, Message] = {}

    def next(self, validation: bool = False) -> Optional[Batch]:
        """The next batch; None at the end of the stream or of a validation pass."""
        if validation:
            return self._handed_over(self._fetch(True))
        # It stays there until it is the script's: what comes between, Ctrl-C or an error of the device, loses nothing.
        if not self.fetched:
            self.fetched.append(self._fetch(False))
        first = self.fetched[0]
        if isinstance(first, BaseException):
            self.fetched.popleft()
        batch = self._handed_over(first)
        self.fetched.popleft()
        return batch

    def put_back(self, batch: Batch) -> None:
        """`batch`, which `next` has returned last, is the next one again."""
        self.fetched.appendleft((batch, lambda: None))

    def begin_validation(self) -> int:
        """Begins a pass; how many batches it has. What was asked for and not taken of the one before is dropped."""
        answer = self._connection.request({"type": "validation"})
        for old in (self._unmade.pop(True, None), self._connection.take_late(_NEXT_VALIDATION)):
            if old is not None and old["type"] == "batch":
                self.arena.commit(self.arena.take(int(old["slot"]), "a validation batch", self._files(old)))
        return int(answer["batches"])

    @staticmethod
    def _handed_over(fetched: _Fetched) -> Optional[Batch]:
        if isinstance(fetched, BaseException):
            raise fetched
        if fetched is None:
            return None
        batch, hand_over = fetched
        hand_over()
        return batch

    def fetch_ahead(self, last: Place) -> None:
        """Takes what the agent has ready after batch `last`, as far as the device wants it; waits for nothing."""
        if self.fetched:
            latest = self.fetched[-1]
            if latest is None or isinstance(latest, BaseException):
                return
            last = latest[0].place
        while len(self.fetched) < self.views.ahead:
            if last.last_of_step and last.step + 1 >= self._total_steps:
                return  # the end is asked for when the last step is done
            try:
                if not self._connection.ask_ahead(_NEXT):
                    return
                self.fetched.append(self._fetch(False))
            except (Exception, SystemExit) as error:
                self.fetched.append(error)  # for when the script comes to it
            latest = self.fetched[-1]
            if latest is None or isinstance(latest, BaseException):
                return
            last = latest[0].place

    def _fetch(self, validation: bool) -> Optional[Tuple[Batch, HandOver]]:
        request = _NEXT_VALIDATION if validation else _NEXT
        self.arena.look_after_forks()
        if validation not in self._unmade:
            self._unmade[validation] = self._connection.request(request, watch=HoldingWatch(self.arena))
        answer = self._unmade[validation]
        if answer["type"] == "end":
            del self._unmade[validation]
            return None
        if answer["type"] != "batch":
            raise ProtocolError(f"the agent answered 'next' by '{answer['type']}'")
        place = self._place(answer, validation)
        name = f"{'validation batch' if validation else 'step'} {place.step}"
        owners = self.arena.take(int(answer["slot"]), name, self._files(answer))
        fields, hand_over = self.views.arrays(owners, answer["fields"])
        del self._unmade[validation]
        self.arena.commit(owners)
        return Batch(fields, fields.pop("id", None), place), hand_over

    def _files(self, answer: Message) -> List[int]:
        """The files beside the arena in which a batch lies; takes in what the answer says of them."""
        for number in answer.get("forgotten", ()):
            self.arena.forget_file(int(number))
        if DESCRIPTOR in answer:
            new_file = answer["new_file"]
            self.arena.add_file(int(new_file["number"]), answer.pop(DESCRIPTOR), int(new_file["bytes"]))
        return [int(field["file"]) for field in answer["fields"] if "file" in field]

    def _place(self, answer: Message, validation: bool) -> Place:
        micro = int(answer.get("micro", 0))
        return Place(
            step=int(answer["step"]),
            epoch=int(answer["epoch"]),
            step_in_epoch=int(answer["step_in_epoch"]),
            micro=micro,
            last_of_step=validation or micro + 1 >= self._accumulation,
            last_of_epoch=bool(answer["last_of_epoch"]),
            first_slot=int(answer["first_slot"]),
            count=int(answer["count"]),
            weight=float(answer["weight"]),
            validation=validation,
        )

    def _map(self) -> Arena:
        connection = self._connection

        def give_back(slot: int) -> None:
            connection.post({"type": "free", "slot": slot})

        welcome = self._welcome
        return Arena(
            welcome.pop(DESCRIPTOR),
            slots=int(welcome["slots"]),
            slot_bytes=int(welcome["slot_bytes"]),
            may_hold=int(welcome["may_hold"]),
            give_back=give_back,
        )

    def _make_views(self, device: Any, raw: bool, channels_last: bool) -> Any:
        pictures = self._pictures(raw, channels_last)
        if device is None and not torch_is_imported():
            return NumpyViews(pictures, raw)
        import torch

        place = torch.device(device) if device is not None else torch.device("cpu")
        if place.type == "cpu":
            return TorchViews(pictures, raw)
        if place.type != "cuda":
            raise MisuseError(
                f"device {str(place)!r}: tensors can be on 'cpu' or 'cuda'; move others yourself (tensor.to)"
            )
        if place.index is None:
            place = torch.device("cuda", torch.cuda.current_device())
        from .cuda import CudaViews

        return CudaViews(pictures, raw, place, self.arena)

    def _pictures(self, raw: bool, channels_last: bool) -> Pictures:
        """The image and the further views of a sample, which have Normalize and Cast of their own."""
        shapes = {field["name"]: field["shape"] for field in self._welcome["fields"]}
        pictures: Dict[str, Optional[Conversion]] = {}
        for name, given in {"image": self._welcome.get("conversion"), **self._welcome.get("views", {})}.items():
            pictures[name] = None
            if given and not raw:
                width = int(shapes[name][-2])
                pictures[name] = Conversion(given["scale"], given["offset"], width, channels_last)
        return pictures
